"""The team in `astream_events(version="v3")`, alone and as a node of another graph."""

import asyncio
import json
from contextlib import asynccontextmanager
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from maniple import Event, ModelError, RunOptions, TeamResult, TeamTransformer, report_stream_events
from maniple.agents.offers import Offer
from maniple.events.model import AgentStarted, RunInterrupted, ToolCalled
from maniple.graph import TeamRules
from maniple.tools.evidence import source_line
from tests.openai_server import SIMPLE, call, reply
from tests.team import checked, names, plan, scripted_team, step

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore:The v3 streaming protocol"),
]
CHANNELS = ("team_events", "team_plan", "team_members", "team_tools", "team_answer", "team_results")
QUESTION = {"messages": [HumanMessage("1+3=?")]}


@asynccontextmanager
async def reporting_team(script: dict[str, Any], **options: Any):
    async with scripted_team(script, **options) as it:
        report_stream_events(it.team)
        yield it


def config() -> Any:
    return {"configurable": {"thread_id": "t"}}


async def read_all(run: Any) -> dict[str, list[Any]]:
    """Read every channel of a run concurrently, to its end."""

    async def read(name: str) -> list[Any]:
        return [item async for item in run.extensions[name]]

    return dict(zip(CHANNELS, await asyncio.gather(*map(read, CHANNELS)), strict=True))


async def test_a_run_is_projected_into_typed_channels_that_agree_with_its_events():
    async with (
        reporting_team(SIMPLE) as it,
        await it.team.astream_events(QUESTION, config(), version="v3") as run,
    ):
        read = await read_all(run)
        output: Any = await run.output()
    frames = checked(read["team_events"])
    assert all(isinstance(one, Event) for one in read["team_events"])
    assert [one.agent_name for one in read["team_members"] if isinstance(one, AgentStarted)] == [
        *("coordinator", "planner", "coder", "reporter")
    ]
    called, returned = read["team_tools"]
    assert isinstance(called, ToolCalled)
    assert (called.tool_name, returned.tool_result) == ("python_repl_tool", "4")
    assert [one.status for one in read["team_plan"][-1].steps] == ["completed", "completed"]
    (result,) = read["team_results"]
    assert isinstance(result, TeamResult)
    assert (result.status, result.gaps, result.error, result.questions) == ("completed", [], None, [])
    assert "".join(one.delta.content for one in read["team_answer"]).strip() == result.answer.strip()
    assert result.usage["model_calls"] == 5
    assert output["messages"][-1].text == result.answer.strip()
    assert names(frames)[-1] == "final_session_state"


async def test_small_talk_is_an_answer_without_a_plan():
    async with (
        reporting_team({"coordinator": [{"chunks": ["He", "llo", "!"]}]}) as it,
        await it.team.astream_events(QUESTION, config(), version="v3") as run,
    ):
        read = await read_all(run)
    assert read["team_plan"] == []
    assert "".join(one.delta.content for one in read["team_answer"]) == "Hello!"
    assert read["team_results"][0].answer == "Hello!"


async def test_the_text_of_a_report_arrives_while_the_model_writes_it():
    slow = {**SIMPLE, "reporter": [{"chunks": ["# Four\n\n", "It is 4.\n\n", "Done.\n"], "hang_after": 2}]}
    async with (
        reporting_team(slow) as it,
        await it.team.astream_events(QUESTION, config(), version="v3") as run,
    ):
        async with asyncio.timeout(30):
            first = await anext(aiter(run.extensions["team_answer"]))
        assert first.delta.content.startswith("# Four")
        it.server.release()


def parent_of(team: Any, **options: Any) -> Any:
    return (
        StateGraph(MessagesState, context_schema=RunOptions)
        .add_node("team", team)
        .add_edge(START, "team")
        .compile(**options)
    )


async def test_a_team_inside_of_a_graph_reports_to_its_stream():
    async with reporting_team(SIMPLE, checkpointer=None) as it:
        parent = parent_of(it.team)
        async with await parent.astream_events(QUESTION, version="v3", transformers=[TeamTransformer]) as run:
            read = await read_all(run)
    checked(read["team_events"])
    assert len(read["team_tools"]) == 2
    assert read["team_results"][0].status == "completed"
    assert "4" in read["team_results"][0].answer


