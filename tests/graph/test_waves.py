"""Steps that do not need each other run concurrently."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from maniple.agents import Task
from maniple.config import ModelsSettings
from maniple.graph import RunOptions, TeamRules, build_graph
from maniple.graph.state import progress_of
from maniple.llms import open_chat_models
from maniple.runtime.turn import stream_run
from tests.openai_server import call, reply, serving
from tests.team import Scripted, agents, checked, data, plan, status, step

pytestmark = pytest.mark.anyio
PATIENCE_SECONDS = 30
Do = Callable[["Log", Task], Awaitable[str]]


@dataclass
class Log:
    """What the members did, in order; and how a test lets them wait for each other."""

    lines: list[str] = field(default_factory=list)
    begun: dict[str, asyncio.Event] = field(default_factory=dict)
    ended: dict[str, asyncio.Event] = field(default_factory=dict)

    async def until(self, events: dict[str, asyncio.Event], *titles: str) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for title in titles:
                await events.setdefault(title, asyncio.Event()).wait()

    def note(self, word: str, title: str) -> None:
        self.lines.append(f"{word} {title}")
        events = self.begun if word == "begin" else self.ended
        events.setdefault(title, asyncio.Event()).set()

    def count(self, word: str) -> Counter[str]:
        return Counter(line.removeprefix(f"{word} ") for line in self.lines if line.startswith(word))


async def answer(log: Log, task: Task) -> str:
    return f"{task.title} is done."


@dataclass
class Member:
    """A worker that notes its steps and does each as the test says."""

    log: Log
    ways: dict[str, Do]

    async def work(self, task: Task) -> str:
        self.log.note("begin", task.title)
        text = await self.ways.get(task.title, answer)(self.log, task)
        self.log.note("end", task.title)
        return text


def planned(title: str, *needs: int, agent: str = "researcher") -> dict:
    return {**step(agent, title), "needs": list(needs)}


@asynccontextmanager
async def team(*steps: dict, ways: dict[str, Do] | None = None, log: Log | None = None, **options):
    script = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(*steps, step("reporter", "Report"))))],
        "supervisor": options.pop("supervisor", [reply('{"decision": "continue_without"}')]),
    }
    log = log or Log()
    with serving(script) as server:
        endpoint = {"base_url": server.base_url, "timeout_seconds": 60, "max_retries": 0}
        models = ModelsSettings.model_validate({"basic": {"model": "m", **endpoint}})
        async with open_chat_models(models) as chat:
            member = Member(log, ways or {})
            workers = dict.fromkeys(("researcher", "coder", "reporter"), member)
            rules = TeamRules(**options.pop("rules", {}))
            saver = options.pop("checkpointer", None) or InMemorySaver()
            yield Scripted(build_graph(chat, workers, rules=rules, checkpointer=saver), server), log


async def run(it: Scripted, thread_id: str = "t"):
    events = stream_run(it.team, [HumanMessage("Do it")], thread_id=thread_id, options=RunOptions())
    return checked([event async for event in events])


async def test_steps_that_need_nothing_of_each_other_overlap():
    async def meet(log: Log, task: Task) -> str:
        await log.until(log.begun, "A", "B")
        return "met"

    async with team(planned("A"), planned("B"), ways={"A": meet, "B": meet}) as (it, log):
        frames = await run(it)
    assert log.lines[:2] in (["begin A", "begin B"], ["begin B", "begin A"])
    assert log.lines[-2:] == ["begin Report", "end Report"]
    assert status(frames) == "completed"


async def test_uneven_chains_do_not_wait_for_each_other():
    async def wait_for_b(log: Log, task: Task) -> str:
        await log.until(log.ended, "B")  # B needs A, and C runs beside both
        return "late"

    steps = planned("A"), planned("B", 1), planned("C")
    async with team(*steps, ways={"C": wait_for_b}) as (it, log):
        await run(it)
    assert log.lines.index("end A") < log.lines.index("begin B")
    assert log.lines.index("end B") < log.lines.index("end C")
    assert set(log.count("begin").values()) == {1}


async def test_a_step_is_given_the_results_it_needs_and_the_report_all():
    seen: dict[str, list[str]] = {}

    async def look(log: Log, task: Task) -> str:
        seen[task.title] = [one.text for one in task.results]
        return f"{task.title} is done."

    ways = dict.fromkeys(("B", "C", "Report"), look)
    async with team(planned("A"), planned("B", 1), planned("C"), ways=ways) as (it, _):
        await run(it)
    assert seen == {
        "B": ["A is done."],
        "C": [],
        "Report": ["A is done.", "B is done.", "C is done."],
    }


async def test_steps_with_the_same_resource_follow_the_plans_order():
    async def slow(log: Log, task: Task) -> str:
        await log.until(log.begun, "C")
        return "slow"

    steps = planned("A", agent="coder"), planned("B", agent="coder"), planned("C")
    async with team(*steps, ways={"A": slow}) as (it, log):
        await run(it)
    assert log.lines.index("end A") < log.lines.index("begin B")


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_steps_run_than_are_allowed(limit):
    at_work: set[str] = set()
    most = 0

    async def count(log: Log, task: Task) -> str:
        nonlocal most
        at_work.add(task.title)
        most = max(most, len(at_work))
        for _ in range(5):
            await asyncio.sleep(0)
        at_work.remove(task.title)
        return "counted"

    titles = "ABCDE"
    rules = {"parallel_steps": limit}
    async with team(*map(planned, titles), ways=dict.fromkeys(titles, count), rules=rules) as (it, log):
        await run(it)
    assert most == limit
    assert log.count("end") == Counter([*titles, "Report"])


async def test_a_failed_step_releases_what_needs_it_and_runs_nothing_twice():
    async def fail(log: Log, task: Task) -> str:
        return "STEP FAILED: no data"

    steps = planned("A"), planned("B", 1), planned("C")
    async with team(*steps, ways={"A": fail}) as (it, log):
        frames = await run(it)
    assert log.count("begin") == Counter(["A", "B", "C", "Report"]), "B runs when the lead has decided"
    assert log.lines.index("end A") < log.lines.index("begin B")
    statuses = [one["status"] for one in data(frames, "plan")[-1]["steps"]]
    assert statuses == ["failed", "completed", "completed", "completed"]
    assert status(frames) == "completed"


async def test_each_of_several_failures_is_decided_before_the_next_wave():
    tries = Counter()

    async def fail_once(log: Log, task: Task) -> str:
        tries[task.title] += 1
        return "STEP FAILED: not yet" if tries[task.title] == 1 else "now"

    ways = {"A": fail_once, "B": fail_once}
    supervisor = [reply('{"decision": "retry", "hint": "again"}')]
    async with team(planned("A"), planned("B"), planned("C"), ways=ways, supervisor=supervisor) as (it, log):
        frames = await run(it)
        assert len(it.prompts("supervisor")) == 2
    assert log.count("begin") == Counter({"A": 2, "B": 2, "C": 1, "Report": 1})
    assert {one["status"] for one in data(frames, "plan")[-1]["steps"]} == {"completed"}


async def test_a_question_in_one_branch_lets_the_others_end_and_none_runs_again():
    async def ask(log: Log, task: Task) -> str:
        return f"The user said {interrupt({'kind': 'question', 'question': 'Which?', 'options': []})}."

    steps = planned("A"), planned("B", 1), planned("C")
    async with team(*steps, ways={"A": ask}) as (it, log):
        await run(it)
        assert log.count("end") == Counter(["C"])
        config = {"configurable": {"thread_id": "t"}}
        await it.team.ainvoke(Command(resume="this one"), config, context=RunOptions())
        progress = progress_of((await it.team.aget_state(config)).values)
    assert log.count("end") == Counter(["A", "B", "C", "Report"])
    assert log.count("begin")["C"] == 1
    assert progress is not None
    assert progress.steps[0].result == "The user said this one."


class WatchedSaver(InMemorySaver):
    """Tells when the ends of A and C are stored."""

    def __init__(self) -> None:
        super().__init__()
        self.has_both = asyncio.Event()
        self._missing = {"A is done.", "C is done."}

    async def aput_writes(self, config, writes, task_id, task_path=""):
        await super().aput_writes(config, writes, task_id, task_path)
        self._missing -= {one for one in self._missing if one in str(writes)}
        if not self._missing:
            self.has_both.set()


async def test_after_a_stop_only_the_steps_under_way_run_again():
    log, saver, is_stuck = Log(), WatchedSaver(), True

    async def stick(log: Log, task: Task) -> str:
        if is_stuck:
            await asyncio.Event().wait()
        return "free"

    steps = planned("A"), planned("B", 1), planned("C")
    config = {"configurable": {"thread_id": "t"}}
    async with team(*steps, ways={"B": stick}, log=log, checkpointer=saver) as (it, _):
        messages = {"messages": [HumanMessage("Do it")]}
        running = asyncio.create_task(
            it.team.ainvoke(messages, config, context=RunOptions(), durability="sync")
        )
        await log.until(log.begun, "B")
        await log.until(log.ended, "A", "C")
        async with asyncio.timeout(PATIENCE_SECONDS):
            await saver.has_both.wait()
        running.cancel()
        await asyncio.wait([running])
        is_stuck = False
        await it.team.ainvoke(None, config, context=RunOptions(), durability="sync")
    assert log.count("begin") == Counter({"A": 1, "B": 2, "C": 1, "Report": 1})
    assert log.count("end") == Counter(["A", "B", "C", "Report"])


async def test_the_old_client_sees_one_member_after_the_other_and_the_plan_as_it_goes():
    async def meet(log: Log, task: Task) -> str:
        await log.until(log.begun, "A", "B")
        return "met"

    async with team(planned("A"), planned("B"), planned("C", 1), ways={"A": meet, "B": meet}) as (it, _):
        frames = await run(it)
    assert agents(frames) == ["coordinator", "planner", "researcher", "researcher", "researcher", "reporter"]
    statuses = [[one["status"] for one in each["steps"]] for each in data(frames, "plan")]
    assert ["in_progress", "in_progress", "not_started", "not_started"] in statuses
    assert statuses[-1] == ["completed"] * 4


async def test_a_chain_is_worked_through_one_step_a_superstep():
    async with team(planned("A"), planned("B", 1), planned("C", 2)) as (it, log):
        frames = await run(it)
    assert [line for line in log.lines if line.startswith("begin")] == [
        "begin A",
        "begin B",
        "begin C",
        "begin Report",
    ]
    assert status(frames) == "completed"
