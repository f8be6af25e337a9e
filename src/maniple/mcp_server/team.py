"""The team behind the tools: its runs begun, followed, answered and cancelled for one caller."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass

import anyio

from maniple.api.state import Service
from maniple.api.threads import id_for
from maniple.mcp_server.arguments import AskTeam, GetRun, MakePlan, WrongArguments
from maniple.mcp_server.progress import ProgressLines
from maniple.mcp_server.results import RunResult, result_of
from maniple.runs import AcceptedRun


@dataclass(frozen=True, slots=True)
class Caller:
    """Who called a tool: `owner` is the id of the API key, "" where none is needed."""

    owner: str
    tell: Callable[[str], Awaitable[None]]
    """Shows a line of what happens, if that is wanted."""


@dataclass(slots=True)
class Team:
    """What the tools do, each as soon as the service is open.

    Each raises the `ManipleError` that says in words why it could not, also why the service did not open.
    """

    opened: asyncio.Future[Service]
    leaving: bool = False
    """Set when this process is about to stop: calls that end then leave their runs to go on later."""

    async def ask(self, given: AskTeam, caller: Caller) -> RunResult:
        """Have the team answer, and return how the run stands when it has ended or waits."""
        service = await self._service()
        alone = service.runtime.alone
        if given.agent and given.agent not in alone:
            there = ", ".join(alone) or "nobody; team.members in the server's settings can add manus"
            raise WrongArguments(f"agent: {given.agent!r} does not answer alone here; who does: {there}")
        thread_id = None
        if given.thread_id is not None:
            thread_id = await id_for(service.store, given.thread_id, caller.owner)
        request = given.as_run(thread_id, caller.owner)
        return await self._follow(service.engine.submit(request), caller)

    async def plan(self, given: MakePlan, caller: Caller) -> RunResult:
        """Have a plan made; its run waits for a word, and nothing of it is carried out."""
        service = await self._service()
        return await self._follow(service.engine.submit(given.as_run(caller.owner)), caller)

    async def answer(self, run_id: str, pause_id: str, answer: str, caller: Caller) -> RunResult:
        """Answer what a run waits for, and return how it stands when it has ended or waits again."""
        service = await self._service()
        resuming = service.engine.resume(run_id, answer, interrupt_id=pause_id, owner=caller.owner)
        return await self._follow(resuming, caller)

    async def get(self, given: GetRun, caller: Caller) -> RunResult:
        """Return how a run stands; raises `NotFound` for another caller's as for none."""
        service = await self._service()
        return await result_of(service, await service.engine.status(given.run_id, caller.owner))

    @asynccontextmanager
    async def cancelling(self, run_id: str, caller: Caller) -> AsyncIterator[None]:
        """Cancel the run if the call that it belongs to is cancelled inside."""
        try:
            yield
        except anyio.get_cancelled_exc_class():
            if not self.leaving:
                with anyio.CancelScope(shield=True):
                    service = await self._service()
                    await service.engine.cancel(run_id, caller.owner)
            raise

    async def _service(self) -> Service:
        return await asyncio.shield(self.opened)  # one caller that leaves is not to close it for all

    async def _follow(self, accepting: Awaitable[AcceptedRun], caller: Caller) -> RunResult:
        accepted = await _unhurried(accepting)
        async with self.cancelling(accepted.run.run_id, caller):
            await self._watch(accepted, caller)
            return await self.get(GetRun(run_id=accepted.run.run_id), caller)

    async def _watch(self, accepted: AcceptedRun, caller: Caller) -> None:
        """Tell what the run tells, until it ends or waits; raises `KeyRevoked`."""
        progress, service = ProgressLines(), await self._service()
        events = service.engine.events(accepted.run.run_id, accepted.after)
        async with aclosing(service.key_watch.pages(caller.owner, events)) as pages:
            async for page in pages:
                for line in (line for record in page for line in progress.lines(record)):
                    await caller.tell(line)


async def _unhurried(accepting: Awaitable[AcceptedRun]) -> AcceptedRun:
    """Wait for a run also when the call is cancelled: one that was begun unseen could not be."""
    with anyio.CancelScope(shield=True):
        accepted = await accepting
    return accepted  # pyright: ignore[reportPossiblyUnboundVariable] - nobody cancels this scope
