"""Who a run is for: what it stores belongs to its thread, or to its invocation where there is none."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

from maniple.agents.offers import Offer
from maniple.graph import RunOptions
from maniple.graph.state import private_of
from maniple.runs.turn import stream_run
from maniple.scope.run_scope import run_key, run_scope, thread_key
from maniple.tools.evidence import cited
from tests.openai_server import SIMPLE
from tests.team import Scripted, scripted_team

pytestmark = pytest.mark.anyio
QUESTION = {"messages": [HumanMessage("1+3=?")]}


@dataclass
class Visits:
    """What the coder's tool found in each of its calls."""

    threads: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def tool(self) -> BaseTool:
        """Return the tool, which reads a page of its own in each call."""

        @tool
        async def python_repl_tool(code: str) -> str:
            """Run Python."""
            self.threads.append(thread_key())
            self.runs.append(run_scope().run_id)
            assert run_key() == run_scope().run_id
            url = f"https://e.test/{len(self.threads)}"
            self.numbers += [hit["cite"] for hit in await cited([{"url": url, "title": "", "content": ""}])]
            return "4"

        return python_repl_tool


def open_visited(visits: Visits, **options: Any):
    return scripted_team({**SIMPLE, "by_history": True}, toolbox=Offer({"coder": [visits.tool()]}), **options)


def parent_of(it: Scripted, checkpointer: Any = None, **node: Any):
    graph = StateGraph(MessagesState).add_node("team", it.team, **node).add_edge(START, "team")
    return graph.compile(checkpointer=checkpointer)


def nested(it: Scripted, checkpointer: Any = None):
    inner = parent_of(it)
    graph = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner")
    return graph.compile(checkpointer=checkpointer)


@pytest.mark.parametrize("graph_of", [lambda it: it.team, parent_of, nested])
async def test_two_invocations_without_a_thread_share_nothing(graph_of) -> None:
    visits = Visits()
    async with open_visited(visits, checkpointer=None) as it:
        graph = graph_of(it)
        await asyncio.gather(graph.ainvoke(QUESTION), graph.ainvoke(QUESTION))
    async with open_visited(visits, checkpointer=None) as it:
        await graph_of(it).ainvoke(QUESTION)  # as after a restart of the program
    assert len(set(visits.threads)) == 3
    assert len(set(visits.runs)) == 3
    assert visits.numbers == [1, 1, 1], "each has its own sources"


async def test_two_teams_in_one_invocation_of_a_parent_work_on_the_same_files() -> None:
    visits = Visits()

    async with open_visited(visits, checkpointer=None) as it:

        async def both(state: MessagesState) -> dict[str, Any]:
            await it.team.ainvoke(QUESTION)
            return await it.team.ainvoke(QUESTION)

        await (
            StateGraph(MessagesState)
            .add_node("both", both)
            .add_edge(START, "both")
            .compile()
            .ainvoke(QUESTION)
        )
    assert len(set(visits.threads)) == 1
    assert len(set(visits.runs)) == 2


@pytest.mark.parametrize("graph_of", [lambda it, saver: it.team, parent_of, nested])
async def test_the_thread_of_the_caller_is_the_thread_of_the_team(graph_of) -> None:
    visits = Visits()
    async with open_visited(visits, checkpointer=None) as it:
        graph = graph_of(it, InMemorySaver())
        for thread in ("one", "two", "one"):
            await graph.ainvoke(QUESTION, {"configurable": {"thread_id": thread}})
    assert visits.threads == ["one", "two", "one"]
    assert len(set(visits.runs)) == 3
    assert visits.numbers == [1, 1, 2], "a follow-up may cite what its thread has read before"


async def test_each_request_on_a_thread_is_a_run_of_its_own() -> None:
    visits = Visits()
    async with open_visited(visits) as it:
        for _ in range(2):
            await it.team.ainvoke(QUESTION, {"configurable": {"thread_id": "t"}})
        state = await it.team.aget_state({"configurable": {"thread_id": "t"}})
    assert visits.runs[0] != visits.runs[1]
    assert private_of(state.values)["run_id"] == visits.runs[1]


@pytest.mark.parametrize("saver", [None, InMemorySaver()])
async def test_a_parents_retry_is_the_same_invocation(saver) -> None:
    visits = Visits()
    async with open_visited(visits, checkpointer=None) as it:
        attempts = []

        async def flaky(state: MessagesState) -> dict[str, Any]:
            result = await it.team.ainvoke(QUESTION)
            attempts.append(result)
            if len(attempts) == 1:
                raise ConnectionError("broken")
            return result

        policy = RetryPolicy(initial_interval=0.01, jitter=False)
        graph = StateGraph(MessagesState).add_node("team", flaky, retry_policy=policy).add_edge(START, "team")
        config = {"configurable": {"thread_id": "t"}} if saver else {}
        await graph.compile(checkpointer=saver).ainvoke(QUESTION, config)
    assert len(attempts) == 2
    assert len(set(visits.threads)) == 1


async def test_a_run_that_is_streamed_has_the_id_that_its_caller_gave() -> None:
    visits = Visits()
    async with open_visited(visits, checkpointer=None) as it:
        async for _ in stream_run(it.team, QUESTION["messages"], run_id="mine"):
            pass
    assert (visits.threads, visits.runs) == (["mine"], ["mine"])


async def test_a_pause_and_its_answer_are_one_run() -> None:
    visits, runs = Visits(), []
    async with open_visited(visits) as it:
        options = RunOptions(auto_accepted_plan=False)
        config = {"configurable": {"thread_id": "t"}}
        async for _ in stream_run(it.team, QUESTION["messages"], thread_id="t", options=options):
            pass
        runs.append(private_of((await it.team.aget_state(config)).values)["run_id"])
        async for _ in stream_run(it.team, [HumanMessage("accept")], thread_id="t", options=options):
            pass
    assert visits.runs == runs
