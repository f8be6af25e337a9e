"""What can be set of runs: where they are kept, what they may use up, what needs a person's word."""

from typing import Literal

from pydantic import Field

from maniple.config.section import Section
from maniple.config.values import UserPath


class StoreSettings(Section):
    """Where threads, runs, their events and checkpoints are kept."""

    backend: Literal["sqlite", "memory"] = "sqlite"
    path: UserPath | None = None
    """The SQLite file; without one, `maniple.db` in the data directory."""


class BudgetSettings(Section):
    """What one run may use up; a limit left out is none."""

    tokens: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    model_calls: int | None = Field(default=None, gt=0)
    tool_calls: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)


class RunsSettings(Section):
    """How runs are driven."""

    approval: tuple[str, ...] = ()
    """Tools that run only after a person has approved their exact arguments, such as `bash_tool`."""
    budget: BudgetSettings = BudgetSettings()
    drain_seconds: float = Field(default=5, ge=0)
    """How long a stopping server waits for its runs to come to a checkpoint."""
