"""The sessions of many threads: not too many windows at once, and none for ever."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from maniple.browser.drivers.session import Session
from maniple.config import BrowserSettings
from maniple.errors import BrowserError

# Of so many threads it is remembered what was open in them.
_MOST_KNOWN = 1_000
_UNUSED = "The browser was closed after a while without use and is open again."
_MADE_WAY = "The browser was closed to make way for others and is open again."


@dataclass(slots=True, eq=False)
class _Place:
    session: Session
    uses: int = 0
    is_admitted: bool = False
    timer: asyncio.TimerHandle | None = None


class Threads:
    """A session for each thread, with a window when it is used."""

    def __init__(self, settings: BrowserSettings, make: Callable[[str], Session]) -> None:
        self._settings = settings
        self._make = make
        self._places: OrderedDict[str, _Place] = OrderedDict()
        self._admission = asyncio.Lock()
        self._freed = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    @asynccontextmanager
    async def used(self, thread: str) -> AsyncIterator[Session]:
        """The thread's session, while something is done in it.

        Raises:
            BrowserError: the browser is closed, or all windows that there may be are in use.
        """
        if self._closed:
            raise BrowserError("The browser has been closed; start a new run.")
        place = self._place(thread)
        place.uses += 1
        if place.timer is not None:
            place.timer.cancel()
        try:
            await self._admit(place)
            yield place.session
        finally:
            place.uses -= 1
            self._rest(place)

    async def close(self, thread: str, *, forget: bool = False) -> None:
        """Close a thread's window; `forget`: keep nothing of it."""
        place = self._places.pop(thread, None) or (_Place(self._make(thread)) if forget else None)
        if place is not None:
            await self._end(place, forget=forget)

    async def aclose(self) -> None:
        """Close all windows; calls that are running fail."""
        self._closed = True
        places, self._places = list(self._places.values()), OrderedDict()
        await asyncio.gather(*self._tasks, *(self._end(place) for place in places))

    def _place(self, thread: str) -> _Place:
        place = self._places.get(thread)
        if place is None:
            place = self._places[thread] = _Place(self._make(thread))
            self._forget_some()
        self._places.move_to_end(thread)
        return place

    def _forget_some(self) -> None:
        if len(self._places) > _MOST_KNOWN:
            unused = (key for key, place in self._places.items() if not place.is_admitted and not place.uses)
            if (oldest := next(unused, None)) is not None:
                del self._places[oldest]

    async def _admit(self, place: _Place) -> None:
        if place.is_admitted:
            return
        try:
            async with asyncio.timeout(self._settings.timeout_seconds), self._admission:
                while not place.is_admitted:
                    await self._make_way()
                    place.is_admitted = True
        except TimeoutError as error:
            raise BrowserError(
                f"All {self._settings.max_contexts} browsers are in use; try again in a while."
            ) from error

    async def _make_way(self) -> None:
        """Wait until there may be one window more."""
        while sum(place.is_admitted for place in self._places.values()) >= self._settings.max_contexts:
            idle = next(
                (place for place in self._places.values() if place.is_admitted and not place.uses), None
            )
            if idle is None:
                self._freed.clear()
                await self._freed.wait()
                continue
            # First of all: who comes back meanwhile has to be admitted again.
            idle.is_admitted = False
            await idle.session.suspend(_MADE_WAY)

    def _rest(self, place: _Place) -> None:
        self._freed.set()
        if place.uses or not place.is_admitted or self._closed:
            return
        loop = asyncio.get_running_loop()
        place.timer = loop.call_later(self._settings.idle_seconds, self._close_unused, place)

    def _close_unused(self, place: _Place) -> None:
        if place.uses or not place.is_admitted:
            return
        place.is_admitted = False
        task = asyncio.create_task(place.session.suspend(_UNUSED))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end(self, place: _Place, *, forget: bool = False) -> None:
        if place.timer is not None:
            place.timer.cancel()
        place.is_admitted = False
        await place.session.aclose(forget=forget)
        self._freed.set()
