"""What happens in one call of the browser, told as it changes.

Nothing in it outlives a pause: what goes on after one is taken from the stored state (`steps.py`).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from langchain_core.callbacks import adispatch_custom_event

from maniple.agents.browsing.film import Film, Scene, mark_of
from maniple.agents.browsing.steps import ReActStep
from maniple.types import BROWSER_STEP

ExecutionState = Literal["idle", "thinking", "acting", "observing", "completed", "failed", "cancelled"]
TOLD_CHARACTERS = 2_000
"""Of a thought and of an observation, in events; the conversation has the whole."""
_PARAMETER_CHARACTERS = 500


@dataclass(slots=True)
class Course:
    """One call of the browser, from its first step to its last, as far as this process sees it."""

    is_filmed: Callable[[], bool] = lambda: False
    """Whether pictures are wanted now, for whoever watches or for the record."""
    phase: str = ""
    offset: int = 0
    """Answers in the phases before this one."""
    steps_before: int = 0
    """Steps of the phases before this one."""
    kept_before: list[str] = field(default_factory=list)
    """What was extracted from pages in the phases before this one."""
    answers: int = 0
    """Of this phase, also those that were given before a pause."""
    step: ReActStep | None = None
    """The newest."""
    film: Film = field(default_factory=Film)
    kept: list[str] = field(default_factory=list)
    """What was extracted from pages, oldest first."""

    @property
    def number(self) -> int:
        """How many steps there have been."""
        return self.step.number if self.step else self.steps_before

    def begin(self, phase: str, answers: int, steps: int, kept: Sequence[str]) -> None:
        """Begin a phase, or go on with it, after so many answers and steps and with what was extracted."""
        self.phase, self.offset, self.steps_before = phase, answers, steps
        self.kept_before, self.kept, self.answers = [*kept], [*kept], 0

    async def think(self, steps: int) -> None:
        """Begin the step after so many of this phase."""
        self.film.scene = Scene()
        self.step = ReActStep(self.steps_before + steps + 1, started=time.time())
        await self._tell("thinking", self.step)

    def note(self, thought: str) -> None:
        """Note why the next action is taken, or what is answered."""
        if self.step is not None:
            self.step = _changed(self.step, thought=thought[:TOLD_CHARACTERS])

    async def act(self, place: int, thought: str, name: str, parameters: Mapping[str, Any]) -> ReActStep:
        """Note what is done in the step at a place of this phase, from 1; its picture becomes a frame."""
        number, newest = self.steps_before + place, self.step
        known = newest is not None and newest.number == number and newest.action is None
        step = newest if newest is not None and known else ReActStep(number, started=time.time())
        told = {key: _briefly(value) for key, value in parameters.items()}
        scene = self.film.scene
        element = scene.acted_on(name, told)
        self.step = _changed(
            step,
            thought=thought[:TOLD_CHARACTERS],
            action={"name": name, "parameters": told},
            mark=mark_of(element.box) if element and element.box else None,
            element={"role": element.role, "name": element.name} if element else None,
            screenshot=scene.address,
        )
        self.film.add(number, name, told)
        await self._tell("acting", self.step)
        return self.step

    async def observe(self, step: ReActStep, observation: str, *, success: bool) -> None:
        """Note what came of a step."""
        step = _changed(step, observation=observation[:TOLD_CHARACTERS], success=success)
        if self.step is None or self.step.number <= step.number:
            self.step = step
        await self._tell("observing", step)

    async def end(self, state: ExecutionState) -> None:
        """Tell how the call ended, with the newest step."""
        if self.step is not None:
            await self._tell(state, self.step)

    async def _tell(self, state: ExecutionState, step: ReActStep) -> None:
        said = asdict(step)
        told = {"number": said.pop("number"), "state": state, "phase": self.phase, **said}
        await adispatch_custom_event(BROWSER_STEP, told)


COURSE: ContextVar[Course | None] = ContextVar("maniple_browser_course", default=None)
"""The call of the browser that is under way; none where an agent has the browser's tool itself."""


def _changed(step: ReActStep, **changes: Any) -> ReActStep:
    return replace(step, seconds=round(max(time.time() - step.started, 0.0), 3), **changes)


def _briefly(value: Any) -> Any:
    return value[:_PARAMETER_CHARACTERS] if isinstance(value, str) else value
