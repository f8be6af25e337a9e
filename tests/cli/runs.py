"""An engine whose runs tell prepared events, with the interface of `maniple.runs`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from maniple.cli.chat.session import OpenSessionTeam, SessionTeam
from maniple.events import Event, as_json
from maniple.runs import AcceptedRun, NotFound, RunRequest
from maniple.store import EventRecord, RunRecord
from maniple.types import WORKERS, Worker
from tests.cli.events import ending


def records(events: Sequence[Event], after: int = 0) -> list[EventRecord]:
    """Return events as stored, the first one numbered `after` + 1."""
    return [EventRecord(number, one.type, as_json(one)) for number, one in enumerate(events, start=after + 1)]


@dataclass
class ScriptedRun:
    """Tells `events`; one that `hangs` then waits to be cancelled, and ends as cancelled runs do."""

    events: Sequence[Event]
    hangs: bool = False
    cancellations: int = 0
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    def cancel(self) -> None:
        """Note the wish, and end a hanging run."""
        self.cancellations += 1
        self.cancelled.set()


class ScriptedEngine:
    """Runs the prepared ones in order, under the ids "1", "2", …; what is asked is in `requests`.

    A run that is answered tells the next prepared one from then on.
    """

    def __init__(self, *runs: ScriptedRun) -> None:
        self.requests: list[RunRequest] = []
        self.answers: list[tuple[str, Any, str]] = []
        self._prepared = list(runs)
        self._begun: dict[str, ScriptedRun] = {}

    async def submit(self, request: RunRequest) -> AcceptedRun:
        """Begin the next one."""
        self.requests.append(request)
        return self._next()

    async def resume(
        self, run_id: str, answer: Any, *, interrupt_id: str = "", owner: str = ""
    ) -> AcceptedRun:
        """Note the answer, and go on with the next one."""
        self.answers.append((run_id, answer, interrupt_id))
        return self._next(run_id)

    async def retry(self, run_id: str, owner: str = "") -> AcceptedRun:
        """Go on with the next one."""
        return self._next(run_id)

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Yield what was prepared."""
        run = self._begun[run_id]
        yield records(run.events)
        if run.hangs:
            run.waiting.set()
            await run.cancelled.wait()
            yield records(ending("cancelled"), after=len(run.events))

    async def status(self, run_id: str, owner: str = "") -> RunRecord:
        """Return the record of a begun run."""
        if run_id not in self._begun:
            raise NotFound("There is no such run.")
        return RunRecord(run_id, "thread", owner, "chat", "process", "running", "{}", created_at=0.0)

    async def cancel(self, run_id: str, owner: str = "") -> RunRecord:
        """Cancel a begun run."""
        self._begun[run_id].cancel()
        return await self.status(run_id)

    async def delete_thread(self, thread_id: str, owner: str = "") -> None:
        """Nobody asks here."""
        raise NotFound("There is no such thread.")

    async def change_plan(self, run_id: str, change: Any, owner: str = "") -> dict[str, Any]:
        """Nobody asks here."""
        raise NotFound("There is no such run.")

    async def drain(self) -> None:
        """Nothing is driven here."""

    def _next(self, run_id: str = "") -> AcceptedRun:
        run_id = run_id or str(len(self._begun) + 1)
        self._begun[run_id] = self._prepared.pop(0)
        return AcceptedRun(RunRecord(run_id, "thread", "", "chat", "process", "queued", "{}", 0.0), after=0)


class NoRuns:
    """The table of runs of a store that keeps nothing."""

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        """There is none."""
        return None


class NoConversations:
    """Nothing is stored, and no other process drives runs."""

    def __init__(self) -> None:
        self.store: Any = SimpleNamespace(runs=NoRuns())

    async def is_in_progress(self, thread_id: str) -> bool:
        """Nobody does."""
        return False


def team_of(engine: Any, members: Sequence[Worker] = WORKERS, renderer: Any = None) -> OpenSessionTeam:
    """Return what opens a team with this engine."""

    async def open_team() -> SessionTeam:
        return SessionTeam(engine, members, renderer)

    return open_team
