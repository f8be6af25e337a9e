"""More threads than places: which wait, which are evicted, and the notice that each gets."""

import asyncio
from pathlib import Path

import pytest

from maniple.errors import SandboxError
from maniple.sandbox import ExecutionResult, Sandbox
from maniple.sandbox.sessions import EvictionPolicy
from maniple.workspace import Workspace, Workspaces
from tests.sandbox.opened import opened_sandbox

pytestmark = pytest.mark.anyio


async def test_who_waits_is_let_in_in_the_order_of_coming(workspace: Workspace) -> None:
    order: list[str] = []

    async def call(sandbox: Sandbox, key: str) -> None:
        await sandbox.run_bash("true", key=key, workspace=workspace)
        order.append(key)

    async with opened_sandbox(concurrent=1) as sandbox:
        keys = ["a", "b", "c", "d"]
        await asyncio.gather(*(call(sandbox, key) for key in keys))
    assert order == keys


async def test_a_thread_with_many_calls_keeps_no_other_waiting(workspace: Workspace) -> None:
    order: list[str] = []

    async def call(sandbox: Sandbox, key: str) -> None:
        await sandbox.run_bash("true", key=key, workspace=workspace)
        order.append(key)

    async with opened_sandbox(concurrent=1) as sandbox:
        greedy = [asyncio.create_task(call(sandbox, "greedy")) for _ in range(6)]
        await asyncio.sleep(0)
        await call(sandbox, "modest")
        await asyncio.gather(*greedy)
    assert order.index("modest") <= 6
    assert sorted(order) == ["greedy"] * 6 + ["modest"]


async def test_an_idle_session_is_evicted_and_its_thread_notified(workspace: Workspace) -> None:
    async with opened_sandbox(concurrent=1) as sandbox:
        await sandbox.run_python("x = 1", key="a", workspace=workspace)
        assert (await sandbox.run_python("2", key="b", workspace=workspace)).value == "2"
        completed = await sandbox.run_python("'x' in globals()", key="a", workspace=workspace)
    assert completed.value == "False"
    assert "others needed the place" in completed.lost
    assert completed.text().endswith("files are kept.]")


async def test_the_session_that_was_idle_for_longest_goes_first(workspace: Workspace) -> None:
    async with opened_sandbox(concurrent=2) as sandbox:
        for key in ("a", "b", "a", "c"):
            await sandbox.run_python(f"x = {key!r}", key=key, workspace=workspace)
        kept = await sandbox.run_python("x", key="a", workspace=workspace)
        lost = await sandbox.run_python("1", key="b", workspace=workspace)
    assert (kept.value, kept.lost) == ("'a'", "")
    assert "others needed the place" in lost.lost


async def test_one_thread_more_than_places_lets_each_keep_its_variables(tmp_path: Path) -> None:
    async def results_of(sandbox: Sandbox, key: str) -> list[tuple[str, str]]:
        workspace = Workspaces(tmp_path).open(key)
        code = "x = globals().get('x', 0) + 1; x"
        calls = [await sandbox.run_python(code, key=key, workspace=workspace) for _ in range(4)]
        return [(call.value, call.lost) for call in calls]

    async with opened_sandbox(EvictionPolicy(rest_seconds=1), concurrent=2) as sandbox:
        all_results = await asyncio.gather(*(results_of(sandbox, key) for key in "abc"))
    assert all_results == [[(str(number), "") for number in range(1, 5)]] * 3


async def test_a_busy_session_is_not_evicted(tmp_path: Path) -> None:
    async with opened_sandbox(concurrent=1) as sandbox:
        workspaces = Workspaces(tmp_path)
        await sandbox.run_python("x = 1", key="a", workspace=workspaces.open("a"))
        begun: list[asyncio.Task[ExecutionResult]] = []
        for key in ("a", "b", "a"):
            code, workspace = "globals().get('x', 0)", workspaces.open(key)
            begun.append(asyncio.create_task(sandbox.run_python(code, key=key, workspace=workspace)))
            await asyncio.sleep(0)
        results = [(completed.value, completed.lost) for completed in await asyncio.gather(*begun)]
    assert results == [("1", ""), ("0", ""), ("1", "")]


async def test_a_thread_whose_calls_never_pause_gives_its_place_up_when_patience_ends(
    workspace: Workspace,
) -> None:
    async with opened_sandbox(EvictionPolicy(rest_seconds=60, patience_seconds=0), concurrent=1) as sandbox:

        async def call(key: str) -> ExecutionResult:
            return await sandbox.run_python("x = globals().get('x', 0) + 1; x", key=key, workspace=workspace)

        greedy = [asyncio.create_task(call("greedy")) for _ in range(6)]
        await asyncio.sleep(0)
        modest = await call("modest")
        first, second, *others = await asyncio.gather(*greedy)
    assert (modest.value, first.value, second.value) == ("1", "1", "1")
    assert "others needed the place" in second.lost
    assert [other.value for other in others] == ["2", "3", "4", "5"], "nobody else waits"


async def test_a_sandbox_that_is_closed_refuses_who_waits_for_a_place(workspace: Workspace) -> None:
    async with opened_sandbox(EvictionPolicy(rest_seconds=60), concurrent=1) as sandbox:
        await sandbox.run_python("1", key="a", workspace=workspace)
        waiting = asyncio.create_task(sandbox.run_python("1", key="b", workspace=workspace))
        await asyncio.sleep(0)
        await sandbox.close()
        for late in (waiting, sandbox.run_python("1", key="c", workspace=workspace)):
            async with asyncio.timeout(60):
                with pytest.raises(SandboxError, match="closed"):
                    await late
