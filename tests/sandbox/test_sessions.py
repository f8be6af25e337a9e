"""Who has a session and for how long: places, turns and idleness."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox import Sandbox, SandboxBackend, SandboxSession
from maniple.workspace import Workspace, Workspaces
from maniple.workspace.mirrors import MIRROR_FOLDERS
from tests.sandbox.host import all_end, as_process_one, new_marker, stubborn_daemon, watched, word_from_inside
from tests.sandbox.opened import opened_sandbox
from tests.sizes import sizes

pytestmark = pytest.mark.anyio


async def test_calls_of_one_thread_follow_one_another(sandbox: Sandbox, workspace: Workspace) -> None:
    calls = [
        sandbox.run_python(f"print({number}, [*globals()].count('x')); x = 1", key="t", workspace=workspace)
        for number in range(5)
    ]
    results = await asyncio.gather(*calls)
    assert [result.stdout for result in results] == ["0 0\n", *(f"{number} 1\n" for number in range(1, 5))]


async def test_a_session_that_is_not_used_ends(workspace: Workspace) -> None:
    marker = new_marker()
    async with opened_sandbox(idle_seconds=0.2) as sandbox:
        async with word_from_inside(workspace.path) as word:
            await sandbox.run_python(stubborn_daemon(marker), key="t", workspace=workspace)
            assert await word == "started"
            with watched(marker) as processes:
                assert len(processes) == 1
                assert await asyncio.to_thread(all_end, processes, 10)
        completed = await sandbox.run_python("1", key="t", workspace=workspace)
    assert "not been used" in completed.lost


async def test_a_session_that_is_used_again_and_again_does_not_end(workspace: Workspace) -> None:
    async with opened_sandbox(idle_seconds=3) as sandbox:
        await sandbox.run_python("x = 1", key="t", workspace=workspace)
        for _ in range(20):
            completed = await sandbox.run_python("x", key="t", workspace=workspace)
            assert (completed.value, completed.lost) == ("1", "")


async def test_a_stopped_thread_restarts_and_is_notified(sandbox: Sandbox, workspace: Workspace) -> None:
    await sandbox.run_python("x = 1", key="t", workspace=workspace)
    await sandbox.stop("t")
    await sandbox.stop("t")
    await sandbox.stop("never begun")
    completed = await sandbox.run_python("'x' in globals()", key="t", workspace=workspace)
    assert completed.value == "False"
    assert "with a cancelled run" in completed.lost


async def test_a_thread_whose_files_were_removed_works_in_the_new_ones(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    workspaces = Workspaces(tmp_path)
    await sandbox.run_bash("echo old > a.txt", key="t", workspace=workspaces.open("t"))
    workspaces.remove("t")
    await sandbox.run_bash("echo new > b.txt", key="t", workspace=workspaces.open("t"))
    assert workspaces.open("t").files(10) == [("b.txt", 4)]


async def test_after_a_restart_a_thread_is_notified_once_of_lost_variables(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    first = await sandbox.run_python("x = 1", key="t", workspace=workspace)
    assert first.lost == "", "a new conversation has lost nothing"
    # The first server has not closed anything, as one that was killed.
    async with opened_sandbox() as restarted:
        told, again = [
            await restarted.run_python("'x' in globals()", key="t", workspace=workspace) for _ in range(2)
        ]
    assert (told.value, again.lost) == ("False", "")
    assert "since the last call" in told.lost
    async with opened_sandbox() as closed_before:
        told = await closed_before.run_python("1", key="t", workspace=workspace)
    assert "variables" in told.lost


async def test_a_notice_before_a_restart_is_not_repeated(sandbox: Sandbox, workspace: Workspace) -> None:
    await sandbox.run_python("x = 1", key="t", workspace=workspace)
    told = await sandbox.run_python("import os; os._exit(3)", key="t", workspace=workspace)
    assert "variables" in told.lost
    async with opened_sandbox() as restarted:
        assert (await restarted.run_python("1", key="t", workspace=workspace)).lost == ""


async def test_a_thread_whose_files_were_removed_is_a_new_one_after_a_restart(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    workspaces = Workspaces(tmp_path)
    await sandbox.run_python("x = 1", key="t", workspace=workspaces.open("t"))
    workspaces.remove("t")
    async with opened_sandbox() as restarted:
        assert (await restarted.run_python("1", key="t", workspace=workspaces.open("t"))).lost == ""


async def test_a_call_that_is_cancelled_before_it_begins_stops_no_session(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    await sandbox.run_python("x = 1", key="t", workspace=workspace)
    entered = asyncio.Event()

    @asynccontextmanager
    async def waiting() -> AsyncIterator[None]:
        entered.set()
        await asyncio.Event().wait()
        yield

    call = sandbox.run_python("x = 2", key="t", workspace=workspace, during=waiting())
    task = asyncio.create_task(call)
    async with asyncio.timeout(60):
        await entered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    completed = await sandbox.run_python("x", key="t", workspace=workspace)
    assert (completed.value, completed.lost) == ("1", "")


async def test_a_limit_that_was_overrun_is_reported_by_the_call_under_way(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    async with word_from_inside(workspace.path) as word:
        code = "open('word', 'w').write('begun')\nwhile True: pass"
        call = asyncio.create_task(sandbox.run_python(code, key="t", workspace=workspace))
        assert await word == "begun"
        sandbox._slots["t"].session.stop_for_limit("Too much of everything.")  # type: ignore[union-attr]
        completed = await call
    assert (completed.exit_code, completed.lost) == (137, "Too much of everything.")


async def test_a_limit_that_was_overrun_between_two_calls_is_reported_by_the_next(
    workspace: Workspace, sandbox: Sandbox
) -> None:
    await sandbox.run_python("x = 1", key="t", workspace=workspace)
    sandbox._slots["t"].session.stop_for_limit("Too much of everything.")  # type: ignore[union-attr]
    completed = await sandbox.run_python("'x' in globals()", key="t", workspace=workspace)
    assert (completed.value, completed.lost) == ("False", "Too much of everything.")


async def test_a_sandbox_that_is_closed_ends_its_sessions_and_refuses_calls(workspace: Workspace) -> None:
    marker = new_marker()
    async with word_from_inside(workspace.path) as word:
        async with opened_sandbox() as sandbox:
            await sandbox.run_python(stubborn_daemon(marker), key="t", workspace=workspace)
            assert await word == "started"
            with watched(marker) as processes:
                assert len(processes) == 1
                await sandbox.close()
                assert all_end(processes, within_seconds=0)
    with pytest.raises(SandboxError, match="closed"):
        await sandbox.run_python("1", key="t", workspace=workspace)


class _Announced:
    """A backend that says when it begins to start a session."""

    name = "announced"

    def __init__(self, backend: SandboxBackend) -> None:
        self._backend = backend
        self.begun = asyncio.Event()

    async def start(self, workspace: Workspace) -> SandboxSession:
        self.begun.set()
        return await self._backend.start(workspace)


async def test_a_session_that_was_just_beginning_when_the_sandbox_closed_does_not_stay(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    backend = _Announced(sandbox._backend)
    with as_process_one() as children:
        closing = Sandbox(backend, SandboxSettings())
        call = asyncio.create_task(closing.run_python("1", key="t", workspace=workspace))
        await backend.begun.wait()
        await closing.close()
        with pytest.raises(SandboxError, match="closed"):
            await call
        assert children() == []


class _Counted(_Announced):
    """A backend that counts the sessions that it starts."""

    def __init__(self, backend: SandboxBackend) -> None:
        super().__init__(backend)
        self.started = 0

    async def start(self, workspace: Workspace) -> SandboxSession:
        self.started += 1
        return await super().start(workspace)


async def test_a_prepared_session_takes_the_call(sandbox: Sandbox, workspace: Workspace) -> None:
    backend = _Counted(sandbox._backend)
    prepared = Sandbox(backend, SandboxSettings())
    await prepared.prepare("t", workspace)
    assert backend.started == 1
    await prepared.prepare("t", workspace)
    completed = await prepared.run_python("1 + 3", key="t", workspace=workspace)
    await prepared.prepare("t", workspace)
    await prepared.close()
    assert (completed.value, completed.lost, backend.started) == ("4", "", 1)


async def test_a_call_that_comes_during_the_preparation_waits_for_its_session(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    backend = _Counted(sandbox._backend)
    prepared = Sandbox(backend, SandboxSettings())
    preparing = asyncio.create_task(prepared.prepare("t", workspace))
    await backend.begun.wait()
    completed = await prepared.run_python("1 + 3", key="t", workspace=workspace)
    await preparing
    await prepared.close()
    assert (completed.value, backend.started) == ("4", 1)


async def test_nothing_is_prepared_where_a_call_would_have_to_wait(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    backend = _Counted(sandbox._backend)
    full = Sandbox(backend, SandboxSettings(concurrent=1, resident=1))
    await full.run_python("x = 1", key="t", workspace=workspace)
    await full.prepare("u", workspace)
    assert (await full.run_python("x", key="t", workspace=workspace)).value == "1"
    await full.close()
    assert backend.started == 1


async def test_a_prepared_session_that_was_never_used_is_no_loss(
    sandbox: Sandbox, workspace: Workspace
) -> None:
    await sandbox.prepare("t", workspace)
    await sandbox.stop("t")
    assert (await sandbox.run_python("1", key="t", workspace=workspace)).lost == ""


async def test_a_preparation_that_fails_leaves_the_reason_to_the_call(workspace: Workspace) -> None:
    class Broken:
        name = "broken"

        async def start(self, workspace: Workspace) -> SandboxSession:
            raise SandboxError("There is no bubblewrap.")

    broken = Sandbox(Broken(), SandboxSettings())
    await broken.prepare("t", workspace)
    with pytest.raises(SandboxError, match="no bubblewrap"):
        await broken.run_python("1", key="t", workspace=workspace)
    await broken.close()
    await broken.prepare("t", workspace)


def _endless(number: int, marker: str) -> str:
    """Code that does not end by itself, of a kind for each number."""
    return (
        f"open('f{number}', 'w').write('x')\nwhile True: pass",
        "import subprocess, sys\n"
        f"subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)', {marker!r}])",
        "while True: print('x' * 1000)",
        "import os\nif os.fork(): os.setsid()\nwhile True: pass",
    )[number % 4]


async def _cancel_many(sandbox: Sandbox, workspaces: Workspaces, marker: str, cancels: int) -> None:
    """Begin calls in eight of six threads at a time, and cancel each at a moment of chance."""
    chance = random.Random(4)

    async def cancelled(number: int) -> None:
        key = f"t{number % 6}"
        workspace = workspaces.open(key)
        if chance.random() < 0.3:
            call = sandbox.run_bash(f"sleep 60 & sleep 60; : {marker}", key=key, workspace=workspace)
        else:
            code = _endless(chance.randrange(4), marker)
            call = sandbox.run_python(code, key=key, workspace=workspace)
        task = asyncio.create_task(call)
        await asyncio.wait({task}, timeout=chance.random() * 0.2)
        task.cancel()
        await asyncio.wait({task}, timeout=60)
        assert task.done()

    for first in range(0, cancels, 8):
        await asyncio.gather(*(cancelled(first + each) for each in range(8)))
    for number in range(6):
        await sandbox.stop(f"t{number}")
    with watched(marker) as processes:
        assert processes == []


def _everything_in(folder: Path) -> set[tuple[str, ...]]:
    return {path.relative_to(folder).parts for path in folder.rglob("*")}


@pytest.mark.slow
@pytest.mark.parametrize("cancels", sizes(48, 200))
async def test_cancels_at_random_leave_no_process_and_no_file(tmp_path: Path, cancels: int) -> None:
    marker = new_marker()
    workspaces = Workspaces(tmp_path / "workspaces")
    with as_process_one() as children:
        async with opened_sandbox(concurrent=4) as sandbox:
            await _cancel_many(sandbox, workspaces, marker, cancels)
        assert children() == []
    names = _everything_in(tmp_path)
    assert {parts[0] for parts in names} == {"workspaces"}
    # What the server itself remembers of a thread is beside its files.
    inside = {parts[1:] for parts in names if len(parts) > 1 and parts[1] != ".beside"}
    assert {parts[0] for parts in inside} <= {f"t{number}" for number in range(6)}
    assert {parts[1] for parts in inside if len(parts) > 1} <= {f"f{number}" for number in range(4)} | {
        *MIRROR_FOLDERS
    }
