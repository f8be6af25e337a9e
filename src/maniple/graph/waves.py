"""Concurrent steps: the plan as a graph, worked through in waves.

The supervisor sends all open steps to their members in one superstep of the graph; each invocation waits, in
process, until the steps that it needs have ended. A step that fails, or waits for the user, releases those
that need it: they stay open, and the supervisor sends them again. So the graph keeps one node a member, an
uneven plan takes hardly longer than its longest chain, and after a restart only interrupted steps run again.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.types import Command, Send

from maniple.agents import Roles
from maniple.agents.run_scope import run_scope
from maniple.agents.step_board import NOT_BEGUN, Outcome, StepWave
from maniple.graph.plan import PlanProgress, TrackedStep
from maniple.graph.state import PrivateState, State, make_update, private_of, with_private
from maniple.types import PRIVATE_CHANNEL

_CHECKPOINTER = "__pregel_checkpointer"
"""LangGraph's key in `configurable` for the checkpointer of the graph that runs (langgraph 1.2)."""


def can_run_parallel(progress: PlanProgress, roles: Roles) -> bool:
    """Return whether two of the open steps need not wait for each other."""
    work = progress.open_work()
    before: dict[int, set[int]] = {}
    for step in work:
        direct = {*_needs_among(progress, step, work), *_conflicts(step, work, roles)}
        before[step.id] = direct.union(*(before[number] for number in direct))
    return any(len(earlier) < place for place, earlier in enumerate(before.values()))


def send_wave(state: State, progress: PlanProgress, roles: Roles) -> Command[Any]:
    """Return the command that sends all open steps to their members."""
    work = progress.open_work()
    for step in work:
        if not _needs_among(progress, step, work):
            progress = progress.with_step(step.id, status="in_progress", reason=step.reason)
    number = private_of(state).get("wave", 0) + 1
    sent = [step.id for step in work]
    plan = progress.to_state()
    common = with_private(state, plan=plan, wave=number, sent=sent, ended=None)
    sends = [Send(step.agent_name, with_private(common, step=step.id)) for step in work]
    return Command(goto=sends, update=make_update(plan=plan, wave=number, ended=None, next=""))


@dataclass(frozen=True, slots=True)
class StepTurn:
    """The turn of one step: the plan with all that the step needs, and how it reports its end."""

    progress: PlanProgress
    step: TrackedStep
    wave: StepWave | None = None

    def end(self, progress: PlanProgress) -> PrivateState:
        """Report how the step ended, to those that wait for it; return the update of the private state."""
        if self.wave is None:
            return {"plan": progress.to_state()}
        before, after = self.step.model_dump(mode="json"), progress.step(self.step.id)
        changed = {} if after is None else after.model_dump(mode="json")
        outcome = {name: value for name, value in changed.items() if value != before[name]}
        outcome["attempts"] = self.step.attempts + 1
        self.wave.end(self.step.id, outcome)
        return {"ended": {str(self.step.id): outcome}}


def not_begun(state: State) -> PrivateState:
    """Return the update for a step of a wave that could not begin; it stays open."""
    return {"ended": {str(private_of(state).get("step", 0)): dict(NOT_BEGUN)}}


@dataclass(frozen=True, slots=True)
class Waves:
    """Lets each invocation of a wave wait for its turn."""

    roles: Roles
    limit: int

    @asynccontextmanager
    async def turn(
        self, state: State, progress: PlanProgress, unplanned: TrackedStep
    ) -> AsyncIterator[StepTurn | None]:
        """Wait for the turn of the step that was sent, and yield it; None if a step that it needs failed.

        Outside of a wave it is the turn of the plan's current step, or of the `unplanned` one, immediately.
        """
        private = private_of(state)
        step = progress.step(private.get("step", 0))
        if step is None:
            yield StepTurn(progress, progress.current() or unplanned)
            return
        sent = set(private.get("sent", ()))
        work = [one for one in progress.steps if one.id in sent]
        wave = run_scope().board.wave(private.get("wave", 0), self.limit)
        try:
            await _restore(wave, sent)
            outcomes = await wave.outcomes_of(_needs_among(progress, step, work))
            if outcomes is None:
                yield None
                return
            for number, outcome in outcomes.items():
                progress = progress.with_step(number, **outcome)
            async with wave.place(_conflicts(step, work, self.roles)):
                yield StepTurn(progress, step, wave)
        finally:
            # Interrupted, cancelled or not begun: those that wait must not wait for ever.
            wave.end(step.id, NOT_BEGUN)


def _needs_among(progress: PlanProgress, step: TrackedStep, work: Sequence[TrackedStep]) -> list[int]:
    """Return the ids of those steps among `work` whose results the step is given."""
    ids = {one.id for one in work}
    return [one.id for one in progress.given_to(step) if one.id in ids]


def _conflicts(step: TrackedStep, work: Sequence[TrackedStep], roles: Roles) -> list[int]:
    """Return the ids of the earlier steps that work with a resource which this one needs for itself."""
    mine = roles[step.agent_name].resources
    earlier = work[: [one.id for one in work].index(step.id)]
    return [one.id for one in earlier if mine & roles[one.agent_name].resources]


async def _restore(wave: StepWave, sent: set[int]) -> None:
    """Report the outcomes that an earlier execution of this superstep has stored; once for each wave."""
    async with wave.restoring:
        if wave.is_restored:
            return
        for step_id, outcome in (await _stored_outcomes()).items():
            if step_id in sent:
                wave.end(step_id, outcome)
        wave.is_restored = True


async def _stored_outcomes() -> Mapping[int, Outcome]:
    given = get_config().get("configurable", {})
    saver, thread_id = given.get(_CHECKPOINTER), given.get("thread_id")
    if not isinstance(saver, BaseCheckpointSaver) or not thread_id:
        return {}
    own, _, _ = str(given.get("checkpoint_ns") or "").rpartition("|")
    saved = await saver.aget_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": own}})
    found: dict[int, Outcome] = {}
    for _, channel, value in (saved.pending_writes or ()) if saved is not None else ():
        if channel == PRIVATE_CHANNEL and isinstance(value, Mapping):
            ended = cast("PrivateState", value).get("ended") or {}
            found |= {int(number): outcome for number, outcome in ended.items()}
    return found
