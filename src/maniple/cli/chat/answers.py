"""The user's answers to the questions of a run, and the editing of plans and arguments.

`maniple.agents.middleware.tool_calls` reads the same words from other clients.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from maniple.agents.middleware.tool_calls import is_acceptance, is_rerun_request
from maniple.cli.options import UnknownMember, parse_members
from maniple.cli.render.run_text import question_kind, question_options
from maniple.cli.text import escape_invisible
from maniple.events import RunInterrupted
from maniple.types import WORKERS

_NO = re.compile(r"(?:no|n)\b[\s,.:;-]*", re.IGNORECASE)
_EDIT = re.compile(r"(?:edit|e)(?:\s+(?P<text>.+))?\Z", re.IGNORECASE | re.DOTALL)


class UnclearAnswer(ValueError):
    """The text does not answer the question; the message lists what does."""


class UnchangedAnswer(ValueError):
    """The edited text is the same as before."""


class TextEditor(Protocol):
    """Lets the user edit a text at the prompt."""

    async def edit(self, text: str) -> str:
        """Return the edited text; raises EOFError for Ctrl-D, and KeyboardInterrupt for Ctrl-C."""
        ...


@dataclass(frozen=True, slots=True)
class EditRequest:
    """The user wants to edit `text`, in a file with this suffix."""

    text: str
    suffix: str


def parse_answer(question: RunInterrupted, line: str) -> Any | EditRequest:
    """Return the answer in `line`, or the text to edit first; raises `UnclearAnswer`."""
    line = line.strip()
    match question_kind(question):
        case "plan_review":
            return _parse_plan_answer(question, line)
        case "approval":
            return _parse_approval(question, line)
        case "unknown_result":
            return _parse_unknown_result(line)
        case _:
            return _parse_reply(question, line)


def parse_edited_answer(question: RunInterrupted, text: str, members: Sequence[str], max_steps: int) -> Any:
    """Return the answer in an edited text; raises `UnclearAnswer` or `UnchangedAnswer`."""
    if not text.strip():
        raise UnchangedAnswer
    if question_kind(question) == "plan_review":
        previous = question.payload.get("plan") or {}
        try:
            plan = parse_plan_text(text, previous, members, max_steps)
            shown = parse_plan_text(format_plan(previous), previous, (), 0)
        except (UnknownMember, ValueError) as error:
            raise UnclearAnswer(str(error)) from error
        if plan == shown:
            raise UnchangedAnswer
        return plan
    arguments = _json_object(text)
    if arguments == question.payload.get("tool_input"):
        raise UnchangedAnswer
    return {"type": "edit", "args": arguments}


def _parse_plan_answer(question: RunInterrupted, line: str) -> Any | EditRequest:
    if not line or is_acceptance(line):
        return "accept"
    if line.casefold() in ("e", "edit"):
        return EditRequest(format_plan(question.payload.get("plan") or {}), ".txt")
    return line


def _parse_approval(question: RunInterrupted, line: str) -> Any | EditRequest:
    if found := _EDIT.match(line):
        if text := found["text"]:
            return {"type": "edit", "args": _json_object(text)}
        arguments = question.payload.get("tool_input") or {}
        shown = json.dumps(arguments, ensure_ascii=False, indent=2)
        if escape_invisible(shown) != shown:  # an editor would not show these characters
            shown = json.dumps(arguments, indent=2)
        return EditRequest(shown, ".json")
    if is_acceptance(line):
        if question.payload.get("error"):
            raise UnclearAnswer("The arguments are not valid. Enter e to edit them, or n.")
        return {"type": "approve"}
    if not line:
        raise UnclearAnswer("Enter y, n or e.")
    return {"type": "reject", "message": _NO.sub("", line, count=1)}


def _parse_unknown_result(line: str) -> str:
    if is_rerun_request(line):
        return "run again"
    if len(line) < 2:
        raise UnclearAnswer("Enter again, skip, or what the result was.")
    return line


def _parse_reply(question: RunInterrupted, line: str) -> str:
    options = question_options(question)
    if not line:
        raise UnclearAnswer("Enter an answer, or /cancel.")
    if options and line.isdecimal():
        if not 1 <= int(line) <= len(options):
            raise UnclearAnswer(f"Enter a number from 1 to {len(options)}, or another answer in words.")
        return options[int(line) - 1]
    return line


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UnclearAnswer(f"This is not valid JSON: {error}.") from error
    if not isinstance(value, dict):
        raise UnclearAnswer("The arguments must be a JSON object: {…}.")
    return value


_PLAN_HELP = """\
# A step is a line AGENT: TITLE; the indented lines below it say what to do.
# What follows "Note:" in them, to the end of the step, is a warning or a limit; it may be missing.
# Change, move, add or delete steps. Lines that begin with # are ignored.
"""
_NOTE = re.compile(r"^\s*note:", re.IGNORECASE | re.MULTILINE)
_STEP_HEAD = re.compile(r"(?P<agent>\w[\w -]*?)\s*:\s*(?P<title>.+)\Z")


def format_plan(plan: Mapping[str, Any]) -> str:
    """Return a plan as text to edit."""
    blocks = [f"{_PLAN_HELP}\nPlan: {_single_line(plan.get('title', ''))}\n"]
    for step in plan.get("steps") or ():
        lines = str(step.get("description", "")).splitlines()
        if note := step.get("note"):
            lines += f"Note: {note}".splitlines()
        body = "".join(f"  {line}\n" for line in lines)
        blocks.append(f"{step.get('agent_name', '')}: {_single_line(step.get('title', ''))}\n{body}")
    return "\n".join(blocks)


def parse_plan_text(
    text: str, before: Mapping[str, Any], members: Sequence[str], max_steps: int
) -> dict[str, Any]:
    """Return the plan in an edited text; what the text does not show is taken from the plan `before`.

    Raises:
        UnknownMember: an agent is not in `members`; without members, every agent is allowed.
        ValueError: a line is not a step, or the plan has no step or too many.
    """
    title, steps = _read_steps(text)
    title = title or str(before.get("title", ""))
    if not steps:
        raise ValueError("The plan has no steps. Add one, or enter /cancel to drop the plan.")
    if max_steps and len(steps) > max_steps:
        raise ValueError(f"The plan has {len(steps)} steps; at most {max_steps} are allowed. Remove some.")
    whole = [_complete_step(step, members) for step in steps]
    _keep_hidden_fields(whole, before.get("steps") or ())
    return {**before, "title": title, "steps": whole}


@dataclass(slots=True)
class _EditedStep:
    agent_name: str
    title: str
    lines: list[str] = field(default_factory=list)


def _read_steps(text: str) -> tuple[str, list[_EditedStep]]:
    title, steps = "", list[_EditedStep]()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            continue
        if not line or line[0].isspace():
            if steps:
                steps[-1].lines.append(line.removeprefix("  "))
            continue
        head = _STEP_HEAD.match(line.rstrip())
        if head is None:
            raise ValueError(f"Line {number} is not a step: {line!r}. Write a step as AGENT: TITLE.")
        if head["agent"].casefold() == "plan" and not steps:
            title = head["title"]
        else:
            steps.append(_EditedStep(head["agent"], head["title"]))
    return title, steps


def _member_named(name: str, members: Sequence[str]) -> str:
    return parse_members([name.replace(" ", "_")], members or WORKERS)[0]


def _complete_step(step: _EditedStep, members: Sequence[str]) -> dict[str, Any]:
    agent_name = _member_named(step.agent_name, members)
    text, note = _split_note("\n".join(step.lines))
    whole = {"agent_name": agent_name, "title": step.title, "description": text or step.title}
    return {**whole, "note": note} if note else whole


def _split_note(text: str) -> tuple[str, str]:
    """Return the description and the note of a step; the note is "" if there is none."""
    found = _NOTE.search(text)
    return (text[: found.start()].strip(), text[found.end() :].strip()) if found else (text.strip(), "")


_HIDDEN = ("needs", "repeats")
"""The fields of a step that the text to edit does not show."""


def _keep_hidden_fields(steps: Sequence[dict[str, Any]], before: Sequence[Mapping[str, Any]]) -> None:
    """Give the steps that were in the plan before the fields that the text does not show.

    `needs` get the new numbers of the steps that they named; those that were deleted, or now come later, are
    left out.
    """
    origins = _find_origins(steps, before)
    places = {old: new for new, old in enumerate(origins, start=1) if old is not None}
    for own, (step, old) in enumerate(zip(steps, origins, strict=True), start=1):
        if old is None:
            continue
        hidden = {name: before[old][name] for name in _HIDDEN if before[old].get(name) is not None}
        if "needs" in hidden:
            moved = (places.get(need - 1, own) for need in hidden["needs"])
            hidden["needs"] = sorted(place for place in moved if place < own)
        step |= hidden


def _find_origins(
    steps: Sequence[Mapping[str, Any]], before: Sequence[Mapping[str, Any]]
) -> list[int | None]:
    """Return which step of the plan before each step was, as an index; None for a new one.

    It is known by its member and title or description, then by one of these alone; in a plan of the same
    length, by its place.
    """
    origins: list[int | None] = [None] * len(steps)
    for names in (("agent_name", "title"), ("agent_name", "description"), ("title",), ("description",)):
        for at, step in enumerate(steps):
            if origins[at] is None:
                free = (old for old in range(len(before)) if old not in origins)
                same = [old for old in free if all(_is_same(step, before[old], name) for name in names)]
                origins[at] = min(same, key=lambda old: abs(old - at), default=None)
    if len(steps) == len(before):  # what else changed was edited in its place
        for at, origin in enumerate(origins):
            if origin is None and at not in origins:
                origins[at] = at
    return origins


def _is_same(step: Mapping[str, Any], old: Mapping[str, Any], name: str) -> bool:
    return " ".join(str(step.get(name, "")).split()) == " ".join(str(old.get(name, "")).split())


def _single_line(text: object) -> str:
    return " ".join(str(text).split()) or "…"


class EditorFailure(Exception):
    """The editor cannot be started, or failed."""


async def edit_text(what: EditRequest, editor: TextEditor) -> str:
    """Return the text after the user has edited it, in $VISUAL or $EDITOR or else at the prompt.

    Raises `EditorFailure`, and what `editor` raises.
    """
    command = _editor_command()
    if not command:
        return await editor.edit(what.text.strip())
    descriptor, name = await asyncio.to_thread(tempfile.mkstemp, what.suffix, "maniple-")
    file = Path(name)
    try:
        os.close(descriptor)
        await asyncio.to_thread(file.write_text, what.text, encoding="utf-8")
        await _run_editor(command, file)
        return await asyncio.to_thread(file.read_text, encoding="utf-8", errors="replace")
    finally:
        # Not in a thread: while the program is being cancelled, nothing can be awaited.
        _remove_file(file)


async def _run_editor(command: str, file: Path) -> None:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    # The editor handles Ctrl-C itself.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        process = await asyncio.create_subprocess_exec(*shlex.split(command), str(file))
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            raise
    except (OSError, ValueError) as error:
        raise EditorFailure(
            f"The editor {command!r} cannot be started: {error}. Set EDITOR to another one."
        ) from error
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    if status != 0:
        raise EditorFailure(f"The editor ended with status {status}. The text was not changed.")


def _editor_command() -> str:
    environ = os.environ  # noqa: TID251 - the editor belongs to the user's environment
    return environ.get("VISUAL") or environ.get("EDITOR") or ""


def _remove_file(file: Path) -> None:
    with suppress(OSError):
        file.unlink()
