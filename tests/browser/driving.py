"""Acting in a browser by its state, as a model does."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maniple.browser import ACTIONS, ActionResult, BrowserState, Page


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


def required(action: str, known: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Those of the parameters that an action requires; others it refuses."""
    return {name: {**known, **more}[name] for name in ACTIONS[action].required}
