"""The conversation of a thread as messages of LangChain, from the stored events of its runs.

Their ids follow from those of the runs, so that streams and states of a thread agree about them.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain_core.messages import BaseMessage

from maniple.events import (
    EVENT_TYPES,
    Event,
    PlanChanged,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    SessionState,
    StepInterrupted,
    StepResumed,
    UserAnswered,
    UserMessageAnswered,
    UserMessageReceived,
    event_of,
)
from maniple.runs import RunRequest
from maniple.runs.ended_runs import read_ended_run
from maniple.scope.client_tools import ClientCall
from maniple.service.answer_pieces import describe_pause
from maniple.store import EventRecord, RunRecord, Store, Thread, read_event_pages, read_runs

MAX_RUNS = 500
"""How many of the newest runs of a thread its state shows."""
_TYPES = frozenset(
    one.type
    for one in (
        PlanChanged,
        RunInterrupted,
        RunStarted,
        RunStatusChanged,
        SessionState,
        StepInterrupted,
        StepResumed,
        UserAnswered,
        UserMessageAnswered,
        UserMessageReceived,
    )
)
Message = dict[str, Any]


def make_human(message_id: str, content: Any) -> Message:
    """Return a message of the user."""
    return {"type": "human", "id": message_id, "content": content, **_EMPTY, "example": False}


def make_ai(message_id: str, content: str, name: str | None = None, **more: Any) -> Message:
    """Return a message of the team."""
    calls: dict[str, Any] = {"tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None}
    return {"type": "ai", "id": message_id, "content": content, **_EMPTY, **calls, "name": name, **more}


_EMPTY: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "name": None}


def format_time(seconds: float | None) -> str:
    """Return a time (Unix seconds, now without one) as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else datetime.now(UTC).isoformat()


@dataclass(slots=True)
class RunTranscript:
    """What was said in one run, folded from its events."""

    run: RunRecord
    asked: Sequence[BaseMessage]
    """The messages that the run was given: of a thread with a history, the newest one."""
    plan: dict[str, Any] | None = None
    pauses: dict[str, RunInterrupted] = field(default_factory=dict[str, RunInterrupted])
    """The open questions, by their ids."""
    status: RunStatusChanged | None = None
    _planned: PlanChanged | None = None
    """The newest plan that is no draft."""
    _asked: set[str] = field(default_factory=set[str])
    """The ids of what was asked in words."""
    _questions: set[str] = field(default_factory=set[str])
    """The ids of the questions of members, which stay in the conversation however they are answered."""
    _newest_answer: Message | None = None
    """The user's newest answer in words."""
    _heard: set[str] = field(default_factory=set[str])
    """The ids of the user's messages to runs at work."""
    _later: dict[str, Message] = field(default_factory=dict[str, Message])
    """What followed the question, by message id."""

    @property
    def question_id(self) -> str:
        """The id of the message that the run answers."""
        return _id_of(self.run, self.asked, len(self.asked) - 1)

    @property
    def answer_id(self) -> str:
        """The id of the message that answers it."""
        return f"{self.run.run_id}-answer"

    @property
    def messages(self) -> list[Message]:
        """The messages of the run, oldest first."""
        return [*self._given(), *self._later.values()]

    def feed(self, record: EventRecord) -> Event | None:
        """Take the next event into account and return it; None for one of an unknown type."""
        if record.type not in EVENT_TYPES:
            return None
        event = event_of(record)
        if record.type in _TYPES:
            self._apply(event)
        return event

    def _given(self) -> Iterable[Message]:
        for place, message in enumerate(self.asked):
            message_id = _id_of(self.run, self.asked, place)
            if message.type == "ai":
                yield make_ai(message_id, message.text, message.name)
            else:
                yield {**make_human(message_id, message.content), "type": message.type}

    def _apply(self, event: Event) -> None:
        match event:
            case PlanChanged(draft=False):
                steps = [step.model_dump(mode="json") for step in event.worked_steps]
                self._planned = event
                self.plan = {"title": event.title, "steps": steps} if steps else self.plan
            case RunStarted():
                self.pauses, self.status = {}, None
            case RunInterrupted():
                self._ask(event)
            case UserAnswered() | StepResumed():
                self._answer(event)
            case UserMessageReceived() | UserMessageAnswered():
                self._exchange(event)
            case RunStatusChanged():
                self.status = event
            case SessionState():
                self._end(event)
            case _:
                pass

    def _ask(self, event: RunInterrupted) -> None:
        """Put what is asked as a message: clients show an interrupt below the newest one of the team."""
        self.pauses[event.interrupt_id] = event
        question = event.payload.get("question")
        is_worded = event.kind == "question" and isinstance(question, str)
        if is_worded:
            self._questions.add(event.interrupt_id)
        if ClientCall.of(event.payload) is not None:
            return
        self._asked.add(event.interrupt_id)
        text = str(question) if is_worded else describe_pause(event, self._planned)
        if not self._is_shown(text):
            self._put(make_ai(_question_id(event.interrupt_id), text, "coordinator"))

    def _is_shown(self, text: str) -> bool:
        """Return whether a text stands already above the newest message of the team."""
        messages = [*self._later.values()]
        return (
            bool(messages)
            and messages[-1]["type"] == "ai"
            and any(one["content"] == text for one in messages)
        )

    def _answer(self, event: UserAnswered | StepResumed) -> None:
        self.pauses.pop(event.interrupt_id, None)
        if not isinstance(event, UserAnswered):
            return
        asked = _question_id(event.interrupt_id)
        if isinstance(event.answer, str):
            self._newest_answer = make_human(f"{event.interrupt_id}-answer", event.answer)
            if event.interrupt_id in self._asked:
                self._put(self._newest_answer)
        elif event.interrupt_id not in self._questions:
            self._later.pop(asked, None)  # decided by a form, which nobody said

    def _exchange(self, event: UserMessageReceived | UserMessageAnswered) -> None:
        if isinstance(event, UserMessageReceived):
            self._heard.add(event.message_id)
            self._put(make_human(event.message_id, event.content))
        elif event.disposition == "next_run":
            self._later.pop(event.message_id, None)
        elif event.content.strip():
            if event.message_id not in self._heard and self._newest_answer is not None:
                self._put(self._newest_answer)  # the question about a plan
            self._put(make_ai(f"{event.message_id}-reply", event.content, "coordinator"))

    def _end(self, event: SessionState) -> None:
        status = self.status.status if self.status else None
        has_answer = status in ("completed", "budget_exhausted") or bool(
            status == "failed" and self.status and self.status.gaps
        )
        content = event.messages[-1].content if event.messages else ""
        if has_answer and isinstance(content, str) and content.strip():
            self._later.pop(self.answer_id, None)  # of a retry: the new answer is the last message
            metadata = {"run_id": self.run.run_id, "status": status}
            self._put(make_ai(self.answer_id, content, response_metadata=metadata))

    def _put(self, message: Message) -> None:
        self._later[message["id"]] = message


