"""One agent's turn: whatever happens inside it becomes a sequence that clients can follow.

The grammar of a turn (`docs/wire.md` §1):
`start_of_agent (start_of_llm message* end_of_llm
(tool_call | tool_output | browser_step | tool_call_result)*)+ end_of_agent`. Model calls made inside a tool
are the tool's own affair and are not shown.
"""

from collections.abc import Iterator, Mapping, Sequence
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

# What these two say is decided on their whole answer: a hand-off is never shown, a plan only when valid.
HELD = frozenset({"coordinator", "planner"})
# Code may add to what its model said, or say all of it.
ADDED_TO = frozenset({"reporter"})
NO_RESULT = "The tool gave no result."
_ENDS = frozenset({"completed", "failed", "cancelled"})

Stream = Literal["stdout", "stderr"]


class Lane:
    """Turns what happens in one agent's turn into events, in legal order."""

    def __init__(self, name: str, agent_id: str, tool_prefix: str) -> None:
        self.name = name
        self._agent_id = agent_id
        self._tool_prefix = tool_prefix
        self._held = name in HELD
        self._is_added_to = name in ADDED_TO
        self._call: str | None = None
        self._has_spoken = False
        self._pair_open = False
        self._pairs = 0
        self._tools: dict[str, str] = {}
        self._steps: dict[str, BrowserStepChanged] = {}
        self._waiting: list[Event] = []
        self._shown = ""
        self._repeated = ""
        self._message_id = ""
        self._continues = False
        self._pieces: list[tuple[str, str]] = []

    def start(self) -> Iterator[Event]:
        """Begin the turn."""
        yield AgentStarted(agent_name=self.name, agent_id=self._agent_id)

    def model_started(self, call: str, parents: Sequence[str]) -> Iterator[Event]:
        """A model call began; one that begins while another is open is a new try of it."""
        if self._inside_a_tool(parents):
            return
        if self._call is not None:
            self._repeated, self._shown = self._shown, ""
            self._continues = bool(self._repeated)
        self._call = call
        if not self._pair_open:
            yield from self._open_pair()

    def text(self, call: str, message_id: str, content: str) -> Iterator[Event]:
        """The model said something."""
        if call != self._call or not content:
            return
        if self._held:
            self._pieces.append((message_id, content))
            return
        self._has_spoken = True
        if self._repeated:
            content = self._continued(content)
        self._shown += content
        if not self._continues:
            self._message_id = message_id
        if content:
            yield MessageChunk(message_id=self._message_id, delta=MessageDelta(content=content))

    def reasoning(self, call: str, message_id: str, content: str) -> Iterator[Event]:
        """The model thought aloud. The old client shows a coordinator's reasoning as "undefined"."""
        if call == self._call and content and self.name != "coordinator":
            yield MessageChunk(message_id=message_id, delta=MessageDelta(reasoning_content=content))

    def model_ended(self, call: str) -> Iterator[Event]:
        """The model call ended; one agent's held answer keeps its pair open until the turn ends."""
        if call != self._call:
            return
        self._call = None
        # The old client shows the report's first pair only: what is added must be in it.
        if not self._held and not self._is_added_to:
            yield from self._close_pair()

    def tool_started(
        self, call: str, parents: Sequence[str], tool: str, arguments: dict[str, Any]
    ) -> Iterator[Event]:
        """A tool was called."""
        if self._inside_a_tool(parents) or self._held:
            return
        self._tools[call] = tool
        event = ToolCalled(tool_call_id=self._tool_id(call, tool), tool_name=tool, tool_input=arguments)
        yield from self._outside_a_pair(event)

    def tool_printed(self, call: str, stream: Stream, text: str) -> Iterator[Event]:
        """A tool that still runs printed this."""
        if (tool := self._tools.get(call)) and not self._pair_open:
            tool_call_id = self._tool_id(call, tool)
            yield ToolOutput(tool_call_id=tool_call_id, tool_name=tool, stream=stream, text=text)

    def browser_stepped(self, parents: Sequence[str], step: Mapping[str, Any]) -> Iterator[Event]:
        """A call that still runs, one of the `parents` of what tells it, is at this step."""
        call = next((one for one in parents if one in self._tools), None)
        if call is not None:
            told = BrowserStepChanged(tool_call_id=self._tool_id(call, self._tools[call]), **step)
            self._steps[call] = told
            yield from self._outside_a_pair(told)

    def tool_ended(self, call: str, result: str) -> Iterator[Event]:
        """A tool returned, or failed with these words."""
        if tool := self._tools.pop(call, None):
            event = ToolReturned(tool_call_id=self._tool_id(call, tool), tool_name=tool, tool_result=result)
            yield from self._outside_a_pair(event)

    def end(self, answer: str = "", message_id: str = "") -> Iterator[Event]:
        """End the turn, closing whatever is open. A held agent's `answer` is shown now."""
        # A report that no model wrote says what is missing; clients must see it, too.
        unspoken = self._held or (self._is_added_to and not self._has_spoken)
        if not self._pair_open and (self._pairs == 0 or (unspoken and answer)):
            yield from self._open_pair()
        if unspoken and answer:
            yield from self._spoken(answer, message_id)
        elif self._is_added_to and (rest := self._added_to(answer)):
            message_id = self._message_id or message_id or self._agent_id
            yield MessageChunk(message_id=message_id, delta=MessageDelta(content=rest))
        yield from self._close_pair()
        for call in list(self._tools):
            # Whoever is cancelled can tell nothing any more.
            if (step := self._steps.get(call)) and step.state not in _ENDS:
                yield BrowserStepChanged(**{**dict(step), "state": "cancelled"})
            yield from self.tool_ended(call, NO_RESULT)
        yield AgentEnded(agent_name=self.name, agent_id=self._agent_id)

    def _added_to(self, answer: str) -> str:
        """Return what code added to the report that the model gave."""
        shown = without_thoughts(self._shown)
        return answer[len(shown) :] if shown and answer.startswith(shown) else ""

    def _spoken(self, answer: str, message_id: str) -> Iterator[Event]:
        """Show the answer in the pieces in which the model gave it, when it is what the model gave."""
        said = [(one, text) for one, text in self._pieces if one == message_id]
        if "".join(text for _, text in said) == answer:
            for one, text in said:
                yield MessageChunk(message_id=one, delta=MessageDelta(content=text))
            return
        yield MessageChunk(message_id=message_id or self._agent_id, delta=MessageDelta(content=answer))

    def _continued(self, content: str) -> str:
        """Return what a new try adds to the text that a broken one already showed."""
        if self._repeated.startswith(content):
            self._repeated = self._repeated[len(content) :]
            self._shown += content
            return ""
        if content.startswith(self._repeated):
            self._shown += self._repeated
            content, self._repeated = content[len(self._repeated) :], ""
            return content
        # It took another way: the whole new text follows the broken one, as a message of its own.
        again, self._shown, self._repeated, self._continues = self._shown + content, "", "", False
        return f"\n\n{again}"

    def _open_pair(self) -> Iterator[Event]:
        self._pair_open = True
        self._pairs += 1
        self._shown, self._repeated, self._continues = "", "", False
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
