"""The pictures of a call of the browser: what was seen before each action, and what of it was acted on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maniple.browser import Element
from maniple.browser.actions import ON_ELEMENTS
from maniple.browser.recording import Box, Frame

MOST_FRAMES = 100
_CAPTION_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Scene:
    """What the next actions are decided on."""

    elements: tuple[Element, ...] = ()
    picture: bytes | None = None
    """Where one is kept for people."""
    address: str | None = None
    """Under which clients find the picture."""

    def acted_on(self, name: str, parameters: Mapping[str, Any]) -> Element | None:
        """Return the element that an action is done to, where it has one: its `index` is a number."""
        if name not in ON_ELEMENTS:
            return None
        return next((one for one in self.elements if one.index == parameters.get("index")), None)


@dataclass(slots=True)
class Film:
    """Frames, in the order of the actions."""

    frames: list[Frame] = field(default_factory=list)
    scene: Scene = Scene()

    def add(self, number: int, name: str, parameters: Mapping[str, Any]) -> None:
        """Add what is seen now, where there is a picture of it, with an action in it."""
        picture = self.scene.picture
        if picture is None or len(self.frames) >= MOST_FRAMES:
            return
        values = " ".join(f"{key}={value}" for key, value in parameters.items())
        element = self.scene.acted_on(name, parameters)
        caption = f"{number} {name} {values}"[:_CAPTION_CHARACTERS]
        self.frames.append(Frame(picture, caption, element.box if element else None))


def mark_of(box: Box) -> Mapping[str, float] | None:
    """Return what of a box is in the window as `{x, y, width, height}`, from 0 to 1 each; None for nothing.

    An element without a size is a point.
    """
    left, top, right, bottom = (min(max(edge, 0.0), 1.0) for edge in box)
    is_outside = box[0] > 1 or box[1] > 1 or box[2] < 0 or box[3] < 0
    if is_outside:
        return None
    whole = {"x": left, "y": top, "width": right - left, "height": bottom - top}
    return {name: round(value, 4) for name, value in whole.items()}