async def test_the_handle_of_each_team_in_a_graph_has_its_events_alone():
    async with reporting_team(SIMPLE, checkpointer=None) as it:
        graph = StateGraph(MessagesState).add_node("left", it.team).add_node("right", it.team)
        parent: Any = graph.add_edge(START, "left").add_edge(START, "right").compile()
        async with await parent.astream_events(QUESTION, version="v3", transformers=[TeamTransformer]) as run:
            handles, read = [], []
            async for handle in run.subgraphs:
                handles.append(handle)
                read.append(asyncio.create_task(read_all(handle)))
            found = await asyncio.gather(*read)
    teams = {one.graph_name: one_read for one, one_read in zip(handles, found, strict=True)}
    for name in ("left", "right"):
        checked(teams[name]["team_events"])
        assert len(teams[name]["team_results"]) == 1


async def test_a_graph_without_the_transformer_streams_as_before():
    async with reporting_team(SIMPLE, checkpointer=None) as it:
        async with await parent_of(it.team).astream_events(QUESTION, version="v3") as run:
            methods = {event["method"] async for event in run}
    assert "custom" not in methods


@pytest.mark.parametrize("is_nested", [False, True])
async def test_a_review_is_a_question_and_its_answer_goes_on(is_nested: bool):
    options, kept = RunOptions(auto_accepted_plan=False), InMemorySaver()
    async with reporting_team(SIMPLE, checkpointer=None if is_nested else kept) as it:
        graph = parent_of(it.team, checkpointer=kept) if is_nested else it.team
        transformers = [TeamTransformer] if is_nested else []

        async def run(given: Any) -> dict[str, list[Any]]:
            stream = await graph.astream_events(
                given, config(), version="v3", transformers=transformers, context=options
            )
            async with stream:
                return await read_all(stream)

        paused, ended = await run(QUESTION), await run(Command(resume="accept"))
    (waiting,) = paused["team_results"]
    assert (waiting.status, waiting.answer) == ("interrupted", "")
    (question,) = waiting.questions
    assert isinstance(question, RunInterrupted)
    assert question.kind == "plan_review"
    (result,) = ended["team_results"]
    assert (result.status, result.questions) == ("completed", [])
    assert "4" in result.answer


async def test_the_end_without_an_answer_has_its_error_code_and_gaps():
    broken = {**SIMPLE, "reporter": [{"status": 401, "error": "no such key"}]}
    async with (
        reporting_team(broken) as it,
        await it.team.astream_events(QUESTION, config(), version="v3") as run,
    ):
        (result,) = (await read_all(run))["team_results"]
        output: Any = await run.output()
    outcome = output["messages"][-1].response_metadata
    assert (result.status, result.error.code) == ("failed", outcome["error_code"])


async def test_a_step_that_failed_is_a_gap_of_the_result():
    steps = plan(step("coder"), step("researcher"), step("reporter"))
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(steps))],
        "coder": [reply("4")],
        "researcher": [reply("STEP FAILED: no data")],
    }
    rules = TeamRules(step_retries=0, max_plan_adaptations=0)
    async with (
        reporting_team(script, rules=rules) as it,
        await it.team.astream_events(QUESTION, config(), version="v3") as run,
    ):
        (result,) = (await read_all(run))["team_results"]
    assert result.status == "completed"
    assert [one.step for one in result.gaps] == ["researcher's step"]
    assert result.gaps[0].reason


async def test_an_error_of_the_graph_reaches_the_channels_and_is_raised():
    async with reporting_team({"coordinator": [{"status": 401, "error": "no such key"}]}) as it:
        run = await it.team.astream_events(QUESTION, config(), version="v3")
        async with run:
            results = []
            with pytest.raises(ModelError) as raised:
                async for one in run.extensions["team_results"]:
                    results.append(one)
    assert [one.status for one in results] == ["failed"]
    assert results[0].error.code == raised.value.code


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return await source_line(url, "Tea", "Tea came to Europe in 1610.")


async def test_the_sources_of_a_report_are_in_the_result():
    page = "https://tea.example/history"
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [call("crawl_tool", url=page), reply("Tea came in 1610 [1].")],
        "reporter": [reply("# Tea\n\nTea came to Europe in 1610 [1].")],
    }
    async with (
        reporting_team(script, toolbox=Offer({"researcher": [crawl_tool]})) as it,
        await it.team.astream_events(QUESTION, config(), version="v3") as run,
    ):
        (result,) = (await read_all(run))["team_results"]
    assert [(one.number, one.url, one.title) for one in result.sources] == [(1, page, "Tea")]
