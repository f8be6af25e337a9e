"""A Chromium that another program started, with its DevTools on loopback."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

_FLAGS = (
    "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-quic about:blank"
)


@dataclass(frozen=True)
class Elsewhere:
    """A running one."""

    process: asyncio.subprocess.Process
    url: str
    """Such as `http://127.0.0.1:9222`."""


@asynccontextmanager
async def open_elsewhere(executable: Path, port: int = 0) -> AsyncIterator[Elsewhere]:
    """Start one; it is killed at the end."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        own = (f"--remote-debugging-port={port}", f"--user-data-dir={profile}")
        process = await asyncio.create_subprocess_exec(
            executable, *own, *_FLAGS.split(), stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            yield Elsewhere(process, await asyncio.wait_for(_address(process), 60))
        finally:
            # With its children: they hold its standard error open.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async for line in process.stderr:
        if line.startswith(b"DevTools listening on ws://"):
            return "http://" + line.decode().split("ws://")[1].partition("/")[0]
    raise AssertionError("Chromium ended before it listened")
