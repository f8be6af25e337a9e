"""The team behind the tools: starts, follows, answers and cancels the runs of one caller."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession

from maniple.mcp_server.schemas import (
    AskTeam,
    CancelRun,
    GetRun,
    InvalidArguments,
    MakePlan,
    RunResult,
    read_run_result,
)
from maniple.runs import AcceptedRun, NotFound
from maniple.service import Service
from maniple.service.callers import Caller
from maniple.service.progress import ProgressLines
from maniple.service.thread_views import resolve_thread_id


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The caller of a tool: `owner` is the id of the API key, "" if none is needed."""

    owner: str
    report_progress: Callable[[str], Awaitable[None]]
    """Shows one line of progress to the user."""

    @classmethod
    def of(cls, context: ServerRequestContext[Any, Any]) -> "ToolCaller":
        """Return the caller that the HTTP gate found; on stdio the parent process, which needs no key."""
        caller = context.request.state.caller if context.request is not None else Caller()
        return cls(caller.owner, _ProgressReporter(context.session).report)


class _ProgressReporter:
    """Sends the progress of a call. The SDK sends nothing to clients without a progress token."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._number = 0

    async def report(self, line: str) -> None:
        self._number += 1
        await self._session.report_progress(self._number, message=line)


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's answer to a pause of a run."""

    run_id: str
    pause_id: str
    text: str
    wait_seconds: float


@dataclass(slots=True)
class TeamCalls:
    """The implementation of the tools. Each method waits until the service is open.

    No call's end ends a run, whether the client cancels it, times out or disconnects; only `cancel` does.
    Each raises a `ManipleError`: its own, or the reason why the service could not be opened.
    """

    opened: asyncio.Future[Service]

    async def ask(self, given: AskTeam, caller: ToolCaller) -> RunResult:
        """Start a run, or answer the one that waits; return its result when it has ended or waits."""
        service = await self.service()
        alone = service.runtime.alone
        if given.agent and given.agent not in alone:
            there = ", ".join(alone) or "nobody; team.members in the server's settings can add manus"
            raise InvalidArguments(f"agent: {given.agent!r} does not answer alone here; who does: {there}")
        thread_id = None
        if given.thread_id is not None:
            thread_id = await resolve_thread_id(service.store, given.thread_id, caller.owner)
        request = given.as_run(thread_id, caller.owner)
        return await self._follow(service.engine.submit(request), given.wait_seconds, caller)

    async def plan(self, given: MakePlan, caller: ToolCaller) -> RunResult:
        """Start a run that makes a plan and then waits; no step is executed."""
        service = await self.service()
        accepting = service.engine.submit(given.as_run(caller.owner))
        return await self._follow(accepting, given.wait_seconds, caller)

    async def answer(self, answer: Answer, caller: ToolCaller) -> RunResult:
        """Answer a waiting run, and return its result when it has ended, waits again, or the time is over."""
        return await self._follow(self.resume(answer, caller), answer.wait_seconds, caller)

    async def resume(self, answer: Answer, caller: ToolCaller) -> AcceptedRun:
        """Answer a waiting run; raises `RunNotWaiting` if somebody has answered it."""
        service = await self.service()
        resuming = service.engine.resume(
            answer.run_id, answer.text, interrupt_id=answer.pause_id, owner=caller.owner
        )
        return await _accepted_in_any_case(resuming)

    async def get(self, given: GetRun, caller: ToolCaller) -> RunResult:
        """Return the result of a run, of the newest without an id, when it has ended or the time is over.

        Raises `NotFound`, also for a run of another caller.
        """
        service = await self.service()
        run_id = given.run_id or await self._newest_run(caller)
        run = await service.engine.status(run_id, caller.owner)
        if given.wait_seconds and run.is_unfinished:
            await self._watch(run_id, 0, given.wait_seconds, caller)
            run = await service.engine.status(run_id, caller.owner)
        return await read_run_result(service, run)

    async def cancel(self, given: CancelRun, caller: ToolCaller) -> RunResult:
        """Cancel a run and return its result; a run that has ended stays as it is. Raises `NotFound`."""
        service = await self.service()
        return await read_run_result(service, await service.engine.cancel(given.run_id, caller.owner))

    async def _newest_run(self, caller: ToolCaller) -> str:
        runs = await (await self.service()).store.runs.list(caller.owner, 1)
        if not runs:
            raise NotFound("There is no run yet.")
        return runs[0].run_id

    async def service(self) -> Service:
        """Return the service once it is open."""
        return await asyncio.shield(self.opened)  # a cancelled call must not cancel the opening

    async def _follow(
        self, accepting: Awaitable[AcceptedRun], wait_seconds: float, caller: ToolCaller
    ) -> RunResult:
        accepted = await _accepted_in_any_case(accepting)
        run_id = accepted.run.run_id
        await caller.report_progress(f"run_id: {run_id}, thread_id: {accepted.run.thread_name}")
        await self._watch(run_id, accepted.after, wait_seconds, caller)
        return await self.get(GetRun(run_id=run_id), caller)

    async def _watch(self, run_id: str, after: int, wait_seconds: float, caller: ToolCaller) -> None:
        """Report the run's progress until it ends, waits, or the time is over; raises `KeyRevoked`."""
        progress, service = ProgressLines(), await self.service()
        with anyio.move_on_after(wait_seconds):
            events = service.engine.events(run_id, after)
            async with aclosing(service.key_watch.pages(caller.owner, events)) as pages:
                async for page in pages:
                    for line in (line for record in page for line in progress.lines(record)):
                        await caller.report_progress(line)


async def _accepted_in_any_case(accepting: Awaitable[AcceptedRun]) -> AcceptedRun:
    """Wait for the run even if the call is cancelled, so that it is accepted whole or not at all."""
    with anyio.CancelScope(shield=True):
        accepted = await accepting
    return accepted  # pyright: ignore[reportPossiblyUnboundVariable] - nothing cancels this scope
