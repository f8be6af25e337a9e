"""One agent's turn: its raw events become a legal sequence of ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from langchain_core.messages import AIMessageChunk
from langgraph.errors import GraphDrained

from maniple.agents.outcome_labels import LabelStream
from maniple.agents.text_calls import TextWithoutCalls
from maniple.events.base import CUSTOM_EVENT_TYPES, Event, TurnMark
from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    BrowserStepChanged,
    MessageChunk,
    MessageDelta,
    MessageReplaced,
    ModelEnded,
    ModelStarted,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)
from maniple.events.raw_data import (
    as_json_values,
    as_mapping,
    failure_text,
    plan_changed,
    result_text,
    step_interrupt_event,
)
from maniple.text import fix_surrogates, without_thoughts
from maniple.types import ANSWER_DRAFT, BROWSER_STEP, STEP_INTERRUPT, TOOL_OUTPUT, UNSPOKEN

# Their text is sent as drafts make it certain, and whole when the answer is known; a hand-off never.
BUFFERED_AGENTS = frozenset({"coordinator", "planner"})
# Code may extend the text of its model, or write all of it.
EXTENDED_AGENTS = frozenset({"reporter"})
NO_RESULT = "The tool gave no result."
_FINAL_STATES = frozenset({"completed", "failed", "cancelled"})


@dataclass(slots=True)
class _ToolCall:
    event_id: str
    name: str
    step: BrowserStepChanged | None = None
    """The newest step of a browser call."""


@dataclass(slots=True)
class _SentText:
    """What clients have of a pair's text. Of a broken message, a new try says the beginning again."""

    text: str = ""
    message_id: str = ""
    """The newest message."""
    start: int = 0
    """Where it begins in the text."""
    said: int = 0
    """How far in the text the newest try of it is."""


