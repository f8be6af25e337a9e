"""Events as server-sent events, framed so that the LangManus client can read them."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
from sse_starlette import EventSourceResponse
from sse_starlette.sse import SendTimeoutError
from starlette.types import Message, Receive, Scope, Send

from maniple.api.farewell import closing_events
from maniple.api.revocation import KeyRevoked
from maniple.api.state import Service
from maniple.errors import ManipleError, StoreError
from maniple.events import as_json
from maniple.runs import ServiceStopping
from maniple.store import EventRecord, RunRecord

HEADERS = {"cache-control": "no-store", "connection": "keep-alive", "x-accel-buffering": "no"}
LAST_EVENT = "final_session_state"
SEND_SECONDS = 60
"""So long one piece may wait for a client that does not read, before the client counts as gone."""
_LOG = logging.getLogger(__name__)
_FRAME = {
    "type": "object",
    "description": "One event: its number in the run, its name, and its JSON.",
    "properties": {name: {"type": "string"} for name in ("id", "event", "data")},
    "required": ["event", "data"],
}
STREAM: dict[int | str, dict[str, Any]] = {
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
    """Return the response that tells of a run, beginning after event number `after`.

    A `timed` one says of each event when it happened, if that is known, as the last key of its data.
    When the run's key is revoked it ends, and the run goes on. With `on_leaving`, which is awaited when the
    client goes away (or does not read any more) before the end, the stream is the answer to a request: it is
    closed properly even when this process stops before the run has ended.
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
    """Lets go of a client that does not read.

    `send_timeout` of the library does not hold for the first and the last piece.
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
        async for piece in _told(service, run, after, timed=timed, is_answer=is_answer):
            yield piece


async def _told(
    service: Service, run: RunRecord, after: int, *, timed: bool, is_answer: bool
) -> AsyncIterator[bytes]:
    newest = ""
    cut: ManipleError | None = None
    try:
        pages = service.engine.events(run.run_id, after)
        async for page in service.key_watch.pages(run.owner, pages):
            # Many frames in one piece: a long replay is as fast as the network takes it.
            yield b"".join(_frame(record, timed=timed) for record in page)
            newest = page[-1].type
    except (StoreError, KeyRevoked) as error:
        cut = error
    if cut is None and is_answer and newest != LAST_EVENT:
        cut = ServiceStopping(
            "The service is stopping. The run goes on when it is back; follow it by its run_id."
        )
    if cut is not None:
        for event in await closing_events(service.store.events, run.run_id, cut):
            data = _dated(as_json(event), round(event.at, 3)) if timed else as_json(event)
            # Without a number: it is no part of the run's record.
            yield f"event: {event.type}\ndata: {data}\n\n".encode()


def _frame(record: EventRecord, *, timed: bool) -> bytes:
    data = _dated(record.data, record.at) if timed and record.at is not None else record.data
    return f"id: {record.number}\nevent: {record.type}\ndata: {data}\n\n".encode()


def _dated(data: str, at: float) -> str:
    """Return an event's JSON with one key more; no event is without data."""
    return f'{data[:-1]}, "at": {at}}}'
