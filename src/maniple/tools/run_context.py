"""The run that a tool is called in: its thread, its id, its language, and its scope."""

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import get_runtime

from maniple.langgraph_internals import outermost_task
from maniple.types import RUN_MARK

SCOPE_KEY = "maniple_scope"
"""The key of a run's scope (`maniple.agents.run_scope.RunScope`) in `configurable`.

Checkpoints and traces copy only strings, numbers and booleans from `configurable`, so the scope is never
stored. Every subgraph inherits it.
"""
OUTSIDE = "local"
"""The thread of calls outside of any graph: their only user is the program itself."""


def configurable() -> Mapping[str, Any]:
    """Return the `configurable` of the current run's config; empty outside of a run."""
    try:
        return get_config().get("configurable", {})
    except RuntimeError:  # LangGraph raises this outside of a run
        return {}


def thread_key() -> str:
    """Return the name under which the current thread's files, variables and pages are stored.

    It is the thread of the run's scope, else the caller's `thread_id`, else the current invocation of the
    outermost graph, so that two invocations without a `thread_id` share nothing.
    """
    given = configurable()
    of_scope = getattr(given.get(SCOPE_KEY), "thread_id", "")
    named = of_scope or given.get("thread_id") or given.get("run_id")
    return str(named or outermost_task(given) or OUTSIDE)


def run_key() -> str:
    """Return the current run's id; in a foreign graph the thread's; "" outside of any graph."""
    try:
        metadata = get_config().get("metadata", {})
    except RuntimeError:
        return ""
    given = configurable()
    of_scope = getattr(given.get(SCOPE_KEY), "run_id", "")
    return str(metadata.get(RUN_MARK) or of_scope or given.get("run_id") or given.get("thread_id") or "")


def locale() -> str:
    """Return the language that the caller of this run named, such as `de-DE`; "" for none."""
    try:
        context = get_runtime().context
    except RuntimeError:
        return ""
    named = getattr(context, "locale", "")
    return named if isinstance(named, str) else ""
