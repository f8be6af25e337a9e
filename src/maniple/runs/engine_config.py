"""The configuration of an engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_core.callbacks import BaseCallbackHandler

from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.events import AgentEnded, Event
from maniple.redaction import Redactor
from maniple.runs.request import RunRequest
from maniple.sandbox import Sandbox
from maniple.scope.budget import Budget, Prices, load_prices
from maniple.scope.schedules import RunSchedules
from maniple.types import UnknownResultPolicy
from maniple.workspace import Workspaces

if TYPE_CHECKING:
    from maniple.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class RunLimits:
    """The maximum of active runs (working or waiting): in total, and for one API key."""

    under_way: int = 1_000
    per_owner: int | None = None

    def of_owner(self, most: int | None) -> int | None:
        """Return the maximum for one API key that has a limit `most` of its own; None is no limit."""
        return min((one for one in (self.per_owner, most) if one is not None), default=None)


def _no_callbacks(run_id: str, thread_id: str, is_first: bool) -> Sequence[BaseCallbackHandler]:
    return ()


@dataclass(frozen=True, slots=True)
class RunTelemetry:
    """Metrics and tracing of runs.

    `callbacks` is called with the run id, the thread id, and whether the run begins: it was not taken over,
    resumed or tried again.
    """

    metrics: "Metrics | None" = None
    callbacks: Callable[[str, str, bool], Sequence[BaseCallbackHandler]] = _no_callbacks


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    """What the runs of an engine need beside the team and the store."""

    workspaces: Workspaces | None = None
    """Files that a run leaves in its thread's workspace become artifacts."""
    sandbox: Sandbox | None = None
    """Notified after each step of a thread; stops the processes of a cancelled or deleted run."""
    warning: str = ""
    """A warning that is logged at the start of each run."""

    schedules: Callable[[RunRequest], RunSchedules] | None = None
    """What makes schedules for the owner of a run; None where nothing starts their runs."""

    def release_after_step(self, event: Event, thread_id: str) -> None:
        """Release the thread's sandbox slot after each step."""
        if isinstance(event, AgentEnded) and self.sandbox is not None:
            self.sandbox.mark_idle(thread_id)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """The configuration of an engine; `working` is the maximum of runs that work concurrently."""

    working: int = 100
    limits: RunLimits = field(default_factory=RunLimits)
    budget: Budget = field(default_factory=Budget)
    """The upper limit of every run; a request may lower it."""
    prices: dict[str, Prices] = field(default_factory=dict[str, Prices])
    """The prices of models by name; those of models that take the place of others are added."""
    approval: Sequence[str] = ()
    """Names of tools that need the user's approval."""
    on_unknown: Mapping[str, UnknownResultPolicy] = field(default_factory=dict[str, UnknownResultPolicy])
    """By the name of a tool, what is done about a call whose result is unknown after a restart."""
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    drain_seconds: float = 5.0
    outage_seconds: float = 3_600.0
    """How long a run waits at most for a model or a SQLite file that is away; 0: not at all."""
    watch_seconds: float = 30.0
    """The interval between a server's searches for orphaned runs."""


def make_engine_config(
    settings: Settings, *, working: int = 100, limits: RunLimits | None = None
) -> EngineConfig:
    """Return the configuration that `settings` define."""
    runs = settings.runs
    return EngineConfig(
        working=working,
        limits=limits or RunLimits(),
        budget=Budget(**runs.budget.model_dump()),
        prices=load_prices(settings.models),
        approval=runs.approval,
        on_unknown=runs.on_unknown,
        redactor=redactor_of(settings),
        drain_seconds=runs.drain_seconds,
        outage_seconds=runs.outage_seconds,
    )
