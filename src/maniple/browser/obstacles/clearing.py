"""Getting what lies over a page out of the way: first by rules, then by a model's choice."""

import asyncio
import time
from collections.abc import Callable

from maniple.browser.obstacles.choice import Choose, Way, ways
from maniple.browser.obstacles.consent import opt_out
from maniple.browser.obstacles.sighting import Control, Obstacle, click, give_up, gone, press, sight
from maniple.browser.obstacles.surface import Surface
from maniple.errors import BrowserError

THRESHOLD = 0.3
"""What is less surely an obstacle is left alone."""
COOLDOWN_SECONDS = 3.0
_ROUNDS = 3
_LOOK_SECONDS = 3.0
_RULES_SECONDS = 8.0
_CHOICE_SECONDS = 60.0
# "Continue" beneath a field for an address is no way past it.
_ROLES = {
    "consent": ("reject", "necessary", "close", "acknowledge", "accept"),
    "newsletter": ("close",),
    "notification": ("reject", "close"),
}
_SHOWN_CHARACTERS = 300


class Clearing:
    """Clears one tab. Calls of one tab must not overlap.

    What came up right after an action of ours (a trusted click, Enter or Space) is what the action asked for,
    and is left alone until a click fails because of it.
    """

    def __init__(self, surface: Surface, clock: Callable[[], float] = time.monotonic) -> None:
        self._surface = surface
        self._clock = clock
        self._rests: tuple[float, float] = (-1.0, 0.0)
        """Which document is left alone, and until when."""

    async def clear(
        self, choose: Choose | None = None, at: tuple[float, float] | None = None
    ) -> tuple[str, ...]:
        """Clear away what is in the way, and say what was done.

        Args:
            choose: asks a model about what the rules could not clear; what it raises is passed on.
            at: where a click did not come through, in CSS pixels of the window.

        After something was tried, cleared or not, this document is left alone for 3 seconds.
        """
        notices: list[str] = []
        try:
            async with asyncio.timeout(_RULES_SECONDS + (_CHOICE_SECONDS if choose else 0)):
                await self._clear(choose, at, notices)
        except (BrowserError, TimeoutError):
            # The page has gone on, or hangs; whoever looks at it next says so.
            pass
        return tuple(notices)

    async def _clear(self, choose: Choose | None, at: tuple[float, float] | None, notices: list[str]) -> None:
        async with asyncio.timeout(_LOOK_SECONDS):
            document, seen = await sight(self._surface.document, at)
        if document == self._rests[0] and self._clock() < self._rests[1]:
            return
        handled: set[str] = set()
        for _ in range(_ROUNDS):
            obstacle = next((one for one in seen if one.text not in handled), None)
            if obstacle is None or obstacle.confidence < THRESHOLD:
                return
            handled.add(obstacle.text)
            self._rests = (document, self._clock() + COOLDOWN_SECONDS)
            notice = await self._by_rules(obstacle) or await self._by_choice(obstacle, choose)
            self._rests = (document, self._clock() + COOLDOWN_SECONDS)
            if notice is None:
                await give_up(obstacle)
            else:
                notices.append(notice)
            document, seen = await sight(self._surface.document, at)

    async def _by_rules(self, obstacle: Obstacle) -> str | None:
        if obstacle.kind == "consent" and await opt_out(obstacle.document) and await gone(obstacle):
            return _notice(obstacle, "its tool was told no")
        for control in _preferred(obstacle):
            for pressed in (press, click):
                await pressed(obstacle, control)
                if await gone(obstacle):
                    return _notice(obstacle, f'"{control.label or "×"}" was clicked')
        if not _preferred(obstacle):
            return await self._from_outside(obstacle)
        return None

    async def _from_outside(self, obstacle: Obstacle) -> str | None:
        for way in (way for way in ways(obstacle) if way.control is None):
            await self._go(obstacle, way)
            if await gone(obstacle):
                return _notice(obstacle, way.said)
        return None

    async def _by_choice(self, obstacle: Obstacle, choose: Choose | None) -> str | None:
        offered = ways(obstacle)
        if choose is None or not offered:
            return None
        place = await choose(obstacle.text, [way.said for way in offered], await self._surface.screenshot())
        if place is None or not 0 <= place < len(offered):
            return None
        await self._go(obstacle, offered[place])
        return _notice(obstacle, offered[place].said) if await gone(obstacle) else None

    async def _go(self, obstacle: Obstacle, way: Way) -> None:
        if way.control is not None:
            await click(obstacle, way.control)
        elif way.key is not None:
            await self._surface.press(way.key)
        elif way.point is not None:
            await self._surface.click_at(*way.point)


def _preferred(obstacle: Obstacle) -> list[Control]:
    """What the rules may click, the best first; two at most."""
    roles = _ROLES.get(obstacle.kind, ("close", "acknowledge"))
    usable = [control for control in obstacle.controls if control.role in roles]
    return sorted(usable, key=lambda control: roles.index(control.role))[:2]


def _notice(obstacle: Obstacle, how: str) -> str:
    shown = obstacle.text[:_SHOWN_CHARACTERS] or "no text"
    return f"Something that covered the page was cleared away ({how}). It said: {shown}"
