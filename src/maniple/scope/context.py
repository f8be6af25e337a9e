"""The `configurable` of the current run, in which its scope is found, and what the caller chose."""

from collections.abc import Mapping
from typing import Any

from langgraph.config import get_config
from langgraph.runtime import get_runtime

SCOPE_KEY = "maniple_scope"
"""The key of a run's scope (`RunScope`) in `configurable`.

Checkpoints and traces copy only strings, numbers and booleans from `configurable`, so the scope is never
stored. Every subgraph inherits it.
"""


def configurable() -> Mapping[str, Any]:
    """Return the `configurable` of the current run's config; empty outside of a run."""
    try:
        return get_config().get("configurable", {})
    except RuntimeError:  # LangGraph raises this outside of a run
        return {}


def locale() -> str:
    """Return the language that the caller of this run named, such as `de-DE`; "" for none."""
    try:
        context = get_runtime().context
    except RuntimeError:
        return ""
    named = getattr(context, "locale", "")
    return named if isinstance(named, str) else ""
