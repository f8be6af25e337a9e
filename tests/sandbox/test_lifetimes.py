"""What remains of a call when it ends, is stopped or is cancelled: nothing."""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from maniple.sandbox import Sandbox, Workspace
from tests.sandbox.host import all_end, new_marker, watched, word_from_inside

pytestmark = pytest.mark.anyio


def _daemon(marker: str) -> str:
    """Python that leaves a `sleep` in a session of its own, which ignores signals and holds the output."""
    return f"""
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
subprocess.Popen(["sleep", "{marker}"], start_new_session=True)
print("so far", flush=True)
with open("word", "w") as word:
    word.write("started")
"""


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_timeout_says_what_was_printed_and_ends_every_process(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    code = _daemon(marker) + "while True: pass"
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(hasty_sandbox.run_python(code, workspace=workspace.path))
        assert await word == "started"
        with watched(marker) as processes:
            assert len(processes) == 1
            completed = await call
            assert all_end(processes, within_seconds=1)
    assert completed.timed_out
    assert completed.seconds < 4
    assert completed.text().startswith("so far\n[timeout: stopped after 2 seconds")


async def test_a_daemon_does_not_outlive_a_call_that_ended(sandbox: Sandbox, workspace: Workspace) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path):
        completed = await sandbox.run_python(_daemon(marker), workspace=workspace.path)
    assert completed.text() == "so far"
    assert completed.seconds < 2
    with watched(marker) as processes:
        assert all_end(processes, within_seconds=1)


async def test_cancelling_ends_every_process_within_two_seconds(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(
            sandbox.run_python(_daemon(marker) + "while True: pass", workspace=workspace.path)
        )
        assert await word == "started"
        with watched(marker) as processes:
            assert len(processes) == 1
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert all_end(processes, within_seconds=2)


async def test_a_call_cancelled_at_any_moment_leaves_nothing_open(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    before = _open_descriptors()
    for steps in range(20):
        call = asyncio.create_task(sandbox.run_bash(f"sleep {marker}", workspace=workspace.path))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    completed = await sandbox.run_bash("echo still well", workspace=workspace.path)
    assert completed.stdout == "still well\n"
    with watched(marker) as processes:
        assert all_end(processes, within_seconds=2)
    assert _open_descriptors() <= before


async def test_a_cancelled_call_frees_its_place(workspace: Workspace, sandbox: Sandbox) -> None:
    marker = new_marker()
    calls = [
        asyncio.create_task(sandbox.run_bash(f"sleep {marker}", workspace=workspace.path)) for _ in range(8)
    ]
    waiting = asyncio.create_task(sandbox.run_bash("echo in turn", workspace=workspace.path))
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    assert (await waiting).stdout == "in turn\n"
    assert await asyncio.gather(*calls, return_exceptions=True) != []
    with watched(marker) as processes:
        assert all_end(processes, within_seconds=2)


async def test_the_sandbox_does_not_outlive_a_server_that_was_killed(
    tmp_path: Path, workspace: Workspace
) -> None:
    marker = new_marker()
    code = _daemon(marker) + "while True: pass"
    server = f"""
import asyncio, pathlib
from maniple.config.settings import SandboxSettings
from maniple.sandbox import open_sandbox

async def main():
    async with open_sandbox(SandboxSettings()) as sandbox:
        await sandbox.run_python({code!r}, workspace=pathlib.Path({str(workspace.path)!r}))

asyncio.run(main())
"""
    async with word_from_inside(workspace.path) as word:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", server)
        try:
            assert await word == "started"
            with watched(marker) as processes:
                assert len(processes) == 1
                process.kill()
                assert all_end(processes, within_seconds=2)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
