"""The compiled team as a node of a foreign graph."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command

from maniple.agents import Task
from maniple.config import ModelsSettings
from maniple.events import translate
from maniple.graph import TeamRules, build_graph
from maniple.llms import open_chat_models
from maniple.runs.turn import stream_run
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.team import agents, checked, data, joined_text, plan, scripted_team, step

pytestmark = pytest.mark.anyio


@dataclass
class Tenant:
    """The parent's own context."""

    name: str


def parent_of(team, **compile_options):
    async def theirs(state: MessagesState, runtime: Runtime[Tenant]):
        return {"messages": [HumanMessage(f"1+3=? for {runtime.context.name}")]}

    graph = StateGraph(MessagesState, context_schema=Tenant)
    graph.add_node("theirs", theirs).add_node("team", team)
    graph.add_edge(START, "theirs").add_edge("theirs", "team")
    return graph.compile(**compile_options)


def settings_for(server: OpenAIServer) -> ModelsSettings:
    endpoint = {"model": "m", "base_url": server.base_url, "timeout_seconds": 60, "max_retries": 0}
    return ModelsSettings.model_validate({"basic": endpoint})


@asynccontextmanager
async def serving_model(answer: str) -> AsyncIterator[BaseChatModel]:
    """Yield a foreign chat model that answers `answer`."""
    with serving({"other": [reply(answer)]}) as server:
        async with open_chat_models(settings_for(server)) as models:
            yield models.get("basic")


async def test_the_team_works_with_a_foreign_context():
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        result = await parent_of(it.team).ainvoke({"messages": []}, context=Tenant("acme"))
    assert [m.name for m in result["messages"]] == [None, "planner", "coder", "reporter"]
    assert "4" in result["messages"][-1].text


@pytest.mark.parametrize("message_type", ["ai", "human"])
async def test_a_parent_receives_the_members_messages_in_the_type_it_chose(message_type):
    rules = TeamRules(message_type=message_type)
    async with scripted_team(SIMPLE, checkpointer=None, rules=rules) as it:
        result = await parent_of(it.team).ainvoke({"messages": []}, context=Tenant("acme"))
    assert {m.type for m in result["messages"] if m.name} == {message_type}


@pytest.mark.parametrize("message_type", ["ai", "human"])
async def test_clients_receive_the_members_messages_with_the_role_that_langmanus_gives_them(message_type):
    async with scripted_team(SIMPLE, rules=TeamRules(message_type=message_type)) as it:
        frames = await it.run("1+3=?", thread_id="t")
        state = await it.team.aget_state({"configurable": {"thread_id": "t"}})
    final = next(data for name, data in frames if name == "final_session_state")
    assert [message["role"] for message in final["messages"]] == ["user"] * 4
    assert [message.type for message in state.values["messages"]] == ["human", *[message_type] * 3]


async def test_its_events_are_reported_through_the_parents_stream():
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        raw = parent_of(it.team).astream_events({"messages": []}, context=Tenant("acme"), version="v2")
        events = translate(raw, run_id="r", thread_id="t", messages=[HumanMessage("hi")])
        frames = checked([event async for event in events])
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert data(frames, "tool_call")[0]["tool_name"] == "python_repl_tool"


async def test_the_parents_checkpointer_keeps_its_state():
    saver = InMemorySaver()
    config = {"configurable": {"thread_id": "parent"}}
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        parent = parent_of(it.team, checkpointer=saver)
        await parent.ainvoke({"messages": []}, config, context=Tenant("acme"))
        state = await parent.aget_state(config)
    assert [m.name for m in state.values["messages"]] == [None, "planner", "coder", "reporter"]


async def test_langmanus_state_fields_choose_the_options_where_the_context_is_foreign():
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        state = {
            "messages": [HumanMessage("1+3=?")],
            "TEAM_MEMBERS": ["coder", "reporter"],
            "deep_thinking_mode": True,
        }
        await it.team.ainvoke(state)
        assert "researcher" not in it.prompts("planner")[0]
        assert it.server.requests[1]["model"] == "deep"


async def test_a_review_pauses_the_parent_and_resumes_it():
    from maniple.graph import RunOptions

    script = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [reply("found")],
        "reporter": [reply("# Report")],
    }
    config = {"configurable": {"thread_id": "p"}}
    async with scripted_team(script, checkpointer=None) as it:
        graph = (
            StateGraph(MessagesState, context_schema=RunOptions)
            .add_node("team", it.team)
            .add_edge(START, "team")
        )
        parent = graph.compile(checkpointer=InMemorySaver())
        options = RunOptions(auto_accepted_plan=False)
        paused = await parent.ainvoke({"messages": [HumanMessage("look")]}, config, context=options)
        assert paused["__interrupt__"][0].value["kind"] == "plan_review"
        done = await parent.ainvoke(Command(resume="accept"), config, context=options)
    assert done["messages"][-1].text == "# Report"


