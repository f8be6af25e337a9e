"""Steps that do not need each other run concurrently."""

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from maniple.agents import Task
from maniple.config import ModelsSettings
from maniple.errors import ModelError
from maniple.events import AgentEnded, AgentStarted, Event
from maniple.graph import RunOptions, TeamRules, build_graph
from maniple.graph.state import progress_of
from maniple.llms import open_chat_models
from maniple.runs.turn import stream_run
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
        "planner": [
            reply(json.dumps(plan(*steps, step("reporter", "Report")))),
            reply(json.dumps(options.pop("rest", None) or plan(step("reporter", "Report")))),
        ],
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


OTHER_FILES = planned("C", agent="coder")
ORDERS = {
    "two that share files": ((planned("A", agent="coder"), OTHER_FILES), {}, []),
    "one beside two that share files": (
        (planned("A", agent="coder"), planned("B"), OTHER_FILES),
        {},
        [([], [2]), ([], [1]), ([1], []), ([1, 2, 3], [])],
    ),
    "a chain beside a step": (
        (planned("A"), planned("B", 1), planned("C")),
        {},
        [([], [3]), ([1], []), ([], [1]), ([1, 2, 3], [])],
    ),
    "more than may run at once": (
        (planned("A"), planned("B"), planned("C")),
        {"parallel_steps": 2},
        [([], [2]), ([], [1]), ([], []), ([1, 2, 3], [])],
    ),
    "one at a time": ((planned("A"), planned("B")), {"parallel_steps": 1}, []),
    "the lead decides": ((planned("A"), planned("B")), {"supervisor": "always"}, []),
}


@pytest.mark.parametrize(("steps", "rules", "expected"), ORDERS.values(), ids=list(ORDERS))
async def test_a_review_says_which_steps_begin_together_as_they_then_do(steps, rules, expected):
    titles = [one["title"] for one in steps]
    together = [{titles[i], *(titles[n - 1] for n in beside)} for i, (_, beside) in enumerate(expected[:-1])]

    async def meet(log: Log, task: Task) -> str:
        await log.until(log.begun, *together[titles.index(task.title)])
        return "met"

    ways = dict.fromkeys(titles, meet) if expected else {}
    async with team(*steps, ways=ways, rules=rules) as (it, log):
        options, config = RunOptions(auto_accepted_plan=False), {"configurable": {"thread_id": "t"}}
        paused = await it.team.ainvoke({"messages": [HumanMessage("Do it")]}, config, context=options)
        shown = paused["__interrupt__"][0].value.get("order", [])
        assert [(one["after"], one["beside"]) for one in shown] == expected
        await it.team.ainvoke(Command(resume="accept"), config, context=options)
    places = {line: place for place, line in enumerate(log.lines)}
    for title, (after, beside) in zip(titles, expected, strict=False):
        assert all(places[f"end {titles[n - 1]}"] < places[f"begin {title}"] for n in after)
        assert all(places[f"begin {titles[n - 1]}"] < places[f"end {title}"] for n in beside)
    if not expected:
        assert log.lines == [f"{word} {title}" for title in (*titles, "Report") for word in ("begin", "end")]


async def test_the_plan_on_the_wire_says_which_steps_a_step_waits_for():
    async with team(planned("A"), step("researcher", "B"), planned("C", 1)) as (it, _):
        frames = await run(it)
    plans = [data["steps"] for name, data in frames if name == "plan"]
    needs = [[one.get("needs", "all above") for one in steps] for steps in plans]
    assert needs == [[[], "all above", [1], "all above"]] * len(plans)


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


async def happened(it: Scripted) -> list[Event]:
    """Run, and return the events in the order in which they happened."""
    return [
        event async for event in stream_run(it.team, [HumanMessage("Do it")], thread_id="t", is_live=True)
    ]


