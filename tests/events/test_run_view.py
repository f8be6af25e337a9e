"""A stream that was cut off anywhere can be ended so that the old client follows."""

from collections.abc import Collection

import pytest
from langchain_core.messages import HumanMessage

from maniple.errors import ToolFailure
from maniple.events import (
    AgentEnded,
    AgentStarted,
    ClaimsChecked,
    Event,
    MessageChunk,
    MessageDelta,
    ModelStarted,
    PlanChanged,
    PlanStepView,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    RunView,
    RunViewReader,
    StepInterrupted,
    StepResumed,
    StreamState,
    ToolCalled,
    ToolOutput,
    ToolReturned,
    Translator,
    as_json,
    read_event,
    record_of,
)
from maniple.events.base import TurnMark
from maniple.events.run_view import CACHED_RUNS, OUTPUT_CHARACTERS
from maniple.runs.turn import stream_run
from maniple.store import EventRecord
from tests.openai_server import SIMPLE, reply
from tests.team import checked, names, scripted_team

pytestmark = pytest.mark.anyio
QUESTION = [HumanMessage("1+3=?")]


@pytest.fixture(params=[SIMPLE, {"coordinator": [reply("hello there")]}], ids=["workflow", "small talk"])
async def events(request):
    async with scripted_team(request.param) as it:
        return [event async for event in stream_run(it.team, QUESTION, run_id="r", thread_id="t")]


