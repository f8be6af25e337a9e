"""An active run: how far it is, and the task that drives it."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum, auto

from langgraph.runtime import RunControl

from maniple.events import (
    AgentEnded,
    AgentStarted,
    ErrorOccurred,
    Event,
    EventRedactor,
    RunStatusChanged,
    RunWaiting,
    SessionState,
    StreamState,
)
from maniple.graph import Team
from maniple.runs.engine_config import EngineConfig, RunTelemetry
from maniple.runs.event_log import Recorder, RunEventLog
from maniple.runs.request import RunRequest
from maniple.runs.teams import Teams
from maniple.scope.budget import UsageMeter
from maniple.scope.inbox import Inbox
from maniple.store import RunRecord, Store
from maniple.types import OutageKind, RunStatus

CANCEL_SECONDS = 2.0
_CANCEL_TRIES = 5


class RunPhase(Enum):
    """How far the stream of a run is in this process."""

    NEW = auto()
    """The graph has sent nothing yet."""
    OPEN = auto()
    """Events that are not the graph's may be recorded."""
    CLOSING = auto()
    """Only the graph's last events follow."""
    ENDED = auto()
    """The last event is recorded."""


_NEXT_PHASES: Mapping[RunPhase, frozenset[RunPhase]] = {
    RunPhase.NEW: frozenset({RunPhase.OPEN, RunPhase.ENDED}),
    RunPhase.OPEN: frozenset({RunPhase.CLOSING, RunPhase.ENDED}),
    RunPhase.CLOSING: frozenset({RunPhase.ENDED}),
    RunPhase.ENDED: frozenset(),
}


class Stop(Enum):
    """Why a run stops early."""

    CANCEL = auto()
    """The user has cancelled it; the graph does not know it yet."""
    CANCEL_RAISED = auto()
    """The cancellation has been raised in the graph."""
    DRAIN = auto()
    """This program stops: the run goes on to its next checkpoint, from which another one continues."""
    SUSPEND = auto()
    """The run stops now: nothing more is recorded, and another program continues from the last checkpoint."""


@dataclass(frozen=True, slots=True)
class RunServices:
    """What all runs of an engine share."""

    teams: Teams
    store: Store
    recorder: Recorder
    config: EngineConfig
    telemetry: RunTelemetry

    @property
    def team(self) -> Team:
        """The team of runs that choose no model, which also reads and changes the state of any thread."""
        return self.teams.default


