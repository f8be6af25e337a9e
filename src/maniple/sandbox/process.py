"""Runs one process tree to its end, its timeout or its cancellation, and leaves nothing of it."""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from io import FileIO
from pathlib import Path

from maniple.sandbox.backend import Completed
from maniple.sandbox.output import Capture, captured_pipe

# How long the kernel may take to end a killed tree, and then to close its pipes.
_DEATH_SECONDS = 1.0


async def run_process(
    argv: Sequence[str], *, inherited: Iterable[int], timeout_seconds: float, output_bytes: int
) -> Completed:
    """Run `argv` with an empty environment, no input and the `inherited` descriptors.

    The program must bind its children's lives to its own, as bwrap does with --die-with-parent.
    Raises `OSError` when it cannot be started.
    """
    started = time.monotonic()
    async with captured_pipe(output_bytes) as (out_end, out), captured_pipe(output_bytes) as (err_end, err):
        with out_end, err_end:
            process = _start(argv, out_end, err_end, inherited)
        end = asyncio.ensure_future(_wait(process))
        timed_out = False
        try:
            async with asyncio.timeout(timeout_seconds):
                await asyncio.shield(end)
        except TimeoutError:
            timed_out = True
        finally:
            # Until `end` is done nobody has waited for the process, so its id is still its own.
            if not end.done():
                _kill(process.pid)
            await asyncio.shield(asyncio.ensure_future(_settle(process.pid, end, (out, err))))
        code = -signal.SIGKILL if process.returncode is None else process.returncode
        return Completed(
            exit_code=code if code >= 0 else 128 - code,
            stdout=out.text(),
            stderr=err.text(),
            seconds=time.monotonic() - started,
            timed_out=timed_out,
        )


def _start(
    argv: Sequence[str], out_end: FileIO, err_end: FileIO, inherited: Iterable[int]
) -> subprocess.Popen[bytes]:
    """Start a process group.

    Not asyncio's subprocess: that one can be cancelled between the fork and the moment we know whom to
    kill. Not in a worker thread: "parent" in die-with-parent means the thread that forked.
    """
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=out_end,
        stderr=err_end,
        env={},
        cwd="/",
        pass_fds=tuple(inherited),
        start_new_session=True,
    )


async def _wait(process: subprocess.Popen[bytes]) -> None:
    """Until the process has ended and is no zombie. Not cancelled but by the event loop's own end."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    descriptor = os.pidfd_open(process.pid)
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    except asyncio.CancelledError:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_DEATH_SECONDS)


def _kill(leader: int) -> None:
    """Kill what the leader waits for, so that it lives to reap it; with no child yet, its whole group.

    Were the leader killed first, its child would be left to the host's process 1, which in a container
    is often the server and reaps nothing.
    """
    try:
        children = Path(f"/proc/{leader}/task/{leader}/children").read_text().split()
    except OSError:  # a kernel without that file
        children = []
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(int(child), signal.SIGKILL)
    if not children:
        os.killpg(leader, signal.SIGKILL)


async def _settle(leader: int, end: asyncio.Future[None], captures: Iterable[Capture]) -> None:
    try:
        async with asyncio.timeout(_DEATH_SECONDS):
            await asyncio.shield(end)
    except TimeoutError:
        os.killpg(leader, signal.SIGKILL)
    # The tree's last holder of a pipe closes it by dying; one in an uninterruptible call may not.
    with suppress(TimeoutError):
        async with asyncio.timeout(_DEATH_SECONDS):
            await asyncio.shield(end)
            for capture in captures:
                await capture.closed.wait()
