"""Which thread a tool is called for; what tools keep between calls is keyed by it."""

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config


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