class CountingTable:
    """Events of one run, and how many of them were read."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.count = 0

    def add(self, *events: Event) -> None:
        self.records += [record_of(one, len(self.records) + at) for at, one in enumerate(events, start=1)]

    async def read(
        self, run_id: str, after: int = 0, limit: int = 1000, types: Collection[str] | None = None
    ) -> list[EventRecord]:
        page = self.records[after : after + limit]
        self.count += len(page)
        return page


def asked(interrupt_id: str) -> StepInterrupted:
    return StepInterrupted(
        interrupt_id=interrupt_id, kind="question", payload={}, options=[], step_id=1, agent_name="coder"
    )


async def test_each_event_is_read_once_however_often_a_run_at_work_is_looked_at():
    table = CountingTable()
    views = RunViewReader(table, [RunStarted, StepInterrupted, StepResumed])  # type: ignore[arg-type]
    table.add(RunStarted(run_id="r", thread_id="t"))
    for number in range(1, 4):
        table.add(asked(f"i{number}"), *[MessageChunk(message_id="m", delta=MessageDelta(content="x"))] * 900)
        for _ in range(3):
            view = await views.read("r")
            assert list(view.step_questions) == [f"i{one}" for one in range(1, number + 1)]
    table.add(StepResumed(interrupt_id="i2", step_id=1, agent_name="coder"))
    assert list((await views.read("r")).step_questions) == ["i1", "i3"]
    assert table.count == len(table.records)
    for number in range(CACHED_RUNS):
        await views.read(f"other {number}")
    await views.read("r")
    assert table.count == len(table.records) * (CACHED_RUNS + 2), "the run looked at longest ago is dropped"


async def test_wherever_it_was_cut_what_is_owed_makes_it_whole(events):
    for length in range(1, len(events) + 1):
        state = StreamState.of(events[:length])
        translator = Translator("r", "t", QUESTION, state)
        rest = [] if state.has_ended else [*translator.open(), *translator.close("completed")]
        frames = checked([*events[:length], *rest])
        assert names(frames).count("run_status") == names(frames).count("final_session_state") == 1


async def test_a_failure_after_the_cut_is_reported_once(events):
    state = StreamState.of(events[:4])
    translator = Translator("r", "t", QUESTION, state)
    frames = checked([*events[:4], *translator.open(), *translator.close("failed", ToolFailure("no luck"))])
    assert names(frames).count("error") == 1


async def test_a_stretch_that_was_answered_is_judged_by_itself(events):
    state = StreamState.of([*events, *events[:1]])
    assert (state.has_started, state.has_ended, state.status) == (True, False, None)


async def test_events_are_read_back_as_they_were(events):
    assert [read_event(event.type, as_json(event)) for event in events] == events


def plan(*statuses: str, title: str = "Plan", first_id: int = 1) -> PlanChanged:
    steps = [
        PlanStepView(id=number, agent_name="coder", title=f"Step {number}", description="", status=status)
        for number, status in enumerate(statuses, start=first_id)
    ]
    return PlanChanged(title=title, steps=steps)


def folded(*events: Event) -> RunView:
    view = RunView()
    for event in events:
        view.apply(event)
    return view


def text_chunk(text: str, message_id: str = "m") -> MessageChunk:
    return MessageChunk(message_id=message_id, delta=MessageDelta(content=text))


async def test_the_view_of_a_whole_run_has_its_answer_usage_plan_and_status(events):
    view = folded(*events)
    assert view.status == "completed"
    assert view.stream.has_ended
    assert view.answer.strip() == events[-1].messages[-1].content.strip()
    assert view.usage.model_calls == names(checked(events)).count("usage")
    assert view.running_calls == {}


async def test_stored_events_give_the_same_view(events):
    records = [EventRecord(n, one.type, as_json(one), one.at) for n, one in enumerate(events, start=1)]
    view = RunView()
    view.apply_records(records)
    assert view.event_number == len(events)
    assert (view.answer, view.plan, view.usage) == (
        (again := folded(*events)).answer,
        again.plan,
        again.usage,
    )


def test_a_plan_update_names_the_steps_that_changed():
    view = folded(plan("not_started", "not_started"), plan("completed", "not_started"))
    assert view.plan_update and not view.plan_update.is_new
    assert [step.id for step in view.plan_update.changed_steps] == [1]
    view.apply(plan("completed", "not_started", "not_started"))
    assert not view.plan_update.is_new and view.plan_update.has_added_steps
    view.apply(plan("not_started", first_id=7))
    assert view.plan_update.is_new and view.plan_update.changed_steps == []


def test_the_active_step_of_an_agent_is_the_one_in_progress():
    view = folded(plan("completed", "in_progress"))
    assert (step := view.active_step("coder")) and step.id == 2
    assert view.active_step("browser") is None


def test_a_running_call_has_its_input_and_newest_output_until_its_result():
    call = {"tool_call_id": "c", "tool_name": "bash_tool"}
    view = folded(
        ToolCalled(**call, tool_input={"command": "ls"}),
        ToolOutput(**call, stream="stdout", text="a" * OUTPUT_CHARACTERS),
        ToolOutput(**call, stream="stderr", text="b"),
    )
    assert view.running_calls["c"].tool_input == {"command": "ls"}
    assert view.running_calls["c"].output == "a" * (OUTPUT_CHARACTERS - 1) + "b"
    view.apply(ToolReturned(**call, tool_result="ab"))
    assert (view.running_calls, view.usage.tool_calls) == ({}, 1)


def test_a_text_that_replaces_the_answer_of_a_step_is_marked():
    mark = TurnMark("a", 1)
    view = folded(
        AgentStarted(agent_name="coder", agent_id="a").in_turn(mark),
        *(
            one.in_turn(mark)
            for one in (
                ModelStarted(agent_name="coder"),
                text_chunk("I look it up."),
                ToolCalled(tool_call_id="c", tool_name="bash_tool", tool_input={}),
                ModelStarted(agent_name="coder"),
                text_chunk("all years", "n"),
            )
        ),
    )
    assert view.replacement is None
    for event in (ModelStarted(agent_name="coder"), text_chunk("only 2023", "o")):
        view.apply(event.in_turn(mark))
    assert view.replacement == "outdated"
    view.apply(text_chunk(" and no other", "o").in_turn(mark))
    assert view.replacement is None


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        (("in_progress", "completed", "not_started", "in_progress"), "outdated"),
        (("in_progress", "not_started", "in_progress"), "outdated"),
        (("in_progress", "failed", "in_progress"), None),
        (("in_progress",), None),
    ],
)
def test_a_step_that_is_done_again_replaces_its_answer_once(statuses, expected):
    view = RunView()
    for status in statuses:
        step = PlanStepView(id=1, agent_name="coder", title="Count", description="", status=status)
        view.apply(PlanChanged(title="P", steps=[step]))
    mark = TurnMark("b", 1)
    for event in (
        AgentStarted(agent_name="coder", agent_id="b"),
        ModelStarted(agent_name="coder"),
        text_chunk("x"),
    ):
        view.apply(event.in_turn(mark))
    assert view.replacement == expected
    view.apply(text_chunk("y").in_turn(mark))
    assert view.replacement is None


def test_an_answer_that_replaces_a_broken_one_is_marked():
    coordinator = AgentStarted(agent_name="coordinator", agent_id="a")
    view = folded(coordinator, ModelStarted(agent_name="coordinator"), text_chunk("half"))
    assert view.replacement is None
    view.apply(text_chunk("whole", "n"))
    assert view.replacement == "broken_off"
    view.apply(AgentEnded(agent_name="coordinator", agent_id="a"))
    assert view.answer == "whole"


def test_pauses_are_those_of_the_newest_segment():
    pause = RunInterrupted(interrupt_id="i", kind="question", payload={}, options=[])
    view = folded(RunStarted(run_id="r", thread_id="t"), pause, RunStatusChanged(status="interrupted"))
    assert (view.pauses, view.status) == ([pause], "interrupted")
    view.apply(RunStarted(run_id="r", thread_id="t"))
    assert (view.pauses, view.status) == ([], None)


def test_a_draft_is_no_plan_and_ends_with_its_turn_or_the_plan():
    step = PlanStepView(id=1, agent_name="coder", title="Add", description="Add.", status="not_started")
    whole = PlanChanged(title="Sum", steps=[step])
    draft = whole.model_copy(update={"draft": True})
    run = RunView()
    run.apply(AgentStarted(agent_name="planner", agent_id="p"))
    run.apply(draft)
    assert (run.plan_draft, run.plan, run.stream.plan) == (draft, None, None)
    run.apply(AgentEnded(agent_name="planner", agent_id="p"))
    assert (run.plan_draft, run.plan) == (None, None)
    run.apply(whole)
    run.apply(draft)
    assert run.plan_update is not None
    assert (run.plan_draft, run.plan, run.stream.plan, run.plan_update.previous) == (
        draft,
        whole,
        whole,
        None,
    )
    assert ("draft" in draft.data(), "draft" in whole.data()) == (True, False)


def checked_claims(score: str) -> ClaimsChecked:
    counts = dict.fromkeys(ClaimsChecked.model_fields, 0)
    lists = {"claims": [], "marked_citations": [], "unsearched": []}
    return ClaimsChecked.model_validate({**counts, **lists, "score": score})


@pytest.mark.parametrize("agent", ["reporter", "manus", "browser"])
def test_the_check_of_claims_is_that_of_the_turn_that_wrote_the_answer(agent):
    view = RunView()
    for number, score in ((1, "first"), (2, "second"), (3, "")):
        mark = TurnMark(f"{agent}_{number}")
        view.apply(AgentStarted(agent_name=agent, agent_id=mark.agent_id).in_turn(mark))
        view.apply(MessageChunk(message_id="m", delta=MessageDelta(content="4")).in_turn(mark))
        if score:
            view.apply(checked_claims("broken off").in_turn(mark))
            view.apply(checked_claims(score).in_turn(mark))
        view.apply(AgentEnded(agent_name=agent, agent_id=mark.agent_id).in_turn(mark))
        is_stale = agent == "browser"  # its text is no answer here
        assert (view.claims.score if view.claims else "") == (score or ("second" if is_stale else ""))
