"""What the team may wait for."""

from typing import Any

from maniple.events import RunInterrupted

PLAN: dict[str, Any] = {
    "title": "1 + 3",
    "steps": [
        {"agent_name": "coder", "title": "Compute", "description": "Compute it."},
        {"agent_name": "reporter", "title": "Report", "description": "Report it."},
    ],
}
ARGUMENTS = {"cmd": "rm -r results"}


def plan_review() -> RunInterrupted:
    """A plan for review."""
    return RunInterrupted(interrupt_id="1", kind="plan_review", payload={"plan": PLAN}, options=["accept"])


def approval(reason: str = "approval", *, arguments: Any = None, **more: Any) -> RunInterrupted:
    """A tool call that waits for a word."""
    call = {"tool_name": "bash_tool", "tool_input": arguments or ARGUMENTS, "tool_call_id": "c"}
    return RunInterrupted(
        interrupt_id="1", kind="tool_approval", payload={"reason": reason, **call, **more}, options=[]
    )


def question(words: str, *options: str) -> RunInterrupted:
    """A question to the person."""
    payload = {"question": words, "options": list(options)}
    return RunInterrupted(interrupt_id="1", kind="question", payload=payload, options=[])
