"""Events as server-sent events, framed so that the LangManus client can read them."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Message, Receive, Scope, Send

from maniple.api.auth import KeyRevoked
from maniple.api.state import Service
from maniple.errors import ManipleError, StoreError
from maniple.events import ErrorOccurred, Event, RunView, SessionState, WorkflowEnded, as_json, load_run_view
from maniple.runs import ServiceStopping
from maniple.store import EventRecord, EventTable, RunRecord

HEADERS = {"cache-control": "no-store", "connection": "keep-alive", "x-accel-buffering": "no"}
SEND_SECONDS = 60
"""The time in which a client must read one piece; after it the stream is closed."""
_LOG = logging.getLogger(__name__)
_FRAME = {
    "type": "object",
    "description": "One event: its number in the run, its name, and its JSON.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
    "required": ["event", "data"],
}
STREAM_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Server-sent events, as `docs/wire.md` lists them",
        "content": {"text/event-stream": {"schema": _FRAME}},
    }
}


def event_stream(
    service: Service,
    run: RunRecord,
    *,
    after: int,
    timed: bool = False,
    on_leaving: Callable[[], Awaitable[object]] | None = None,
) -> EventSourceResponse:
    """Return the response that streams a run's events after event number `after`.

    With `timed`, `at` is the last key of each event's data, if the time is known. The stream ends when the
    run's key is revoked, and the run continues. `on_leaving` is awaited when the client disconnects or stops
    reading. It also marks the stream as the answer to a request, which gets its closing events even when this
    process stops before the run has ended.
    """

    async def left(_: Message) -> None:
        if on_leaving is not None:
            await on_leaving()

    return _Stream(
        _frames(service, run, after, timed=timed, is_answer=on_leaving is not None),
        headers=HEADERS,
        media_type="text/event-stream; charset=utf-8",
        sep="\n",
        ping=service.settings.server.ping_seconds,  # pyright: ignore[reportArgumentType]
        client_close_handler_callable=left,
    )


class _Stream(EventSourceResponse):
    """Closes the stream of a client that does not read.

    The library's `send_timeout` does not apply to the first and the last piece.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_in_time(message: Message) -> None:
            with anyio.move_on_after(SEND_SECONDS) as waiting:
                await send(message)
            if waiting.cancelled_caught:
                raise SendTimeoutError

        try:
            await super().__call__(scope, receive, send_in_time)
        except SendTimeoutError:
            _LOG.warning("A client read nothing for %s s; its stream was ended.", SEND_SECONDS)
            if self.client_close_handler_callable is not None:
                await self.client_close_handler_callable({"type": "http.disconnect"})


async def _frames(
    service: Service, run: RunRecord, after: int, *, timed: bool, is_answer: bool
) -> AsyncIterator[bytes]:
    with service.metrics.client():
        async for piece in _pieces(service, run, after, timed=timed, is_answer=is_answer):
            yield piece


async def _pieces(
    service: Service, run: RunRecord, after: int, *, timed: bool, is_answer: bool
) -> AsyncIterator[bytes]:
    newest = ""
    cut: ManipleError | None = None
    try:
        pages = service.engine.events(run.run_id, after)
        async for page in service.key_watch.pages(run.owner, pages):
            # Many frames in one piece make a long replay as fast as the network.
            yield b"".join(_frame(record, timed=timed) for record in page)
            newest = page[-1].type
    except (StoreError, KeyRevoked) as error:
        cut = error
    if cut is None and is_answer and newest != SessionState.type:
        cut = ServiceStopping(
            "The service is stopping. The run goes on when it is back; follow it by its run_id."
        )
    if cut is not None:
        for event in await closing_events(service.store.events, run.run_id, cut):
            data = _dated(as_json(event), round(event.at, 3)) if timed else as_json(event)
            # Without a number: it is not part of the run's record.
            yield f"event: {event.type}\ndata: {data}\n\n".encode()


def _frame(record: EventRecord, *, timed: bool) -> bytes:
    data = _dated(record.data, record.at) if timed and record.at is not None else record.data
    return f"id: {record.number}\nevent: {record.type}\ndata: {data}\n\n".encode()


def _dated(data: str, at: float) -> str:
    """Return an event's JSON with the key `at`; the data of an event is never empty."""
    return f'{data[:-1]}, "at": {at}}}'


async def closing_events(stored_events: EventTable, run_id: str, reason: ManipleError) -> list[Event]:
    """Return the events that close the stream of a run that continues later, or could not be recorded.

    They are made from the stored events alone: the run itself may still be going on. The LangManus client
    drops the conversation when `end_of_workflow` is missing (`docs/wire.md`).
    """
    view = RunView()
    with suppress(StoreError):
        view = await load_run_view(stored_events, run_id)
    messages = view.workflow_input
    events = [
        *view.stream.closing_events(),
        ErrorOccurred(code=reason.code, message=str(reason), agent_name=None, retryable=reason.retryable),
    ]
    if view.stream.has_workflow_started:
        events.append(WorkflowEnded(workflow_id=run_id, messages=messages))
    return [*events, SessionState(messages=messages)]
