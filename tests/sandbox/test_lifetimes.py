"""What remains of a call when it ends, is stopped or is cancelled: nothing."""

import asyncio
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from maniple.sandbox import Sandbox
from maniple.workspace import Workspace
from tests.sandbox.host import all_end, as_process_one, new_marker, stubborn_daemon, watched, word_from_inside

pytestmark = pytest.mark.anyio


_FOREVER = "while True: pass"


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_code_that_cannot_be_interrupted_is_ended_with_every_process(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    code = (
        stubborn_daemon(marker) + "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + _FOREVER
    )
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(hasty_sandbox.run_python(code, key="thread", workspace=workspace))
        assert await word == "started"
        with watched(marker) as processes:
            assert len(processes) == 1
            completed = await call
            assert all_end(processes, within_seconds=0)
    assert completed.timed_out
    assert completed.seconds < 15
    assert completed.text().startswith("so far\n[timeout: stopped after 4")
    assert "processes are gone" in completed.lost


async def test_a_background_process_runs_until_its_session_ends(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        completed = await sandbox.run_python(stubborn_daemon(marker), key="thread", workspace=workspace)
        assert await word == "started"
        with watched(marker) as processes:
            assert len(processes) == 1
            await sandbox.run_bash("true", key="thread", workspace=workspace)
            assert not all_end(processes, within_seconds=0)
            await sandbox.stop("thread")
            assert all_end(processes, within_seconds=0)
    assert completed.stdout == "so far\n"


async def test_cancelling_ends_every_process_within_two_seconds(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(
            sandbox.run_python(stubborn_daemon(marker) + _FOREVER, key="thread", workspace=workspace)
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
    before = _open_descriptors()
    for steps in range(20):
        call = asyncio.create_task(sandbox.run_bash("sleep 15", key="thread", workspace=workspace))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    completed = await sandbox.run_bash("echo still well", key="thread", workspace=workspace)
    assert completed.stdout == "still well\n"
    await sandbox.stop("thread")
    end = time.monotonic() + 60
    while _open_descriptors() > before:  # the watchdog may be measuring
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_a_call_cancelled_twice_still_ends(sandbox: Sandbox, workspace: Workspace) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(
            sandbox.run_python(stubborn_daemon(marker) + _FOREVER, key="thread", workspace=workspace)
        )
        assert await word == "started"
        with watched(marker) as processes:
            call.cancel()
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert all_end(processes, within_seconds=2)


@pytest.mark.slow
async def test_no_orphan_is_left_to_the_hosts_first_process(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    with as_process_one() as children:
        await hasty_sandbox.run_bash("echo well", key="thread", workspace=workspace)
        async with word_from_inside(workspace.path) as word:
            call = asyncio.create_task(
                hasty_sandbox.run_python(
                    stubborn_daemon(marker) + _FOREVER, key="thread", workspace=workspace
                )
            )
            assert await word == "started"
            assert (await call).timed_out
        await hasty_sandbox.stop("thread")
        assert children() == []


async def test_a_cancelled_call_frees_its_place(sandbox: Sandbox, workspace: Workspace) -> None:
    calls = [
        asyncio.create_task(sandbox.run_bash("sleep 15", key=f"thread {number}", workspace=workspace))
        for number in range(8)
    ]
    waiting = asyncio.create_task(sandbox.run_bash("echo in turn", key="thread", workspace=workspace))
    await asyncio.sleep(0)
    for call in calls:
        call.cancel()
    completed = await waiting
    assert completed.stdout == "in turn\n"
    assert all(
        isinstance(end, asyncio.CancelledError)
        for end in await asyncio.gather(*calls, return_exceptions=True)
    )


async def test_the_sandbox_does_not_outlive_a_server_that_was_killed(
    tmp_path: Path, workspace: Workspace
) -> None:
    marker = new_marker()
    code = stubborn_daemon(marker) + _FOREVER
    server = f"""
import asyncio, pathlib
from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import open_sandbox
from maniple.workspace import Workspaces

async def main():
    async with open_sandbox(SandboxSettings()) as sandbox:
        workspace = Workspaces(pathlib.Path({str(workspace.path.parent)!r})).open("thread")
        await sandbox.run_python({code!r}, key="thread", workspace=workspace)

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
