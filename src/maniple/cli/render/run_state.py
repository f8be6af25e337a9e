"""What a run came to: counted from its events, whoever shows them."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rich.text import Text

from maniple.cli.text import STEP_MARKS, counted, duration, exposed, one_line
from maniple.events import (
    AgentEnded,
    AgentStarted,
    Event,
    MessageChunk,
    PlanChanged,
    PlanStepView,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    SessionState,
    UsageReported,
)
from maniple.types import GENERAL, RunStatus

EXIT_CODES: Mapping[RunStatus, int] = {
    "completed": 0,
    "failed": 1,
    "budget_exhausted": 4,
    "interrupted": 3,
    "cancelled": 130,
}
ANSWERING = ("coordinator", "reporter", GENERAL)
_OUTCOMES: Mapping[RunStatus, str] = {"budget_exhausted": "the budget ran out: the answer is partial"}


@dataclass(slots=True)
class Tally:
    """Sums and results of one run.

    `answer` is the whole text of the newest reply that was finished by one of those who answer.
    """

    started: float = field(default_factory=time.monotonic)
    status: RunStatus = "completed"
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    answer: str = ""
    is_told: bool = True
    """Whether the answer came as messages, which are shown as they come."""
    question: RunInterrupted | None = None
    _all_failed: bool = False
    _agent: str = ""
    _message_id: str = ""
    _text: str = ""

    def count(self, event: Event) -> None:
        """Take one event into account."""
        match event:
            case RunStarted():  # a run that was answered begins another segment
                self.question = None
            case AgentStarted():
                self._agent, self._text = event.agent_name, ""
            case MessageChunk():
                self._append(event)
            case AgentEnded() if self._text.strip():
                self.answer = self._text
            case UsageReported():
                self._add(event)
            case RunInterrupted():
                self.question = event
            case _:
                self._conclude(event)

    @property
    def listens(self) -> bool:
        """Whether messages matter now: those of the agents who answer."""
        return self._agent in ANSWERING

    @property
    def seconds(self) -> float:
        """Time since the run was started."""
        return time.monotonic() - self.started

    @property
    def exit_code(self) -> int:
        """The program's status for a run that ended so; 1 also for one in which nothing could be done."""
        return EXIT_CODES["failed" if self.status == "completed" and self._all_failed else self.status]

    def has_answer(self) -> bool:
        """Say whether there is an answer that was finished and may be used."""
        return bool(self.answer.strip()) and self.status in ("completed", "budget_exhausted")

    def summary(self) -> str:
        """Return status, time and use in one line."""
        parts = [_OUTCOMES.get(self.status, self.status), duration(self.seconds)]
        if self.model_calls:
            parts.append(counted(self.model_calls, "model call"))
        if tokens := self.input_tokens + self.output_tokens:
            parts.append(f"{counted(tokens, 'token')} ({self.input_tokens:,} in, {self.output_tokens:,} out)")
        return " · ".join(parts)

    def _append(self, event: MessageChunk) -> None:
        if not self.listens or not event.delta.content:
            return
        if event.message_id != self._message_id:
            self._message_id, self._text = event.message_id, ""
        self._text += event.delta.content

    def _conclude(self, event: Event) -> None:
        match event:
            case PlanChanged():
                self._all_failed = all(step.status == "failed" for step in event.steps)
            case RunStatusChanged():
                self.status = event.status
            case SessionState():
                self._compare(event)
            case _:
                pass

    def _compare(self, event: SessionState) -> None:
        """Take the answer of who works alone: it may be a tool's result, or say what could not be done."""
        last = event.messages[-1] if event.messages else None
        if last is None or last.role != "assistant" or not isinstance(last.content, str):
            return
        if last.content.strip() != self.answer.strip():
            self.answer, self.is_told = last.content, False

    def _add(self, event: UsageReported) -> None:
        self.model_calls += 1
        self.input_tokens += event.input_tokens
        self.output_tokens += event.output_tokens


AGENT_STYLES = {
    "coordinator": "cyan",
    "planner": "magenta",
    "researcher": "blue",
    "coder": "green",
    "browser": "yellow",
    "file_manager": "bright_magenta",
    "reporter": "bright_cyan",
}
_STEP_STYLES = {
    "not_started": "dim",
    "in_progress": "bold",
    "blocked": "yellow",
    "completed": "green",
    "failed": "red",
    "skipped": "dim",
}
_OVER = ("completed", "failed", "skipped")


