"""What a run came to: counted from its events, whoever shows them."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from maniple.cli.words import counted, duration
from maniple.events import Event, Interrupted, Message, SessionState, Usage
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
    question: Interrupted | None = None
    _all_failed: bool = False
    _agent: str = ""
    _message_id: str = ""
    _text: str = ""

    def count(self, event: Event) -> None:
        """Take one event into account."""
        match event.type:
            case "run":  # a run that was answered begins another stretch
                self.question = None
            case "start_of_agent":
                self._agent, self._text = event.agent_name, ""
            case "message":
                self._append(event)
            case "end_of_agent" if self._text.strip():
                self.answer = self._text
            case "usage":
                self._add(event)
            case "interrupt":
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

    def _append(self, event: Message) -> None:
        if not self.listens or not event.delta.content:
            return
        if event.message_id != self._message_id:
            self._message_id, self._text = event.message_id, ""
        self._text += event.delta.content

    def _conclude(self, event: Event) -> None:
        match event.type:
            case "plan":
                self._all_failed = all(step.status == "failed" for step in event.steps)
            case "run_status":
                self.status = event.status
            case "final_session_state":
                self._compare(event)

    def _compare(self, event: SessionState) -> None:
        """Take the answer of who works alone: it may be a tool's result, or say what could not be done."""
        last = event.messages[-1] if event.messages else None
        if last is None or last.role != "assistant" or not isinstance(last.content, str):
            return
        if last.content.strip() != self.answer.strip():
            self.answer, self.is_told = last.content, False

    def _add(self, event: Usage) -> None:
        self.model_calls += 1
        self.input_tokens += event.input_tokens
        self.output_tokens += event.output_tokens
