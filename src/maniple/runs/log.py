"""The numbered events of one run, kept so that anyone can follow from anywhere."""

import asyncio
from collections.abc import AsyncIterator

from maniple.events import Event


class EventLog:
    """Events numbered from 1, appended by the run and followed by any number of readers."""

    def __init__(self) -> None:
        self._events: list[Event] = []
        self.closed = False
        self._changed = asyncio.Event()

    def append(self, event: Event) -> None:
        """Add the next event and wake those who follow."""
        self._events.append(event)
        self._wake()

    def close(self) -> None:
        """Say that no event follows."""
        self.closed = True
        self._wake()

    async def follow(self, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Yield (number, event) from number `after + 1` on, until the run has ended."""
        number = max(after, 0)
        while True:
            changed = self._changed
            while number < len(self._events):
                number += 1
                yield number, self._events[number - 1]
            if self.closed and number >= len(self._events):
                return
            await changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
