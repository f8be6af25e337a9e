"""Agents' turns: each becomes a legal sequence of events; concurrent ones can be shown one after another."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from maniple.events.base import Event, TurnMark
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
    WorkflowStarted,
)
from maniple.store import EventRecord
from maniple.text import without_thoughts

# Their text is sent as drafts make it certain, and whole when the answer is known; a hand-off never.
BUFFERED_AGENTS = frozenset({"coordinator", "planner"})
# Code may extend the text of its model, or write all of it.
EXTENDED_AGENTS = frozenset({"reporter"})
NO_RESULT = "The tool gave no result."
_FINAL_STATES = frozenset({"completed", "failed", "cancelled"})

Stream = Literal["stdout", "stderr"]


class AgentTurn:
    """Converts what happens in one agent's turn into events, in legal order."""

    def __init__(self, name: str, agent_id: str, tool_prefix: str, step_id: int | None = None) -> None:
        self.name = name
        self.mark = TurnMark(agent_id, step_id)
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
        self._draft = ""
        self._draft_id = ""
        self._draft_source = ""

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
            if not self._continues:
                yield MessageReplaced(message_id=self._message_id, replaced_by=message_id)
        self._sent_text += content
        if not self._continues:
            self._message_id = message_id
        if content:
            yield MessageChunk(message_id=self._message_id, delta=MessageDelta(content=content))

    def reasoning(self, call: str, message_id: str, content: str) -> Iterator[Event]:
        """Add a piece of reasoning. The LangManus client shows the coordinator's as "undefined"."""
        if call == self._call and content and self.name != "coordinator":
            yield MessageChunk(message_id=message_id, delta=MessageDelta(reasoning_content=content))

    def draft_added(self, message_id: str, text: str) -> Iterator[Event]:
        """Send what is certain of a buffered answer; `text` is all of it, from the beginning.

        Another try of the model continues the message if it says the same, else it begins a new one.
        """
        if not self._pair_open or not text or self._draft.startswith(text):
            return
        continues = text.startswith(self._draft)
        if continues or message_id != self._draft_source:
            self._draft_source = message_id
            yield from self._draft_text(text, message_id, continues=continues)

    def _draft_text(self, text: str, message_id: str, *, continues: bool) -> Iterator[Event]:
        new = text[len(self._draft) :] if continues else text
        if not self._draft:
            self._draft_id = message_id
        elif not continues:
            # The LangManus client joins all text of a pair, and a plan must be JSON of its own.
            is_plan = self.name == "planner"
            if is_plan:
                yield from self._close_pair()
                yield from self._open_pair()
            broken, self._draft_id = (
                self._draft_id,
                message_id if message_id != self._draft_id else f"{message_id}_2",
            )
            if not is_plan:
                yield MessageReplaced(message_id=broken, replaced_by=self._draft_id)
                new = f"\n\n{new}"
        self._draft = text
        if new:
            yield MessageChunk(message_id=self._draft_id, delta=MessageDelta(content=new))

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
        """Send what the draft lacks of the answer; without one all, in the model's pieces if they fit."""
        if self._draft:
            continues = answer.startswith(self._draft)
            yield from self._draft_text(answer, message_id or self._agent_id, continues=continues)
            return
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


Item = TypeVar("Item", Event, EventRecord)


@dataclass(slots=True)
class _WaitingTurn(Generic[Item]):
    items: list[Item] = field(default_factory=list[Item])
    has_ended: bool = False


class TurnOrder(Generic[Item]):
    """Shows one agent at a time: orders the events of a run, whose turns may interleave, turn after turn.

    The events of the turn that began first are passed on immediately; those of the others wait until it has
    ended. Each event is yielded once, in the order of its turn. Events of the run are passed on as they come,
    and so are those of a version that did not mark turns and stored them in this order.
    """

    def __init__(self) -> None:
        self._turns: dict[str, _WaitingTurn[Item]] = {}
        self._before: list[Item] = []

    def feed(self, item: Item) -> Iterator[Item]:
        """Yield what can be shown after the next event."""
        if item.type == WorkflowStarted.type and self._turns:
            self._before.append(item)  # it must not be inside a turn
            return
        if item.type == AgentStarted.type and item.turn_id:
            self._turns[item.turn_id] = _WaitingTurn(self._before)
            self._before = []
            yield from self._release()
        turn = self._turns.get(item.turn_id)
        if turn is None or self._is_first(turn):
            yield item
        elif item.type != ToolOutput.type:  # later it would be of no use
            turn.items.append(item)
        if turn is not None and item.type == AgentEnded.type:
            turn.has_ended = True
            yield from self._release()

    def _is_first(self, turn: _WaitingTurn[Item]) -> bool:
        return next(iter(self._turns.values())) is turn

    def _release(self) -> Iterator[Item]:
        """Yield the stored events of the first turn, and while it has ended, of those behind it."""
        for turn_id, turn in list(self._turns.items()):
            yield from turn.items
            turn.items.clear()
            if not turn.has_ended:
                return
            del self._turns[turn_id]
        before, self._before = self._before, []
        yield from before


async def order_turns(events: AsyncIterator[Event]) -> AsyncIterator[Event]:
    """Yield the events of a run with one agent at a time."""
    order = TurnOrder[Event]()
    async for event in events:
        for one in order.feed(event):
            yield one
