"""Who may work now: a limited number of places, given out fairly."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """`size` places. Those who wait are let in owner by owner in turn, and first come first within an owner.

    One owner with a thousand runs therefore delays another's first run by one place, not by a thousand.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def hold(self, owner: str) -> AsyncIterator[None]:
        """Wait for a place and keep it."""
        await self._take(owner)
        try:
            yield
        finally:
            self._give()

    async def _take(self, owner: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give()  # the place was ours already
            else:
                self._leave(owner, turn)
            raise

    def _give(self) -> None:
        while self._waiting:
            owner, queue = self._waiting.popitem(last=False)
            turn = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # at the end: the others come first
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _leave(self, owner: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[owner]
