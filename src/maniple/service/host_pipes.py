"""Serving the program that started this one over its standard input and output."""

import asyncio
import logging
import os
import signal
import stat
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from maniple.config import Settings
from maniple.errors import ManipleError
from maniple.llms.embedded import Progress
from maniple.service.opening import Service, open_service

MESSAGE_BYTES = 8_000_000
"""The size of one message."""
_DRAIN_SECONDS = 1.0
"""Short, because hosts kill a program that does not end quickly."""
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def open_in_background(
    settings: Settings, progress: Progress
) -> AsyncGenerator[asyncio.Future[Service]]:
    """Open the service in a separate task; yield its future, and close it at the end.

    If the service cannot be opened, the future has the `ManipleError`, which is raised at the end, too.
    """
    runs = settings.runs
    soon = runs.model_copy(update={"drain_seconds": min(runs.drain_seconds, _DRAIN_SECONDS)})
    settings = settings.model_copy(update={"runs": soon})
    opened: asyncio.Future[Service] = asyncio.get_running_loop().create_future()
    closing = asyncio.Event()

    async def hold_open() -> None:
        try:
            async with open_service(settings, progress, alone=False) as service:
                opened.set_result(service)
                await closing.wait()
        except Exception as error:
            if opened.done():
                raise
            # Every error is passed to the calls that wait for the team.
            _LOG.error("The team cannot be opened: %s", error)
            opened.set_exception(error)

    holding = asyncio.create_task(hold_open(), name="team")
    try:
        yield opened
    finally:
        closing.set()
        if not opened.done():
            holding.cancel()
        await asyncio.wait({holding})
    if not holding.cancelled():
        holding.result()
        opened.result()


async def until_signal(serving: asyncio.Task[None]) -> None:
    """Wait for the end of the input; SIGINT, SIGTERM and SIGHUP end the calls immediately."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, serving.cancel)
    with suppress(asyncio.CancelledError):
        await serving


def _is_connection(file: int) -> bool:
    """Return whether the event loop can wait for a file: a pipe, a socket or a terminal."""
    mode = os.fstat(file).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(file)


@asynccontextmanager
async def own_pipes(
    no_host: ManipleError,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Reserve standard input and output for the protocol; prints go to standard error meanwhile.

    Raises `no_host` if no program is at the other ends.
    """
    if not all(_is_connection(file) for file in (0, 1)):
        raise no_host
    loop = asyncio.get_running_loop()
    given = (os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    source, target = os.fdopen(os.dup(given[0]), "rb", 0), os.fdopen(os.dup(given[1]), "wb", 0)
    try:
        reader = asyncio.StreamReader(limit=MESSAGE_BYTES)
        incoming, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), source)
        outgoing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, target)
        yield reader, asyncio.StreamWriter(outgoing, protocol, None, loop)
        incoming.close()
        outgoing.close()
    finally:
        for own, file in enumerate(given):
            os.set_blocking(file, True)  # the shell shares the terminal
            os.dup2(file, own)
            os.close(file)
