"""What remains of a call when it ends, is stopped or is cancelled: nothing."""

import asyncio
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from maniple.sandbox import Sandbox, Workspace
from maniple.sandbox.account import give_away
from tests.sandbox.host import all_end, as_process_one, new_marker, stubborn_daemon, watched, word_from_inside

pytestmark = pytest.mark.anyio


_FOREVER = "while True: pass"


def _open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_a_timeout_says_what_was_printed_and_ends_every_process(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    code = stubborn_daemon(marker) + _FOREVER
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(hasty_sandbox.run_python(code, workspace=workspace.path))
        assert await word == "started"
        with watched(marker) as processes:
            assert len(processes) == 1
            completed = await call
            assert all_end(processes, within_seconds=0)
    assert completed.timed_out
    assert completed.seconds < 4
    assert completed.text().startswith("so far\n[timeout: stopped after 2 seconds")


async def test_a_daemon_does_not_outlive_a_call_that_ended(sandbox: Sandbox, workspace: Workspace) -> None:
    marker = new_marker()
    code = stubborn_daemon(marker) + "open('go').read()"
    os.mkfifo(workspace.path / "go", 0o666)
    give_away(workspace.path / "go")
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(sandbox.run_python(code, workspace=workspace.path))
        assert await word == "started"
        with watched(marker) as processes:
            assert len(processes) == 1
            (workspace.path / "go").write_text("go")
            completed = await call
            assert all_end(processes, within_seconds=0)
    assert completed.text() == "so far"


async def test_cancelling_ends_every_process_within_two_seconds(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(
            sandbox.run_python(stubborn_daemon(marker) + _FOREVER, workspace=workspace.path)
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
        call = asyncio.create_task(sandbox.run_bash("sleep 15", workspace=workspace.path))
        for _ in range(steps):
            await asyncio.sleep(0)
        call.cancel()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    completed = await sandbox.run_bash("echo still well", workspace=workspace.path)
    assert completed.stdout == "still well\n"
    assert _open_descriptors() <= before


async def test_a_call_cancelled_twice_still_ends(sandbox: Sandbox, workspace: Workspace) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        call = asyncio.create_task(
            sandbox.run_python(stubborn_daemon(marker) + _FOREVER, workspace=workspace.path)
        )
        assert await word == "started"
        with watched(marker) as processes:
            call.cancel()
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert all_end(processes, within_seconds=2)


async def test_no_orphan_is_left_to_the_hosts_first_process(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    marker = new_marker()
    with as_process_one() as children:
        await hasty_sandbox.run_bash("echo well", workspace=workspace.path)
        async with word_from_inside(workspace.path) as word:
            call = asyncio.create_task(
                hasty_sandbox.run_python(stubborn_daemon(marker) + _FOREVER, workspace=workspace.path)
            )
            assert await word == "started"
            assert (await call).timed_out
        assert children() == []


async def test_a_cancelled_call_frees_its_place(sandbox: Sandbox, workspace: Workspace) -> None:
    calls = [asyncio.create_task(sandbox.run_bash("sleep 15", workspace=workspace.path)) for _ in range(8)]
    waiting = asyncio.create_task(sandbox.run_bash("echo in turn", workspace=workspace.path))
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
