"""Events as server-sent events, framed so that the LangManus client can read them."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

import anyio
from fastapi import Query
from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.types import Message, Receive, Scope, Send

from maniple.api.not_used import describe_not_used
from maniple.errors import ManipleError, StoreError
from maniple.events import (
    VIEWS,
    ErrorOccurred,
    RunView,
    SessionState,
    View,
    ViewName,
    WorkflowEnded,
    as_chat_message,
    history_digest,
    make_notice,
    record_of,
)
from maniple.runs import RunRequest, ServiceStopping
from maniple.service import Service
from maniple.service.callers import KeyRevoked
from maniple.store import EventRecord, EventTable, RunRecord, Store, read_event_pages

HEADERS = {"cache-control": "no-store", "connection": "keep-alive", "x-accel-buffering": "no"}
SEND_SECONDS = 60
"""The time in which a client must read one piece; after it the stream is closed."""
_WAITS_FOR_STORE = "waiting_for: store"
_LOG = logging.getLogger(__name__)
ViewQuery = Annotated[
    ViewName,
    Query(
        description="`langmanus`: one agent at a time. `live`: the true order; concurrent steps interleave"
    ),
]
"""The view that a stream shows."""


@dataclass(frozen=True, slots=True)
class StreamStart:
    """Where a stream of a run begins: after which frame of a view, and after which event of the log.

    `notice` is what the client is shown at first, as a text of the coordinator; it is no part of the view.
    """

    view: ViewName = "langmanus"
    after_frame: int = 0
    after_event: int = 0
    notice: str = ""


def event_stream(
    service: Service,
    run: RunRecord,
    start: StreamStart,
    *,
    timed: bool = False,
    on_leaving: Callable[[], Awaitable[object]] | None = None,
    not_used: Sequence[str] = (),
) -> EventSourceResponse:
    """Return the response that streams a run's events from `start`.

    With `timed`, `at` is the last key of each event's data, if the time is known. The stream ends when the
    run's key is revoked, and the run continues. `on_leaving` is awaited when the client disconnects or stops
    reading. It also marks the stream as the answer to a request, which gets its closing events even when this
    process stops before the run has ended. `not_used` are the fields of that request without an effect.
    """

    async def left(_: Message) -> None:
        if on_leaving is not None:
            await on_leaving()

    return ClosingStream(
        _frames(service, run, start, timed=timed, is_answer=on_leaving is not None),
        headers={**HEADERS, **describe_not_used(not_used)},
        media_type="text/event-stream; charset=utf-8",
        sep="\n",
        ping=service.settings.server.ping_seconds,  # pyright: ignore[reportArgumentType]
        ping_message_factory=lambda: _ping(service, run),
        client_close_handler_callable=left,
    )


def _ping(service: Service, run: RunRecord) -> ServerSentEvent:
    """Return the comment that a silent stream sends now and then, with the reason if the store is away."""
    waits = service.engine.waits_for_store(run.run_id)
    return ServerSentEvent(comment=_WAITS_FOR_STORE if waits else "ping", sep="\n")


class ClosingStream(EventSourceResponse):
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
    service: Service, run: RunRecord, start: StreamStart, *, timed: bool, is_answer: bool
) -> AsyncIterator[bytes]:
    with service.metrics.client():
        async for piece in _pieces(service, run, start, timed=timed, is_answer=is_answer):
            yield piece


async def _pieces(
    service: Service, run: RunRecord, start: StreamStart, *, timed: bool, is_answer: bool
) -> AsyncIterator[bytes]:
    newest, position = "", start.after_frame
    cut: ManipleError | None = None
    view = VIEWS[start.view](run.run_id)
    try:
        read_after = 0 if view.needs_whole_log else max(start.after_frame, start.after_event)
        pages = service.engine.events(run.run_id, read_after)
        async for page in service.key_watch.pages(run.owner, pages):
            # Many frames in one piece make a long replay as fast as the network.
            frames = [frame for record in page for frame in _shown(view, record, start)]
            if frames:
                if not newest:  # behind the first frame, which names the run
                    frames[1:1] = _notice_frames(run, start)
                yield b"".join(_frame(frame, timed=timed) for frame in frames)
                newest, position = frames[-1].type, frames[-1].number or frames[0].number
    except (StoreError, KeyRevoked) as error:
        cut = error
    if cut is None and is_answer and newest != SessionState.type:
        cut = ServiceStopping(
            "The service is stopping. The run continues after its restart; follow it by its run_id."
        )
    if cut is not None:
        for frame in await _closing_frames(service.store, run, start, position, cut):
            yield _frame(frame, timed=timed)


def _notice_frames(run: RunRecord, start: StreamStart) -> list[EventRecord]:
    """Return the frames without numbers that show the notice of a stream."""
    if not start.notice:
        return []
    notice = make_notice("coordinator", f"{run.run_id}_coordinator_notice0", start.notice)
    return [record_of(event, 0) for event in notice]


def _shown(view: View, record: EventRecord, start: StreamStart) -> Iterator[EventRecord]:
    for frame in view.feed(record):
        if frame.number > start.after_frame and record.number > start.after_event:
            yield frame


def _frame(record: EventRecord, *, timed: bool) -> bytes:
    data = _dated(record.data, record.at) if timed and record.at is not None else record.data
    number = f"id: {record.number}\n" if record.number else ""  # without one it is not part of the view
    return f"{number}event: {record.type}\ndata: {data}\n\n".encode()


def _dated(data: str, at: float) -> str:
    """Return an event's JSON with the key `at`; the data of an event is never empty."""
    return f'{data[:-1]}, "at": {at}}}'


async def _closing_frames(
    store: Store, run: RunRecord, start: StreamStart, position: int, reason: ManipleError
) -> list[EventRecord]:
    """Return the frames that close a stream whose run continues later, or could not be recorded.

    They follow from the frames up to `position`, the newest that was sent: the run itself may continue.
    The LangManus client drops the conversation when `end_of_workflow` is missing (`docs/wire.md`). The
    conversation that they return is that of the request; a client that sends it back continues the thread.
    """
    run_id, view, sent = run.run_id, VIEWS[start.view](run.run_id), RunView()
    with suppress(StoreError):
        async for page in read_event_pages(store.events, run_id):
            for record in page:
                was_before = record.number <= start.after_event
                frames = [frame for frame in view.feed(record) if was_before or frame.number <= position]
                sent.apply_records(frames)
    messages = sent.workflow_input or [as_chat_message(one) for one in RunRequest.of(run).messages]
    with suppress(StoreError):
        await store.threads.touch(run.thread_id, cut_history=history_digest(messages))
    error = ErrorOccurred(code=reason.code, message=str(reason), agent_name=None, retryable=reason.retryable)
    ends = [WorkflowEnded(workflow_id=run_id, messages=messages)] if sent.stream.has_workflow_started else []
    return [
        *view.closing_frames(sent.stream, error),
        *(record_of(event, 0) for event in (*ends, SessionState(messages=messages))),
    ]


async def frames_until(stored_events: EventTable, run_id: str, view: ViewName, event: int) -> int:
    """Return how many frames of a view the first `event` events of a run become."""
    shown, count = VIEWS[view](run_id), event
    if shown.needs_whole_log:
        count = 0
        async for page in read_event_pages(stored_events, run_id):
            for record in page:
                if record.number <= event:
                    count += sum(1 for _ in shown.feed(record))
    return count
