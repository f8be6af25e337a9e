"""A step asks the user while other steps go on, and takes the answer at once."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.errors import StoreError
from maniple.events import StepInterrupted, StepResumed, UserAnswered, event_of
from maniple.graph import TeamRules
from maniple.runs import EngineConfig, RunNotWaiting, RunRequest, in_process, open_engine
from maniple.scope.budget import Budget
from maniple.scope.inputs import PlanChange
from maniple.store import open_store
from maniple.tools.interaction import ask_tools
from tests.openai_server import call, reply
from tests.team import plan, scripted_team, step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
ASK, WORK = "Ask", "Work"


def planned(agent, title, *needs):
    return {**step(agent, title), "needs": list(needs)}


STEPS = [planned("researcher", ASK), planned("coder", WORK), step("reporter", "Report")]


def script(*steps, **roles):
    return {
        "by_history": True,
        "coordinator": [call("handoff_to_planner", locale="en-US")],
        "planner": [reply(json.dumps(plan(*(steps or STEPS))))],
        "researcher": [
            call("ask_human", question="Which year?", options=["2023", "2024"]),
            reply("It is known."),
        ],
        "coder": [call("python_repl_tool", code="1"), reply("It is 4.")],
        "reporter": [reply("# Report")],
        **roles,
    }


@dataclass
class Working:
    """A team whose coder is in the middle of a tool call until it is let go on."""

    engine: object
    store: object
    server: object
    begun: asyncio.Event
    gate: asyncio.Event
    events: list = field(default_factory=list)
    run_id: str = ""
    _following: object = None

    async def begin(self, **options):
        request = RunRequest([HumanMessage("do it")], "t", **options)
        self.run_id = (await self.engine.submit(request)).run.run_id
        await self.begun.wait()

    async def until(self, is_met):
        """Follow the run until the condition on its events holds, or it ends or waits; return the events."""
        self.events, follower = [], self.engine.events(self.run_id)
        async for page in follower:
            self.events += [event_of(one) for one in page]
            if is_met(self.events):
                break
        return self.events

    async def asked(self, number=1):
        """Wait until so many questions were shown while the coder works; return them."""
        await self.until(lambda events: len(of(events, StepInterrupted)) >= number)
        return of(self.events, StepInterrupted)

    async def ended(self):
        return await self.until(lambda _: False)

    async def answer(self, answer, question=None):
        await self.engine.resume(self.run_id, answer, interrupt_id=question.interrupt_id if question else "")

    async def status(self):
        return (await self.engine.status(self.run_id)).status

    def results(self, name="ask_human"):
        return [
            one.tool_result for one in self.events if one.type == "tool_call_result" and one.tool_name == name
        ]


@asynccontextmanager
async def working(tmp_path, told, *, config=None, tools=None, **options):
    begun, gate = asyncio.Event(), asyncio.Event()

    @tool
    async def python_repl_tool(code: str) -> str:
        """Run Python."""
        begun.set()
        await gate.wait()
        return "4"

    offer = Offer({"coder": [python_repl_tool], "researcher": tools or ask_tools(5)})
    async with (
        open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store,
        scripted_team(told, checkpointer=store.checkpointer, toolbox=offer, **options) as it,
        open_engine(it.team, store, kind="server", config=config) as engine,
    ):
        async with asyncio.timeout(100):
            yield Working(engine, store, it.server, begun, gate)


def of(events, kind):
    return [one for one in events if type(one) is kind]


def types(events, *names):
    return [one.type for one in events if one.type in names]


def completed(events, title):
    plans = [one for one in events if one.type == "plan"]
    return any((one.title, one.status) == (title, "completed") for one in plans[-1].steps) if plans else False


def calls_of(working, role):
    return sum(f"You are the {role}" in str(one["messages"][0]["content"]) for one in working.server.requests)


async def test_a_step_goes_on_with_the_answer_while_another_one_works(tmp_path):
    async with working(tmp_path, script()) as it:
        await it.begin()
        [question] = await it.asked()
        assert (question.step_id, question.agent_name, question.kind) == (1, "researcher", "question")
        assert (question.payload["question"], question.options) == ("Which year?", ["2023", "2024"])
        assert question.turn.step_id == 1
        assert await it.status() == "running"
        await it.answer("2024", question)
        events = await it.until(lambda events: completed(events, ASK))
        assert not completed(events, WORK)
        assert it.results() == ["2024"]
        it.gate.set()
        events = await it.ended()
    assert types(events, "interrupt", "step_interrupt", "step_resumed", "run_status") == [
        "step_interrupt",
        "step_resumed",
        "run_status",
    ]
    assert of(events, StepResumed)[0].interrupt_id == question.interrupt_id
    assert events[-2].type == "end_of_workflow"
    assert [calls_of(it, role) for role in ("researcher", "coder", "reporter")] == [2, 2, 1]


async def test_the_run_waits_with_the_question_when_nothing_else_goes_on(tmp_path):
    async with working(tmp_path, script()) as it:
        await it.begin()
        [question] = await it.asked()
        it.gate.set()
        events = await it.ended()
        assert types(events, "step_interrupt", "interrupt", "step_resumed") == ["step_interrupt", "interrupt"]
        [waits] = [one for one in events if one.type == "interrupt"]
        assert (waits.interrupt_id, waits.payload) == (question.interrupt_id, question.payload)
        assert await it.status() == "interrupted"
        assert completed(events, WORK)
        await it.answer("2024", waits)
        await it.ended()
        assert it.results()[-1] == "2024"
        assert await it.status() == "completed"
    assert [calls_of(it, role) for role in ("researcher", "coder", "reporter")] == [2, 2, 1]


TWO = [
    planned("researcher", "First"),
    planned("researcher", "Second"),
    planned("coder", WORK),
    step("reporter", "Report"),
]


async def test_two_questions_are_shown_and_answered_in_any_order(tmp_path):
    async with working(tmp_path, script(*TWO)) as it:
        await it.begin()
        first, second = sorted(await it.asked(2), key=lambda one: one.step_id)
        assert first.interrupt_id != second.interrupt_id
        await it.answer("to the second", second)
        events = await it.until(lambda events: completed(events, "Second"))
        assert not completed(events, "First")
        await it.answer("to the first", first)
        await it.until(lambda events: completed(events, "First"))
        it.gate.set()
        events = await it.ended()
        assert it.results() == ["to the second", "to the first"]
    assert [one.step_id for one in of(events, StepResumed)] == [2, 1]
    assert types(events, "interrupt") == []


async def test_what_is_left_open_waits_with_the_run_and_is_shown_again_when_that_goes_on(tmp_path):
    async with working(tmp_path, script(*TWO)) as it:
        await it.begin()
        await it.asked(2)
        it.gate.set()
        waiting = [one for one in await it.ended() if one.type == "interrupt"]
        assert len(waiting) == 2
        await it.answer("one", waiting[1])
        await it.ended()
        assert it.results().count("one") == 1
        [left] = [one for one in it.events if one.type == "interrupt"][2:]
        assert left.interrupt_id == waiting[0].interrupt_id
        await it.answer("another", left)
        await it.ended()
        assert await it.status() == "completed"
    assert calls_of(it, "researcher") == 4


async def test_without_others_at_work_the_run_waits_as_it_did(tmp_path):
    sequence = [planned("researcher", ASK), planned("coder", WORK, 1), step("reporter", "Report")]
    async with working(tmp_path, script(*sequence)) as it:
        it.run_id = (await it.engine.submit(RunRequest([HumanMessage("do it")], "t"))).run.run_id
        events = await it.ended()
        assert await it.status() == "interrupted"
    assert types(events, "step_interrupt", "interrupt", "run_status") == ["interrupt", "run_status"]


async def test_a_question_takes_one_answer(tmp_path):
    async with working(tmp_path, script()) as it:
        await it.begin()
        [question] = await it.asked()
        with pytest.raises(RunNotWaiting):
            await it.engine.resume(it.run_id, "2024", interrupt_id="another")
        given = await asyncio.gather(
            it.answer("2023", question), it.answer("2024", question), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in given) == ["NoneType", "RunNotWaiting"]
        it.gate.set()
        await it.ended()
        assert it.results() == ["2023"]


async def test_an_answer_that_cannot_be_stored_leaves_the_question_open(tmp_path, monkeypatch):
    async with working(tmp_path, script()) as it:
        await it.begin()
        [question] = await it.asked()

        async def fail(*_, **__):
            raise StoreError("the disk is full")

        with monkeypatch.context() as broken:
            broken.setattr(it.store.inputs, "write", fail)
            with pytest.raises(StoreError):
                await it.answer("2023", question)
        await it.answer("2024", question)
        it.gate.set()
        await it.ended()
        assert it.results() == ["2024"]
        stored = await it.store.inputs.list_by_run(it.run_id)
        assert ["2024" in one.content for one in stored] == [True]


async def test_the_question_of_a_step_that_is_skipped_cannot_be_answered(tmp_path, monkeypatch):
    # Nobody waits for it to be asked again.
    monkeypatch.setattr(in_process, "ASKED_AGAIN_SECONDS", 3_600.0)
    async with working(tmp_path, script()) as it:
        await it.begin()
        [question] = await it.asked()
        await it.engine.change_plan(it.run_id, PlanChange("skip", 1))
        await it.until(lambda events: [one.step_id for one in ends(events)] == [1])
        with pytest.raises(RunNotWaiting):
            await it.answer("2024", question)
        it.gate.set()
        events = await it.ended()
        assert await it.status() == "completed"
    assert types(events, "interrupt", "step_resumed") == []


def ends(events):
    return [one.turn for one in events if one.type == "end_of_agent" and one.turn.step_id]


async def test_a_run_can_be_cancelled_while_a_step_asks(tmp_path):
    async with working(tmp_path, script()) as it:
        await it.begin()
        [question] = await it.asked()
        assert (await it.engine.cancel(it.run_id)).status == "cancelled"
        with pytest.raises(RunNotWaiting):
            await it.answer("2024", question)
        events = await it.ended()
    assert types(events, "interrupt") == []


async def test_an_approval_is_requested_again_until_its_arguments_are_valid(tmp_path):
    asked = script(researcher=[call("look_up", year=2023), reply("It is known.")])

    @tool
    async def look_up(year: int) -> str:
        """Look something up."""
        return f"found {year}"

    config = EngineConfig(approval=("look_up",))
    async with working(tmp_path, asked, config=config, tools=[look_up]) as it:
        await it.begin()
        [question] = await it.asked()
        assert (question.kind, question.payload["tool_input"]) == ("tool_approval", {"year": 2023})
        await it.answer({"type": "edit", "args": {"year": "none"}}, question)
        again = (await it.asked(2))[1]
        assert again.payload["tool_input"] == {"year": "none"}
        assert again.payload["error"]
        with pytest.raises(RunNotWaiting):
            await it.answer("yes", question)
        await it.answer({"type": "edit", "args": {"year": "none"}}, again)
        await it.asked(3)
        await it.answer({"type": "edit", "args": {"year": 2024}})
        await it.until(lambda events: completed(events, ASK))
        it.gate.set()
        events = await it.ended()
        assert it.results("look_up") == ["found 2024"]
        given = [(one.interrupt_id, one.answer) for one in of(events, UserAnswered)]
        assert given[0] == (question.interrupt_id, {"type": "edit", "args": {"year": "none"}})
        assert given[1][0] == again.interrupt_id
        assert given[2][1] == {"type": "edit", "args": {"year": 2024}}
    assert len(of(events, StepResumed)) == 3


async def test_an_answer_before_the_last_call_of_its_step_has_ended_is_not_lost(tmp_path):
    looking, found = asyncio.Event(), asyncio.Event()

    @tool
    async def look_up(year: int) -> str:
        """Look something up."""
        looking.set()
        await found.wait()
        return f"found {year}"

    both = [*call("ask_human", question="Which?")["tool_calls"], *call("look_up", year=1)["tool_calls"]]
    told = script(researcher=[{**call("look_up", year=1), "tool_calls": both}, reply("It is known.")])
    look_up.metadata = {"idempotent": True}
    async with working(tmp_path, told, tools=[*ask_tools(5), look_up]) as it:
        await it.begin()
        [question] = await it.asked()
        await looking.wait()
        it.gate.set()
        await it.until(lambda events: completed(events, WORK))
        await it.answer("this one", question)
        found.set()
        events = await it.ended()
        assert await it.status() == "completed"
        stopped, given = it.results()
        assert stopped != given == "this one"
    assert types(events, "interrupt", "run_status") == ["run_status"]
    assert calls_of(it, "researcher") == 2


async def test_an_answer_does_not_add_to_the_budget(tmp_path):
    async with working(tmp_path, script()) as it:
        # Coordinator, planner and both members have made a call each; one is left, and the reporter's.
        await it.begin(budget=Budget(model_calls=5))
        [question] = await it.asked()
        await it.answer("2024", question)
        await it.until(lambda events: completed(events, ASK))
        it.gate.set()
        await it.ended()
        assert it.results() == ["2024"]
        assert await it.status() == "budget_exhausted"
    assert [calls_of(it, role) for role in ("researcher", "coder", "reporter")] == [2, 1, 1]


async def test_a_step_that_asks_frees_its_slot(tmp_path):
    steps = [
        planned("researcher", ASK),
        planned("coder", WORK),
        planned("researcher", "Third"),
        step("reporter", "Report"),
    ]
    async with working(tmp_path, script(*steps), rules=TeamRules(parallel_steps=2)) as it:
        await it.begin()
        asked = await it.asked(2)
        assert sorted(one.step_id for one in asked) == [1, 3]
        for question in asked:
            await it.answer("2024", question)
        it.gate.set()
        await it.ended()
        assert await it.status() == "completed"


async def test_all_questions_of_a_pause_are_answered_at_once(tmp_path):
    steps = [*(planned("researcher", f"Ask {one}") for one in "ABC"), step("reporter", "Report")]
    async with working(tmp_path, script(*steps)) as it:
        it.begun.set()
        await it.begin()
        await it.ended()
        questions = [one for one in it.events if one.type == "interrupt"]
        assert len(questions) == 3
        await asyncio.gather(*(it.answer(f"year {at}", one) for at, one in enumerate(questions)))
        await it.ended()
        assert {"year 0", "year 1", "year 2"} <= {*it.results()}
        with pytest.raises(RunNotWaiting):
            await it.answer("again", questions[0])
        assert await it.status() == "completed"
