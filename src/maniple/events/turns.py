"""Agents' turns: each becomes a legal sequence of events, and parallel turns are sent one after another."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from maniple.events.base import Event
from maniple.events.model import (
    AgentEnded,
    AgentStarted,
    BrowserStepChanged,
    MessageChunk,
    MessageDelta,
    ModelEnded,
    ModelStarted,
    ToolCalled,
    ToolOutput,
    ToolReturned,
)
from maniple.text import without_thoughts

# Their text is sent when the whole answer is known: a hand-off never, a plan only when it is valid.
BUFFERED_AGENTS = frozenset({"coordinator", "planner"})
# Code may extend the text of its model, or write all of it.
EXTENDED_AGENTS = frozenset({"reporter"})
NO_RESULT = "The tool gave no result."
_FINAL_STATES = frozenset({"completed", "failed", "cancelled"})

Stream = Literal["stdout", "stderr"]


class AgentTurn:
    """Converts what happens in one agent's turn into events, in legal order."""

    def __init__(self, name: str, agent_id: str, tool_prefix: str) -> None:
        self.name = name
        self._agent_id = agent_id
        self._tool_prefix = tool_prefix
        self._is_buffered = name in BUFFERED_AGENTS
        self._is_extended = name in EXTENDED_AGENTS
        self._call: str | None = None
        self._has_sent_text = False
        self._pair_open = False
        self._pairs = 0
        self._tools: dict[str, str] = {}
        self._steps: dict[str, BrowserStepChanged] = {}
        self._waiting: list[Event] = []
        self._sent_text = ""
        self._repeated = ""
        self._message_id = ""
        self._continues = False
        self._pieces: list[tuple[str, str]] = []

    def start(self) -> Iterator[Event]:
        """Begin the turn."""
        yield AgentStarted(agent_name=self.name, agent_id=self._agent_id)

    def model_started(self, call: str, parents: Sequence[str]) -> Iterator[Event]:
        """Begin a model call; while another one is open it is a new try of that call."""
        if self._inside_a_tool(parents):
            return
        if self._call is not None:
            self._repeated, self._sent_text = self._sent_text, ""
            self._continues = bool(self._repeated)
        self._call = call
        if not self._pair_open:
            yield from self._open_pair()

    def text(self, call: str, message_id: str, content: str) -> Iterator[Event]:
        """Add a piece of the model's text."""
        if call != self._call or not content:
            return
        if self._is_buffered:
            self._pieces.append((message_id, content))
            return
        self._has_sent_text = True
        if self._repeated:
            content = self._continuation(content)
        self._sent_text += content
        if not self._continues:
            self._message_id = message_id
        if content:
            yield MessageChunk(message_id=self._message_id, delta=MessageDelta(content=content))

    def reasoning(self, call: str, message_id: str, content: str) -> Iterator[Event]:
        """Add a piece of reasoning. The LangManus client shows the coordinator's as "undefined"."""
        if call == self._call and content and self.name != "coordinator":
            yield MessageChunk(message_id=message_id, delta=MessageDelta(reasoning_content=content))

    def model_ended(self, call: str) -> Iterator[Event]:
        """End a model call. A buffered answer keeps its pair open until the turn ends."""
        if call != self._call:
            return
        self._call = None
        # The LangManus client shows the report's first pair only: an extension must be in it.
        if not self._is_buffered and not self._is_extended:
            yield from self._close_pair()

    def tool_started(
        self, call: str, parents: Sequence[str], tool: str, arguments: dict[str, Any]
    ) -> Iterator[Event]:
        """Begin a tool call."""
        if self._inside_a_tool(parents) or self._is_buffered:
            return
        self._tools[call] = tool
        event = ToolCalled(tool_call_id=self._tool_id(call, tool), tool_name=tool, tool_input=arguments)
        yield from self._outside_a_pair(event)

    def tool_printed(self, call: str, stream: Stream, text: str) -> Iterator[Event]:
        """Add output of a running tool call."""
        if (tool := self._tools.get(call)) and not self._pair_open:
            tool_call_id = self._tool_id(call, tool)
            yield ToolOutput(tool_call_id=tool_call_id, tool_name=tool, stream=stream, text=text)

    def browser_stepped(self, parents: Sequence[str], step: Mapping[str, Any]) -> Iterator[Event]:
        """Send a step of the running call that is among `parents`."""
        call = next((one for one in parents if one in self._tools), None)
        if call is not None:
            event = BrowserStepChanged(tool_call_id=self._tool_id(call, self._tools[call]), **step)
            self._steps[call] = event
            yield from self._outside_a_pair(event)

    def tool_ended(self, call: str, result: str) -> Iterator[Event]:
        """End a tool call with its result, or with the text of its failure."""
        if tool := self._tools.pop(call, None):
            event = ToolReturned(tool_call_id=self._tool_id(call, tool), tool_name=tool, tool_result=result)
            yield from self._outside_a_pair(event)

    def end(self, answer: str = "", message_id: str = "") -> Iterator[Event]:
        """End the turn and everything open in it. A buffered agent's `answer` is sent now."""
        # A report that no model wrote names what is missing; clients must receive it, too.
        is_unsent = self._is_buffered or (self._is_extended and not self._has_sent_text)
        if not self._pair_open and (self._pairs == 0 or (is_unsent and answer)):
            yield from self._open_pair()
        if is_unsent and answer:
            yield from self._buffered_text(answer, message_id)
        elif self._is_extended and (rest := self._extension(answer)):
            message_id = self._message_id or message_id or self._agent_id
            yield MessageChunk(message_id=message_id, delta=MessageDelta(content=rest))
        yield from self._close_pair()
        for call in list(self._tools):
            # A cancelled call cannot send its last step itself.
            if (step := self._steps.get(call)) and step.state not in _FINAL_STATES:
                cancelled: dict[str, Any] = {**dict(step), "state": "cancelled"}
                yield BrowserStepChanged(**cancelled)
            yield from self.tool_ended(call, NO_RESULT)
        yield AgentEnded(agent_name=self.name, agent_id=self._agent_id)

    def _extension(self, answer: str) -> str:
        """Return the text that code appended to the model's report."""
        shown = without_thoughts(self._sent_text)
        return answer[len(shown) :] if shown and answer.startswith(shown) else ""

    def _buffered_text(self, answer: str, message_id: str) -> Iterator[Event]:
        """Send the answer in the model's pieces when it equals the model's text, else as one."""
        pieces = [(one, text) for one, text in self._pieces if one == message_id]
        if "".join(text for _, text in pieces) == answer:
            for one, text in pieces:
                yield MessageChunk(message_id=one, delta=MessageDelta(content=text))
            return
        yield MessageChunk(message_id=message_id or self._agent_id, delta=MessageDelta(content=answer))

    def _continuation(self, content: str) -> str:
        """Return what a new try adds to the text that was sent of the broken one."""
        if self._repeated.startswith(content):
            self._repeated = self._repeated[len(content) :]
            self._sent_text += content
            return ""
        if content.startswith(self._repeated):
            self._sent_text += self._repeated
            content, self._repeated = content[len(self._repeated) :], ""
            return content
        # It differs: the whole new text follows the broken one, as a message of its own.
        again, self._sent_text, self._repeated, self._continues = self._sent_text + content, "", "", False
        return f"\n\n{again}"

    def _open_pair(self) -> Iterator[Event]:
        self._pair_open = True
        self._pairs += 1
        self._sent_text, self._repeated, self._continues = "", "", False
        yield ModelStarted(agent_name=self.name)

    def _close_pair(self) -> Iterator[Event]:
        if self._pair_open:
            self._pair_open = False
            yield ModelEnded(agent_name=self.name)
        yield from self._waiting
        self._waiting = []

    def _outside_a_pair(self, event: Event) -> Iterator[Event]:
        if self._pair_open:
            self._waiting.append(event)
            return
        if self._pairs == 0:
            yield from self._open_pair()
            yield from self._close_pair()
        yield event

    def _inside_a_tool(self, parents: Sequence[str]) -> bool:
        return any(parent in self._tools for parent in parents)

    def _tool_id(self, call: str, tool: str) -> str:
        return f"{self._tool_prefix}_{self.name}_{tool}_{call}"


