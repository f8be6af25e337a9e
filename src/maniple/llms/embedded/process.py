"""Ending a child process for certain."""

import asyncio
import os
import signal
from asyncio.subprocess import Process
from contextlib import suppress


async def stop_process(process: Process, grace_seconds: float = 0) -> None:
    """End the process and reap it: SIGTERM and a grace, where one is given, then SIGKILL for its whole group.

    The process must lead its own session (`start_new_session=True`).
    """
    if grace_seconds and process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
