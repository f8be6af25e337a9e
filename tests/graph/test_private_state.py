"""What the team knows beside the conversation stays in one channel of its own."""

import json
from typing import Annotated, Any

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from maniple.graph import Plan, PlanProgress, RunOptions
from maniple.graph.state import private_of
from maniple.runtime import stream_run
from tests.openai_server import SIMPLE, call
from tests.team import agents, checked, data, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
SCRIPT = {**SIMPLE, "by_history": True}
CONFIG = {"configurable": {"thread_id": "t"}}


class Theirs(TypedDict, total=False):
    """A parent's state, with the names of ours for other things."""

    messages: Annotated[list[AnyMessage], add_messages]
    summary: str
    plan: list[int]
    files: dict[str, str]
    request: int
    feedback: bool
    next: tuple[str, ...]
    full_plan: float
    maniple: str
    locale: int
    TEAM_MEMBERS: str
    usage: str


THEIRS: Theirs = {
    "summary": "Theirs.",
    "plan": [1, 2],
    "files": {"a": "b"},
    "request": 7,
    "feedback": True,
    "next": ("x",),
    "full_plan": 0.5,
    "maniple": "a handful",
    "locale": 3,
    "TEAM_MEMBERS": "everyone",
    "usage": "none",
}


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
async def test_a_parents_state_of_any_type_stays_as_it_is(saver) -> None:
    async with scripted_team(SCRIPT, checkpointer=None) as it:
        graph = StateGraph(Theirs).add_node("team", it.team).add_edge(START, "team")
        parent = graph.compile(checkpointer=saver)
        config = CONFIG if saver else None
        result = await parent.ainvoke({"messages": [HumanMessage("1+3=?")], **THEIRS}, config)
    assert [message.name for message in result.pop("messages")] == [None, "planner", "coder", "reporter"]
    assert result == THEIRS


async def test_the_team_takes_messages_and_options_and_gives_messages() -> None:
    async with scripted_team(SCRIPT) as it:
        assert set(it.team.get_input_jsonschema()["properties"]) == {
            "messages",
            "TEAM_MEMBERS",
            "deep_thinking_mode",
            "search_before_planning",
            "locale",
        }
        assert set(it.team.get_output_jsonschema()["properties"]) == {"messages"}
        assert set(await it.team.ainvoke({"messages": [HumanMessage("1+3=?")]}, CONFIG)) == {"messages"}
        values = (await it.team.aget_state(CONFIG)).values
    assert set(values) == {"messages", "maniple"}
    assert json.loads(json.dumps(values["maniple"])) == values["maniple"], "plain data only"


async def test_the_language_of_one_request_is_no_option_of_the_next() -> None:
    script = {**SCRIPT, "coordinator": [call("handoff_to_planner", locale="de-DE")]}
    async with scripted_team(script) as it:
        for _ in range(2):
            await it.team.ainvoke({"messages": [HumanMessage("1+3=?")]}, CONFIG)
        assert "de-DE" in it.prompts("planner")[-1]
        assert "de-DE" not in it.prompts("coordinator")[-1]


PLANNED = Plan.model_validate(plan(step("coder", "Add"), step("reporter"), title="Old plan"))


class OldState(MessagesState, total=False):
    """The state of version 1."""

    TEAM_MEMBERS: list[str]
    next: str
    full_plan: str
    deep_thinking_mode: bool
    search_before_planning: bool
    locale: str
    plan: dict[str, Any] | None
    feedback: str
    request: str
    files: list[str]
    summary: dict[str, str] | None


def planner(state: OldState) -> Command[Any]:
    """Write what version 1 had written when it asked for the review of a plan."""
    update = {
        "messages": [HumanMessage(PLANNED.as_text(), name="planner")],
        "full_plan": PLANNED.as_text(),
        "plan": PlanProgress.of(PLANNED).to_state(),
        "feedback": "",
        "next": "",
        "request": "the request with its answers",
        "locale": "fr-FR",
        "files": ["old.csv"],
    }
    return Command(goto="review", update=update)


def review(state: OldState) -> Command[Any]:
    answer = interrupt({"kind": "plan_review", "plan": PLANNED.model_dump(exclude_none=True)})
    return Command(goto="supervisor", update={"feedback": answer})


async def written_by_version_1(*, paused: bool) -> InMemorySaver:
    """Return what version 1 left of a thread: a review that waits, or a run that is over."""
    saver = InMemorySaver()
    graph = StateGraph(OldState).add_node("planner", planner, destinations=("review",))
    graph.add_node("review", review, destinations=("supervisor",)).add_edge(START, "planner")
    graph.add_node("supervisor", lambda state: {"next": "FINISH"})
    old = graph.compile(checkpointer=saver)
    await old.ainvoke({"messages": [HumanMessage("old question")]}, CONFIG)
    if not paused:
        await old.ainvoke(Command(resume="accept"), CONFIG)
    return saver


async def test_a_run_that_version_1_paused_goes_on() -> None:
    saver = await written_by_version_1(paused=True)
    async with scripted_team(SCRIPT, checkpointer=saver) as it:
        before = await it.team.aget_state(CONFIG)
        assert private_of(before.values)["plan"]["title"] == "Old plan"
        options = RunOptions(auto_accepted_plan=False)
        events = stream_run(it.team, [HumanMessage("accept")], thread_id="t", options=options)
        frames = checked([event async for event in events])
        after = await it.team.aget_state(CONFIG)
        assert agents(frames) == ["coder", "reporter"]
        assert status(frames) == "completed"
        assert "the request with its answers" in it.prompts("coder")[0]
        assert "fr-FR" in it.prompts("coder")[0]
    assert data(frames, "plan")[-1]["title"] == "Old plan"
    assert private_of(after.values)["plan"]["steps"][-1]["status"] == "completed"
    assert [key for key in OldState.__annotations__ if after.values.get(key)] == ["messages", "locale"]


@pytest.mark.parametrize("answer", ["use another way", json.dumps(plan(step("coder"), title="Mine"))])
async def test_the_old_plan_can_be_changed_in_its_review(answer: str) -> None:
    saver = await written_by_version_1(paused=True)
    async with scripted_team(SCRIPT, checkpointer=saver) as it:
        await it.team.ainvoke(Command(resume=answer), CONFIG)
        private = private_of((await it.team.aget_state(CONFIG)).values)
        asked = it.prompts("planner")
    assert bool(asked) == (answer == "use another way")
    assert all("Old plan" in prompt and answer in prompt for prompt in asked)
    assert private["plan"]["title"] != "Old plan"


async def test_a_thread_of_version_1_is_followed_up() -> None:
    saver = await written_by_version_1(paused=False)
    async with scripted_team(SCRIPT, checkpointer=saver) as it:
        frames = await it.run("1+3=?", thread_id="t")
        state = await it.team.aget_state(CONFIG)
        assert "old question" in it.prompts("coordinator")[0]
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    private = private_of(state.values)
    assert private["plan"]["title"] != "Old plan"
    assert private["request"] == ""
    assert "old.csv" not in private["files"]
