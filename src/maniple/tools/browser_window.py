"""The browser as agents have it: the tabs of the thread that is worked for, and what was last seen there."""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Protocol

from maniple.browser import Action, ActionResult, Aids, Browser, BrowserState, Page
from maniple.tools.evidence import source_line
from maniple.tools.run_context import thread_key

MOST_THREADS = 256
"""Of so many threads the last look is remembered: it is read again with the next one."""


class Reader(Protocol):
    """A model that helps with what a page shows."""

    async def extract(self, goal: str, markdown: str) -> str:
        """What of a page answers the goal; "" for nothing."""
        ...

    async def choose(self, said: str, ways: "tuple[str, ...]", picture: bytes | None) -> int | None:
        """Which of some ways to clear an obstacle away, by its place; None for none of them."""
        ...


READER: ContextVar[Reader | None] = ContextVar("maniple_reader", default=None)
"""The model of the agent that acts: a thread's tabs are the same for all its agents, their models are not."""


class Window:
    """Gives each call the page of its own thread."""

    def __init__(self, browser: Browser, aids: Aids | None = None) -> None:
        self._browser = browser
        self._aids = aids or Aids()
        self._seen: OrderedDict[str, BrowserState] = OrderedDict()

    async def look(self, *, screenshot: bool) -> BrowserState:
        """Look at the current tab; raises `BrowserError`."""
        self._seen.pop(thread_key(), None)
        state = await (await self._page()).observe(screenshot=screenshot)
        self._seen[thread_key()] = state
        if len(self._seen) > MOST_THREADS:
            self._seen.popitem(last=False)
        return state

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        """Do one thing; raises `BrowserError` in the contract's words."""
        return await (await self._page()).act(action)

    def seen(self) -> BrowserState | None:
        """Return the last look of this thread, whatever has happened since."""
        return self._seen.get(thread_key())

    async def _page(self) -> Page:
        aids = Aids(
            search=self._aids.search,
            extract=self._extract,
            keep_file=self._aids.keep_file,
            open_file=self._aids.open_file,
            choose=self._choose,
        )
        return await self._browser.page(thread_key(), aids)

    async def _extract(self, goal: str, markdown: str) -> str:
        """Record the page among the run's sources, and return what of it answers the goal."""
        reader, state = READER.get(), self.seen()
        found = await reader.extract(goal, markdown) if reader is not None else markdown
        if not found or state is None:
            return found
        return f"{await source_line(state.url, state.title, markdown)}\n\n{found}"

    async def _choose(self, said: str, ways: Any, picture: bytes | None) -> int | None:
        reader = READER.get()
        return await reader.choose(said, tuple(ways), picture) if reader is not None else None


def fingerprint(state: BrowserState) -> str:
    """Return what tells two looks apart: address, scrolling and content, whatever of it is new."""
    seen = (state.url, state.scroll_info.pixels_above, state.interactive_elements.replace("*[", "["))
    return hashlib.blake2s(repr(seen).encode(errors="replace"), digest_size=8).hexdigest()