@dataclass(slots=True)
class _OpenTurn:
    turn: AgentTurn
    waiting: list[Event] = field(default_factory=list[Event])
    has_ended: bool = False


class TurnMultiplexer:
    """Orders the events of several open turns, each known by a key.

    The turn that was opened first is sent immediately; the events of the others wait until it has ended. Each
    event is yielded once, in the order of its turn.
    """

    def __init__(self) -> None:
        self._queue: deque[_OpenTurn] = deque()
        self._open: dict[str, _OpenTurn] = {}

    def open(self, key: str, turn: AgentTurn, before: Iterable[Event] = ()) -> Iterator[Event]:
        """Add a turn and send its start, after the events that must come `before` it."""
        if stale := self.turn(key):
            yield from self.close(key, stale.end())
        entry = self._open[key] = _OpenTurn(turn)
        self._queue.append(entry)
        yield from self._send(entry, before)
        yield from self._send(entry, turn.start())

    def turn(self, key: str) -> AgentTurn | None:
        """Return the open turn of `key`."""
        entry = self._open.get(key)
        return entry.turn if entry else None

    def send(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the turn's events if it is the first one, else store them."""
        if entry := self._open.get(key):
            yield from self._send(entry, events)

    def send_or_drop(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the turn's events if it is the first one; later they would be of no use."""
        if (entry := self._open.get(key)) and self._queue[0] is entry:
            yield from events

    def close(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        """Send a turn's last events, then the stored events of the turns behind it."""
        entry = self._open.pop(key)
        yield from self._send(entry, events)
        entry.has_ended = True
        while self._queue and self._queue[0].has_ended:
            self._queue.popleft()
            if self._queue:
                stored, self._queue[0].waiting = self._queue[0].waiting, []
                yield from stored

    def close_all(self) -> Iterator[Event]:
        """End every open turn, in order."""
        for key, entry in list(self._open.items()):
            yield from self.close(key, entry.turn.end())

    def current_agent(self) -> str | None:
        """Return the name of the agent whose turn is sent now."""
        return self._queue[0].turn.name if self._queue else None

    def _send(self, entry: _OpenTurn, events: Iterable[Event]) -> Iterator[Event]:
        if self._queue[0] is entry:
            yield from events
        else:
            entry.waiting.extend(events)
