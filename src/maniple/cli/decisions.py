"""What a person's line means to the team that waits for it (`maniple.agents.answers` reads the same)."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maniple.agents.answers import accepts, wants_repetition
from maniple.cli.members import UnknownMember
from maniple.cli.pauses import kind_of, options_of
from maniple.cli.plan_text import plan_as_text, plan_from_text
from maniple.cli.untrusted import exposed
from maniple.events import Interrupted

_NO = re.compile(r"(?:no|n)\b[\s,.:;-]*", re.IGNORECASE)
_EDIT = re.compile(r"(?:edit|e)(?:\s+(?P<text>.+))?\Z", re.IGNORECASE | re.DOTALL)


class Unclear(ValueError):
    """The line is no answer to this question; the message says what would be."""


class Unchanged(ValueError):
    """What was edited is as it was."""


@dataclass(frozen=True, slots=True)
class Edit:
    """The person wants to edit, beginning with this text."""

    text: str
    suffix: str


def decide(question: Interrupted, line: str) -> Any | Edit:
    """Return the answer that `line` is, or the text that is to be edited first; raises `Unclear`."""
    line = line.strip()
    match kind_of(question):
        case "plan_review":
            return _on_plan(question, line)
        case "approval":
            return _on_call(question, line)
        case "unknown_result":
            return _on_unknown_result(line)
        case _:
            return _on_question(question, line)


def edited(question: Interrupted, text: str, members: Sequence[str], most_steps: int) -> Any:
    """Return the answer that an edited text is; raises `Unclear` or `Unchanged`."""
    if not text.strip():
        raise Unchanged
    if kind_of(question) == "plan_review":
        before = question.payload.get("plan") or {}
        try:
            plan = plan_from_text(text, before, members, most_steps)
            shown = plan_from_text(plan_as_text(before), before, (), 0)
        except (UnknownMember, ValueError) as error:
            raise Unclear(str(error)) from error
        if plan == shown:
            raise Unchanged
        return plan
    arguments = _json_object(text)
    if arguments == question.payload.get("tool_input"):
        raise Unchanged
    return {"type": "edit", "args": arguments}


def _on_plan(question: Interrupted, line: str) -> Any | Edit:
    if not line or accepts(line):
        return "accept"
    if line.casefold() in ("e", "edit"):
        return Edit(plan_as_text(question.payload.get("plan") or {}), ".txt")
    return line


def _on_call(question: Interrupted, line: str) -> Any | Edit:
    if found := _EDIT.match(line):
        if text := found["text"]:
            return {"type": "edit", "args": _json_object(text)}
        arguments = question.payload.get("tool_input") or {}
        shown = json.dumps(arguments, ensure_ascii=False, indent=2)
        if exposed(shown) != shown:  # an editor would hide something
            shown = json.dumps(arguments, indent=2)
        return Edit(shown, ".json")
    if accepts(line):
        if question.payload.get("error"):
            raise Unclear("These arguments cannot be used. Say e to edit them, or n.")
        return {"type": "approve"}
    if not line:
        raise Unclear("Say y, n or e.")
    return {"type": "reject", "message": _NO.sub("", line, count=1)}


def _on_unknown_result(line: str) -> str:
    if wants_repetition(line):
        return "run again"
    if len(line) < 2:
        raise Unclear("Say again, skip, or what the result was.")
    return line


def _on_question(question: Interrupted, line: str) -> str:
    options = options_of(question)
    if not line:
        raise Unclear("Say something, or /cancel.")
    if options and line.isdecimal():
        if not 1 <= int(line) <= len(options):
            raise Unclear(f"There are {len(options)} answers to choose from; say another one in words.")
        return options[int(line) - 1]
    return line


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise Unclear(f"That is no JSON: {error}.") from error
    if not isinstance(value, dict):
        raise Unclear("The arguments must be a JSON object: {…}.")
    return value