def turns_of(events: Sequence[Event]) -> list[tuple[str, int | None]]:
    """Return the beginnings and ends of the members' turns, with their steps."""
    ends = [one for one in events if isinstance(one, AgentStarted | AgentEnded) and one.turn]
    return [(one.type, one.turn.step_id) for one in ends if one.turn and one.turn.step_id]


async def test_a_turn_begins_when_its_step_does_and_not_while_that_waits_for_results():
    async def meet(log: Log, task: Task) -> str:
        await log.until(log.begun, "A", "C")
        return "met"

    async with team(planned("A"), planned("B", 1), planned("C"), ways={"A": meet, "C": meet}) as (it, _):
        turns = turns_of(await happened(it))
    assert set(turns[:2]) == {("start_of_agent", 1), ("start_of_agent", 3)}
    assert turns[2:].count(("start_of_agent", 2)) == 1
    assert turns[-2:] == [("start_of_agent", 4), ("end_of_agent", 4)], "the report"


async def test_a_step_that_cannot_begin_has_no_turn():
    async def fail(log: Log, task: Task) -> str:
        return "STEP FAILED: no data"

    steps = planned("A"), planned("B", 1), planned("C")
    async with team(*steps, ways={"A": fail}) as (it, _):
        turns = turns_of(await happened(it))
    assert [one for one in turns if one[0] == "start_of_agent"].count(("start_of_agent", 2)) == 1


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


async def test_a_failed_step_holds_what_needs_it_until_the_lead_has_decided():
    steps = planned("A"), planned("B", 1), planned("C")
    async with team(*steps, ways={"A": fail}) as (it, log):
        frames = await run(it)
    assert log.count("begin") == Counter(["A", "B", "C", "Report"])
    assert log.lines.index("end A") < log.lines.index("begin B")
    statuses = [one["status"] for one in data(frames, "plan")[-1]["steps"]]
    assert statuses == ["failed", "completed", "completed", "completed"]
    assert status(frames) == "completed"


async def test_each_of_several_failures_is_decided():
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
    """Tells when each of some texts is stored."""

    def __init__(self, *texts: str) -> None:
        super().__init__()
        self.has_all = asyncio.Event()
        self._missing = set(texts)

    async def aput_writes(self, config, writes, task_id, task_path=""):
        await super().aput_writes(config, writes, task_id, task_path)
        self._missing -= {one for one in self._missing if one in str(writes)}
        if not self._missing:
            self.has_all.set()


async def invoke(it: Scripted, saver: InMemorySaver, **scope) -> dict:
    """Run with every step stored; return the last plan."""
    config = {"configurable": {"thread_id": "t", **scope}}
    messages = {"messages": [HumanMessage("Do it")]}
    await it.team.ainvoke(messages, config, context=RunOptions(), durability="sync")
    values = (await it.team.aget_state({"configurable": {"thread_id": "t"}})).values
    progress = progress_of(values)
    assert progress is not None
    return {one.title: one.status for one in progress.steps}


async def test_after_a_stop_only_the_steps_under_way_run_again():
    log, saver, is_stuck = Log(), WatchedSaver("A is done.", "C is done."), True

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
            await saver.has_all.wait()
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


def decision(kind: str, **fields) -> dict:
    return reply(json.dumps({"decision": kind, "hint": None, "step": None} | fields))


async def fail(log: Log, task: Task) -> str:
    return "STEP FAILED: no data"


async def fail_once(log: Log, task: Task) -> str:
    return "STEP FAILED: not yet" if log.count("begin")[task.title] == 1 else "now"


async def test_the_lead_decides_and_the_step_is_tried_again_while_another_one_goes_on():
    async def wait_for_a(log: Log, task: Task) -> str:
        await log.until(log.ended, "A", "B")
        return "late"

    async def fail_first(log: Log, task: Task) -> str:
        notes.append(task.note)
        return "STEP FAILED: not yet" if len(notes) == 1 else "now"

    notes: list[str | None] = []
    steps = planned("A"), planned("B", 1), planned("C")
    lead = [decision("retry", hint="Ask another site.")]
    async with team(*steps, ways={"A": fail_first, "C": wait_for_a}, supervisor=lead) as (it, log):
        frames = await run(it)
    # C ends only when the second try of A, and B after it, have ended.
    assert log.count("begin") == Counter({"A": 2, "B": 1, "C": 1, "Report": 1})
    assert "Ask another site." in str(notes[1])
    assert status(frames) == "completed"


