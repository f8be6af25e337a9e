"""Runs in this process: each is a task of its own, so no client's leaving ends it by accident."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.errors import ManipleError
from maniple.events import Event
from maniple.graph import RunOptions, Team
from maniple.runs.log import EventLog
from maniple.runtime import stream_run

DRAIN_SECONDS = 5.0
KEPT_THREADS = 1_000


class TooManyRuns(ManipleError):
    """As many runs as are allowed at once are running."""

    code = "too_many_runs"
    retryable = True


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One turn for the team: the conversation so far, or its newest message on a known thread."""

    messages: Sequence[BaseMessage]
    thread_id: str | None = None
    options: RunOptions = field(default_factory=RunOptions)


class Run:
    """One turn of the team, going on whether or not anyone follows."""

    def __init__(self, run_id: str, thread_id: str) -> None:
        self.run_id = run_id
        self.thread_id = thread_id
        self._log = EventLog()
        self._task: asyncio.Task[None] | None = None
        self._begun = False
        self._cancelled = False

    def begin(self, events: AsyncIterator[Event]) -> asyncio.Task[None]:
        """Start reading `events` into the log."""
        self._task = asyncio.create_task(self._drive(events), name=f"run {self.run_id}")
        return self._task

    def events(self, after: int = 0) -> AsyncIterator[tuple[int, Event]]:
        """Yield (number, event) after number `after`, as they come, until the run has ended."""
        return self._log.follow(after)

    @property
    def ended(self) -> bool:
        """Whether its last event has been told."""
        return self._log.closed

    def cancel(self) -> None:
        """End the run; its events still close properly, with status `cancelled`."""
        self._cancelled = True
        if self._task is not None and self._begun:
            self._task.cancel()

    async def _drive(self, events: AsyncIterator[Event]) -> None:
        self._begun = True
        if self._cancelled and self._task is not None:
            # A task cancelled before its first step would end without a word: begin, and be cancelled then.
            self._task.cancel()
        try:
            async for event in events:
                self._log.append(event)
        finally:
            self._log.close()


class Runs:
    """Starts runs of one team. Turns on the same thread follow one another."""

    def __init__(self, team: Team, *, max_runs: int) -> None:
        self._team = team
        self._max_runs = max_runs
        self._running: dict[asyncio.Task[None], Run] = {}
        self._threads: dict[str, asyncio.Lock] = {}
        self._turns: Counter[str] = Counter()

    def start(self, request: RunRequest) -> Run:
        """Start a run; raises `TooManyRuns` when the limit is reached."""
        if sum(not run.ended for run in self._running.values()) >= self._max_runs:
            raise TooManyRuns(
                f"{self._max_runs} runs are under way, which is the limit. Try again in a moment."
            )
        run_id = str(uuid4())
        run = Run(run_id, request.thread_id or run_id)
        self._turns[run.thread_id] += 1
        task = run.begin(self._turn(run, request))
        self._running[task] = run
        task.add_done_callback(self._running.pop)
        return run

    async def drain(self) -> None:
        """Cancel what is still running and wait for its end."""
        for run in self._running.values():
            run.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=DRAIN_SECONDS)

    async def _turn(self, run: Run, request: RunRequest) -> AsyncIterator[Event]:
        interrupted = False
        events = stream_run(
            self._team,
            request.messages,
            thread_id=run.thread_id,
            run_id=run.run_id,
            options=request.options,
            gate=self._thread(run.thread_id),
        )
        try:
            async for event in events:
                interrupted = interrupted or event.type == "interrupt"
                yield event
        finally:
            self._turns[run.thread_id] -= 1
            ends_here = request.thread_id is None and not interrupted
            await self._forget([run.thread_id] if ends_here else [])

    def _thread(self, thread_id: str) -> asyncio.Lock:
        lock = self._threads.pop(thread_id, None) or asyncio.Lock()
        self._threads[thread_id] = lock  # the newest last
        return lock

    async def _forget(self, gone: list[str]) -> None:
        """Drop conversations nobody can continue, and the oldest beyond what is kept in memory."""
        idle = [name for name in self._threads if self._turns[name] == 0 and name not in gone]
        too_many = len(self._threads) - len(gone) - KEPT_THREADS
        for name in (*gone, *idle[: max(0, too_many)]):
            self._threads.pop(name, None)
            self._turns.pop(name, None)
            if isinstance(self._team.checkpointer, BaseCheckpointSaver):
                await self._team.checkpointer.adelete_thread(name)


@asynccontextmanager
async def open_runs(team: Team, *, max_runs: int = 100) -> AsyncIterator[Runs]:
    """Open the engine; on leaving, runs still under way are cancelled and waited for."""
    runs = Runs(team, max_runs=max_runs)
    try:
        yield runs
    finally:
        await runs.drain()
