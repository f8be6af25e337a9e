"""The effort of a run: how much the models that it asks are to reason."""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from langchain_core.callbacks import adispatch_custom_event

from maniple.types import EFFORT_NOT_USED, Effort


@dataclass(frozen=True, slots=True)
class _RunEffort:
    level: Effort
    unused: set[str]


_EFFORT = ContextVar[_RunEffort | None]("_EFFORT", default=None)


@contextmanager
def use_effort(level: Effort | Literal[""], unused: set[str]) -> Generator[None]:
    """Let the body's model calls ask for `level`; "" leaves it to the models.

    The names of models that do not take it are added to `unused`, and an event reports each of them once.
    """
    token = _EFFORT.set(_RunEffort(level, unused) if level else None)
    try:
        yield
    finally:
        _EFFORT.reset(token)


def current_effort() -> Effort | Literal[""]:
    """Return the effort of the run that this call is made for; "" for none."""
    return effort.level if (effort := _EFFORT.get()) is not None else ""


async def report_unused_effort(model: str) -> None:
    """Send an event that a model works without the effort of the run, unless that was said already."""
    effort = _EFFORT.get()
    if effort is None or model in effort.unused:
        return
    effort.unused.add(model)
    with suppress(RuntimeError):  # outside of a run there is no stream of events
        await adispatch_custom_event(EFFORT_NOT_USED, {"effort": effort.level, "model": model})
