"""What maniple uses of LangGraph beyond its public interface; a test checks it as installed."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.runtime import get_runtime

CHECKPOINTER = "__pregel_checkpointer"
"""The key in `configurable` of the checkpointer of the graph that runs, its own or the inherited one."""
RESUMING = "__pregel_resuming"
"""The key in `configurable` that says whether the graph continues from a checkpoint."""
DURABILITY = "__pregel_durability"
"""The key in `configurable` of the `durability` of the graph that runs."""
RETURN = "__return__"
"""The channel for the result of a call of `@task`."""
_NAMESPACE = "checkpoint_ns"


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


def results_of_calls(writes: Iterable[tuple[str, str, Any]]) -> list[Any]:
    """Return the stored results of calls of `@task` among the pending writes of a checkpoint."""
    return [value for _, channel, value in writes if channel == RETURN]


async def read_checkpoint(namespace: str) -> CheckpointTuple | None:
    """Return the newest stored checkpoint of a graph, with the results that were stored after it."""
    config = get_config()
    saver, thread_id = find_checkpointer(config), config.get("configurable", {}).get("thread_id")
    if saver is None or not thread_id:
        return None
    return await saver.aget_tuple({"configurable": {"thread_id": thread_id, _NAMESPACE: namespace}})


async def store_result_of_call(result: Any) -> None:
    """Store the result of the current call of `@task` now; LangGraph would do so only after its end."""
    info, saver = get_runtime().execution_info, find_checkpointer(get_config())
    # The call's namespace is within that of its node, which is within that of the graph.
    saved = await read_checkpoint(graph_namespace().rpartition("|")[0])
    if saver is None or saved is None or info is None or saved.checkpoint["id"] != info.checkpoint_id:
        return  # the graph stores nothing until its end
    await saver.aput_writes(saved.config, [(RETURN, result)], info.task_id)
