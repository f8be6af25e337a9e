"""Which thread a tool is called for; what tools keep between calls is keyed by it."""

from langgraph.config import get_config


def thread_key() -> str:
    """The current thread's id, else the run's, else "local" (as outside of any graph)."""
    try:
        configurable = get_config().get("configurable", {})
    except RuntimeError:  # LangGraph's word for "not inside a run"
        return "local"
    return str(configurable.get("thread_id") or configurable.get("run_id") or "local")