async def test_going_on_without_a_step_releases_what_needs_it_while_another_one_goes_on():
    async def wait_for_b(log: Log, task: Task) -> str:
        await log.until(log.ended, "B")
        return "late"

    async def look(log: Log, task: Task) -> str:
        seen.extend(task.results)
        return "done"

    seen: list = []
    steps = planned("A"), planned("B", 1), planned("C")
    async with team(*steps, ways={"A": fail, "B": look, "C": wait_for_b}) as (it, log):
        await run(it)
    assert log.count("begin") == Counter(["A", "B", "C", "Report"])
    assert [(one.title, one.done) for one in seen] == [("A", False)]


@pytest.mark.parametrize("kind", ["replan", "finish"])
async def test_after_the_last_decision_of_a_wave_no_step_begins_and_those_at_work_end(kind):
    async def wait_for_the_lead(log: Log, task: Task) -> str:
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
        return "STEP FAILED: and nobody is asked" if task.title == "D" else "late"

    rest = {"steps": [planned("Other way"), step("reporter", "Report")], "title": "Rest", "thought": ""}
    steps = planned("A"), planned("B", 3), planned("C"), planned("D")
    ways = {"A": fail, "C": wait_for_the_lead, "D": wait_for_the_lead}
    lead = [decision(kind, hint="Look elsewhere.")]
    async with team(*steps, ways=ways, supervisor=lead, rest=rest) as (it, log):
        frames = await run(it)
        assert len(it.prompts("supervisor")) == 1
        planners = it.prompts("planner")
    more = ["Other way"] if kind == "replan" else []
    assert log.count("begin") == Counter(["A", "C", "D", "Report", *more])
    assert len(planners) == (2 if kind == "replan" else 1)
    assert ("Look elsewhere." in planners[-1]) is (kind == "replan")
    assert status(frames) == "completed"


async def test_a_step_given_to_another_member_is_taken_up_by_one_who_is_there():
    async def wait_for_the_decision(log: Log, task: Task) -> str:
        await saver.has_all.wait()
        return "done"

    async def wait_for_the_other(log: Log, task: Task) -> str:
        await log.until(log.ended, "Other")
        return "late"

    other = {"agent_name": "coder", "title": "Other", "description": "Compute it."}
    steps = planned("A"), planned("B", agent="coder"), planned("C")
    ways = {"A": fail, "B": wait_for_the_decision, "C": wait_for_the_other}
    lead, saver = [decision("reassign", step=other)], WatchedSaver("reassign")
    async with team(*steps, ways=ways, supervisor=lead, checkpointer=saver) as (it, log):
        statuses = await invoke(it, saver)
    # C ends only when it was done: so it ran in the same wave, in the invocation of B.
    assert log.count("begin") == Counter(["A", "B", "C", "Other", "Report"])
    assert statuses.pop("A") == "failed"
    assert set(statuses.values()) == {"completed"}


async def test_a_decision_is_stored_before_it_takes_effect():
    async def note_what_is_stored(log: Log, task: Task) -> str:
        stored.append(saver.has_all.is_set())
        return "STEP FAILED: not yet" if len(stored) == 1 else "now"

    stored: list[bool] = []
    saver = WatchedSaver("retry")
    async with team(
        planned("A"),
        planned("B"),
        ways={"A": note_what_is_stored},
        supervisor=[decision("retry")],
        checkpointer=saver,
    ) as (it, _):
        await invoke(it, saver)
    assert stored == [False, True]


