"""One agent at a time: what agents do at once is told one after another."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from maniple.events.base import Event
from maniple.events.lane import Lane


@dataclass(slots=True)
class _Turn:
    lane: Lane
    waiting: list[Event] = field(default_factory=list)
    ended: bool = False


class Sequencer:
    """Orders the events of several open lanes, each known by a key.

    The lane that opened first speaks at once; the others' events wait until it has ended. Each event is
    yielded once and in its lane's order.
    """

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque()
        self._open: dict[str, _Turn] = {}

    def open(self, key: str, lane: Lane, before: Iterable[Event] = ()) -> Iterator[Event]:
        """Add a lane and tell of its start, after what must come `before` it."""
        if stale := self.lane(key):
            yield from self.close(key, stale.end())
        turn = self._open[key] = _Turn(lane)
        self._turns.append(turn)
        yield from self._tell(turn, before)
        yield from self._tell(turn, lane.start())

    def lane(self, key: str) -> Lane | None:
        """Return the open lane of `key`."""
        turn = self._open.get(key)
        return turn.lane if turn else None

    def tell(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the lane's events now if it is its turn, else keep them."""
        if turn := self._open.get(key):
            yield from self._tell(turn, events)

    def tell_now(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the lane's events if it is its turn; nobody wants these later."""
        if (turn := self._open.get(key)) and self._turns[0] is turn:
            yield from events

    def close(self, key: str, events: Iterable[Event]) -> Iterator[Event]:
        """Tell a lane's last events and let the next ones speak."""
        turn = self._open.pop(key)
        yield from self._tell(turn, events)
        turn.ended = True
        while self._turns and self._turns[0].ended:
            self._turns.popleft()
            if self._turns:
                kept, self._turns[0].waiting = self._turns[0].waiting, []
                yield from kept

    def close_all(self) -> Iterator[Event]:
        """End every open lane, in order."""
        for key, turn in list(self._open.items()):
            yield from self.close(key, turn.lane.end())

    def speaking(self) -> str | None:
        """Return the name of the agent whose turn it is."""
        return self._turns[0].lane.name if self._turns else None

    def _tell(self, turn: _Turn, events: Iterable[Event]) -> Iterator[Event]:
        if self._turns[0] is turn:
            yield from events
        else:
            turn.waiting.extend(events)
