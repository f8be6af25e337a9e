"""What a paused graph waits for, and the answers that are offered for it."""

from collections.abc import Mapping
from typing import Any

from maniple.events.model import RunInterrupted
from maniple.events.raw import plain

_KINDS = ("plan_review", "tool_approval", "question")


def interrupted(interrupt_id: str, value: Any) -> RunInterrupted:
    """Return the event for one pause; `value` is what the graph was interrupted with."""
    payload = plain(dict(value) if isinstance(value, Mapping) else {"value": value})
    # A parent graph may pause, too, and call that what it likes.
    kind = payload.pop("kind") if payload.get("kind") in _KINDS else "question"
    return RunInterrupted(
        interrupt_id=interrupt_id, kind=kind, payload=payload, options=_options(kind, payload)
    )


def _options(kind: str, payload: Mapping[str, Any]) -> list[str]:
    """Return the kinds of answers that are understood, or for a question those to choose from."""
    if kind == "plan_review":
        return ["accept", "edit", "reply"]
    if kind == "tool_approval":
        unknown = payload.get("reason") == "unknown_result"
        return ["run_again", "skip"] if unknown else ["approve", "edit", "reject"]
    options = payload.get("options")
    return [str(option) for option in options] if isinstance(options, list | tuple) else []