class PlanView:
    """The newest plan, and what changed in it."""

    def __init__(self) -> None:
        self.title = ""
        self.steps: list[PlanStepView] = []
        self.is_new = False

    def update(self, event: PlanChanged) -> list[PlanStepView]:
        """Take the plan over; return the steps whose status has changed, or the reason for it.

        A step may be put in between while the plan runs. A plan that lacks a step of the one before is
        new (`is_new`): nothing has changed in it yet.
        """
        before = {(step.id, step.title): _standing(step) for step in self.steps}
        now = {(step.id, step.title) for step in event.steps}
        self.title, self.steps = event.title, event.steps
        self.is_new = not before or not before.keys() <= now
        if self.is_new:
            return []
        return [
            step
            for step in event.steps
            if before.get((step.id, step.title), _standing(step)) != _standing(step)
        ]

    def title_for(self, agent_name: str) -> str:
        """Return the title of the step that the agent works on, if there is one."""
        under_way = (step for step in self.steps if step.status == "in_progress")
        return next((step.title for step in under_way if step.agent_name == agent_name), "")

    def has_open_work(self) -> bool:
        """Say whether more than the last step, the report, is still to be done."""
        return any(step.status not in _OVER for step in self.steps[:-1])

    def line(self, step: PlanStepView) -> Text:
        """Return one step as ` ✔ 1 coder  Compute`."""
        return self.lines()[self.steps.index(step)]

    def lines(self, most: int | None = None) -> list[Text]:
        """Return the list; of one longer than `most` lines, the part around the present step."""
        steps = self.steps
        width = max((len(step.agent_name) for step in steps), default=0)
        lines = [_line(place, step, width) for place, step in enumerate(steps, start=1)]
        if most is None or len(lines) <= most:
            return lines
        open_places = (place for place, step in enumerate(steps) if step.status not in _OVER)
        current = next(open_places, len(steps) - 1)
        room = max(1, most - 2)
        first = min(max(0, current - 1), len(lines) - room)
        above, below = first, len(lines) - first - room
        head = [Text(f"  … {above} above", style="dim")] if above else []
        foot = [Text(f"  … {below} more", style="dim")] if below else []
        return [*head, *lines[first : first + room], *foot]


def _standing(step: PlanStepView) -> tuple[str, str | None]:
    return step.status, step.reason


def _line(place: int, step: PlanStepView, width: int) -> Text:
    style = _STEP_STYLES.get(step.status, "")
    return Text.assemble(
        (f"{STEP_MARKS.get(step.status, '?')} ", style),
        (f"{place:>2} ", "dim"),
        (f"{step.agent_name:<{width}}  ", AGENT_STYLES.get(step.agent_name, "")),
        (one_line(step.title), "" if step.status == "completed" else style),
        no_wrap=True,
        overflow="ellipsis",
    )


VOID = "The model's answer broke off: what it said above is void, and it answers anew."
ANEW = "The model's answer broke off: what it had said is void, and it answers anew."
"""For where the answer was not shown yet."""


class Retries:
    """Tells when a model call takes another way than the text that was already shown of it.

    Within one call all text has the `message_id` of its first try, as long as later tries only go on from
    there; another id is another answer.
    """

    def __init__(self) -> None:
        self._message_id = ""

    def begin(self) -> None:
        """A model call begins."""
        self._message_id = ""

    def voids(self, event: MessageChunk) -> bool:
        """Say whether this piece is the first of an answer that replaces the one before."""
        if not event.delta.content:  # a later try thinks under its own id, whatever it says then
            return False
        before, self._message_id = self._message_id, event.message_id
        return before not in ("", event.message_id)


def kind_of(question: RunInterrupted) -> str:
    """Return `plan_review`, `approval`, `unknown_result` or `question`."""
    return question.payload.get("reason", "approval") if question.kind == "tool_approval" else question.kind


def description(question: RunInterrupted) -> str:
    """Return what is to be decided on, with every argument as it is; safe to print.

    Of a plan, which is shown anyway, only what is wrong with an edited one.
    """
    payload = question.payload
    match kind_of(question):
        case "plan_review":
            error = payload.get("error")
            return f"This cannot be followed: {exposed(str(error))}" if error else ""
        case "approval":
            lines = [f"{_tool_name(payload)} is to run with:", *_argument_lines(payload)]
            if error := payload.get("error"):
                lines.append(f"These arguments cannot be used: {exposed(str(error))}")
            return "\n".join(lines)
        case "unknown_result":
            head = (
                f"The program stopped while {_tool_name(payload)} ran; nobody knows whether it did its work:"
            )
            return "\n".join([head, *_argument_lines(payload)])
        case _:
            return "\n".join([exposed(_asked(payload)), *_numbered(options_of(question))])


def instructions(question: RunInterrupted) -> str:
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


def hint(question: RunInterrupted) -> str:
    """Return what stands at an empty prompt."""
    return {"plan_review": "accept", "approval": "y / n / e", "unknown_result": "again / skip"}.get(
        kind_of(question), "Your answer"
    )


def example(question: RunInterrupted) -> str:
    """Return an answer that may be given on the command line."""
    return {"plan_review": "accept", "approval": "y", "unknown_result": "again"}.get(
        kind_of(question), "your answer"
    )


def options_of(question: RunInterrupted) -> list[str]:
    """Return the answers that were offered to a question."""
    options = question.payload.get("options")
    return [str(option) for option in options] if isinstance(options, list) else []


def _asked(payload: Mapping[str, Any]) -> str:
    words = payload.get("question")
    # A graph that the team is part of asks in its own way.
    return words if isinstance(words, str) else json.dumps(payload, ensure_ascii=False)


def _tool_name(payload: Mapping[str, Any]) -> str:
    return exposed(str(payload.get("tool_name", "A tool")))


def _argument_lines(payload: Mapping[str, Any]) -> Iterator[str]:
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
