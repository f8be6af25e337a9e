"""For whom a tool is called: its thread and its run, by which tools keep things, and its language."""

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import get_runtime

from maniple.types import RUN_MARK


def configurable() -> Mapping[str, Any]:
    """The `configurable` of the current run's config; empty outside of a run."""
    try:
        return get_config().get("configurable", {})
    except RuntimeError:  # LangGraph's word for "not inside a run"
        return {}


def thread_key() -> str:
    """The current thread's id, else the run's, else "local" (as outside of any graph)."""
    given = configurable()
    return str(given.get("thread_id") or given.get("run_id") or "local")


def run_key() -> str:
    """The current run's id; in a graph that is not ours the thread's; "" outside of any."""
    try:
        metadata = get_config().get("metadata", {})
    except RuntimeError:
        return ""
    given = configurable()
    return str(metadata.get(RUN_MARK) or given.get("run_id") or given.get("thread_id") or "")


def locale() -> str:
    """The language that the caller of this run named, such as `de-DE`; "" for none."""
    try:
        context = get_runtime().context
    except RuntimeError:
        return ""
    named = getattr(context, "locale", "")
    return named if isinstance(named, str) else ""
