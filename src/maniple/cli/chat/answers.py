"""The user's answers to the questions of a run, and the editing of plans and arguments.

`maniple.tools.decisions` decides what a text means, as for all other clients.
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

from maniple.cli.options import UnknownMember, parse_members
from maniple.cli.render.run_text import question_kind, question_options
from maniple.cli.text import escape_invisible
from maniple.events import RunInterrupted
from maniple.tools.decisions import (
    CallApproval,
    UnclearDecision,
    is_acceptance,
    parse_approval,
    parse_unknown_result,
)
from maniple.types import WORKERS

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
    match parse_approval(line):
        case UnclearDecision() | CallApproval() if question.payload.get("error"):
            raise UnclearAnswer("The arguments are not valid. Enter e to edit them, or n and why not.")
        case UnclearDecision():
            raise UnclearAnswer(
                "Nothing was decided. Enter y to run it, e to edit the arguments, or n and why not."
            )
        case _:
            return line


def _parse_unknown_result(line: str) -> str:
    if isinstance(parse_unknown_result(line), UnclearDecision):
        raise UnclearAnswer("Nothing was decided. Enter again, skip, or result: and what the result was.")
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
# A step is a line NUMBER. AGENT: TITLE; the indented lines below it say what to do.
# "After: 1, 2" names the steps that it waits for, "After: nothing" none; without it, it waits for all above.
# What follows "Note:", to the end of the step, is a warning or a limit; it may be missing.
# Change, move, add or delete steps. A step keeps its number where you move it; a new one needs none.
# Lines that begin with # are ignored. An empty text leaves the plan as it was.
"""
_NOTE = re.compile(r"^\s*note:", re.IGNORECASE | re.MULTILINE)
_AFTER = re.compile(r"^\s*after:(?P<steps>.*)$\n?", re.IGNORECASE | re.MULTILINE)
_STEP_HEAD = re.compile(r"(?:(?P<number>\d+)[.)]?\s+)?(?P<agent>[^\W\d][\w -]*?)\s*:\s*(?P<title>.+)\Z")
_NOTHING = ("nothing", "none", "-")


def format_plan(plan: Mapping[str, Any]) -> str:
    """Return a plan as text to edit."""
    blocks = [f"{_PLAN_HELP}\nPlan: {_single_line(plan.get('title', ''))}\n"]
    for number, step in enumerate(plan.get("steps") or (), start=1):
        lines = str(step.get("description", "")).splitlines()
        if (needs := step.get("needs")) is not None:
            lines.append(f"After: {', '.join(map(str, needs)) or _NOTHING[0]}")
        if note := step.get("note"):
            lines += f"Note: {note}".splitlines()
        body = "".join(f"  {line}\n" for line in lines)
        title = _single_line(step.get("title", ""))
        blocks.append(f"{number}. {step.get('agent_name', '')}: {title}\n{body}")
    return "\n".join(blocks)


def parse_plan_text(
    text: str, before: Mapping[str, Any], members: Sequence[str], max_steps: int
) -> dict[str, Any]:
    """Return the plan in an edited text; what the text does not show is taken from the plan `before`.

    Raises:
        UnknownMember: an agent is not in `members`; without members, every agent is allowed.
        ValueError: a line is not a step, the plan has no step or too many, or a step waits for one that is
            not above it.
    """
    title, steps = _read_steps(text)
    title = title or str(before.get("title", ""))
    if not steps:
        raise ValueError("The plan has no steps. Add one, or enter /cancel to drop the plan.")
    if max_steps and len(steps) > max_steps:
        raise ValueError(f"The plan has {len(steps)} steps; at most {max_steps} are allowed. Remove some.")
    former: Sequence[Mapping[str, Any]] = before.get("steps") or ()
    places: dict[int, int] = {}
    for place, step in enumerate(steps, start=1):
        places.setdefault(step.number, place)
    whole = [
        _complete_step(step, place, places, former, members) for place, step in enumerate(steps, start=1)
    ]
    return {**before, "title": title, "steps": whole}


@dataclass(slots=True)
class _EditedStep:
    number: int
    """The step's number in the plan before; 0 for a new step."""
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
            steps.append(_EditedStep(int(head["number"] or 0), head["agent"], head["title"]))
    return title, steps


def _member_named(name: str, members: Sequence[str]) -> str:
    return parse_members([name.replace(" ", "_")], members or WORKERS)[0]


def _complete_step(
    step: _EditedStep,
    place: int,
    places: Mapping[int, int],
    former: Sequence[Mapping[str, Any]],
    members: Sequence[str],
) -> dict[str, Any]:
    """Return a step as clients send it. `places` are the new places of the numbers in the text."""
    text, note = _split_note("\n".join(step.lines))
    whole: dict[str, Any] = {"agent_name": _member_named(step.agent_name, members), "title": step.title}
    if (after := _AFTER.search(text)) is not None:
        text = f"{text[: after.start()]}{text[after.end() :]}".strip()
    whole["description"] = text or step.title
    if note:
        whole["note"] = note
    if after is not None:
        numbers = _read_numbers(after["steps"], step.title)
        whole["needs"] = _needs(numbers, place, places, len(former))
    if 0 < step.number <= len(former) and places[step.number] == place:
        repeats = former[step.number - 1].get("repeats")
        whole |= {} if repeats is None else {"repeats": repeats}
    return whole


def _read_numbers(text: str, title: str) -> list[int]:
    words = text.replace(",", " ").split()
    if [word.casefold() for word in words] in ([], *([one] for one in _NOTHING)):
        return []
    if not all(word.isdecimal() for word in words):
        raise ValueError(f"{title!r}: After: takes numbers of steps, such as 1, 2, or {_NOTHING[0]}.")
    return [int(word) for word in words]


def _needs(numbers: Sequence[int], place: int, places: Mapping[int, int], steps_before: int) -> list[int]:
    """Return the places of the steps that the step at `place` waits for; deleted ones are left out."""
    needs: set[int] = set()
    for number in numbers:
        if number in places and places[number] >= place:
            raise ValueError(f"A step waits for step {number}, which is not above it. Move one of them.")
        if number in places:
            needs.add(places[number])
        elif not 0 < number <= steps_before:
            raise ValueError(f"A step waits for step {number}, which does not exist.")
    return sorted(needs)


def _split_note(text: str) -> tuple[str, str]:
    """Return the description and the note of a step; the note is "" if there is none."""
    found = _NOTE.search(text)
    return (text[: found.start()].strip(), text[found.end() :].strip()) if found else (text.strip(), "")


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
