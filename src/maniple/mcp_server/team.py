"""The team behind the tools: starts, follows, answers and cancels the runs of one caller."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import anyio

from maniple.api.responses import resolve_thread_id
from maniple.api.state import Service
from maniple.events import (
    AgentEnded,
    AgentStarted,
    Event,
    PlanChanged,
    PlanUpdate,
    RunView,
    ToolCalled,
    UserMessageAnswered,
    UserMessageReceived,
    event_of,
)
from maniple.mcp_server.schemas import (
    AskTeam,
    GetRun,
    InvalidArguments,
    MakePlan,
    RunResult,
    read_run_result,
)
from maniple.runs import AcceptedRun
from maniple.store import EventRecord

REPORTED_TYPES = frozenset(
    one.type
    for one in (
        AgentStarted,
        AgentEnded,
        PlanChanged,
        ToolCalled,
        UserMessageReceived,
        UserMessageAnswered,
    )
)
_TITLE_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The caller of a tool: `owner` is the id of the API key, "" if none is needed."""

    owner: str
    report_progress: Callable[[str], Awaitable[None]]
    """Shows one line of progress to the user."""


@dataclass(slots=True)
class TeamCalls:
    """The implementation of the tools. Each method waits until the service is open.

    Each raises a `ManipleError`: its own, or the reason why the service could not be opened.
    """

    opened: asyncio.Future[Service]
    is_stopping: bool = False
    """Set before this process stops: calls that end from then on do not cancel their runs."""

    async def ask(self, given: AskTeam, caller: ToolCaller) -> RunResult:
        """Start a run, or answer the one that waits; return its result when it has ended or waits."""
        service = await self._service()
        alone = service.runtime.alone
        if given.agent and given.agent not in alone:
            there = ", ".join(alone) or "nobody; team.members in the server's settings can add manus"
            raise InvalidArguments(f"agent: {given.agent!r} does not answer alone here; who does: {there}")
        thread_id = None
        if given.thread_id is not None:
            thread_id = await resolve_thread_id(service.store, given.thread_id, caller.owner)
        request = given.as_run(thread_id, caller.owner)
        return await self._follow(service.engine.submit(request), caller)

    async def plan(self, given: MakePlan, caller: ToolCaller) -> RunResult:
        """Start a run that makes a plan and then waits; no step is executed."""
        service = await self._service()
        return await self._follow(service.engine.submit(given.as_run(caller.owner)), caller)

    async def answer(self, run_id: str, pause_id: str, answer: str, caller: ToolCaller) -> RunResult:
        """Answer a waiting run, and return its result when it has ended or waits again."""
        service = await self._service()
        resuming = service.engine.resume(run_id, answer, interrupt_id=pause_id, owner=caller.owner)
        return await self._follow(resuming, caller)

    async def get(self, given: GetRun, caller: ToolCaller) -> RunResult:
        """Return the result of a run; raises `NotFound`, also for a run of another caller."""
        service = await self._service()
        return await read_run_result(service, await service.engine.status(given.run_id, caller.owner))

    @asynccontextmanager
    async def cancelling(self, run_id: str, caller: ToolCaller) -> AsyncIterator[None]:
        """Cancel the run when its call is cancelled inside this context."""
        try:
            yield
        except anyio.get_cancelled_exc_class():
            if not self.is_stopping:
                with anyio.CancelScope(shield=True):
                    service = await self._service()
                    await service.engine.cancel(run_id, caller.owner)
            raise

    async def _service(self) -> Service:
        return await asyncio.shield(self.opened)  # a cancelled call must not cancel the opening

    async def _follow(self, accepting: Awaitable[AcceptedRun], caller: ToolCaller) -> RunResult:
        accepted = await _accepted_in_any_case(accepting)
        async with self.cancelling(accepted.run.run_id, caller):
            await self._watch(accepted, caller)
            return await self.get(GetRun(run_id=accepted.run.run_id), caller)

    async def _watch(self, accepted: AcceptedRun, caller: ToolCaller) -> None:
        """Report the run's progress until it ends or waits; raises `KeyRevoked`."""
        progress, service = ProgressLines(), await self._service()
        events = service.engine.events(accepted.run.run_id, accepted.after)
        async with aclosing(service.key_watch.pages(caller.owner, events)) as pages:
            async for page in pages:
                for line in (line for record in page for line in progress.lines(record)):
                    await caller.report_progress(line)


async def _accepted_in_any_case(accepting: Awaitable[AcceptedRun]) -> AcceptedRun:
    """Wait for the run even if the call is cancelled, because its id is needed to cancel it."""
    with anyio.CancelScope(shield=True):
        accepted = await accepting
    return accepted  # pyright: ignore[reportPossiblyUnboundVariable] - nothing cancels this scope


class ProgressLines:
    """Turns the events of one run into lines."""

    def __init__(self) -> None:
        self._view = RunView()

    def lines(self, record: EventRecord) -> list[str]:
        """Return the lines for a stored event; most events have none."""
        if record.type not in REPORTED_TYPES:
            return []
        event = event_of(record)
        self._view.apply(event)
        return self._lines(event)

    def _lines(self, event: Event) -> list[str]:
        match event:
            case AgentStarted():
                return [f"{event.agent_name} begins"]
            case ToolCalled():
                # If several agents work, the previous line may be about another one.
                who = f"{self._view.agent_name} " if len(self._view.turns) > 1 else ""
                return [f"{who}calls {event.tool_name}"]
            case UserMessageReceived():
                return [f"the user writes: {_shorten(event.content)}"]
            case UserMessageAnswered() if event.content.strip():
                return [f"the lead replies: {_shorten(event.content)}"]
            case PlanChanged(draft=False):
                return _plan_lines(self._view.plan_update) if self._view.plan_update else []
            case _:
                return []


def _shorten(text: str) -> str:
    return " ".join(text.split())[:_TITLE_CHARACTERS]


def _plan_lines(update: PlanUpdate) -> list[str]:
    """Return the title of a plan with new steps, else the steps whose status has changed."""
    plan, count = update.plan, len(update.plan.steps)
    if update.is_new or update.has_added_steps:
        return [f"plan: {plan.title[:_TITLE_CHARACTERS]} ({count} steps)"]
    return [
        f"step {step.id} of {count}, {step.agent_name}: {step.title[:_TITLE_CHARACTERS]} ({step.status})"
        for step in update.changed_steps
    ]