def _question_id(interrupt_id: str) -> str:
    return f"{interrupt_id}-question"


def _id_of(run: RunRecord, asked: Sequence[BaseMessage], place: int) -> str:
    return asked[place].id or f"{run.run_id}-{place}"


def open_transcript(run: RunRecord, *, is_first: bool) -> RunTranscript:
    """Return the transcript of a run before its first event; the first run of a thread may have a history."""
    asked = RunRequest.of(run).messages
    return RunTranscript(run, asked if is_first else asked[-1:])


async def read_transcripts(
    store: Store, thread: Thread, known: Mapping[str, RunTranscript] | None = None
) -> list[RunTranscript]:
    """Return the transcripts of a thread's newest `MAX_RUNS` runs, oldest first, without those undone.

    Those that are `known` by the ids of their runs are not read again.
    """
    runs: list[RunRecord] = []
    async with aclosing(read_runs(store.runs, thread.thread_id)) as newest_first:
        async for run in newest_first:
            runs.append(run)
            if len(runs) == MAX_RUNS:
                break
    found: list[RunTranscript] = []
    for run in reversed(runs):
        if known and run.run_id in known:
            found.append(known[run.run_id])
            continue
        if run.status == "cancelled" and (await read_ended_run(store, run)).is_undone:
            continue
        found.append(await read_transcript(store, run, is_first=not found))
    return found


async def read_transcript(store: Store, run: RunRecord, *, is_first: bool) -> RunTranscript:
    """Return the transcript of a run up to its newest stored event."""
    transcript = open_transcript(run, is_first=is_first)
    async for page in read_event_pages(store.events, run.run_id, types=_TYPES):
        for record in page:
            transcript.feed(record)
    return transcript


def join_messages(transcripts: Iterable[RunTranscript]) -> list[Message]:
    """Return the messages of runs as one conversation."""
    return [message for one in transcripts for message in one.messages]


def make_values(transcripts: Sequence[RunTranscript]) -> dict[str, Any]:
    """Return the values of a thread's state after these runs."""
    plans = [one.plan for one in transcripts if one.plan is not None]
    return {"messages": join_messages(transcripts), "plan": plans[-1] if plans else None}
