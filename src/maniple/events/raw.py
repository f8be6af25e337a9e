"""What LangGraph's raw events (`astream_events`, version 2) say."""

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from maniple.text import whole
from maniple.types import AGENT_MARK


def agent_of(metadata: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the agent that an event belongs to, and the checkpoint namespace up to its node.

    Any segment of the namespace may be the agent's; the mark keeps a parent's node of the same name apart.
    """
    agent = metadata.get(AGENT_MARK)
    if not isinstance(agent, str):
        return "", None
    segments = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")
    for length in range(len(segments), 0, -1):
        if segments[length - 1].split(":")[0] == agent:
            return "|".join(segments[:length]), agent
    return "", None


def is_node(raw: Mapping[str, Any], key: str, agent: str) -> bool:
    """Say whether an event is of the agent's node itself, and not of anything inside it."""
    # A named agent starts twice: once as a node of the graph, once as its own graph.
    return (
        raw.get("name") == agent
        and raw["metadata"].get("langgraph_checkpoint_ns") == key
        and any(tag.startswith("graph:step:") for tag in raw.get("tags") or ())
    )


def update_of(output: Any) -> Mapping[str, Any]:
    """Return what a node's output writes into the state."""
    for one in output if isinstance(output, list) else [output]:
        if isinstance(one, Command) and isinstance(one.update, Mapping):
            return one.update
    return output if isinstance(output, Mapping) else {}


def result(output: Any) -> str:
    """Return a tool's output as text."""
    if isinstance(output, ToolMessage):
        return whole(output.text)
    return whole(output if isinstance(output, str) else str(output))


def plain(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return `value` as JSON can say it; what it cannot say goes as text, or not at all where it is a key."""
    try:
        text = json.dumps(dict(value), default=str, skipkeys=True)
    except (ValueError, RecursionError):  # it holds itself, or goes too deep
        return {"value": whole(str(value))}
    return whole(json.loads(text, parse_constant=str))
