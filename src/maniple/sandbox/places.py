"""Who may have a session at a time: a number of places, a line for them, and who has to make room."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class Tenure:
    """How long a session is left alone while others wait for its place."""

    rest_seconds: float = 10
    """Between two calls: a model writes the next one meanwhile."""
    patience_seconds: float = 30
    """After so long in line, a session makes room that is still used."""


class Places:
    """Hands out places, first come first served.

    For who waits in line, the session makes room whose holder is done. When there is none, the one that
    has rested for longest: once it has rested for `rest_seconds`, or once who waits has done so for
    `patience_seconds`. A holder whose calls follow one another without a rest is to look at `is_overdue`
    between them.
    """

    def __init__(self, number: int, dismiss: Callable[[str], None], tenure: Tenure | None = None) -> None:
        """`dismiss` begins to end the session of a key, which then calls `give_back`."""
        self._free = number
        self._dismiss = dismiss
        self._tenure = tenure or Tenure()
        self._line: dict[asyncio.Future[None], float] = {}
        self._resting: dict[str, float] = {}
        """Since when, longest first."""
        self._done: dict[str, None] = {}
        """Those of the resting that expect no call soon, longest first."""
        self._asked: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_overdue(self) -> bool:
        """Whether somebody has lost patience for whom nobody is making room yet."""
        since = self._unserved()
        return since is not None and _now() >= since + self._tenure.patience_seconds

    async def take(self) -> None:
        """Wait for a place."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._line[turn] = _now()
        self._make_room()
        try:
            await turn
        except asyncio.CancelledError:
            self._line.pop(turn, None)
            if not turn.cancelled():  # the place came in the moment of the cancellation
                self._hand_on()
            raise

    def give_back(self, key: str) -> None:
        """The session of this key has ended, or did not begin."""
        self.work(key)
        self._asked.discard(key)
        self._hand_on()

    def rest(self, key: str) -> None:
        """A holder has no call under way and none that waits."""
        self.work(key)
        self._resting[key] = _now()
        self._asked.discard(key)
        self._make_room()

    def done(self, key: str) -> None:
        """Who rests, if it does, expects no call soon."""
        if key in self._resting:
            self._done[key] = None
            self._make_room()

    def work(self, key: str) -> None:
        """A call of this key comes, whether it holds a place or not."""
        self._resting.pop(key, None)
        self._done.pop(key, None)

    def close(self) -> None:
        """Let everybody in who waits, to find out that it is too late."""
        self._silence()
        for turn in self._line:
            if not turn.done():
                turn.set_result(None)
        self._line.clear()

    def _hand_on(self) -> None:
        while self._line:
            turn = next(iter(self._line))
            del self._line[turn]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _unserved(self) -> float | None:
        """Since when the first one waits for whom nobody makes room."""
        return next(islice(self._line.values(), len(self._asked), None), None)

    def _make_room(self) -> None:
        """Ask as many to leave as wait in line and may be asked; come again when the next one may be."""
        self._silence()
        while self._resting and (waits_since := self._unserved()) is not None:
            key = next(iter(self._done), None) or next(iter(self._resting))
            tenure = self._tenure
            due = min(self._resting[key] + tenure.rest_seconds, waits_since + tenure.patience_seconds)
            if key not in self._done and due > _now():
                self._timer = asyncio.get_running_loop().call_at(due, self._make_room)
                return
            self.work(key)
            self._asked.add(key)
            self._dismiss(key)

    def _silence(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _now() -> float:
    return asyncio.get_running_loop().time()
