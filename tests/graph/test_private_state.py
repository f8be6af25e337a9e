"""What the team knows beside the conversation stays in one channel of its own."""

import json
from typing import Annotated

import pytest
from langchain_core.messages import AnyMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph, add_messages
from typing_extensions import TypedDict

from tests.openai_server import SIMPLE, call
from tests.team import scripted_team

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
