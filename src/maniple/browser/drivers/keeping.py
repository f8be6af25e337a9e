"""Keeping a thread's cookies and local storage, when that is wanted."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from maniple.browser.storage import Storage

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext

_LOG = logging.getLogger(__name__)
# A browser may be killed at any time; asking for its state costs some milliseconds for each site.
_EVERY_SECONDS = 30.0
_SECONDS = 5.0


class KeptState:
    """What is kept of one thread."""

    def __init__(self, storage: Storage, thread: str) -> None:
        self._storage = storage
        self._thread = thread
        self._saved = float("-inf")

    async def load(self) -> Mapping[str, Any] | None:
        """What was saved last; None for nothing."""
        return await asyncio.to_thread(self._storage.load, self._thread)

    async def save_now_and_then(self, context: "BrowserContext") -> None:
        """Save the state of a context, unless it was saved a moment ago."""
        if asyncio.get_running_loop().time() - self._saved > _EVERY_SECONDS:
            await self.save(context)

    async def save(self, context: "BrowserContext") -> None:
        """Save the state of a context; one that does not tell it is left as it was saved before."""
        from playwright.async_api import Error

        with suppress(Error, TimeoutError):
            async with asyncio.timeout(_SECONDS):
                state = await context.storage_state()
            try:
                await asyncio.to_thread(self._storage.save, self._thread, dict(state))
            except OSError as error:
                _LOG.warning("The browser's storage of a thread could not be kept: %s", error)
            self._saved = asyncio.get_running_loop().time()

    async def remove(self) -> None:
        """Forget what was saved."""
        await asyncio.to_thread(self._storage.remove, self._thread)
