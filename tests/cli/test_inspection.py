"""`/plan`, `/cost` and `/show`: what can be asked about a run at any time."""

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from maniple.cli.chat.inspection import RunInspector, find_inspection
from maniple.events import AgentStarted, Event, TurnMark, UsageReported, record_of
from maniple.scope.budget import Prices
from maniple.store import Store, Thread, open_store
from tests.cli.events import plan, small_talk, started, tool
from tests.cli.processes import CTRL_C, ENTER, PROMPT, environment, on_terminal
from tests.cli.scripts import HANGING, hangs
from tests.openai_server import SIMPLE, call, serving
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=False) as store:
        yield store


async def stored(store: Store, thread: Thread, events: Sequence[Event], at: float = 1.0) -> None:
    run = await store.runs.add(a_run(thread, store.process, at=at))
    records = [record_of(event, number) for number, event in enumerate(events, start=1)]
    await store.events.append([(run.run_id, records)])


def used(agent: str, model: str = "big", cached: int = 0) -> UsageReported:
    return UsageReported(
        agent_name=agent,
        model=model,
        input_tokens=1_000_000,
        output_tokens=500_000,
        seconds=1,
        cached_tokens=cached,
    )


async def test_the_plan_shows_the_state_of_each_step_and_why_one_failed(store: Store) -> None:
    thread = await store.threads.create(a_thread())
    inspector = RunInspector(store)
    assert "no run" in await inspector.plan(thread.thread_id)
    await stored(store, thread, small_talk())
    assert "no plan" in await inspector.plan(thread.thread_id)
    failed = plan("failed", "in_progress", reasons=["no data", ""])
    await stored(store, thread, [started(), plan("in_progress", "not_started"), failed], at=2.0)
    shown = (await inspector.plan(thread.thread_id)).splitlines()
    assert shown[0] == "Plan: 1 + 3 (0 of 2 steps done)"
    assert [line.split()[:3] for line in shown[1:]] == [
        ["✘", "1", "coder"],
        ["↳", "no", "data"],
        ["▶", "2", "reporter"],
    ]


async def test_costs_are_listed_by_member_with_the_tokens_from_the_cache(store: Store) -> None:
    thread = await store.threads.create(a_thread())
    prices = {"big": Prices(2.0, 4.0, cached=1.0)}
    inspector = RunInspector(store, prices)
    await stored(store, thread, [started(), used("coder")])
    await stored(
        store, thread, [started(), used("planner", cached=500_000), used("file_manager", "small")], at=2.0
    )
    shown = await inspector.cost(thread.thread_id)
    rows = [re.split(r" {2,}", line.strip()) for line in shown.splitlines()]
    assert rows[1] == ["planner", "big", "1", "1,000,000", "500,000", "500,000", "3.5000"]
    assert rows[2] == ["file manager", "small", "1", "1,000,000", "0", "500,000", "–"]
    assert rows[3] == ["last run", "2", "2,000,000", "500,000", "1,000,000", "≥ 3.5000"]
    assert rows[4] == ["all 2 runs", "3", "3,000,000", "500,000", "1,500,000", "≥ 7.5000"]
    assert "small" in shown.splitlines()[-1] and "price_input" in shown


async def test_a_call_is_listed_in_one_line_and_shown_in_full_by_its_number(store: Store) -> None:
    thread = await store.threads.create(a_thread())
    inspector = RunInspector(store)
    await stored(store, thread, [started()])
    assert "no tool" in await inspector.calls(thread.thread_id)
    mark = TurnMark("agent_1", 2)
    lines = "\n".join(f"line {number}" for number in range(50))
    called, returned = tool("bash_tool", f"{lines}\n[exit code 2]", cmd="seq 50\nfalse")
    turn: list[Event] = [AgentStarted(agent_name="coder", agent_id="agent_1"), called, returned]
    still_running = tool("crawl_tool", "", url="https://a.example")[0]
    await stored(store, thread, [*(one.in_turn(mark) for one in turn), still_running], at=2.0)
    listed = (await inspector.calls(thread.thread_id)).splitlines()
    assert listed[0].split()[:3] == ["1", "bash_tool", "coder"] and "✘ exit code 2" in listed[0]
    assert listed[1].split() == ["2", "crawl_tool", "running", "https://a.example"]
    full = await inspector.calls(thread.thread_id, "1")
    assert "coder, step 2" in full.splitlines()[0]
    assert "│ false" in full and all(f"  line {number}\n" in full for number in range(50))
    for wrong in ("0", "3", "x"):
        assert "from 1 to 2" in await inspector.calls(thread.thread_id, wrong)


def test_only_commands_that_read_work_during_a_run() -> None:
    found = find_inspection(" /Show  3 ")
    assert found is not None and found[1] == "3"
    assert [find_inspection(line) for line in ("/new", "plan", "/planet", "")] == [None] * 4


async def test_the_plan_the_costs_and_a_call_are_shown_while_the_team_works_and_afterwards(
    tmp_path: Path,
) -> None:
    with serving(HANGING) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            terminal.type(f"1+3=?{ENTER}")
            await hangs(server)
            terminal.type(f"/plan{ENTER}")
            await terminal.see(r"Plan: 1 \+ 3 \(0 of 2 steps done\)\s+▶  1 coder")
            terminal.type(f"/cost{ENTER}")
            await terminal.see(r"coder +scripted +1 ")
            terminal.type(f"/show 1{ENTER}")
            await terminal.see(r"1  python_repl_tool  \(coder, step 1, [\d.]+ s\)")
            terminal.type(CTRL_C)
            await terminal.see("✘ cancelled")
            await terminal.see(PROMPT)
            await terminal.enter("/plan", r"Plan: 1 \+ 3")
            assert await terminal.leave() == 0


async def test_a_failed_command_is_marked_in_the_transcript(tmp_path: Path) -> None:
    fails = call("python_repl_tool", code="raise ValueError('no')")
    with serving({**SIMPLE, "coder": [fails, *SIMPLE["coder"]]}) as server:
        async with on_terminal(folder=tmp_path, env=environment(tmp_path, server.base_url)) as terminal:
            await terminal.see(PROMPT, 40)
            await terminal.enter(
                "1+3=?",
                r"⚙ 1 python_repl_tool",
                r"↳ [\d.]+ s  ✘ exit code 1  ValueError: no",
                r"⚙ 2 python_repl_tool",
            )
            assert await terminal.leave() == 0