async def test_a_pause_is_reported_through_the_parents_stream():
    from maniple.graph import RunOptions

    graph = StateGraph(MessagesState, context_schema=RunOptions)
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        parent = graph.add_node("team", it.team).add_edge(START, "team").compile(checkpointer=InMemorySaver())
        raw = parent.astream_events(
            {"messages": [HumanMessage("1+3=?")]},
            {"configurable": {"thread_id": "p"}},
            context=RunOptions(auto_accepted_plan=False),
            version="v2",
        )
        events = translate(raw, run_id="r", thread_id="p", messages=[HumanMessage("1+3=?")])
        frames = checked([event async for event in events])
    assert data(frames, "interrupt")[0]["kind"] == "plan_review"
    assert data(frames, "run_status")[0]["status"] == "interrupted"


async def test_nodes_of_the_parent_with_our_names_are_not_taken_for_ours():
    async def planner(state: MessagesState):
        return {"messages": HumanMessage("1+3=?")}

    async with scripted_team(SIMPLE, checkpointer=None) as it:
        graph = StateGraph(MessagesState).add_node("planner", planner).add_node("researcher", it.team)
        graph.add_edge(START, "planner").add_edge("planner", "researcher")
        raw = graph.compile().astream_events({"messages": []}, version="v2")
        events = translate(raw, run_id="r", thread_id="t", messages=[HumanMessage("1+3=?")])
        frames = checked([event async for event in events])
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert len(frames[-1][1]["messages"]) == 4


async def test_two_teams_that_a_parent_runs_at_once_are_reported_one_turn_after_another():
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        graph = StateGraph(MessagesState).add_node("left", it.team).add_node("right", it.team)
        parent = graph.add_edge(START, "left").add_edge(START, "right").compile()
        question = [HumanMessage("1+3=?")]
        raw = parent.astream_events({"messages": question}, version="v2")
        frames = checked([e async for e in translate(raw, run_id="r", thread_id="t", messages=question)])
    assert sorted(agents(frames)) == sorted(["coordinator", "planner", "coder", "reporter"] * 2)
    ids = [one["agent_id"] for one in data(frames, "start_of_agent")]
    assert len(set(ids)) == len(ids)
    assert len(data(frames, "start_of_workflow")) == 1
    assert [m["content"] for m in frames[-1][1]["messages"]].count("1 + 3 = 4") == 2


async def test_the_model_of_a_parent_graph_in_a_node_of_our_name_emits_nothing():
    async with serving_model("their own words") as model, scripted_team(SIMPLE, checkpointer=None) as it:

        async def coder(state: MessagesState):
            return {"messages": [HumanMessage((await model.ainvoke(state["messages"])).text)]}

        graph = StateGraph(MessagesState).add_node("coder", coder).add_node("team", it.team)
        parent = graph.add_edge(START, "coder").add_edge("coder", "team").compile()
        question = [HumanMessage("1+3=?")]
        raw = parent.astream_events({"messages": question}, version="v2")
        frames = checked([e async for e in translate(raw, run_id="r", thread_id="t", messages=question)])
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    assert "their own words" not in joined_text(frames)


class OwnGraph:
    """A worker that is a graph of its own, with a node of the worker's name."""

    def __init__(self, model: BaseChatModel) -> None:
        async def coder(state: MessagesState):
            return {"messages": [await model.ainvoke(state["messages"])]}

        self._graph = StateGraph(MessagesState).add_node("coder", coder).add_edge(START, "coder").compile()

    async def work(self, task: Task) -> str:
        result = await self._graph.ainvoke({"messages": [HumanMessage(task.description)]})
        return result["messages"][-1].text


class Fixed:
    """A reporter that asks no model."""

    async def work(self, task: Task) -> str:
        return "# Report\n\n" + "\n".join(result.text for result in task.results)


async def test_workers_of_ones_own_take_their_turns_like_ours():
    async with serving_model("It is 4.") as model:
        with serving(SIMPLE) as server:
            async with open_chat_models(settings_for(server)) as models:
                team = build_graph(models, {"coder": OwnGraph(model), "reporter": Fixed()})
                events = stream_run(team, [HumanMessage("1+3=?")])
                frames = checked([event async for event in events])
    assert agents(frames) == ["coordinator", "planner", "coder", "reporter"]
    turn = frames[[one.get("agent_name") for _, one in frames].index("reporter") :]
    told = [name for name, _ in turn if name != "plan"]
    assert told[:5] == ["start_of_agent", "start_of_llm", "message", "end_of_llm", "end_of_agent"]
    assert joined_text(turn) == "# Report\n\nIt is 4."
    assert [m["content"] for m in frames[-1][1]["messages"]][2:] == ["It is 4.", joined_text(turn)]


@pytest.mark.parametrize("embedded", [False, True])
async def test_calling_the_team_without_await_names_the_right_call(embedded):
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        graph = StateGraph(MessagesState).add_node("team", it.team).add_edge(START, "team").compile()
        with pytest.raises(TypeError, match=r"async API \(ainvoke, astream"):
            (graph if embedded else it.team).invoke({"messages": [HumanMessage("1+3=?")]})
