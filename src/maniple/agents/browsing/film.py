"""The pictures of a call of the browser: what was seen before each action."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maniple.browser import BrowserState
from maniple.browser.recording import Frame

MOST_FRAMES = 100
_CAPTION_CHARACTERS = 120


@dataclass(slots=True)
class Film:
    """Frames, in the order of the actions."""

    frames: list[Frame] = field(default_factory=list)
    seen: BrowserState | None = None
    """What the next actions are decided on, with its picture, where one is kept."""

    def add(self, number: int, name: str, parameters: Mapping[str, Any]) -> None:
        """Add what is seen now, with an action in it: its element's `index` is a number."""
        seen = self.seen
        if seen is None or seen.screenshot is None or len(self.frames) >= MOST_FRAMES:
            return
        values = " ".join(f"{key}={value}" for key, value in parameters.items())
        box = next((one.box for one in seen.elements if one.index == parameters.get("index")), None)
        self.frames.append(Frame(seen.screenshot, f"{number} {name} {values}"[:_CAPTION_CHARACTERS], box))
