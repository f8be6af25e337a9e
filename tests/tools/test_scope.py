"""For whom a tool is called, in a run of ours, in a foreign graph and outside of any."""

from typing import Any

import pytest
from langgraph.graph import END, START, MessagesState, StateGraph

from maniple.graph import RunOptions
from maniple.scope.context import locale
from maniple.scope.run_scope import run_key, thread_key
from maniple.types import RUN_MARK

pytestmark = pytest.mark.anyio


async def scope_of(context_schema: Any = None, context: Any = None, **config: Any) -> tuple[str, str, str]:
    """Return the scope of a node of a graph: run, thread and language."""
    found = []

    async def node(state: MessagesState) -> None:
        found.append((run_key(), thread_key(), locale()))

    graph = StateGraph(MessagesState, context_schema=context_schema)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    await graph.compile().ainvoke({"messages": []}, config=config or None, context=context)
    return found[0]


async def test_a_run_of_ours_has_its_id_and_its_language() -> None:
    config = {"configurable": {"thread_id": "t"}, "metadata": {RUN_MARK: "r"}}
    assert await scope_of(RunOptions, RunOptions(locale="de-DE"), **config) == ("r", "t", "de-DE")


async def test_in_a_foreign_graph_the_thread_reports_the_run_and_a_strange_context_nothing() -> None:
    assert await scope_of(dict, {"locale": "de"}, configurable={"thread_id": "t"}) == ("t", "t", "")


async def test_without_a_thread_each_invocation_of_a_graph_has_a_name_of_its_own() -> None:
    first, second = (await scope_of())[1], (await scope_of())[1]
    assert first.startswith("node:")
    assert first != second


def test_outside_of_a_graph_there_is_neither() -> None:
    assert (run_key(), thread_key(), locale()) == ("", "local", "")
