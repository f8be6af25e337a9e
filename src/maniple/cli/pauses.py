"""What the team waits for, in full, and how it can be answered."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from maniple.cli.untrusted import exposed
from maniple.events import Interrupted


def kind_of(question: Interrupted) -> str:
    """Return `plan_review`, `approval`, `unknown_result` or `question`."""
    return question.payload.get("reason", "approval") if question.kind == "tool_approval" else question.kind


def description(question: Interrupted) -> str:
    """Return what is to be decided on, with every argument as it is; safe to print.

    Of a plan, which is shown anyway, only what is wrong with an edited one.
    """
    payload = question.payload
    match kind_of(question):
        case "plan_review":
            error = payload.get("error")
            return f"This cannot be followed: {exposed(str(error))}" if error else ""
        case "approval":
            lines = [f"{_tool(payload)} is to run with:", *_arguments(payload)]
            if error := payload.get("error"):
                lines.append(f"These arguments cannot be used: {exposed(str(error))}")
            return "\n".join(lines)
        case "unknown_result":
            head = f"The program stopped while {_tool(payload)} ran; nobody knows whether it did its work:"
            return "\n".join([head, *_arguments(payload)])
        case _:
            return "\n".join([exposed(_asked(payload)), *_numbered(options_of(question))])


def instructions(question: Interrupted) -> str:
    """Return how the person can answer."""
    match kind_of(question):
        case "plan_review":
            return "The plan waits: Enter accepts it, e edits its steps, or say what should be different."
        case "approval" if question.payload.get("error"):
            return "e edits the arguments again; anything else is a no and tells the team why."
        case "approval":
            return "y runs it, e edits the arguments first; anything else is a no and tells the team why."
        case "unknown_result":
            return "again runs it again, skip does without it; or say what its result was."
        case _ if options_of(question):
            return "Answer with a number, or in your own words."
        case _:
            return "The team waits for your answer."


def hint(question: Interrupted) -> str:
    """Return what stands at an empty prompt."""
    return {"plan_review": "accept", "approval": "y / n / e", "unknown_result": "again / skip"}.get(
        kind_of(question), "Your answer"
    )


def example(question: Interrupted) -> str:
    """Return an answer that may be given on the command line."""
    return {"plan_review": "accept", "approval": "y", "unknown_result": "again"}.get(
        kind_of(question), "your answer"
    )


def options_of(question: Interrupted) -> list[str]:
    """Return the answers that were offered to a question."""
    options = question.payload.get("options")
    return [str(option) for option in options] if isinstance(options, list) else []


def _asked(payload: Mapping[str, Any]) -> str:
    words = payload.get("question")
    # A graph that the team is part of asks in its own way.
    return words if isinstance(words, str) else json.dumps(payload, ensure_ascii=False)


def _tool(payload: Mapping[str, Any]) -> str:
    return exposed(str(payload.get("tool_name", "A tool")))


def _arguments(payload: Mapping[str, Any]) -> Iterator[str]:
    arguments = payload.get("tool_input") or {}
    if not arguments:
        yield "  (no arguments)"
    for name, value in arguments.items():
        text = exposed(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if "\n" in text:
            yield f"  {exposed(name)}:"
            yield from (f"    │ {line}" for line in text.split("\n"))
        else:
            yield f"  {exposed(name)}: {text}"


def _numbered(options: list[str]) -> Iterator[str]:
    for number, option in enumerate(options, start=1):
        yield f"  {number}  {exposed(option)}"
