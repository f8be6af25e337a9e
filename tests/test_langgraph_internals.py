"""The installed LangGraph does what maniple takes for granted beyond LangGraph's public interface."""

from collections.abc import AsyncGenerator, Callable, Mapping
from importlib.metadata import version
from typing import Any, Literal

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.config import get_config, get_stream_writer
from langgraph.func import task
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.stream import ProtocolEvent, StreamTransformer
from langgraph.types import Command, Interrupt, interrupt

from maniple import langgraph_internals as internals

pytestmark = pytest.mark.anyio
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
VERSION = version("langgraph")


def broken(key: str, meaning: str) -> str:
    return f"LangGraph {VERSION} has changed {key!r}: {meaning}. Adapt maniple/langgraph_internals.py."


def graph_of(node: Callable[..., Any], saver: InMemorySaver | Literal[True] | None) -> Any:
    return StateGraph(MessagesState).add_node("node", node).add_edge(START, "node").compile(saver)


def test_the_installed_version_is_the_one_that_was_checked() -> None:
    assert VERSION.startswith(f"{internals.CHECKED_VERSION}."), (
        f"LangGraph {VERSION} is installed, but maniple was checked with {internals.CHECKED_VERSION}. Adapt "
        "maniple/langgraph_internals.py where another test of this file fails, then change CHECKED_VERSION."
    )


async def raw_events_of_a_nested_graph_that_waits() -> list[Mapping[str, Any]]:
    async def ask(state: MessagesState) -> None:
        interrupt("?")

    async def before(state: MessagesState) -> None:
        """It is the first of two steps."""

    inner = graph_of(ask, None)
    graph = StateGraph(MessagesState).add_node("before", before).add_node("team", inner)
    compiled: Any = graph.add_edge(START, "before").add_edge("before", "team").compile(InMemorySaver())
    return [raw async for raw in compiled.astream_events({"messages": []}, CONFIG, version="v2")]


async def test_an_event_says_in_which_tasks_and_in_which_step_it_happened() -> None:
    found: dict[str, tuple[list[str], int]] = {}
    for raw in await raw_events_of_a_nested_graph_that_waits():
        if raw["event"] == "on_chain_start" and internals.is_node(raw["tags"]):
            path = [one.partition(":")[0] for one in internals.path_of(raw["metadata"])]
            found[raw["name"]] = path, internals.step_of(raw["metadata"])
    paths = {name: path for name, (path, _) in found.items()}
    assert paths == {"before": ["before"], "team": ["team"], "node": ["team", "node"]}, broken(
        f"{internals.PATH} or {internals.NODE_TAG}", "they do not name the nodes in which an event happens"
    )
    assert [found[name][1] for name in ("before", "team")] == [1, 2], broken(
        internals.STEP, "it is not the number of the superstep"
    )


async def test_only_the_event_of_the_node_itself_has_the_tag_of_nodes() -> None:
    raws = await raw_events_of_a_nested_graph_that_waits()
    starts = [raw for raw in raws if raw["event"] == "on_chain_start" and internals.is_node(raw["tags"])]
    assert sorted(raw["name"] for raw in starts) == ["before", "node", "team"], broken(
        internals.NODE_TAG, "not each node has it once"
    )


async def test_a_graph_that_waits_says_for_what_in_its_output() -> None:
    chunks = [raw["data"].get("chunk") for raw in await raw_events_of_a_nested_graph_that_waits()]
    pauses: list[Interrupt] = [pause for chunk in chunks for pause in internals.interrupts_of(chunk)]
    assert {pause.value for pause in pauses} == {"?"}, broken(
        internals.INTERRUPTS, "it does not hold what the graph waits for"
    )


async def test_a_configuration_names_the_checkpoint_for_a_saver_as_for_us() -> None:
    saver = InMemorySaver()
    await graph_of(lambda state: None, saver).ainvoke({"messages": []}, CONFIG)
    newest = await saver.aget_tuple(internals.checkpoint_config("t", ""))
    assert newest is not None, broken("checkpoint_ns", "a checkpoint is not found by it")
    thread_id, namespace, checkpoint_id = internals.read_config(newest.config)
    assert (thread_id, namespace, checkpoint_id) == ("t", "", newest.checkpoint["id"]), broken(
        "checkpoint_id", "a checkpoint's configuration does not name it"
    )
    assert await saver.aget_tuple(internals.checkpoint_config("t", "", checkpoint_id)) == newest, broken(
        "checkpoint_ns", "a checkpoint is not found by it and an id"
    )
    assert await saver.aget_tuple(internals.checkpoint_config("t", "other")) is None, broken(
        "checkpoint_ns", "it does not keep the checkpoints of two graphs apart"
    )


async def test_what_a_task_waits_for_replaces_what_it_waited_for_and_results_stay() -> None:
    saver, config = InMemorySaver(), internals.checkpoint_config("t", "")
    await graph_of(lambda state: None, saver).ainvoke({"messages": []}, CONFIG)
    newest = await saver.aget_tuple(config)
    assert newest is not None
    for value in ("first", "second"):
        for channel in ("messages", internals.INTERRUPTS):
            await saver.aput_writes(newest.config, [(channel, value)], "task")
    stored = {channel: value for _, channel, value in internals.writes_of(await saver.aget_tuple(config))}
    assert stored == {"messages": "first", internals.INTERRUPTS: "second"}, broken(
        "WRITES_IDX_MAP", "a saver replaces other writes"
    )
    assert internals.replaces_writes([internals.INTERRUPTS])
    assert not internals.replaces_writes([internals.INTERRUPTS, "messages"])
    assert internals.index_of_write("messages", 3) == 3
    assert internals.index_of_write(internals.INTERRUPTS, 3) < 0, broken(
        "WRITES_IDX_MAP", "an interrupt is numbered among the results"
    )


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


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol")
async def test_a_nested_graph_sends_parts_to_the_stream_of_typed_events_around_it() -> None:
    class Custom(StreamTransformer):
        required_stream_modes = ("custom",)

        def init(self) -> dict[str, Any]:
            return {}

        def process(self, event: ProtocolEvent) -> bool:
            return True

    seen: list[bool] = []

    async def report(state: MessagesState) -> None:
        given = get_config().get("configurable", {})
        seen.append(internals.streams_events(given))
        if internals.takes_custom_parts(given):
            internals.send_custom_part(given, "a part")

    graph: Any = graph_of(graph_of(report, None), None)
    await graph.ainvoke({"messages": []})
    async with await graph.astream_events({"messages": []}, version="v3", transformers=[Custom]) as run:
        parts = [event["params"]["data"] async for event in run if event["method"] == "custom"]
    assert seen == [False, True], broken(internals.STREAMS_EVENTS, "it does not mark a stream of version 3")
    assert parts == ["a part"], broken(internals.STREAM, "it does not take the parts of a nested graph")
    (part,) = [one async for one in stream_of_one_part()]
    assert {**internals.make_custom_part("a part"), "ns": part["ns"]} == part, broken(
        "custom", "a part of a stream has another form"
    )


async def stream_of_one_part() -> AsyncGenerator[Any]:
    async def report(state: MessagesState) -> None:
        get_stream_writer()("a part")

    compiled = graph_of(report, None)
    async for part in compiled.astream({"messages": []}, stream_mode=["custom"], version="v2"):
        yield part
