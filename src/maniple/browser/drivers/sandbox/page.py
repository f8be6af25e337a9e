"""The page of the thread that has the sandbox's browser."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from maniple.browser.actions import Action, ActionResult
from maniple.browser.drivers.sandbox.actions import Hands
from maniple.browser.drivers.sandbox.view import FinalWordsError
from maniple.browser.page import Aids, PageText
from maniple.browser.state import BrowserState
from maniple.browser.wording import failed
from maniple.errors import BrowserError, ToolFailure


class SandboxPage:
    """A `Page` over HTTP: the browser of a sandbox, for as long as `thread` has it."""

    def __init__(self, thread: str, hands: Hands, tokens: int) -> None:
        self.thread = thread
        self.is_left = False
        self._hands = hands
        self._tokens = tokens
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._used_at = self._loop.time()

    @property
    def idle_seconds(self) -> float:
        """How long ago it was used; 0 while it is."""
        return 0.0 if self._lock.locked() else self._loop.time() - self._used_at

    def take(self, aids: Aids) -> "SandboxPage":
        """Go on with these aids."""
        self._hands.aids = aids
        self._used_at = self._loop.time()
        return self

    async def observe(self, *, screenshot: bool = True) -> BrowserState:
        """See `Page.observe`; the picture has no marks."""
        async with self._used():
            await self._hands.refresh_view()
            return self._hands.view.look(tokens=self._tokens, screenshot=screenshot)

    async def act(self, action: Mapping[str, Any] | Action) -> ActionResult:
        """See `Page.act`."""
        wanted = Action.of(action)
        async with self._used():
            try:
                return await self._hands.do(wanted)
            except FinalWordsError:
                raise
            except ToolFailure as error:
                raise BrowserError(failed(wanted.action, str(error))) from error

    async def read(self) -> PageText:
        """See `Page.read`; the API tells no links and no status."""
        async with self._used():
            return await self._hands.read()

    async def read_beside(self, url: str) -> PageText:
        """Read the page at `url` in a tab of its own; fails as `Browser.read`."""
        async with self._used():
            await self._hands.do(Action(action="open_tab", url=url))
            try:
                return await self._hands.read()
            finally:
                with suppress(BrowserError):  # the text is what was wanted
                    await self._hands.close_tab()

    async def aclose(self) -> None:
        """Close the tabs that were opened: another thread may have the browser then."""
        async with self._lock:
            if self.is_left:
                return
            self.is_left = True
            try:
                await self._hands.leave()
            except BrowserError:
                return  # It is not there, and then neither are its tabs.

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[None]:
        async with self._lock:
            if self.is_left:
                raise BrowserError("This page was closed; ask for a new one.")
            try:
                yield
            finally:
                self._used_at = self._loop.time()
