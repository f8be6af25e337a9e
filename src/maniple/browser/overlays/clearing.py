"""Clearing of overlays: by the rules of known consent tools, by their buttons, then by a model's choice.

The rules for consent tools are DuckDuckGo's (`duckduckgo-autoconsent-py`, MPL-2.0).
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from maniple.browser.overlays.detection import (
    Overlay,
    OverlayControl,
    OverlayDocument,
    OverlaySurface,
    click_control,
    detect_overlays,
    is_gone,
    press_control,
    record_failure,
)
from maniple.errors import BrowserError

CONFIDENCE_THRESHOLD = 0.3
"""Overlays of less confidence are left alone."""
COOLDOWN_SECONDS = 3.0
_MAX_ROUNDS = 3
_DETECTION_SECONDS = 3.0
_RULES_SECONDS = 8.0
_CHOICE_SECONDS = 60.0
# "Continue" below a field for an email address does not dismiss a newsletter window.
_ROLES = {
    "consent": ("reject", "necessary", "close", "acknowledge", "accept"),
    "newsletter": ("close",),
    "notification": ("reject", "close"),
}
_SHOWN_CHARACTERS = 300
_MAX_BUTTONS = 8
_LABELS = {
    "reject": "Reject",
    "necessary": "Reject",
    "close": "Close",
    "acknowledge": "Close",
    "other": "Another button on it",
}
_RULES_MILLISECONDS = 2_500
_RULE_KEYS = (
    "name",
    "runContext",
    "cosmetic",
    "intermediate",
    "vendorUrl",
    "detectCmp",
    "detectPopup",
    "optOut",
)
_URL_CHARACTERS = 2_000

ChooseDismissal = Callable[[str, Sequence[str], bytes | None], Awaitable[int | None]]
"""Called with (text of the overlay, labels of the ways, screenshot); returns a position or None."""


@dataclass(frozen=True, slots=True)
class Dismissal:
    """A way to dismiss an overlay: a control on it, a key, or a point outside of it."""

    label: str
    control: OverlayControl | None = None
    key: str | None = None
    point: tuple[float, float] | None = None


class OverlayClearer:
    """Clears overlays from one tab. Calls for one tab must not overlap.

    An overlay that appeared right after the agent's own click, Enter or Space is what that action asked for,
    and is left alone until a click fails because of it.
    """

    def __init__(self, surface: OverlaySurface, clock: Callable[[], float] = time.monotonic) -> None:
        self._surface = surface
        self._clock = clock
        self._cooldown: tuple[float, float] = (-1.0, 0.0)
        """The document that is left alone, and until when."""

    async def clear(
        self, choose: ChooseDismissal | None = None, at: tuple[float, float] | None = None
    ) -> tuple[str, ...]:
        """Clear overlays; return a sentence about each.

        Args:
            choose: asks a model about an overlay that the rules could not clear; its errors are passed on.
            at: the point of a click that failed, in CSS pixels of the window.

        After an attempt, successful or not, the document is left alone for 3 seconds.
        """
        notices: list[str] = []
        try:
            async with asyncio.timeout(_RULES_SECONDS + (_CHOICE_SECONDS if choose else 0)):
                await self._clear(choose, at, notices)
        except (BrowserError, TimeoutError):
            # The page navigated or hangs; the next observation reports that.
            pass
        return tuple(notices)

    async def _clear(
        self, choose: ChooseDismissal | None, at: tuple[float, float] | None, notices: list[str]
    ) -> None:
        async with asyncio.timeout(_DETECTION_SECONDS):
            document, seen = await detect_overlays(self._surface.document, at)
        if document == self._cooldown[0] and self._clock() < self._cooldown[1]:
            return
        handled: set[str] = set()
        for _ in range(_MAX_ROUNDS):
            overlay = next((one for one in seen if one.text not in handled), None)
            if overlay is None or overlay.confidence < CONFIDENCE_THRESHOLD:
                return
            handled.add(overlay.text)
            self._cooldown = (document, self._clock() + COOLDOWN_SECONDS)
            notice = await self._by_rules(overlay) or await self._by_choice(overlay, choose)
            self._cooldown = (document, self._clock() + COOLDOWN_SECONDS)
            if notice is None:
                await record_failure(overlay)
            else:
                notices.append(notice)
            document, seen = await detect_overlays(self._surface.document, at)

    async def _by_rules(self, overlay: Overlay) -> str | None:
        if overlay.kind == "consent" and await opt_out(overlay.document) and await is_gone(overlay):
            return _notice(overlay, "its tool was refused")
        for control in _preferred_controls(overlay):
            for press in (press_control, click_control):
                await press(overlay, control)
                if await is_gone(overlay):
                    return _notice(overlay, f'"{control.label or "×"}" was clicked')
        if not _preferred_controls(overlay):
            return await self._from_outside(overlay)
        return None

    async def _from_outside(self, overlay: Overlay) -> str | None:
        for way in (way for way in list_dismissals(overlay) if way.control is None):
            await self._dismiss(overlay, way)
            if await is_gone(overlay):
                return _notice(overlay, way.label)
        return None

    async def _by_choice(self, overlay: Overlay, choose: ChooseDismissal | None) -> str | None:
        offered = list_dismissals(overlay)
        if choose is None or not offered:
            return None
        place = await choose(overlay.text, [way.label for way in offered], await self._surface.screenshot())
        if place is None or not 0 <= place < len(offered):
            return None
        await self._dismiss(overlay, offered[place])
        return _notice(overlay, offered[place].label) if await is_gone(overlay) else None

    async def _dismiss(self, overlay: Overlay, way: Dismissal) -> None:
        if way.control is not None:
            await click_control(overlay, way.control)
        elif way.key is not None:
            await self._surface.press(way.key)
        elif way.point is not None:
            await self._surface.click_at(*way.point)


def _preferred_controls(overlay: Overlay) -> list[OverlayControl]:
    """Return the controls that the rules may click, the best first; two at most."""
    roles = _ROLES.get(overlay.kind, ("close", "acknowledge"))
    usable = [control for control in overlay.controls if control.role in roles]
    return sorted(usable, key=lambda control: roles.index(control.role))[:2]


def _notice(overlay: Overlay, how: str) -> str:
    shown = overlay.text[:_SHOWN_CHARACTERS] or "no text"
    return f"Something that covered the page was cleared away ({how}). It said: {shown}"


def list_dismissals(overlay: Overlay) -> list[Dismissal]:
    """Return the ways to try; none of them agrees to anything or performs a task."""
    found = [
        Dismissal(f'{_LABELS[control.role]}: click "{control.label or "×"}"', control=control)
        for control in overlay.controls
        if control.role in _LABELS
    ][:_MAX_BUTTONS]
    if overlay.modal:
        found.append(Dismissal("Escape: press the Escape key", key="Escape"))
    if overlay.outside is not None and overlay.behind is None:
        found.append(Dismissal("Click outside of it", point=overlay.outside))
    return found


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of autoconsent; a page gets only those for its address."""

    script: str
    general: tuple[Mapping[str, Any], ...]
    by_site: tuple[tuple[Any, Mapping[str, Any]], ...]
    """Each with the pattern of its addresses."""

    def matching(self, url: str) -> list[Mapping[str, Any]]:
        return [*self.general, *(rule for pattern, rule in self.by_site if pattern.search(url))]


