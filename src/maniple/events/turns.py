"""Shows one agent at a time, although the turns of concurrent ones interleave."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from maniple.events.base import Event
from maniple.events.model import AgentEnded, AgentStarted, ToolOutput, WorkflowStarted
from maniple.store import EventRecord

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
