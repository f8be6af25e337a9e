"""Asking a page what lies over it. What it answers is its own word: every part is checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from maniple.browser.obstacles.surface import Document
from maniple.errors import BrowserError

_PARTS = ("words.js", "layers.js", "judging.js", "sighting.js")
_DEPTH = 2
_FRAMES = 3
_OBSTACLES = 13
_TEXT_CHARACTERS = 600
_LABEL_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Control:
    """Something to click on an obstacle."""

    place: int
    role: str
    """`reject`, `necessary`, `close`, `acknowledge`, `accept`, `task` or `other`."""
    label: str
    """What a person reads on it; "" for a mere symbol."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that lies over the page, and how surely it is in the way."""

    document: Document
    id: int
    kind: str
    """Such as `consent`, `newsletter`, `plain`; "" for what is part of the page."""
    confidence: float
    """0 to 1."""
    text: str
    modal: bool
    """It keeps the rest of the page from being used."""
    controls: tuple[Control, ...]
    frames: int
    share: float
    """How much of the window it takes, 0 to 1."""
    outside: tuple[float, float] | None
    """A point on what it dims, in CSS pixels."""
    behind: "Obstacle | None" = None
    """What in the outer page holds the frame that it was found in."""


@cache
def _script(name: str) -> str:
    parts = files("maniple.browser.obstacles")
    source = "\n".join(parts.joinpath(part).read_text("utf-8") for part in _PARTS)
    return (
        "(argument) => { const key = Symbol.for('maniple.obstacles');\n"
        f"const page = (window[key] ??= (() => {{\n{source}\n}})()); return page.{name}(argument); }}"
    )


async def sight(document: Document, at: tuple[float, float] | None = None) -> tuple[float, list[Obstacle]]:
    """Which document it is, and what lies over it, the surest first; in its frames, too.

    Raises:
        BrowserError: the page has gone.
    """
    return await _sight(document, at, None, _DEPTH)


async def _sight(
    document: Document, at: tuple[float, float] | None, behind: Obstacle | None, depth: int
) -> tuple[float, list[Obstacle]]:
    # A frame of the page's own lies over nothing.
    whole = (behind.share or None) if behind else None
    answer = _mapping(await document.evaluate(_script("look"), {"at": at and list(at), "whole": whole}))
    seen = [
        _obstacle(document, _mapping(told), behind) for told in _list(answer.get("obstacles"))[:_OBSTACLES]
    ]
    for outer in [one for one in seen if one.frames and depth][:_FRAMES]:
        for place in range(min(outer.frames, _FRAMES)):
            inner = await document.frame(_script("frame"), {"id": outer.id, "place": place})
            if inner is not None:
                seen += (await _sight(inner, None, outer, depth - 1))[1]
    return _number(answer.get("document")), sorted(seen, key=lambda one: -one.confidence)


async def gone(obstacle: Obstacle) -> bool:
    """Whether it went away within a moment.

    Raises:
        BrowserError: the whole page has gone.
    """
    try:
        if await obstacle.document.evaluate(_script("gone"), {"id": obstacle.id}) is True:
            return True
    except BrowserError:
        if obstacle.behind is None:
            raise
        # Its frame went away with it, or shows something else now.
    return obstacle.behind is not None and obstacle.behind.share > 0 and await gone(obstacle.behind)


async def press(obstacle: Obstacle, control: Control) -> None:
    """Let the page click the control, if it still is on the obstacle."""
    await obstacle.document.evaluate(_script("press"), {"id": obstacle.id, "place": control.place})


async def click(obstacle: Obstacle, control: Control) -> None:
    """Click the control as a person would, if it still is on the obstacle."""
    await obstacle.document.click(_script("control"), {"id": obstacle.id, "place": control.place})


async def give_up(obstacle: Obstacle) -> None:
    """Count a failure; after two it is taken for part of the page, until a click fails because of it."""
    await obstacle.document.evaluate(_script("giveUp"), {"id": obstacle.id})


def _obstacle(document: Document, told: Mapping[str, Any], behind: Obstacle | None) -> Obstacle:
    point = _list(told.get("outside"))
    return Obstacle(
        document=document,
        id=int(_number(told.get("id"))),
        kind=_text(told.get("kind"), 20),
        confidence=min(1.0, _number(told.get("confidence"))),
        text=_text(told.get("text"), _TEXT_CHARACTERS),
        modal=told.get("modal") is True,
        controls=tuple(_controls(_list(told.get("controls")))),
        frames=int(_number(told.get("frames"))),
        share=min(1.0, _number(told.get("share"))),
        outside=(_number(point[0]), _number(point[1])) if len(point) == 2 else None,
        behind=behind,
    )


def _controls(told: Sequence[Any]) -> list[Control]:
    parts = [_mapping(one) for one in told[:60]]
    return [
        Control(place, _text(part.get("role"), 20), _text(part.get("label"), _LABEL_CHARACTERS))
        for place, part in enumerate(parts)
    ]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any, limit: int) -> str:
    return " ".join(value.split())[:limit] if isinstance(value, str) else ""


def _number(value: Any) -> float:
    """NaN and infinities are no JSON, but Playwright passes them on."""
    fits = isinstance(value, int | float) and 0 <= value < 1e15
    return value if fits else 0.0
