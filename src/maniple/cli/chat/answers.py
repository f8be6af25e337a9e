"""The person's answers to what the team waits for."""

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
from typing import Any

from maniple.agents.middleware.tool_calls import accepts, wants_repetition
from maniple.cli.chat.prompt import Prompt
from maniple.cli.chat.session import Session, Waiting
from maniple.cli.options import UnknownMember, parse_members
from maniple.cli.render import Screens
from maniple.cli.render.run_state import kind_of, options_of
from maniple.cli.text import exposed
from maniple.events import RunInterrupted
from maniple.types import WORKERS

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


def decide(question: RunInterrupted, line: str) -> Any | Edit:
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


def edited(question: RunInterrupted, text: str, members: Sequence[str], most_steps: int) -> Any:
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


def _on_plan(question: RunInterrupted, line: str) -> Any | Edit:
    if not line or accepts(line):
        return "accept"
    if line.casefold() in ("e", "edit"):
        return Edit(plan_as_text(question.payload.get("plan") or {}), ".txt")
    return line


def _on_call(question: RunInterrupted, line: str) -> Any | Edit:
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


def _on_question(question: RunInterrupted, line: str) -> str:
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


_PLAN_HELP = """\
# A step is a line WHO: TITLE, and below it, indented, what is to be done.
# Change, move, add or delete steps. Lines that begin with # do not count.
"""
_STEP_HEAD = re.compile(r"(?P<who>\w[\w -]*?)\s*:\s*(?P<title>.+)\Z")


def plan_as_text(plan: Mapping[str, Any]) -> str:
    """Return a plan for the editor."""
    blocks = [f"{_PLAN_HELP}\nPlan: {_single_line(plan.get('title', ''))}\n"]
    for step in plan.get("steps") or ():
        lines = str(step.get("description", "")).splitlines()
        body = "".join(f"  {line}\n" for line in lines)
        blocks.append(f"{step.get('agent_name', '')}: {_single_line(step.get('title', ''))}\n{body}")
    return "\n".join(blocks)


def plan_from_text(
    text: str, before: Mapping[str, Any], members: Sequence[str], most_steps: int
) -> dict[str, Any]:
    """Read a plan; what the text does not show (thought, notes) stays as it was `before`.

    Raises `UnknownMember` for somebody who is not among `members` (everybody is, when there are none), and
    `ValueError` with words for a line that is no step, a plan without steps or with too many.
    """
    title, steps = _read_steps(text)
    title = title or str(before.get("title", ""))
    if not steps:
        raise ValueError("A plan needs a step. To give it up altogether: /cancel.")
    if most_steps and len(steps) > most_steps:
        raise ValueError(f"The plan has {len(steps)} steps; at most {most_steps} are possible.")
    notes = {(one.get("agent_name"), one.get("title")): one.get("note") for one in before.get("steps") or ()}
    return {**before, "title": title, "steps": [_complete_step(step, notes, members) for step in steps]}


@dataclass(slots=True)
class _Step:
    who: str
    title: str
    lines: list[str] = field(default_factory=list)


def _read_steps(text: str) -> tuple[str, list[_Step]]:
    title, steps = "", list[_Step]()
    for number, line in enumerate(text.splitlines(), start=1):
        if line.startswith("#"):
            continue
        if not line or line[0].isspace():
            if steps:
                steps[-1].lines.append(line.removeprefix("  "))
            continue
        head = _STEP_HEAD.match(line.rstrip())
        if head is None:
            raise ValueError(f"Line {number} is no step: {line!r}. A step is a line WHO: TITLE.")
        if head["who"].casefold() == "plan" and not steps:
            title = head["title"]
        else:
            steps.append(_Step(head["who"], head["title"]))
    return title, steps


def _member_named(name: str, members: Sequence[str]) -> str:
    return parse_members([name.replace(" ", "_")], members or WORKERS)[0]


def _complete_step(
    step: _Step, notes: Mapping[tuple[Any, Any], Any], members: Sequence[str]
) -> dict[str, Any]:
    who = _member_named(step.who, members)
    description = "\n".join(step.lines).strip() or step.title
    note = notes.get((who, step.title))
    whole = {"agent_name": who, "title": step.title, "description": description}
    return {**whole, "note": note} if note else whole


def _single_line(text: object) -> str:
    return " ".join(str(text).split()) or "…"


class EditorFailure(Exception):
    """The editor cannot be started, or ended with a failure; the message says so."""


async def edit(what: Edit, prompt: "Prompt") -> str:
    """Return the text as the person left it.

    $VISUAL or $EDITOR is used where one is set. Raises `EditorFailure`, and what `Prompt.edit` raises.
    """
    command = _editor_command()
    if not command:
        return await prompt.edit(what.text.strip())
    descriptor, name = await asyncio.to_thread(tempfile.mkstemp, what.suffix, "maniple-")
    file = Path(name)
    try:
        os.close(descriptor)
        await asyncio.to_thread(file.write_text, what.text, encoding="utf-8")
        await _run_editor(command, file)
        return await asyncio.to_thread(file.read_text, encoding="utf-8", errors="replace")
    finally:
        # Not in a thread: nothing may be awaited while the program is being cancelled.
        _remove_file(file)


async def _run_editor(command: str, file: Path) -> None:
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    # Ctrl-C is the editor's own matter.
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        process = await asyncio.create_subprocess_exec(*shlex.split(command), str(file))
        try:
            status = await process.wait()
        except asyncio.CancelledError:
            process.terminate()
            raise
    except (OSError, ValueError) as error:
        raise EditorFailure(f"The editor {command!r} cannot be started: {error}. Set EDITOR.") from error
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        signal.signal(signal.SIGINT, before)
    if status != 0:
        raise EditorFailure(f"The editor ended with status {status}; nothing was taken over.")


def _editor_command() -> str:
    environ = os.environ  # noqa: TID251 - the editor is the person's and no setting of ours
    return environ.get("VISUAL") or environ.get("EDITOR") or ""


def _remove_file(file: Path) -> None:
    with suppress(OSError):
        file.unlink()


async def answer_to(
    waiting: Waiting, line: str, session: Session, prompt: Prompt, screens: Screens
) -> Any | None:
    """Return the answer that `line` is, or what is edited then; None, with words, if it is none yet."""
    try:
        decision = decide(waiting.question, line)
        if not isinstance(decision, Edit):
            return decision
        text = await _edited_text(decision, waiting, prompt)
        members = session.options.enabled(session.available)
        answer = edited(waiting.question, text, members, session.most_steps)
    except (Unclear, EditorFailure) as error:
        screens.note(str(error), "yellow")
    except Unchanged:
        screens.note("Nothing was changed.", "dim")
    else:
        return answer
    return None


async def _edited_text(what: Edit, waiting: Waiting, prompt: Prompt) -> str:
    """Let the text be edited, or what was made of it before, which is kept until it can be used."""
    try:
        waiting.draft = await edit(Edit(waiting.draft or what.text, what.suffix), prompt)
    except (EOFError, KeyboardInterrupt):
        return ""
    return waiting.draft
