"""What a run waits for as interrupts of LangGraph, and the answers that its clients send."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from maniple.events import RunInterrupted
from maniple.events.views import describe_question

INTERRUPT = "__interrupt__"
"""The key of interrupts in values and updates."""
_DECISIONS = ("approve", "edit", "reject")
_LEGACY_TYPES = {"accept": "approve", "ignore": "reject", "response": "response", "edit": "edit"}
"""The types of the answers of Agent Inbox's clients."""


def describe_interrupt(pause: RunInterrupted) -> dict[str, Any]:
    """Return an interrupt: its id, and as its value the question that the embedded graph asks.

    That of a call to approve also has the form of LangChain's human-in-the-loop middleware.
    """
    value: dict[str, Any] = {"kind": pause.kind, **pause.payload, "options": pause.options}
    if pause.kind == "tool_approval" and pause.payload.get("reason") == "approval":
        name = str(pause.payload.get("tool_name", ""))
        request: dict[str, Any] = {
            "name": name,
            "args": pause.payload.get("tool_input") or {},
            "description": describe_question(pause),
        }
        value["action_requests"] = [request]
        value["review_configs"] = [{"action_name": name, "allowed_decisions": [*_DECISIONS]}]
    return {"value": value, "id": pause.interrupt_id}


def describe_interrupts(pauses: Iterable[RunInterrupted]) -> list[dict[str, Any]]:
    """Return all interrupts, in the order in which they were asked."""
    return [describe_interrupt(pause) for pause in pauses]


def split_answers(resume: Any, pauses: Sequence[RunInterrupted]) -> list[tuple[str, Any]]:
    """Return the answers in `command.resume` as (interrupt id, answer).

    It is a mapping by interrupt ids, or the answer to the oldest question, whose id is then "".
    """
    kinds = {pause.interrupt_id: pause.kind for pause in pauses}
    if isinstance(resume, Mapping):
        given = cast("Mapping[str, Any]", resume)
        if given and all(key in kinds for key in given):
            return [(key, read_answer(value, kinds[key])) for key, value in given.items()]
    return [("", read_answer(resume, pauses[0].kind if pauses else "question"))]


def read_answer(answer: Any, kind: str) -> Any:
    """Return an answer as the engine takes it.

    `answer` may be such a one already, the decisions of the human-in-the-loop middleware, or the list of
    Agent Inbox.
    """
    decision = _find_decision(answer)
    if decision is None:
        return answer
    text = _text_of(decision)
    match str(decision.get("type")):
        case "approve":
            return "accept" if kind == "plan_review" else {"type": "approve"}
        case "edit" if kind != "question":
            arguments = _edited_arguments(decision)
            return arguments if kind == "plan_review" else {"type": "edit", "args": arguments}
        case "reject" if kind == "tool_approval":
            return {"type": "reject", "message": text}
        case _:
            return {"type": "reject", "message": text} if kind == "tool_approval" else text


def _find_decision(answer: Any) -> Mapping[str, Any] | None:
    """Return the one decision in an answer of a known form; None for any other answer."""
    entries: Any = answer
    if isinstance(answer, Mapping):
        entries = cast("Mapping[str, Any]", answer).get("decisions")
    if not isinstance(entries, list) or not entries:
        return None
    first: Any = cast("list[Any]", entries)[0]
    if not isinstance(first, Mapping):
        return None
    decision = cast("Mapping[str, Any]", first)
    kind = str(decision.get("type"))
    if kind in _DECISIONS or kind in _LEGACY_TYPES:
        return {**decision, "type": _LEGACY_TYPES.get(kind, kind)}
    return None


def _edited_arguments(decision: Mapping[str, Any]) -> Any:
    edited: Any = decision.get("edited_action") or decision.get("args") or {}
    if isinstance(edited, Mapping) and "args" in edited:
        return cast("Mapping[str, Any]", edited)["args"]
    return cast("Any", edited)


def _text_of(decision: Mapping[str, Any]) -> str:
    given = decision.get("message") or decision.get("args")
    return given if isinstance(given, str) else ""
