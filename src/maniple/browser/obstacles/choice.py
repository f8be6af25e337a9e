"""The ways past an obstacle among which a model chooses."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from maniple.browser.obstacles.sighting import Control, Obstacle

Choose = Callable[[str, Sequence[str], bytes | None], Awaitable[int | None]]
"""(what the obstacle says, the ways, screenshot) to the place of a way, or None to leave it."""

_MAX_BUTTONS = 8
_VERBS = {
    "reject": "Reject",
    "necessary": "Reject",
    "close": "Close",
    "acknowledge": "Close",
    "other": "Another button on it",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way past an obstacle: a control on it, a key, or a point outside."""

    said: str
    control: Control | None = None
    key: str | None = None
    point: tuple[float, float] | None = None


def ways(obstacle: Obstacle) -> list[Way]:
    """What can be tried: never what agrees to anything or does a task's work."""
    found = [
        Way(f'{_VERBS[control.role]}: click "{control.label or "×"}"', control=control)
        for control in obstacle.controls
        if control.role in _VERBS
    ][:_MAX_BUTTONS]
    if obstacle.modal:
        found.append(Way("Escape: press the Escape key", key="Escape"))
    if obstacle.outside is not None and obstacle.behind is None:
        found.append(Way("Click outside of it", point=obstacle.outside))
    return found
