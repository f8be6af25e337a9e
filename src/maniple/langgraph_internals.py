"""What maniple uses of LangGraph beyond its public interface; a test checks it as installed."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.config import get_config
from langgraph.runtime import get_runtime
from langgraph.types import Interrupt
from ormsgpack import Ext

CHECKED_VERSION = "1.2"
"""The minor version of LangGraph whose keys are the ones below."""
CHECKPOINTER = "__pregel_checkpointer"
"""The key in `configurable` of the checkpointer of the graph that runs, its own or the inherited one."""
RESUMING = "__pregel_resuming"
"""The key in `configurable` that says whether the graph continues from a checkpoint."""
DURABILITY = "__pregel_durability"
"""The key in `configurable` of the `durability` of the graph that runs."""
STREAM = "__pregel_stream"
"""The key in `configurable` of what takes the stream's parts of a graph inside of another one."""
STREAMS_EVENTS = "__pregel_stream_messages_v2"
"""The key in `configurable` that says whether a graph is streamed by `astream_events(version="v3")`."""
RETURN = "__return__"
"""The channel for the result of a call of `@task`."""
INTERRUPTS = "__interrupt__"
"""The key of a graph's output with what it waits for."""
PATH = "langgraph_checkpoint_ns"
"""The key in an event's metadata of the checkpoint namespace in which it happened."""
STEP = "langgraph_step"
"""The key in an event's metadata of the number of the graph's superstep."""
NODE_TAG = "graph:step:"
"""How a tag begins that only the node itself has, and nothing inside it."""
_NAMESPACE = "checkpoint_ns"

Write = tuple[str, str, Any]
"""A task, the channel that it wrote, and the value."""


def find_checkpointer(config: RunnableConfig) -> BaseCheckpointSaver[Any] | None:
    """Return the checkpointer of the current graph, its own or a parent's; None if it has none."""
    saver = config.get("configurable", {}).get(CHECKPOINTER)
    return cast("BaseCheckpointSaver[Any]", saver) if isinstance(saver, BaseCheckpointSaver) else None


def is_resuming() -> bool:
    """Return whether the graph whose node is running continues from a checkpoint."""
    return bool(get_config().get("configurable", {}).get(RESUMING))


def stores_only_at_the_end(given: Mapping[str, Any]) -> bool:
    """Return whether the graph with these `configurable` stores no checkpoint before it ends."""
    return given.get(DURABILITY) == "exit"


def streams_events(given: Mapping[str, Any]) -> bool:
    """Return whether the graph with these `configurable` is streamed by `astream_events(version="v3")`."""
    return bool(given.get(STREAMS_EVENTS))


def make_custom_part(item: Any) -> Mapping[str, Any]:
    """Return `item` as a part of an outermost graph's stream in the mode `custom`."""
    return {"type": "custom", "ns": (), "data": item}


def takes_custom_parts(given: Mapping[str, Any]) -> bool:
    """Return whether the graph around the one with these `configurable` streams the mode `custom`."""
    return (stream := given.get(STREAM)) is not None and "custom" in stream.modes


def send_custom_part(given: Mapping[str, Any], item: Any) -> None:
    """Send `item` as a part of the mode `custom` of the graph around the one with these `configurable`."""
    given[STREAM]((tuple(str(given.get(_NAMESPACE) or "").split("|")), "custom", item))


def namespace_around(given: Mapping[str, Any]) -> str:
    """Return the checkpoint namespace of the graph of the current task; "" for an outermost graph."""
    return str(given.get(_NAMESPACE) or "").rpartition("|")[0]


def graph_namespace() -> str:
    """Return the checkpoint namespace of the graph whose node is running."""
    return namespace_around(get_config().get("configurable", {}))


def task_of(given: Mapping[str, Any]) -> str:
    """Return `node:uuid` of the current task; "" outside of a graph.

    LangGraph derives it from the checkpoint at which the task begins. It stays the same if the task is
    executed again after an interrupt or a crash. It differs if the node is entered again.
    """
    return str(given.get(_NAMESPACE) or "").rpartition("|")[2]


