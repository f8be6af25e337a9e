"""Detection of overlays on a page. Results from a page are untrusted, so every part is checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Protocol

from maniple.errors import BrowserError

_PARTS = ("words.js", "layers.js", "judging.js", "detection.js")
_MAX_FRAME_DEPTH = 2
_MAX_FRAMES = 3
_MAX_OVERLAYS = 13
_TEXT_CHARACTERS = 600
_LABEL_CHARACTERS = 80


class OverlayDocument(Protocol):
    """A page, or the page in one of its frames. Every call raises `BrowserError` when it is gone."""

    async def evaluate(self, script: str, argument: Any) -> Any:
        """Return the JSON value of the JavaScript function `script` for `argument`; it is untrusted."""
        ...

    async def click(self, script: str, argument: Any) -> None:
        """Click with the mouse on the element that `script` returns for `argument`, if it returns one."""
        ...

    async def frame(self, script: str, argument: Any) -> "OverlayDocument | None":
        """Return the document in the frame element that `script` returns; None if it returns none."""
        ...


class OverlaySurface(Protocol):
    """The tab that is cleared; the drivers implement it."""

    @property
    def document(self) -> OverlayDocument:
        """The document of the page itself."""
        ...

    async def press(self, key: str) -> None:
        """Press the key, such as `Escape`."""
        ...

    async def click_at(self, x: float, y: float) -> None:
        """Click at a point of the window, in CSS pixels."""
        ...

    async def screenshot(self) -> bytes | None:
        """Return the window as JPEG; None if that fails."""
        ...


@dataclass(frozen=True, slots=True)
class OverlayControl:
    """A control on an overlay."""

    position: int
    role: str
    """`reject`, `necessary`, `close`, `acknowledge`, `accept`, `task` or `other`."""
    label: str
    """Its visible text; "" for a symbol."""


@dataclass(frozen=True, slots=True)
class Overlay:
    """An element that covers the page."""

    document: OverlayDocument
    id: int
    kind: str
    """Such as `consent`, `newsletter`, `plain`; "" for a part of the page."""
    confidence: float
    """How certain it is that it is in the way, 0 to 1."""
    text: str
    modal: bool
    """Whether it blocks the rest of the page."""
    controls: tuple[OverlayControl, ...]
    frames: int
    share: float
    """The share of the window that it covers, 0 to 1."""
    outside: tuple[float, float] | None
    """A point on the dimmed page, in CSS pixels."""
    behind: "Overlay | None" = None
    """The overlay of the outer page that contains the frame in which it was found."""


@cache
def _script(name: str) -> str:
    parts = files("maniple.browser.overlays")
    source = "\n".join(parts.joinpath(part).read_text("utf-8") for part in _PARTS)
    return (
        "(argument) => { const key = Symbol.for('maniple.overlays');\n"
        f"const page = (window[key] ??= (() => {{\n{source}\n}})()); return page.{name}(argument); }}"
    )


async def detect_overlays(
    document: OverlayDocument, at: tuple[float, float] | None = None
) -> tuple[float, list[Overlay]]:
    """Return an id of the document, and its overlays with those in frames, the most certain first.

    Raises:
        BrowserError: the page is gone.
    """
    return await _detect(document, at, None, _MAX_FRAME_DEPTH)


async def _detect(
    document: OverlayDocument, at: tuple[float, float] | None, behind: Overlay | None, depth: int
) -> tuple[float, list[Overlay]]:
    # A frame that is part of the page (share 0) covers nothing.
    whole = (behind.share or None) if behind else None
    answer = _mapping(await document.evaluate(_script("look"), {"at": at and list(at), "whole": whole}))
    seen = [
        _parse_overlay(document, _mapping(raw), behind)
        for raw in _list(answer.get("overlays"))[:_MAX_OVERLAYS]
    ]
    for outer in [one for one in seen if one.frames and depth][:_MAX_FRAMES]:
        for position in range(min(outer.frames, _MAX_FRAMES)):
            inner = await document.frame(_script("frame"), {"id": outer.id, "place": position})
            if inner is not None:
                seen += (await _detect(inner, None, outer, depth - 1))[1]
    return _number(answer.get("document")), sorted(seen, key=lambda one: -one.confidence)


async def is_gone(overlay: Overlay) -> bool:
    """Return whether it disappeared within a moment.

    Raises:
        BrowserError: the page is gone.
    """
    try:
        if await overlay.document.evaluate(_script("gone"), {"id": overlay.id}) is True:
            return True
    except BrowserError:
        if overlay.behind is None:
            raise
        # Its frame disappeared with it, or shows another document.
    return overlay.behind is not None and overlay.behind.share > 0 and await is_gone(overlay.behind)


async def press_control(overlay: Overlay, control: OverlayControl) -> None:
    """Click the control by script, if it is still on the overlay."""
    await overlay.document.evaluate(_script("press"), {"id": overlay.id, "place": control.position})


async def click_control(overlay: Overlay, control: OverlayControl) -> None:
    """Click the control with the mouse, if it is still on the overlay."""
    await overlay.document.click(_script("control"), {"id": overlay.id, "place": control.position})


async def record_failure(overlay: Overlay) -> None:
    """Count a failure; after two it is treated as part of the page until a click fails because of it."""
    await overlay.document.evaluate(_script("giveUp"), {"id": overlay.id})


def _parse_overlay(document: OverlayDocument, raw: Mapping[str, Any], behind: Overlay | None) -> Overlay:
    point = _list(raw.get("outside"))
    return Overlay(
        document=document,
        id=int(_number(raw.get("id"))),
        kind=_text(raw.get("kind"), 20),
        confidence=min(1.0, _number(raw.get("confidence"))),
        text=_text(raw.get("text"), _TEXT_CHARACTERS),
        modal=raw.get("modal") is True,
        controls=tuple(_controls(_list(raw.get("controls")))),
        frames=int(_number(raw.get("frames"))),
        share=min(1.0, _number(raw.get("share"))),
        outside=(_number(point[0]), _number(point[1])) if len(point) == 2 else None,
        behind=behind,
    )


def _controls(raw: Sequence[Any]) -> list[OverlayControl]:
    parts = [_mapping(one) for one in raw[:60]]
    return [
        OverlayControl(position, _text(part.get("role"), 20), _text(part.get("label"), _LABEL_CHARACTERS))
        for position, part in enumerate(parts)
    ]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _text(value: Any, limit: int) -> str:
    return " ".join(value.split())[:limit] if isinstance(value, str) else ""


def _number(value: Any) -> float:
    """Return a number within limits, else 0: Playwright also passes on NaN and infinities."""
    fits = isinstance(value, int | float) and 0 <= value < 1e15
    return value if fits else 0.0
