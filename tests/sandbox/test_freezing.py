"""Background processes of resting sandboxes: what stops them, what continues them, and what ends them."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from maniple.sandbox import ExecutionResult, Sandbox
from maniple.sandbox import sessions as sessions_module
from maniple.sandbox.host import MachineMemory
from maniple.sandbox.usage import ProcessTable, find_inspector
from maniple.workspace import Workspace, Workspaces
from tests.sandbox.host import all_end, new_marker, stubborn_daemon, watched, word_from_inside
from tests.sandbox.opened import opened_sandbox

pytestmark = pytest.mark.anyio

_BUSY = """
import os, signal, subprocess, sys
busy = subprocess.Popen([sys.executable, "-c", "while True: pass"], start_new_session=True)
"""


def _table(sandbox: Sandbox, key: str) -> ProcessTable:
    session = sandbox._slots[key].session
    assert session is not None
    inside = find_inspector(session.pid)  # type: ignore[attr-defined]
    assert inside is not None
    return inside._table


def _states(table: ProcessTable) -> dict[str, str]:
    """The state's letter of each process inside, without process 1."""
    return {
        pid: stat.rpartition(b")")[2].split()[0].decode()
        for pid in table.pids()
        if pid != "1" and (stat := table.read(f"{pid}/stat"))
    }


async def _comes_true(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def _is_frozen(table: ProcessTable) -> None:
    await _comes_true(lambda: set(_states(table).values()) == {"T"})


async def _runs(table: ProcessTable) -> None:
    await _comes_true(lambda: "R" in _states(table).values())


async def _run(sandbox: Sandbox, tmp_path: Path, key: str, code: str) -> ExecutionResult:
    return await sandbox.run_python(code, key=key, workspace=Workspaces(tmp_path).open(key))


async def test_more_threads_than_calls_keep_their_variables(tmp_path: Path) -> None:
    async with opened_sandbox(concurrent=1, resident=5) as sandbox:
        for number in range(3):
            told = await asyncio.gather(
                *(_run(sandbox, tmp_path, key, "x = globals().get('x', 0) + 1; x") for key in "abcde")
            )
            assert [(one.value, one.lost) for one in told] == [(str(number + 1), "")] * 5


async def test_a_background_process_is_frozen_while_others_call_and_goes_on_in_its_own(
    tmp_path: Path,
) -> None:
    async with opened_sandbox(concurrent=1, resident=3) as sandbox:
        await _run(sandbox, tmp_path, "a", _BUSY)
        table = _table(sandbox, "a")
        await _runs(table)
        other = asyncio.create_task(_run(sandbox, tmp_path, "b", "import time; time.sleep(15)"))
        await _is_frozen(table)
        other.cancel()
        await asyncio.wait({other})
        completed = await _run(sandbox, tmp_path, "a", "busy.poll()")
        assert (completed.value, completed.lost) == ("", "")
        await _runs(table)
        table.close()


async def test_a_frozen_background_process_goes_on_without_calls(tmp_path: Path) -> None:
    async with opened_sandbox(concurrent=1, resident=2) as sandbox:
        await _run(sandbox, tmp_path, "a", _BUSY)
        table = _table(sandbox, "a")
        await _run(sandbox, tmp_path, "b", "1")
        await _runs(table)
        table.close()


async def test_a_process_that_code_has_stopped_stays_stopped(tmp_path: Path) -> None:
    async with opened_sandbox(concurrent=1, resident=2) as sandbox:
        stop = f"{_BUSY}\nbusy.send_signal(signal.SIGSTOP)\nos.waitpid(busy.pid, os.WUNTRACED)"
        started = await _run(sandbox, tmp_path, "a", f"{stop}\n{_BUSY}")
        assert started.exit_code == 0, started.text()
        table = _table(sandbox, "a")
        for _ in range(2):
            background = sandbox._slots["a"].session.background  # type: ignore[union-attr]
            assert background is not None
            background.freeze()
            background.freeze()
            await _is_frozen(table)
            background.thaw()
            await _runs(table)
            assert sorted(_states(table).values()).count("T") == 1
        table.close()


async def test_stopping_a_thread_ends_its_frozen_processes(workspace: Workspace) -> None:
    async with opened_sandbox() as sandbox:
        await _end_frozen(sandbox, workspace, lambda: sandbox.stop("t"))


async def test_closing_ends_frozen_processes(workspace: Workspace) -> None:
    async with opened_sandbox() as sandbox:
        await _end_frozen(sandbox, workspace, sandbox.close)


async def test_a_frozen_session_makes_room(tmp_path: Path, workspace: Workspace) -> None:
    async with opened_sandbox(concurrent=1, resident=1) as sandbox:
        await _end_frozen(sandbox, workspace, lambda: _run(sandbox, tmp_path, "b", "1"))
        completed = await sandbox.run_python("1", key="t", workspace=workspace)
    assert "others needed the place" in completed.lost


async def _end_frozen(sandbox: Sandbox, workspace: Workspace, end: Callable[[], Awaitable[object]]) -> None:
    """Start a daemon that ignores signals, freeze it, and check that `end` leaves nothing of it."""
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        await sandbox.run_python(stubborn_daemon(marker), key="t", workspace=workspace)
        assert await word == "started"
    table = _table(sandbox, "t")
    background = sandbox._slots["t"].session.background  # type: ignore[union-attr]
    assert background is not None
    background.freeze()
    await _is_frozen(table)
    table.close()
    with watched(marker) as processes:
        assert len(processes) == 1
        await end()
        assert all_end(processes, within_seconds=10)


async def test_low_memory_ends_the_session_that_has_rested_for_longest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_sandbox(concurrent=1, resident=4) as sandbox:
        for key in "abc":
            await _run(sandbox, tmp_path, key, "x = 1")
        monkeypatch.setattr(sessions_module, "read_machine_memory", lambda: MachineMemory(2**40, 1000))
        await _run(sandbox, tmp_path, "c", "x")
        await _comes_true(lambda: "a" not in sandbox._slots)
        assert (await _run(sandbox, tmp_path, "c", "x")).value == "1"
        await _comes_true(lambda: "b" not in sandbox._slots)
        assert (await _run(sandbox, tmp_path, "c", "x")).value == "1", "one may stay whatever the memory is"
