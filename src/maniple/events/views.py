"""Views of a run's event log: pure functions from the log to the frames that clients receive.

The log is in true order. `live` shows it unchanged; `langmanus` shows one agent at a time, with texts for
what the LangManus client cannot show otherwise. A frame is numbered by its position in the view. Frames
depend only on the log, so the frames after a position are always the same: live, on replay, and on another
server.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, get_args

from maniple.events.base import Event, as_json, event_of, record_of
from maniple.events.conversation import ASKED_BY_TEAM
from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    ChatMessage,
    ErrorOccurred,
    MessageChunk,
    MessageDelta,
    MessageReplaced,
    ModelEnded,
    ModelStarted,
    RunGap,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    SessionState,
    UsageReported,
    WorkflowEnded,
    WorkflowStarted,
)
from maniple.events.run_view import StreamState
from maniple.events.turns import TurnOrder
from maniple.store import EventRecord, EventTable

ViewName = Literal["langmanus", "live"]
VIEW_NAMES: tuple[ViewName, ...] = get_args(ViewName)
_AFTER_REPORT = frozenset(
    one.type for one in (RunStarted, WorkflowStarted, RunInterrupted, WorkflowEnded, SessionState)
)
"""Events of the run before which the held end of a report is released."""
_LAST_EVENTS = 100
"""The number of last events of a segment that are searched for its questions."""
_MAX_ARGUMENT_CHARACTERS = 4_000


class View(Protocol):
    """One view of one run's log. Feed it each record of the log in order."""

    @property
    def needs_whole_log(self) -> bool:
        """Whether it must be fed from the first record. Otherwise frames have their records' numbers."""
        ...

    def feed(self, record: EventRecord) -> Iterator[EventRecord]:
        """Yield the frames that follow from the next record: none, one or several."""
        ...

    def closing_frames(self, state: StreamState, reason: ErrorOccurred) -> Iterator[EventRecord]:
        """Yield unnumbered frames that end an unfinished stream, given the `state` after its last frame."""
        ...


class LiveView:
    """The log in true order, with the log's numbers. The data of a frame include its turn and step."""

    needs_whole_log = False

    def feed(self, record: EventRecord) -> Iterator[EventRecord]:
        yield replace(record, data=record.marked_data)

    def closing_frames(self, state: StreamState, reason: ErrorOccurred) -> Iterator[EventRecord]:
        for event in (*state.closing_events(), reason):
            yield from self.feed(record_of(event, 0))


class LangManusView:
    """The view for the LangManus client: one agent at a time, and texts instead of events that it lacks."""

    needs_whole_log = True

    def __init__(self, run_id: str) -> None:
        self._order = TurnOrder[EventRecord]()
        self._texts = _VisibleTexts(run_id)
        self._position = 0

    def feed(self, record: EventRecord) -> Iterator[EventRecord]:
        for ordered in self._order.feed(record):
            for frame in self._texts.feed(ordered):
                self._position += 1
                yield EventRecord(self._position, frame.type, frame.data, frame.at)

    def closing_frames(self, state: StreamState, reason: ErrorOccurred) -> Iterator[EventRecord]:
        agent = "reporter" if state.has_workflow_started else "coordinator"
        for event in (*state.closing_events(), *self._texts.turn(agent, reason.message), reason):
            yield record_of(event, 0)


VIEWS: Mapping[ViewName, Callable[[str], View]] = {
    "langmanus": LangManusView,
    "live": lambda run_id: LiveView(),
}
"""The constructors of views by name; a view is for one run."""


