"""Real graphs on the checkpoints of each store."""

import asyncio
import operator
from dataclasses import dataclass
from typing import Annotated, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio


@dataclass
class Planted:
    word: str


class State(TypedDict):
    said: Annotated[list, operator.add]


def graph_on(store, *, asking=False):
    """A graph with a nested one; `asking` makes the nested one interrupt."""

    def answer(state):
        word = interrupt("Which word?") if asking else "answer"
        return {"said": [AIMessage(word)]}

    nested = StateGraph(State).add_node("answer", answer).add_edge(START, "answer").compile(checkpointer=True)

    async def work(state):
        await nested.ainvoke({"said": []})
        return {"said": [AIMessage(f"turn {len(state['said'])}")]}

    graph = StateGraph(State).add_node("work", work).add_edge(START, "work").add_edge("work", END)
    return graph.compile(checkpointer=store.checkpointer)


def on(thread_id):
    return {"configurable": {"thread_id": thread_id}}


async def words(graph, thread_id):
    state = await graph.aget_state(on(thread_id))
    return [message.content for message in state.values.get("said", [])]


async def turn(graph, thread_id, text):
    await graph.ainvoke({"said": [HumanMessage(text)]}, on(thread_id), durability="sync")


async def stored_state(store, thread_id):
    return [one async for one in store.checkpointer.alist({"configurable": {"thread_id": thread_id}})]


async def put(store, place, values, **fields):
    """Store a checkpoint as LangGraph does: with a version of each value."""
    versions = {name: store.checkpointer.get_next_version(None, None) for name in values}
    checkpoint = {**empty_checkpoint(), "channel_values": values, "channel_versions": versions, **fields}
    return await store.checkpointer.aput(place, checkpoint, {}, versions)


async def test_pruning_keeps_what_the_next_turn_needs_and_nothing_else(store):
    graph = graph_on(store)
    for text in ("one", "two"):
        await turn(graph, "t", text)
        await turn(graph, "other", text)
    before = await words(graph, "t")
    untouched = len(await stored_state(store, "other"))
    await store.checkpoints.prune("t")
    assert len(await stored_state(store, "t")) == 1
    assert len(await stored_state(store, "other")) == untouched
    assert await words(graph, "t") == before
    await turn(graph, "t", "three")
    assert await words(graph, "t") == [*before, "three", "turn 5"]
    await store.checkpoints.prune("nowhere")


async def test_rolling_back_undoes_what_came_after(store):
    graph = graph_on(store)
    await turn(graph, "t", "one")
    before = await words(graph, "t")
    base = (await graph.aget_state(on("t"))).config["configurable"]["checkpoint_id"]
    count = len(await stored_state(store, "t"))
    await turn(graph, "t", "two")
    await store.checkpoints.rollback("t", base)
    assert await words(graph, "t") == before
    assert len(await stored_state(store, "t")) == count
    await turn(graph, "t", "again")
    assert await words(graph, "t") == [*before, "again", "turn 3"]
    await store.checkpoints.rollback("t", None)
    assert await stored_state(store, "t") == []
    assert await words(graph, "t") == []


async def test_an_interrupted_graph_is_resumed_by_the_next_process(reopen):
    async with reopen(server=True) as store:
        await turn(graph_on(store, asking=True), "t", "ask me")
    async with reopen(server=True) as store:
        graph = graph_on(store, asking=True)
        state = await graph.aget_state(on("t"))
        assert [one.value for one in state.interrupts] == ["Which word?"]
        await graph.ainvoke(Command(resume="this"), on("t"), durability="sync")
        assert await words(graph, "t") == ["ask me", "turn 1"]


async def test_after_the_clock_was_set_back_the_newest_checkpoint_is_still_the_last(store):
    place = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for number, name in enumerate(["1f0b", "1f0c", "1e0a"]):
        place = await put(store, place, {"n": number}, id=name)
    newest = await store.checkpointer.aget_tuple(on("t"))
    assert newest.checkpoint["channel_values"] == {"n": 2}
    assert newest.parent_config["configurable"]["checkpoint_id"] == "1f0c"
    await store.checkpoints.rollback("t", "1f0c")
    assert (await store.checkpointer.aget_tuple(on("t"))).checkpoint["id"] == "1f0c"
    await store.checkpoints.prune("t")
    assert [one.checkpoint["id"] for one in await stored_state(store, "t")] == ["1f0c"]


async def test_asking_while_listing_does_not_wait_for_ever(store):
    await turn(graph_on(store), "t", "one")
    async with asyncio.timeout(60):
        async for one in store.checkpointer.alist(on("t")):
            assert await store.checkpointer.aget_tuple(one.config) is not None


async def test_a_checkpoint_cancelled_at_any_moment_leaves_no_lock(store):
    run = await stored_run(store)
    place = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for steps in range(12):
        putting = asyncio.create_task(store.checkpointer.aput(place, empty_checkpoint(), {}, {}))
        for _ in range(steps):
            await asyncio.sleep(0)
        putting.cancel()
        await asyncio.wait([putting])
        await store.threads.touch(run.thread_id)
    assert await store.check() == []


async def test_deleting_a_thread_deletes_its_checkpoints(store):
    run = await stored_run(store)
    await turn(graph_on(store), run.thread_id, "one")
    await store.threads.delete(run.thread_id)
    assert await stored_state(store, run.thread_id) == []


async def test_a_class_that_no_graph_declares_is_not_made_from_a_checkpoint(store):
    place = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    await put(store, place, {"evil": Planted("x"), "fine": HumanMessage("y")})
    values = (await store.checkpointer.aget_tuple(on("t"))).checkpoint["channel_values"]
    assert not isinstance(values["evil"], Planted)
    assert values["fine"] == HumanMessage("y", id=values["fine"].id)
