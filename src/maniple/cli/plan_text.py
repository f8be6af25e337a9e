"""A plan as text that a person edits: a line for each step, what is to be done below it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maniple.cli.members import parse_members
from maniple.types import WORKERS

_HELP = """\
# A step is a line WHO: TITLE, and below it, indented, what is to be done.
# Change, move, add or delete steps. Lines that begin with # do not count.
"""
_HEAD = re.compile(r"(?P<who>\w[\w -]*?)\s*:\s*(?P<title>.+)\Z")


def plan_as_text(plan: Mapping[str, Any]) -> str:
    """Return a plan for the editor."""
    blocks = [f"{_HELP}\nPlan: {_line(plan.get('title', ''))}\n"]
    for step in plan.get("steps") or ():
        lines = str(step.get("description", "")).splitlines()
        body = "".join(f"  {line}\n" for line in lines)
        blocks.append(f"{step.get('agent_name', '')}: {_line(step.get('title', ''))}\n{body}")
    return "\n".join(blocks)


def plan_from_text(
    text: str, before: Mapping[str, Any], members: Sequence[str], most_steps: int
) -> dict[str, Any]:
    """Read a plan; what the text does not show (thought, notes) stays as it was `before`.

    Raises `UnknownMember` for somebody who is not among `members` (everybody is, when there are none), and
    `ValueError` with words for a line that is no step, a plan without steps or with too many.
    """
    title, steps = _read(text)
    title = title or str(before.get("title", ""))
    if not steps:
        raise ValueError("A plan needs a step. To give it up altogether: /cancel.")
    if most_steps and len(steps) > most_steps:
        raise ValueError(f"The plan has {len(steps)} steps; at most {most_steps} are possible.")
    notes = {(one.get("agent_name"), one.get("title")): one.get("note") for one in before.get("steps") or ()}
    return {**before, "title": title, "steps": [_whole(step, notes, members) for step in steps]}


@dataclass(slots=True)
class _Step:
    who: str
    title: str
    lines: list[str] = field(default_factory=list)


def _read(text: str) -> tuple[str, list[_Step]]:
    title, steps = "", list[_Step]()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            continue
        if not line or line[0].isspace():
            if steps:
                steps[-1].lines.append(line.removeprefix("  "))
            continue
        head = _HEAD.match(line.rstrip())
        if head is None:
            raise ValueError(f"Line {number} is no step: {line!r}. A step is a line WHO: TITLE.")
        if head["who"].casefold() == "plan" and not steps:
            title = head["title"]
        else:
            steps.append(_Step(head["who"], head["title"]))
    return title, steps


def _member(name: str, members: Sequence[str]) -> str:
    return parse_members([name.replace(" ", "_")], members or WORKERS)[0]


def _whole(step: _Step, notes: Mapping[tuple[Any, Any], Any], members: Sequence[str]) -> dict[str, Any]:
    who = _member(step.who, members)
    description = "\n".join(step.lines).strip() or step.title
    note = notes.get((who, step.title))
    whole = {"agent_name": who, "title": step.title, "description": description}
    return {**whole, "note": note} if note else whole


def _line(text: object) -> str:
    return " ".join(str(text).split()) or "…"