@dataclass(slots=True)
class _VisibleTexts:
    """Adds visible texts to the records of a run whose turns are in sequence.

    The client shows the first text of the first reporter as the report, and nothing else of the reporter. So
    the end of the report is held back until it is known whether the run has failed or has gaps.
    """

    run_id: str
    asked: list[ChatMessage] = field(default_factory=list[ChatMessage])
    """The questions of the present segment, as messages."""
    _notices: int = 0
    _held: list[EventRecord] = field(default_factory=list[EventRecord])
    _report: str = ""
    """The turn of the report whose end is held back."""
    _reporter: str = ""
    """The open turn of the reporter, until its first text has ended."""

    def feed(self, record: EventRecord) -> Iterator[EventRecord]:
        """Yield the records to show after the next record of the log."""
        if record.agent_id is None:  # stored by an older version, which showed no such texts
            yield from self._release()
            yield record
        elif record.type == RunStatusChanged.type:
            yield from self._status(record)
        elif self._is_held(record):
            self._held.append(record)
        else:
            yield from self._release()
            yield from self._follow(record)

    def turn(self, agent: str, text: str) -> Iterator[Event]:
        """Yield a turn of an agent that consists of one text."""
        self._notices += 1
        yield from make_notice(agent, f"{self.run_id}_{agent}_notice{self._notices}", text)

    def _is_held(self, record: EventRecord) -> bool:
        if record.type == ErrorOccurred.type:
            return True
        if self._reporter and record.turn_id == self._reporter and record.type == ModelEnded.type:
            self._report, self._reporter = self._reporter, ""
            return True
        if not self._report:
            return False
        if record.turn_id:
            return record.turn_id == self._report and record.type in (AgentEnded.type, UsageReported.type)
        return record.type not in _AFTER_REPORT

    def _follow(self, record: EventRecord) -> Iterator[EventRecord]:
        match record.type:
            case RunStarted.type:
                self.asked = []
            case AgentStarted.type if '"agent_name": "reporter"' in record.data:
                self._reporter = record.turn_id
            case MessageReplaced.type:
                message_id = json.loads(record.data)["message_id"]
                yield from _records([_text_chunk(message_id, f"\n\n{ANSWER_BROKE_OFF}")], record.at)
                return
            case RunInterrupted.type:
                event = event_of(record)
                if isinstance(event, RunInterrupted) and (text := describe_question(event)):
                    self.asked.append(ChatMessage(role="assistant", content=text))
                    yield from _records(self.turn("coordinator", text), record.at)
            case WorkflowEnded.type | SessionState.type:
                record = self._with_questions(record)
            case _:
                pass
        yield record

    def _status(self, record: EventRecord) -> Iterator[EventRecord]:
        event = event_of(record)
        text = self._outcome(event) if isinstance(event, RunStatusChanged) else ""
        if text and self._report:
            self._notices += 1
            notice = _text_chunk(f"{self._report}_notice{self._notices}", f"\n\n{text}")
            yield from _records([notice], record.at)
        elif text:
            errors = [one for one in self._held if one.type == ErrorOccurred.type]
            self._held = [one for one in self._held if one.type != ErrorOccurred.type]
            yield from self._release()
            yield from _records(self.turn("reporter", text), record.at)
            self._held = errors
        yield from self._release()
        yield record

    def _outcome(self, event: RunStatusChanged) -> str:
        """Return the text about the end of a segment; "" if there is nothing to report."""
        if event.status == "failed":
            errors = [event_of(one) for one in self._held if one.type == ErrorOccurred.type]
            failure = next((one for one in errors if isinstance(one, ErrorOccurred)), None)
            return "\n\n".join(filter(None, (describe_failure(failure), _list_gaps(event.gaps or ()))))
        return describe_gaps(event.gaps) if event.gaps else ""

    def _release(self) -> Iterator[EventRecord]:
        held, self._held, self._report = self._held, [], ""
        yield from held

    def _with_questions(self, record: EventRecord) -> EventRecord:
        if not self.asked:
            return record
        data = json.loads(record.data)
        data["messages"] += [one.model_dump(mode="json") for one in self.asked]
        return replace(record, data=json.dumps(data, ensure_ascii=False))


def make_notice(agent: str, agent_id: str, text: str) -> Iterator[Event]:
    """Yield a turn of an agent that consists of one text."""
    yield AgentStarted(agent_name=agent, agent_id=agent_id)
    yield ModelStarted(agent_name=agent)
    yield _text_chunk(f"{agent_id}_text", text)
    yield ModelEnded(agent_name=agent)
    yield AgentEnded(agent_name=agent, agent_id=agent_id)


