"""The events of a run as the updates of a session."""

from collections.abc import Iterator
from typing import Any

from acp import (
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
    update_tool_call,
    update_user_message_text,
)
from acp.helpers import SessionUpdate
from acp.schema import PlanEntry, PlanEntryStatus, ToolCallStatus, ToolKind

from maniple.events import (
    EVENT_TYPES,
    Event,
    MessageChunk,
    PlanChanged,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    RunWaiting,
    SessionState,
    StepResumed,
    ToolCalled,
    ToolReturned,
    UserAnswered,
    UserMessageAnswered,
    UserMessageReceived,
    describe_question,
    event_of,
)
from maniple.service.answer_pieces import AnswerPieces
from maniple.store import EventRecord
from maniple.text import shorten_words

RESULT_CHARACTERS = 20_000
"""The part of a tool's result that an editor is shown."""
_TITLE_CHARACTERS = 100
_KINDS: dict[str, ToolKind] = {
    "bash_tool": "execute",
    "python_repl_tool": "execute",
    "crawl_tool": "fetch",
    "browser": "fetch",
    "tavily_search": "search",
}
"""The kinds of tools by name; those of all others are "other"."""
_STATUS: dict[str, PlanEntryStatus] = {"in_progress": "in_progress", "not_started": "pending"}
"""The status of a plan's entry; steps that work on nothing more are completed, and their text says how."""


class SessionUpdates:
    """Turns the log of a run, segment by segment, into updates.

    In a replay the user's own messages are updates, too: the client has shown the others when they were sent.
    """

    def __init__(self, *, is_replay: bool = False) -> None:
        self._is_replay = is_replay
        self._unanswered: dict[str, str] = {}
        """In a replay, the messages to the run at work whose fate is not known yet, by id."""
        self.pauses: dict[str, RunInterrupted] = {}
        """What the run waits for, by interrupt id."""
        self._questions: set[str] = set()
        """The ids of the questions that were sent."""
        self.next_run_id = ""
        """The run that a message became, which came too late for this one."""
        self._pieces = AnswerPieces(has_forms=True)
        self._calls: dict[str, ToolCallStatus] = {}
        """The status of each tool call."""
        self._has_text = False

    @property
    def has_answer(self) -> bool:
        """Whether the newest segment has ended with an answer."""
        return self._pieces.view.has_answer

    def feed(self, record: EventRecord) -> Iterator[SessionUpdate]:
        """Yield the updates that follow from the next event; the texts of a message come in pieces."""
        if record.type not in EVENT_TYPES:
            return
        event = event_of(record)
        if isinstance(event, RunStarted):
            self._begin_segment()
        for piece in self._pieces.take(event):
            if piece.kind == "answer":
                yield self._message(piece.text)
        yield from self._updates(event)

    def say(self, text: str) -> SessionUpdate:
        """Return a message of its own."""
        return self._message(f"\n\n{text}" if self._has_text else text)

    def hear(self, text: str) -> Iterator[SessionUpdate]:
        """Yield what the user wrote, if this is a replay."""
        if self._is_replay and text.strip():
            self._has_text = False
            yield update_user_message_text(text)

    def end_replay(self) -> Iterator[SessionUpdate]:
        """Yield the messages that are not answered yet; what follows is new."""
        for text in self._unanswered.values():
            yield from self.hear(text)
        self._unanswered.clear()
        self._is_replay = False

    def _message(self, text: str) -> SessionUpdate:
        self._has_text = True
        return update_agent_message_text(text)

    def _begin_segment(self) -> None:
        self.pauses.clear()
        self._pieces = AnswerPieces(has_forms=True)

    def _updates(self, event: Event) -> Iterator[SessionUpdate]:
        match event:
            case PlanChanged(draft=False):
                yield update_plan(_describe_steps(event))
            case MessageChunk() if event.delta.reasoning_content:
                yield update_agent_thought_text(event.delta.reasoning_content)
            case ToolCalled() | ToolReturned():
                yield self._tool(event)
            case RunInterrupted():
                yield from self._pause(event)
            case RunWaiting():
                yield update_agent_thought_text(f"Waiting: {event.reason}\n")
            case RunStatusChanged() if event.status != "interrupted":
                yield from self._end_calls()
            case SessionState() if rest := self._pieces.unsent:
                yield self.say(rest)
            case _:
                yield from self._exchange(event)

    def _exchange(self, event: Event) -> Iterator[SessionUpdate]:
        match event:
            case StepResumed():
                self.pauses.pop(event.interrupt_id, None)
            case UserAnswered():
                self.pauses.pop(event.interrupt_id, None)
                if isinstance(event.answer, str):  # no decision that the editor has asked for
                    yield from self.hear(event.answer)
            case UserMessageReceived() if self._is_replay:
                self._unanswered[event.message_id] = event.content
            case UserMessageAnswered():
                self.next_run_id = event.run_id or self.next_run_id
                text = self._unanswered.pop(event.message_id, "")
                if event.disposition != "next_run":
                    yield from self.hear(text)
                if event.content.strip():
                    yield self.say(event.content)
            case _:
                pass

    def _pause(self, pause: RunInterrupted) -> Iterator[SessionUpdate]:
        """Take a question into account; the others need a decision, which the editor asks for itself."""
        self.pauses[pause.interrupt_id] = pause
        if pause.kind == "question" and pause.interrupt_id not in self._questions:
            self._questions.add(pause.interrupt_id)
            yield self.say(describe_question(pause))

    def _tool(self, event: ToolCalled | ToolReturned) -> SessionUpdate:
        call_id = event.tool_call_id
        if isinstance(event, ToolReturned):
            self._calls[call_id] = "completed"
            content = tool_content(text_block(_cut(event.tool_result)))
            return update_tool_call(call_id, status="completed", content=[content])
        is_known = call_id in self._calls
        self._calls[call_id] = "in_progress"
        if is_known:
            return update_tool_call(call_id, status="in_progress", raw_input=event.tool_input)
        return start_tool_call(
            call_id,
            describe_call(event.tool_name, event.tool_input),
            kind=_KINDS.get(event.tool_name, "other"),
            status="in_progress",
            raw_input=event.tool_input,
        )

    def _end_calls(self) -> Iterator[SessionUpdate]:
        """Yield the ends of the calls that will not return any more."""
        for call_id, status in self._calls.items():
            if status == "in_progress":
                self._calls[call_id] = "failed"
                yield update_tool_call(call_id, status="failed")


def describe_call(name: str, arguments: dict[str, Any]) -> str:
    """Return the title of a tool call: its name and its first text argument."""
    texts = (value for value in arguments.values() if isinstance(value, str) and value.strip())
    return f"{name}: {shorten_words(text, _TITLE_CHARACTERS)}" if (text := next(texts, "")) else name


def _describe_steps(plan: PlanChanged) -> list[PlanEntry]:
    entries: list[PlanEntry] = []
    for step in plan.worked_steps:
        has_result = step.status in (*_STATUS, "completed")
        text = f"{step.title} ({step.agent_name})" if has_result else f"{step.title} ({step.status})"
        entries.append(plan_entry(text, status=_STATUS.get(step.status, "completed")))
    return entries


def _cut(text: str) -> str:
    if len(text) <= RESULT_CHARACTERS:
        return text
    return f"{text[:RESULT_CHARACTERS]}\n… ({len(text)} characters in all)"