@dataclass(slots=True, eq=False)
class ActiveRun:
    """A run's record, its log, its inbox, and the task that drives it."""

    record: RunRecord
    request: RunRequest
    log: RunEventLog
    meter: UsageMeter
    redactor: EventRedactor
    inbox: Inbox
    team: Team | None = None
    """The team that drives it, over the run's model; None before it is driven."""
    control: RunControl = field(default_factory=RunControl)
    task: asyncio.Task[None] | None = None
    phase: RunPhase = RunPhase.NEW
    stop: Stop | None = None
    status: RunStatus | None = None
    """Its status as the stream says; from then on it is too late to cancel it."""
    failure: ErrorOccurred | None = None
    is_returned: bool = False
    """Whether the digest of the conversation that it returns is stored."""
    shown_inputs: set[str] = field(default_factory=set[str])
    """The ids of the inputs whose events are recorded."""
    shown_replies: set[str] = field(default_factory=set[str])
    """The ids of the inputs whose replies are recorded."""
    waits_for: OutageKind | None = None
    """What is away, while nothing of the run is at work."""
    outage: RunWaiting | None = None
    """The outage of the store that it waits for, which cannot be stored yet."""
    effortless_models: set[str] = field(default_factory=set[str])
    """The models that work without its effort, each of which is reported once."""
    open_turns: set[str] = field(default_factory=set[str])
    """The `agent_id`s of the agents at work."""
    next_runs: list[RunRecord] = field(default_factory=list[RunRecord])
    """The runs that unanswered messages become once the end of this run is stored."""
    _reader: asyncio.Task[None] | None = None
    """The task while it waits for the next event of the graph."""

    @property
    def can_be_steered(self) -> bool:
        """Whether a message of the user can be added to the run now."""
        return self.status is None and self.stop is None

    @property
    def is_cancelled(self) -> bool:
        """Whether the user has cancelled it."""
        return self.stop in (Stop.CANCEL, Stop.CANCEL_RAISED)

    @property
    def is_suspended(self) -> bool:
        """Whether nothing more of it is recorded here."""
        return self.stop is Stop.SUSPEND

    @property
    def is_left(self) -> bool:
        """Whether another program goes on with it, once this one drives it no longer."""
        return self.stop in (Stop.DRAIN, Stop.SUSPEND) and self.phase is not RunPhase.ENDED

    def enter(self, phase: RunPhase) -> None:
        """Go on to a phase; raises `ValueError` for one that cannot follow."""
        if phase not in _NEXT_PHASES[self.phase]:
            raise ValueError(f"a run cannot go from {self.phase} to {phase}")
        self.phase = phase

    def cancel(self) -> None:
        """End the run; its events still close properly, with status `cancelled`."""
        if self.is_cancelled or self.status is not None:
            return  # already in progress, or too late
        self.stop = Stop.CANCEL
        self._raise_cancel()

    def _raise_cancel(self) -> None:
        """Cancel the task where closing events follow a cancellation; elsewhere `next_event` does it."""
        if self._reader is not None:
            self.stop = Stop.CANCEL_RAISED
            self._reader.cancel()

    async def next_event(self, events: AsyncGenerator[Event]) -> Event | None:
        """Return the next event of the graph, or None after the last one.

        A cancellation takes effect here alone: what is done with an event, such as storing it, is finished.
        """
        is_due = self.stop is Stop.CANCEL and self.status is None
        self._reader = self.task
        try:
            if is_due and self.phase is not RunPhase.NEW:  # a generator that has not begun would send nothing
                self.stop = Stop.CANCEL_RAISED
                return await events.athrow(asyncio.CancelledError())
            return await anext(events)
        except StopAsyncIteration:
            return None
        finally:
            self._reader = None

    async def end(self) -> None:
        """Cancel the run and wait for its end, for a limited time."""
        self.cancel()
        for _ in range(_CANCEL_TRIES):
            if self.task is None or (await asyncio.wait([self.task], timeout=CANCEL_SECONDS))[0]:
                return
            if self.status is None:
                self._raise_cancel()  # code in the task has suppressed the first one

    def suspend(self) -> None:
        """Stop immediately, as if the process had died."""
        self.stop = Stop.SUSPEND
        if self.task is not None and self.phase is not RunPhase.ENDED:
            self.task.cancel()

    def resume_after(self, stream: StreamState) -> None:
        """Continue with the status that the stream has already sent.

        Then only its last events are missing.
        """
        self.status = stream.status
        self.failure = stream.failure if stream.status is not None else None

    async def record_all(self, events: AsyncGenerator[Event], recorder: Recorder) -> None:
        """Record the events of the run until it has ended or is suspended."""
        async with aclosing(events):
            async for event in events:
                if self.is_suspended:
                    return
                await self.record_event(event, recorder)

    async def record_event(self, event: Event, recorder: Recorder) -> None:
        """Record one event without secrets, and store the status and the error that it reports."""
        for redacted in self.redactor.feed(event):
            if isinstance(redacted, RunStatusChanged):
                self.status = redacted.status
            elif isinstance(redacted, ErrorOccurred):
                self.failure = redacted
            elif isinstance(redacted, AgentStarted):
                self.open_turns.add(redacted.agent_id)
            elif isinstance(redacted, AgentEnded):
                self.open_turns.discard(redacted.agent_id)
            await recorder.add(self.log, redacted)
            if isinstance(redacted, SessionState):
                self.enter(RunPhase.ENDED)
