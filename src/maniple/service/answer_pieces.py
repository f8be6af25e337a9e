"""The answer and the progress of a run as texts in order, for protocols that know only messages."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from maniple.events import (
    ANSWER_BROKE_OFF,
    AgentStarted,
    Event,
    MessageChunk,
    MessageReplaced,
    PlanChanged,
    RunInterrupted,
    RunStatusChanged,
    RunView,
    RunWaiting,
    StepInterrupted,
    ToolCalled,
    UserMessageAnswered,
    describe_gaps,
    describe_question,
)
from maniple.scope.client_tools import ClientCall
from maniple.service.progress import describe_progress
from maniple.store import EventRecord

_REPORTER = "reporter"
_REVIEW = "Reply `accept` to have the plan done, or say what to change."


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """A piece of text: `progress` is a line about the work, `answer` a part of what was asked for."""

    kind: Literal["progress", "answer"]
    text: str


class AnswerPieces:
    """Turns the events of one segment of a run into pieces of text.

    The text of the reporter is passed on as it comes. That of another member is an answer only if no tool
    call and no plan follows it: it is held back until that is known. A question that ends the segment is a
    part of the answer, and so is what the answer lacks. With `has_forms` the client shows questions itself;
    calls of its own functions are never text.
    """

    def __init__(self, *, has_forms: bool = False) -> None:
        self._has_forms = has_forms
        self.view = RunView()
        self._held: dict[str, str] = {}
        """The texts that may become the answer, by turn."""
        self._message_id = ""
        """The newest message of the reporter."""
        self._sent = ""

    @property
    def sent(self) -> str:
        """The answer so far: all of its pieces."""
        return self._sent

    @property
    def unsent(self) -> str:
        """The answer of a run that has ended, if no piece of it came as a message; "" otherwise."""
        return self.view.answer if self.view.has_answer and not self._sent.strip() else ""

    def feed(self, record: EventRecord) -> Iterator[AnswerPiece]:
        """Yield the pieces that follow from the next record of the log."""
        event = self.view.apply_record(record)
        if event is not None:
            yield from self._after(event)

    def take(self, event: Event) -> Iterator[AnswerPiece]:
        """Yield the pieces that follow from the next event, for a caller that needs it, too."""
        self.view.apply(event)
        if not isinstance(event, MessageChunk) or self.view.turn.is_answering:
            yield from self._after(event)

    def _after(self, event: Event) -> Iterator[AnswerPiece]:
        for line in describe_progress(event, self.view):
            yield AnswerPiece("progress", f"{line}\n")
        for piece in self._pieces(event):
            if piece.text:
                self._sent += piece.text if piece.kind == "answer" else ""
                yield piece

    def _pieces(self, event: Event) -> Iterator[AnswerPiece]:
        match event:
            case MessageChunk():
                yield from self._message(event)
            case MessageReplaced() if event.message_id == self._message_id:
                yield self._answer(ANSWER_BROKE_OFF)
            case ToolCalled():
                yield AnswerPiece("progress", _as_lines(self._held.pop(event.turn_id, "")))
            case AgentStarted(agent_name="planner"):
                yield from self._drop_held()
            case UserMessageAnswered() if self.view.exchanges[event.message_id].is_resuming:
                yield self._answer(event.content)
            case RunWaiting():
                yield AnswerPiece("progress", f"waiting: {event.reason}\n")
            case _:
                yield from self._end(event)

    def _message(self, event: MessageChunk) -> Iterator[AnswerPiece]:
        text = event.delta.content
        if not text:
            return
        if self.view.turn.agent_name != _REPORTER:
            turn_id = event.turn_id or self.view.turn.agent_id
            self._held[turn_id] = self._held.get(turn_id, "") + text
            return
        is_next = bool(self._message_id) and event.message_id != self._message_id
        self._message_id = event.message_id
        yield self._answer(text) if is_next else AnswerPiece("answer", text)

    def _drop_held(self) -> Iterator[AnswerPiece]:
        held, self._held = self._held, {}
        for text in held.values():
            yield AnswerPiece("progress", _as_lines(text))

    def _end(self, event: Event) -> Iterator[AnswerPiece]:
        match event:
            case StepInterrupted():
                yield AnswerPiece("progress", _as_lines(describe_question(event)))
            case RunInterrupted() if not self._has_forms and ClientCall.of(event.payload) is None:
                yield self._answer(describe_pause(event, self.view.plan))
            case RunStatusChanged():
                yield from self._status(event)
            case _:
                pass

    def _status(self, event: RunStatusChanged) -> Iterator[AnswerPiece]:
        held, self._held = self._held, {}
        if event.status != "interrupted":
            for text in held.values():
                yield self._answer(text)
        if event.gaps and event.status != "failed":
            missing = self.view.unstated_gaps
            yield self._answer(describe_gaps(missing) if missing else "")

    def _answer(self, text: str) -> AnswerPiece:
        """Return a text that stands apart from what was sent before it."""
        return AnswerPiece("answer", f"\n\n{text}" if self._sent.strip() and text else text)


def describe_pause(event: RunInterrupted, plan: PlanChanged | None) -> str:
    """Return what a run that waits asks as text; `plan` is its newest one, shown if it is to be reviewed."""
    if event.kind != "plan_review":
        return describe_question(event)
    return f"{_describe_plan(plan)}\n\n{_REVIEW}" if plan else _REVIEW


def _describe_plan(plan: PlanChanged) -> str:
    steps = (
        f"{number}. {' '.join(one.title.split())} ({one.agent_name})"
        for number, one in enumerate(plan.worked_steps, start=1)
    )
    return "\n".join((f"**The plan:** {' '.join(plan.title.split())}", "", *steps))


def _as_lines(text: str) -> str:
    return f"{text.strip()}\n" if text.strip() else ""
