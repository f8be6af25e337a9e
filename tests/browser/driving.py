"""Acting in a browser by its state, as a model does."""

import re
from dataclasses import dataclass
from typing import Any

from maniple.browser import ActionResult, BrowserState, Page


@dataclass
class Driver:
    """A page, and the last look at it."""

    page: Page
    state: BrowserState | None = None

    async def act(self, action: str, **parameters: Any) -> ActionResult:
        """Do one thing."""
        return await self.page.act({"action": action, **parameters})

    async def look(self) -> str:
        """Look at the page; what it shows."""
        self.state = await self.page.observe(screenshot=False)
        return self.state.interactive_elements

    async def index(self, words: str) -> int:
        """The index of the control whose line has these words, in a fresh look."""
        shown = await self.look()
        found = re.search(rf"\[(\d+)\]<[^\[]*?{re.escape(words)}", shown)
        assert found, f"{words!r} is not in: {shown}"
        return int(found[1])

    async def on(self, action: str, words: str, **parameters: Any) -> ActionResult:
        """Do one thing with the control of these words."""
        return await self.act(action, index=await self.index(words), **parameters)