ANSWER_BROKE_OFF = "*[The answer broke off here. Ignore the text above; it begins again below.]*"


def describe_failure(error: ErrorOccurred | None) -> str:
    """Return the text that ends a failed run: what happened, and what to do."""
    cause = error.message if error else "It could not continue."
    can_retry = error is None or error.retryable
    advice = "Send the request again." if can_retry else "When that is fixed, send the request again."
    return f"**The run failed.** {cause}\n\n{advice} The results so far are kept."


def describe_gaps(gaps: Iterable[RunGap]) -> str:
    """Return what is missing in an answer, and what to do about it."""
    return f"{_list_gaps(gaps)}\n\nAsk for what is missing, or send the request again."


def _list_gaps(gaps: Iterable[RunGap]) -> str:
    lines = "\n".join(f"- {_line(gap.step)}: {_line(gap.reason)}" for gap in gaps)
    return f"**Not done:**\n\n{lines}" if lines else ""


def describe_question(question: RunInterrupted) -> str:
    """Return the question that the run waits for, with its options; "" for a plan, which is shown."""
    match question.kind:
        case "plan_review":
            return ""
        case "tool_approval":
            return _describe_call(question)
        case "question":
            given = question.payload.get("question")
            asked = given if isinstance(given, str) else json.dumps(question.payload, ensure_ascii=False)
            options = "".join(f"\n{number}. {_line(one)}" for number, one in enumerate(question.options, 1))
            reply = "Reply with one of them, or in your own words." if options else "Reply in your own words."
            return "\n\n".join(filter(None, (f"{ASKED_BY_TEAM} {asked}", options.lstrip("\n"), reply)))


def describe_next_times(payload: Mapping[str, Any]) -> str:
    """Return when a proposed schedule is due, from the payload of its question; "" for any other call."""
    times = ", ".join(map(str, payload.get("next_times") or ()))
    return f"Next times: {times}" if times else ""


def _describe_call(question: RunInterrupted) -> str:
    payload = question.payload
    name = _line(str(payload.get("tool_name") or "a tool"))
    arguments = json.dumps(payload.get("tool_input") or {}, ensure_ascii=False, indent=2)
    shown = arguments[:_MAX_ARGUMENT_CHARACTERS]
    cut = f"\n… ({len(arguments)} characters in all)" if len(arguments) > len(shown) else ""
    call = f"```json\n{shown}{cut}\n```"
    if payload.get("reason") == "unknown_result":
        head = f"{ASKED_BY_TEAM} The program stopped while `{name}` ran. Its result is unknown."
        options = (
            "- `run again`: call it again\n- `skip`: continue without it\n- `result:` and a text: its result"
        )
    else:
        head = f"{ASKED_BY_TEAM} May `{name}` be called?"
        if times := describe_next_times(payload):
            head += f" {_line(times)}."
        error = payload.get("error")
        head += f" The edited arguments are not valid: {_line(str(error))}" if error else ""
        options = "- `approve` or `yes`: call it\n- `no`, or `no` and why not: reject it"
    if payload.get("unclear"):
        head += " The last answer was not understood, and nothing was decided."
    return f"{head}\n\n{call}\n\n{options}"


def _text_chunk(message_id: str, text: str) -> MessageChunk:
    return MessageChunk(message_id=message_id, delta=MessageDelta(content=text))


def _records(events: Iterable[Event], at: float | None) -> Iterator[EventRecord]:
    for event in events:
        yield EventRecord(0, event.type, as_json(event), at)


def _line(text: str) -> str:
    return " ".join(text.split())


async def read_questions(events: EventTable, run_id: str) -> list[ChatMessage]:
    """Return the questions at the end of a run as the `langmanus` view shows them.

    Raises `StoreError` if the events cannot be read.
    """
    newest, texts = await events.last(run_id), _VisibleTexts(run_id)
    if newest is not None:
        for record in await events.read(run_id, max(0, newest.number - _LAST_EVENTS), _LAST_EVENTS):
            deque(texts.feed(record), maxlen=0)
    return texts.asked