async def test_a_question_after_a_decision_is_answered_in_another_process_without_deciding_again():
    async def ask(log: Log, task: Task) -> str:
        if "An earlier try failed" not in str(task.note):
            return "STEP FAILED: not yet"
        return f"The user said {interrupt({'kind': 'question', 'question': 'Which?', 'options': []})}."

    log, saver = Log(), InMemorySaver()
    steps, ways = (planned("A"), planned("B", 1), planned("C")), {"A": ask}
    config = {"configurable": {"thread_id": "t"}}
    lead = [decision("retry", hint="Ask the user.")]
    async with team(*steps, ways=ways, log=log, supervisor=lead, checkpointer=saver) as (it, _):
        await invoke(it, saver)
        assert len(it.prompts("supervisor")) == 1
    async with team(*steps, ways=ways, log=log, supervisor=lead, checkpointer=saver) as (it, _):
        [pause] = (await it.team.aget_state(config)).interrupts
        answer = Command(resume={pause.id: "this one"})
        await it.team.ainvoke(answer, config, context=RunOptions(), durability="sync")
        progress = progress_of((await it.team.aget_state(config)).values)
        assert it.prompts("supervisor") == []
    assert log.count("begin") == Counter({"A": 3, "B": 1, "C": 1, "Report": 1})
    assert progress is not None
    assert progress.steps[0].result == "The user said this one."
    assert {one.status for one in progress.steps} == {"completed"}


async def test_what_a_step_needs_is_done_first_by_another_member():
    async def need(log: Log, task: Task) -> str:
        return "STEP FAILED: no price\nNEEDS: the price" if log.count("begin")["A"] == 1 else "now"

    price = {"agent_name": "coder", "title": "Price", "description": "Find the price."}
    lead = [decision("reassign", step=price)]
    async with team(planned("A"), planned("B"), ways={"A": need}, supervisor=lead) as (it, log):
        frames = await run(it)
    assert log.count("begin") == Counter({"A": 2, "B": 1, "Price": 1, "Report": 1})
    assert [one["title"] for one in data(frames, "plan")[-1]["steps"]] == ["Price", "A", "B", "Report"]
    assert status(frames) == "completed"


@pytest.mark.parametrize("lead", [{"status": 500}, decision("continue_without")])
async def test_a_defect_of_a_member_is_a_gap_and_ends_no_other_step(lead):
    async def break_down(log: Log, task: Task) -> str:
        raise ModelError("The endpoint is away.", code="model_unreachable")

    steps = planned("A"), planned("B"), planned("C")
    async with team(*steps, ways={"A": break_down}, supervisor=[lead]) as (it, log):
        frames = await run(it)
    assert log.count("end") == Counter(["B", "C", "Report"])
    ended = data(frames, "run_status")[0]
    assert (ended["status"], [gap["step"] for gap in ended["gaps"]]) == ("completed", ["A"])


async def test_a_step_that_does_not_begin_in_a_wave_has_no_turn_there():
    async def ask(log: Log, task: Task) -> str:
        return f"The user said {interrupt({'kind': 'question', 'question': 'Which?', 'options': []})}."

    async with team(planned("A"), planned("B", 1), planned("C"), ways={"A": ask}) as (it, _):
        frames = await run(it)
    assert agents(frames) == ["coordinator", "planner", "researcher", "researcher"]
    assert status(frames) == "interrupted"


async def test_a_wave_that_was_not_interrupted_reads_no_checkpoint():
    class CountingSaver(InMemorySaver):
        reads = 0

        async def aget_tuple(self, config):
            self.reads += 1
            return await super().aget_tuple(config)

    saver = CountingSaver()
    messages = {"messages": [HumanMessage("Do it")]}
    config = {"configurable": {"thread_id": "t"}}
    async with team(planned("A"), planned("B"), checkpointer=saver) as (it, _):
        await it.team.ainvoke(messages, config, context=RunOptions(), durability="sync")
    assert saver.reads == 1, "LangGraph's own, at its beginning"


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