def outermost_task(given: Mapping[str, Any]) -> str:
    """Return `node:uuid` of the outermost graph's current task; "" outside of a graph.

    The uuid is new in each invocation, and the same when a node is tried again.
    """
    return str(given.get(_NAMESPACE) or "").partition("|")[0]


def path_of(metadata: Mapping[str, Any]) -> list[str]:
    """Return `node:uuid` of the tasks in which an event happened, the outermost first."""
    return str(metadata.get(PATH) or "").split("|")


def step_of(metadata: Mapping[str, Any]) -> int:
    """Return the number of the superstep in which an event happened."""
    return metadata.get(STEP, 0)


def is_node(tags: Iterable[str] | None) -> bool:
    """Return whether what has these tags is a node, and not something inside of one."""
    return any(tag.startswith(NODE_TAG) for tag in tags or ())


def interrupts_of(output: Any) -> Sequence[Interrupt]:
    """Return what a graph waits for, from a part of its output."""
    return cast("Mapping[str, Any]", output).get(INTERRUPTS) or () if isinstance(output, Mapping) else ()


def checkpoint_config(thread_id: str, namespace: str, checkpoint_id: str | None = None) -> RunnableConfig:
    """Return the configuration that names a checkpoint; without an id, the newest of the namespace."""
    names = {"thread_id": thread_id, _NAMESPACE: namespace}
    return {"configurable": names if checkpoint_id is None else {**names, "checkpoint_id": checkpoint_id}}


def read_config(config: RunnableConfig) -> tuple[str, str, str | None]:
    """Return the thread, the namespace and the id of the checkpoint that a configuration names."""
    given = config.get("configurable", {})
    return str(given["thread_id"]), given.get(_NAMESPACE, ""), get_checkpoint_id(config)


def index_of_write(channel: str, position: int) -> int:
    """Return the number under which a write of a task is stored, by its channel and its position."""
    return WRITES_IDX_MAP.get(channel, position)


def replaces_writes(channels: Iterable[str]) -> bool:
    """Return whether the writes of a task on these channels replace stored ones; others are kept."""
    return all(channel in WRITES_IDX_MAP for channel in channels)


def make_opaque_serializer() -> JsonPlusSerializer:
    """Return a serializer that makes no object of what it reads, and writes the same bytes again."""
    return JsonPlusSerializer(__unpack_ext_hook__=Ext)


def writes_of(saved: CheckpointTuple | None) -> Sequence[Write]:
    """Return what tasks have written since a checkpoint."""
    return (saved.pending_writes if saved is not None else None) or ()


def results_of_calls(writes: Iterable[Write]) -> list[Any]:
    """Return the stored results of calls of `@task` among the pending writes of a checkpoint."""
    return [value for _, channel, value in writes if channel == RETURN]


async def read_checkpoint(namespace: str) -> CheckpointTuple | None:
    """Return the newest stored checkpoint of a graph, with the results that were stored after it."""
    config = get_config()
    saver, thread_id = find_checkpointer(config), config.get("configurable", {}).get("thread_id")
    if saver is None or not thread_id:
        return None
    return await saver.aget_tuple(checkpoint_config(thread_id, namespace))


async def store_result_of_call(result: Any) -> None:
    """Store the result of the current call of `@task` now; LangGraph would do so only after its end."""
    info, saver = get_runtime().execution_info, find_checkpointer(get_config())
    # The call's namespace is within that of its node, which is within that of the graph.
    saved = await read_checkpoint(graph_namespace().rpartition("|")[0])
    if saver is None or saved is None or info is None or saved.checkpoint["id"] != info.checkpoint_id:
        return  # the graph stores nothing until its end
    await saver.aput_writes(saved.config, [(RETURN, result)], info.task_id)
