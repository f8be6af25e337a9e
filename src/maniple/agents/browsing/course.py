"""What happens in one call of the browser: its steps, told as they change, and its pictures."""

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from langchain_core.callbacks import adispatch_custom_event

from maniple.browser import BrowserState
from maniple.browser.recording import Frame
from maniple.types import BROWSER_STEP

ExecutionState = Literal["idle", "thinking", "acting", "observing", "completed", "failed", "cancelled"]
TOLD_CHARACTERS = 2_000
"""Of a thought and of an observation, in events; the conversation has the whole."""
_PARAMETER_CHARACTERS = 500
MOST_FRAMES = 100
KEPT_CHARACTERS = 12_000
"""Of what was extracted in one call, and is kept when the conversation is shortened."""
_CAPTION_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class ReActStep:
    """One time of thinking, acting and observing."""

    number: int
    """From 1 in each call of the browser."""
    thought: str = ""
    action: Mapping[str, Any] | None = None
    """`{name, parameters}`."""
    observation: str | None = None
    success: bool | None = None
    started: float = 0.0
    """Unix time in seconds."""
    seconds: float = 0.0


@dataclass(slots=True)
class Course:
    """One call of the browser, from its first step to its last."""

    is_filmed: Callable[[], bool] = lambda: False
    """Whether pictures are wanted now, for whoever watches or for the record."""
    state: ExecutionState = "idle"
    phase: str = ""
    offset: int = 0
    """Steps of the phases before this one."""
    step: ReActStep | None = None
    frames: list[Frame] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """What was extracted from pages, oldest first."""
    seen: BrowserState | None = None
    """What the next action is decided on, with its picture, where one is kept."""
    _began: float = 0.0

    @property
    def number(self) -> int:
        """How many steps there have been."""
        return self.step.number if self.step else self.offset

    async def think(self, answers: int) -> None:
        """Begin the step after so many answers of this phase."""
        self._began = time.monotonic()
        self.step = ReActStep(self.offset + answers + 1, started=time.time())
        await self._tell("thinking")

    def note(self, thought: str) -> None:
        """Note why the next action is taken, or what is answered."""
        self._change(thought=thought[:TOLD_CHARACTERS])

    async def act(self, name: str, parameters: Mapping[str, Any]) -> None:
        """Note what was decided on; its picture becomes a frame."""
        told = {key: _briefly(value) for key, value in parameters.items()}
        self._change(action={"name": name, "parameters": told})
        self._film(name, told)
        await self._tell("acting")

    async def observe(self, observation: str, *, success: bool) -> None:
        """Note what came of it."""
        before = self.step.observation if self.step else None
        both = f"{before}\n{observation}" if before else observation
        succeeded = success and (self.step is None or self.step.success is not False)
        self._change(observation=both[:TOLD_CHARACTERS], success=succeeded)
        await self._tell("observing")

    async def end(self, state: ExecutionState) -> None:
        """Tell how the call ended, with the newest step."""
        await self._tell(state)

    def _film(self, name: str, parameters: Mapping[str, Any]) -> None:
        seen, self.seen = self.seen, None
        if seen is None or seen.screenshot is None or len(self.frames) >= MOST_FRAMES:
            return
        values = " ".join(f"{key}={value}" for key, value in parameters.items())
        boxes = {str(one.index): one.box for one in seen.elements}
        box = boxes.get(str(parameters.get("index")))
        caption = f"{self.number} {name} {values}"[:_CAPTION_CHARACTERS]
        self.frames.append(Frame(seen.screenshot, caption, box))

    def keep(self, extracted: str) -> None:
        """Keep what a page said about a goal."""
        if sum(map(len, self.kept)) + len(extracted) <= KEPT_CHARACTERS:
            self.kept.append(extracted)

    def _change(self, **changes: Any) -> None:
        if self.step is not None:
            seconds = round(time.monotonic() - self._began, 3)
            self.step = ReActStep(**{**asdict(self.step), "seconds": seconds, **changes})

    async def _tell(self, state: ExecutionState) -> None:
        self.state = state
        if self.step is not None:
            step = asdict(self.step)
            told = {"number": step.pop("number"), "state": state, "phase": self.phase, **step}
            await adispatch_custom_event(BROWSER_STEP, told)


COURSE: ContextVar[Course | None] = ContextVar("maniple_browser_course", default=None)
"""The call of the browser that is under way; none where an agent has the browser's tool itself."""


def _briefly(value: Any) -> Any:
    return value[:_PARAMETER_CHARACTERS] if isinstance(value, str) else value
