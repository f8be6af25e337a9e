"""How runs are driven."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from langchain_core.callbacks import BaseCallbackHandler

from maniple.agents.budget import Budget, Prices, load_prices
from maniple.config import Settings
from maniple.config.secrets import redactor_of
from maniple.events import AgentEnded, Event
from maniple.redaction import Redactor
from maniple.sandbox import Sandbox, Workspaces

if TYPE_CHECKING:
    from maniple.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class RunLimits:
    """How many runs may be under way, working or waiting: all together, and for one API key."""

    under_way: int = 1_000
    per_owner: int | None = None


def _no_callbacks(run_id: str, thread_id: str) -> Sequence[BaseCallbackHandler]:
    return ()


@dataclass(frozen=True, slots=True)
class RunTelemetry:
    """Who counts and traces runs: `callbacks` are asked for by run and thread id."""

    metrics: "Metrics | None" = None
    callbacks: Callable[[str, str], Sequence[BaseCallbackHandler]] = _no_callbacks


@dataclass(frozen=True, slots=True)
class ExecutionEnvironment:
    """Where the code of threads works."""

    workspaces: Workspaces | None = None
    """What a run leaves in its thread's is kept as artifacts."""
    sandbox: Sandbox | None = None
    """Is told when a thread's step is over, and stops what a cancelled or deleted run left working."""
    warning: str = ""
    """What the log says of it at each run's beginning."""

    def hear(self, event: Event, thread_id: str) -> None:
        """Give the thread's place in the sandbox free for others when its step is over."""
        if isinstance(event, AgentEnded) and self.sandbox is not None:
            self.sandbox.mark_idle(thread_id)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How runs are driven: `working` at once, at these prices, with the user's word for these tools."""

    working: int = 100
    limits: RunLimits = field(default_factory=RunLimits)
    budget: Budget = field(default_factory=Budget)
    """What a run may use up at most; it may ask for less."""
    prices: Mapping[str, Prices] = field(default_factory=dict)
    approval: Sequence[str] = ()
    """Tools that run only with a person's word."""
    redactor: Redactor = field(default_factory=lambda: Redactor(()))
    drain_seconds: float = 5.0
    watch_seconds: float = 30.0
    """How often a server looks for runs that nobody drives."""


def make_engine_config(
    settings: Settings, *, working: int = 100, limits: RunLimits | None = None
) -> EngineConfig:
    """Return the rules that `settings` ask for."""
    runs = settings.runs
    return EngineConfig(
        working=working,
        limits=limits or RunLimits(),
        budget=Budget(**runs.budget.model_dump()),
        prices=load_prices(settings.models),
        approval=runs.approval,
        redactor=redactor_of(settings),
        drain_seconds=runs.drain_seconds,
    )