async def opt_out(document: OverlayDocument) -> bool:
    """Reject in a known consent tool; return whether one was open and closed.

    Raises:
        BrowserError: the document is gone, perhaps because the tool reloaded it.
    """
    rules = await asyncio.to_thread(_load)
    url = await document.evaluate("() => location.href", None)
    matching = rules.matching(url[:_URL_CHARACTERS] if isinstance(url, str) else "")
    argument = {"rules": json.dumps(matching), "milliseconds": _RULES_MILLISECONDS}
    return await document.evaluate(rules.script, argument) is True


@cache
def _load() -> _Rules:
    import duckduckgo_autoconsent as autoconsent
    import re2

    script = files("maniple.browser.overlays").joinpath("consent.js").read_text("utf-8")
    general, by_site = [], []
    for rule in json.loads(autoconsent.rules_json()):
        pattern = rule.get("runContext", {}).get("urlPattern")
        lean = {key: rule[key] for key in _RULE_KEYS if key in rule}
        if not pattern:
            general.append(lean)
            continue
        try:
            by_site.append((re2.compile(pattern), lean))
        except re2.error:
            # RE2 lacks some of JavaScript's syntax; the page checks the pattern itself as well.
            general.append(lean)
    return _Rules(script.replace("AUTOCONSENT;", autoconsent.bundle()), tuple(general), tuple(by_site))
