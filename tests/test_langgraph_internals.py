"""The installed LangGraph does what maniple takes for granted beyond LangGraph's public interface."""

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Literal

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config
from langgraph.func import task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from maniple import langgraph_internals as internals

pytestmark = pytest.mark.anyio
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
VERSION = version("langgraph")


def broken(key: str, meaning: str) -> str:
    return f"LangGraph {VERSION} has changed {key!r}: {meaning}. Adapt maniple/langgraph_internals.py."


def graph_of(node: Callable[..., Any], saver: InMemorySaver | Literal[True] | None) -> Any:
    return StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile(saver)


async def test_a_node_finds_the_checkpointer_of_its_graph_or_a_parent() -> None:
    found: list[Any] = []

    async def look(state: MessagesState) -> None:
        found.append(internals.find_checkpointer(get_config()))

    saver = InMemorySaver()
    for graph in (graph_of(look, saver), graph_of(graph_of(look, None), saver), graph_of(look, None)):
        await graph.ainvoke({"messages": []}, CONFIG)
    meaning = "a node does not find its graph's or the parent's checkpointer there"
    assert found == [saver, saver, None], broken(internals.CHECKPOINTER, meaning)


async def test_a_node_knows_whether_its_graph_is_resumed() -> None:
    found: list[bool] = []

    async def ask(state: MessagesState) -> None:
        found.append(internals.is_resuming())
        interrupt("?")

    graph = graph_of(ask, InMemorySaver())
    await graph.ainvoke({"messages": []}, CONFIG)
    await graph.ainvoke(Command(resume="!"), CONFIG)
    assert found == [False, True], broken(internals.RESUMING, "it does not say whether a graph is resumed")


async def test_a_node_knows_whether_its_graph_stores_only_at_the_end() -> None:
    found: list[bool] = []

    async def look(state: MessagesState) -> None:
        found.append(internals.stores_only_at_the_end(get_config().get("configurable", {})))

    graph = graph_of(look, InMemorySaver())
    for durability in ("exit", "sync", "async"):
        await graph.ainvoke({"messages": []}, CONFIG, durability=durability)
    assert found == [True, False, False], broken(internals.DURABILITY, "it is not the graph's durability")


@pytest.mark.parametrize("nested", [False, True])
async def test_a_result_that_a_call_stores_itself_is_not_computed_again(nested: bool) -> None:
    calls: list[str] = []
    stored: list[Any] = []

    @task
    async def compute() -> str:
        calls.append(internals.task_of(get_config().get("configurable", {})))
        await internals.store_result_of_call("stored")
        raise RuntimeError("the process dies here")

    async def work(state: MessagesState) -> None:
        if internals.is_resuming():
            saved = await internals.read_checkpoint(internals.graph_namespace())
            stored.extend(internals.results_of_calls((saved and saved.pending_writes) or ()))
        assert await compute() == "stored", broken(internals.RETURN, "a call returns another result")

    graph = graph_of(work, None if nested else InMemorySaver())
    if nested:
        graph = graph_of(graph, InMemorySaver())
    with pytest.raises(RuntimeError, match="dies here"):
        await graph.ainvoke({"messages": []}, CONFIG, durability="sync")
    try:
        await graph.ainvoke(None, CONFIG, durability="sync")
    except RuntimeError:
        pytest.fail(broken(internals.RETURN, "a stored result does not replace the call"))
    assert stored == ["stored"], broken(internals.RETURN, "the stored result of a call is not there")
    assert [one.partition(":")[0] for one in calls] == ["compute"], broken(
        "checkpoint_ns", "its last part is not the name of the current task"
    )
