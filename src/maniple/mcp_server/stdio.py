"""The stdio transport of the server: this program's own input and output, which carry messages alone.

Not the SDK's own, which waits in a thread for a line that may never come, so that no signal ends it, and
takes lines of any length.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import anyio
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from maniple.api.state import Service, open_service
from maniple.config import Settings
from maniple.llms.embedded import Progress
from maniple.mcp.stdio import ThrottledStream, read_messages, write_messages
from maniple.mcp_server.server import TeamServer

MOST_BYTES = 8_000_000
"""Of one message."""
_DRAIN_SECONDS = 1.0
"""Hosts kill a server that does not end soon."""
_LOG = logging.getLogger(__name__)


async def serve_stdio(settings: Settings, progress: Progress) -> None:
    """Serve whoever started this program, until its input ends or SIGINT, SIGTERM or SIGHUP comes.

    Runs under way are left at a checkpoint, and go on when the team is served again. A `ManipleError` that
    keeps the team from opening is told to each call, and raised in the end.
    """
    runs = settings.runs
    soon = runs.model_copy(update={"drain_seconds": min(runs.drain_seconds, _DRAIN_SECONDS)})
    settings = settings.model_copy(update={"runs": soon})
    async with _own_pipes() as (reader, writer), _opening(settings, progress) as opened:
        server = TeamServer(settings, opened)
        async with _streams(reader, writer, server) as (read, write):
            protocol = server.protocol
            serving = protocol.run(read, write, protocol.create_initialization_options())
            await _until_signal(asyncio.create_task(serving, name="mcp server"), server)


@asynccontextmanager
async def _opening(settings: Settings, progress: Progress) -> AsyncIterator[asyncio.Future[Service]]:
    """Open the service in a task of its own; yield what it will be, and close it in the end."""
    opened: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    closing = asyncio.Event()

    async def keep() -> None:
        try:
            async with open_service(settings, progress, alone=False) as service:
                opened.set_result(service)
                await closing.wait()
        except Exception as error:
            if opened.done():
                raise
            # Whatever it is, those who wait for the team are to hear of it.
            _LOG.error("The team cannot be opened: %s", error)
            opened.set_exception(error)

    keeping = asyncio.create_task(keep(), name="team")
    try:
        yield opened
    finally:
        closing.set()
        if not opened.done():
            keeping.cancel()
        await asyncio.wait({keeping})
    if not keeping.cancelled():
        keeping.result()
        opened.result()


async def _until_signal(serving: asyncio.Task[None], server: TeamServer) -> None:
    """Wait for the end of the input; on a signal calls end at once, and their runs are left alone."""

    def leave() -> None:
        server.leave()
        serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, leave)
    with suppress(asyncio.CancelledError):
        await serving


@asynccontextmanager
async def _streams(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: TeamServer
) -> AsyncIterator[TransportStreams]:
    """Yield what the SDK reads and writes; when the input ends, the server is told before its calls are."""
    read_writer, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, write_reader = anyio.create_memory_object_stream[SessionMessage](0)

    async def reading() -> None:
        async with read_writer:
            reason = await read_messages(reader, read_writer)
            server.leave()
            _LOG.info("The client is gone: %s.", reason)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading)
            tasks.start_soon(write_messages, writer, write_reader)
            try:
                yield ThrottledStream(read, server.leave), write
            finally:
                tasks.cancel_scope.cancel()
    finally:
        for stream in (read, write, read_writer, write_reader):
            stream.close()


@asynccontextmanager
async def _own_pipes() -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Take input and output away from everybody else: what is printed goes to stderr meanwhile."""
    loop = asyncio.get_running_loop()
    given = (os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    source, target = os.fdopen(os.dup(given[0]), "rb", 0), os.fdopen(os.dup(given[1]), "wb", 0)
    try:
        reader = asyncio.StreamReader(limit=MOST_BYTES)
        incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, target)
        yield reader, asyncio.StreamWriter(outgoing, protocol, None, loop)
        incoming.close()
        outgoing.close()
    finally:
        for own, file in enumerate(given):
            os.set_blocking(file, True)  # a terminal is the shell's, too
            os.dup2(file, own)
            os.close(file)
