"""Following a run for a client of another protocol: its records, its end, and the stream to the client."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace

from starlette.types import Message

from maniple.api.sse import HEADERS, ClosingStream
from maniple.runs import AcceptedRun, NotFound, ServiceStopping
from maniple.service import Service
from maniple.store import EventRecord, RunRecord

PING_SECONDS = 10
"""The longest silence of a stream."""


async def follow_run(service: Service, accepted: AcceptedRun) -> AsyncGenerator[EventRecord]:
    """Yield the records of a run until it ends or waits.

    Raises `KeyRevoked` and the errors of `Engine.events`.
    """
    run = accepted.run
    pages = service.engine.events(run.run_id, accepted.after)
    async with aclosing(service.key_watch.pages(run.owner, pages)) as watched:
        async for page in watched:
            for record in page:
                yield record


async def read_newest(service: Service, run: RunRecord) -> RunRecord:
    """Return a run that was followed as it is now; one that was deleted with its thread is cancelled."""
    try:
        return await service.engine.status(run.run_id, run.owner)
    except NotFound:
        return replace(run, status="cancelled")


async def read_ended(service: Service, run: RunRecord) -> RunRecord:
    """Return a run that was followed to its end; raises `ServiceStopping` if this process stops before it."""
    run = await read_newest(service, run)
    if run.is_unfinished:
        raise make_stopping_error()
    return run


def make_stopping_error() -> ServiceStopping:
    """Return the error of a stream that ends before its run, which goes on."""
    return ServiceStopping("The service is stopping. The run goes on; send the same request again.")


def stream_frames(
    frames: AsyncIterator[bytes],
    headers: Mapping[str, str] | None = None,
    on_leaving: Callable[[], Awaitable[object]] | None = None,
) -> ClosingStream:
    """Return the response that streams frames of server-sent events, never silent for long.

    `on_leaving` is awaited when the client disconnects or stops reading.
    """

    async def leave(_: Message) -> None:
        if on_leaving is not None:
            await on_leaving()

    return ClosingStream(
        frames,
        headers={**HEADERS, **(headers or {})},
        media_type="text/event-stream; charset=utf-8",
        sep="\n",
        ping=PING_SECONDS,
        client_close_handler_callable=leave,
    )