@dataclass(slots=True, eq=False)
class AgentTurn:
    """Makes the events of one turn: `begin` it, `feed` it each raw event of its work, then `end` it."""

    name: str
    mark: TurnMark
    tool_prefix: str
    _call: str | None = None
    """The open model call; another one that begins meanwhile is a new try of it."""
    _pair: Literal["none", "open", "closed"] = "none"
    """Whether a model's text may be sent now, which must be between `ModelStarted` and `ModelEnded`."""
    _tools: dict[str, _ToolCall] = field(default_factory=dict[str, _ToolCall])
    """The running tool calls."""
    _waiting: list[Event] = field(default_factory=list[Event])
    """Events that must not be inside the open pair."""
    _sent: _SentText = field(default_factory=_SentText)
    _calls: TextWithoutCalls = field(default_factory=TextWithoutCalls)
    _labels: LabelStream = field(default_factory=LabelStream)
    _pieces: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """The text of a buffered agent's model, with the ids of its messages."""
    _made: list[Event] = field(default_factory=list[Event])

    def begin(self) -> list[Event]:
        """Return the first event of the turn."""
        self._send(AgentStarted(agent_name=self.name, agent_id=self.mark.agent_id))
        return self._take()

    def feed(self, raw: Mapping[str, Any]) -> list[Event]:
        """Return the events for one raw event of a model, of a tool, or of our code."""
        if raw["event"] == "on_custom_event":
            self._custom_event(raw)
        elif raw["event"].startswith("on_tool"):
            self._tool(raw)
        # A summary for a shorter context is not shown; a repaired passage is sent within the report.
        elif raw["metadata"].get("lc_source") not in UNSPOKEN:
            self._model(raw)
        return self._take()

    def end(self, answer: str = "", message_id: str = "") -> list[Event]:
        """Return the last events of the turn and of all that is open in it.

        A buffered agent's `answer` is sent now, and what code appended to a model's.
        """
        # A report that no model wrote names what is missing; clients must receive it, too.
        is_unsent = self._is_buffered or (self._is_extended and not self._sent.text)
        if self._pair == "none" or (self._pair == "closed" and is_unsent and answer):
            self._open_pair()
        if is_unsent and answer:
            self._send_answer(answer, message_id or self.mark.agent_id)
        elif self._is_extended and (rest := self._extension(answer)):
            self._send_text(self._sent.message_id or message_id or self.mark.agent_id, rest)
        self._close_pair()
        for call, tool in list(self._tools.items()):
            # A cancelled call cannot send its last step itself.
            if tool.step is not None and tool.step.state not in _FINAL_STATES:
                cancelled: dict[str, Any] = {**dict(tool.step), "state": "cancelled"}
                self._send(BrowserStepChanged(**cancelled))
            self._end_tool(call, NO_RESULT)
        self._send(AgentEnded(agent_name=self.name, agent_id=self.mark.agent_id))
        return self._take()

    @property
    def _is_buffered(self) -> bool:
        return self.name in BUFFERED_AGENTS

    @property
    def _is_extended(self) -> bool:
        return self.name in EXTENDED_AGENTS

    def _send(self, event: Event) -> None:
        self._made.append(event.in_turn(self.mark))

    def _send_text(self, message_id: str, text: str) -> None:
        self._send(MessageChunk(message_id=message_id, delta=MessageDelta(content=text)))

    def _take(self) -> list[Event]:
        made, self._made = self._made, []
        return made

    def _model(self, raw: Mapping[str, Any]) -> None:
        call = raw["run_id"]
        if raw["event"] == "on_chat_model_start":
            self._start_call(call, raw.get("parent_ids") or ())
        elif call != self._call:
            return
        elif raw["event"] == "on_chat_model_stream":
            self._add_chunk(call, raw["data"].get("chunk"))
        elif raw["event"] == "on_chat_model_end":
            self._call = None
            # A buffered answer is sent at the end of the turn. The LangManus client shows the report's first
            # pair only: an extension must be in it.
            if not self._is_buffered and not self._is_extended:
                self._close_pair()

    def _start_call(self, call: str, parents: Iterable[str]) -> None:
        if self._is_inside_tool(parents):
            return
        if self._call is not None:
            self._sent.said = self._sent.start
        elif not self._is_buffered:
            begun = len(self._sent.text)
            self._sent = _SentText(self._sent.text, start=begun, said=begun)
        self._call = call
        if self._pair != "open":
            self._open_pair()

    def _add_chunk(self, call: str, chunk: Any) -> None:
        if not isinstance(chunk, AIMessageChunk):
            return
        message_id, text = chunk.id or call, fix_surrogates(chunk.text)
        thought = fix_surrogates(chunk.additional_kwargs.get("reasoning_content") or "")
        # The LangManus client shows the coordinator's as "undefined".
        if thought and self.name != "coordinator":
            self._send(MessageChunk(message_id=message_id, delta=MessageDelta(reasoning_content=thought)))
        if text and self._is_buffered:
            self._pieces.append((message_id, text))
        elif text:
            self._say(message_id, text)

    def _say(self, message_id: str, text: str) -> None:
        """Send what clients do not have of the next piece of a model's text."""
        sent = self._sent
        repeated = sent.text[sent.said :]
        if repeated.startswith(text):
            sent.said += len(text)
            return
        if not text.startswith(repeated):
            # It differs: the whole new text follows the broken one, as a message of its own.
            self._send(MessageReplaced(message_id=sent.message_id, replaced_by=message_id))
            text, repeated = f"\n\n{sent.text[sent.start : sent.said]}{text}", ""
            sent = self._sent = _SentText()
            self._calls, self._labels = TextWithoutCalls(), LabelStream()
        text = text[len(repeated) :]
        sent.message_id = sent.message_id or message_id
        sent.text += text
        sent.said = len(sent.text)
        # A report is about its subject; of others, calls are left out and the outcome is said in words.
        if shown := text if self._is_extended else self._labels.feed(self._calls.feed(text)):
            self._send_text(sent.message_id, shown)

    def _tool(self, raw: Mapping[str, Any]) -> None:
        call, name, data = raw["run_id"], raw["name"], raw["data"]
        match raw["event"]:
            case "on_tool_start":
                if not self._is_buffered and not self._is_inside_tool(raw.get("parent_ids") or ()):
                    self._start_tool(call, name, as_json_values(as_mapping(data.get("input"), "input")))
            case "on_tool_end":
                self._end_tool(call, result_text(data.get("output")))
            # A call that is drained goes on in another program.
            case "on_tool_error" if not isinstance(data.get("error"), GraphDrained):
                self._end_tool(call, failure_text(name, data))
            case _:
                pass

    def _start_tool(self, call: str, name: str, arguments: dict[str, Any]) -> None:
        event_id = f"{self.tool_prefix}_{self.name}_{name}_{call}"
        self._tools[call] = _ToolCall(event_id, name)
        self._send_outside_pair(ToolCalled(tool_call_id=event_id, tool_name=name, tool_input=arguments))

    def _end_tool(self, call: str, result: str) -> None:
        if (tool := self._tools.pop(call, None)) is not None:
            event = ToolReturned(tool_call_id=tool.event_id, tool_name=tool.name, tool_result=result)
            self._send_outside_pair(event)

    def _custom_event(self, raw: Mapping[str, Any]) -> None:
        name, data = raw["name"], raw["data"]
        if name == TOOL_OUTPUT:
            self._add_output(raw["run_id"], data["stream"], fix_surrogates(data["text"]))
        elif name == ANSWER_DRAFT:
            self._add_draft(data["message_id"], fix_surrogates(data["text"]))
            if plan := data.get("plan"):
                self._send(plan_changed(plan).model_copy(update={"draft": True}))
        elif name == BROWSER_STEP:
            self._change_step([*(raw.get("parent_ids") or ()), raw["run_id"]], as_json_values(data))
        elif name == STEP_INTERRUPT:
            self._send(step_interrupt_event(data))
        elif event_type := CUSTOM_EVENT_TYPES.get(name):
            self._send(event_type.model_validate(as_json_values(data)))

    def _add_output(self, call: str, stream: Literal["stdout", "stderr"], text: str) -> None:
        tool = self._tools.get(call)
        if tool is not None and self._pair != "open":
            self._send(ToolOutput(tool_call_id=tool.event_id, tool_name=tool.name, stream=stream, text=text))

    def _change_step(self, parents: Iterable[str], step: Mapping[str, Any]) -> None:
        """Send a step of the running call that is among `parents`."""
        tool = next((self._tools[one] for one in parents if one in self._tools), None)
        if tool is not None:
            tool.step = BrowserStepChanged(tool_call_id=tool.event_id, **step)
            self._send_outside_pair(tool.step)

    def _add_draft(self, message_id: str, text: str) -> None:
        """Send what is certain of a buffered answer; `text` is all of it, from the beginning.

        Another try of the model continues the message if it says the same, else it begins a new one.
        """
        sent = self._sent
        if self._pair != "open" or not text or sent.text.startswith(text):
            return
        if text.startswith(sent.text) or message_id != sent.message_id:
            self._send_draft(message_id, text)

    def _send_draft(self, message_id: str, text: str) -> None:
        """Send what clients lack of a buffered answer."""
        sent, new = self._sent, text
        if text.startswith(sent.text):
            message_id = sent.message_id or message_id
            new = text[len(sent.text) :]
        else:
            message_id = message_id if message_id != sent.message_id else f"{message_id}_2"
            # The LangManus client joins all text of a pair, and a plan must be JSON of its own.
            if self.name == "planner":
                self._close_pair()
                self._open_pair()
            else:
                self._send(MessageReplaced(message_id=sent.message_id, replaced_by=message_id))
                new = f"\n\n{text}"
        self._sent = _SentText(text, message_id)
        if new:
            self._send_text(message_id, new)

    def _send_answer(self, answer: str, message_id: str) -> None:
        """Send what clients lack of the answer; without a draft all, in the model's pieces if they fit."""
        if self._sent.text:
            self._send_draft(message_id, answer)
            return
        pieces = [text for one, text in self._pieces if one == message_id]
        for text in pieces if "".join(pieces) == answer else [answer]:
            self._send_text(message_id, text)

    def _extension(self, answer: str) -> str:
        """Return the text that code appended to the model's report."""
        shown = without_thoughts(self._sent.text[self._sent.start : self._sent.said])
        return answer[len(shown) :] if shown and answer.startswith(shown) else ""

    def _open_pair(self) -> None:
        self._pair, self._sent = "open", _SentText()
        self._send(ModelStarted(agent_name=self.name))

    def _close_pair(self) -> None:
        if self._pair == "open":
            if rest := self._labels.feed(self._calls.end()) + self._labels.end():
                self._send_text(self._sent.message_id, rest)
            self._pair = "closed"
            self._send(ModelEnded(agent_name=self.name))
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self._send(event)

    def _send_outside_pair(self, event: Event) -> None:
        if self._pair == "open":
            self._waiting.append(event)
            return
        if self._pair == "none":
            self._open_pair()
            self._close_pair()
        self._send(event)

    def _is_inside_tool(self, parents: Iterable[str]) -> bool:
        return any(parent in self._tools for parent in parents)
