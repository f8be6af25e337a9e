"""The engine whose runs are tasks of this process."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from maniple.errors import ManipleError, StoreError
from maniple.graph import PlanProgress, Team
from maniple.runs.active_run import CANCEL_SECONDS, ActiveRun, RunServices
from maniple.runs.artifact_collector import WorkspaceCollector
from maniple.runs.branches import BRANCH_BUSY, ThreadBrancher, ask_again, find_thread, list_deletions
from maniple.runs.decisions import BUSY, NO_ANSWER, Kind, RunDecisions
from maniple.runs.driver import RunDriver
from maniple.runs.engine import (
    NothingToRetry,
    RunNotWaiting,
    RunNotWorking,
    SuggestedQuestions,
    ThreadBusy,
)
from maniple.runs.engine_config import EngineConfig, ExecutionEnvironment, RunTelemetry
from maniple.runs.event_log import newest_number, open_recorder
from maniple.runs.outages import ModelOutages
from maniple.runs.recovery import recover_or_fail, recover_orphaned_runs, watch_orphaned_runs
from maniple.runs.request import AcceptedRun, DoubleTexting, RunRequest
from maniple.runs.run_tasks import RunTasks
from maniple.runs.scheduling import FairSemaphore
from maniple.runs.search_index import index_older_runs
from maniple.runs.steering import (
    accept_message,
    edit_reviewed_plan,
    request_plan_edit,
)
from maniple.runs.step_answers import ASKED_AGAIN_SECONDS, StepAnswers
from maniple.runs.suggestions import QuestionSuggester
from maniple.runs.teams import Teams, TeamSource
from maniple.runs.turn import remember
from maniple.runs.turn_scheduler import LocalTurnScheduler
from maniple.runs.usage import KeyQuota, QuotaRegistry
from maniple.runs.waiting_messages import WaitingMessages
from maniple.scope.inbox import InputRefused
from maniple.scope.inputs import Cancel, PlanChange, ReceivedInput
from maniple.store import EventRecord, RunRecord, Store, Thread, read_event_pages
from maniple.store.waiting import WaitLimit

POLL_SECONDS = 0.2
"""How often the store is read for a run of another process, which sends no notification."""


async def refuse_other_process(store: Store, thread_id: str) -> None:
    """Raise `ThreadBusy` if another living process has a queued or running run on the thread."""
    if await store.runs.list_in_other_processes(thread_id):
        raise ThreadBusy("Another program on this machine works on this thread. Wait until it has ended.")


async def follow_other_process(store: Store, run_id: str, after: int) -> AsyncIterator[Sequence[EventRecord]]:
    """Yield the stored events of a run after number `after`, and those that another process adds."""
    number, is_driven = after, True
    while is_driven:
        # Checked before the events are read: when a run has ended, all of its events are stored.
        is_driven = await _is_driven(store, run_id)
        async for page in read_event_pages(store.events, run_id, number):
            yield page
            number = page[-1].number
        if is_driven:
            await asyncio.sleep(POLL_SECONDS)


async def _is_driven(store: Store, run_id: str) -> bool:
    record = await store.runs.get(run_id)
    if record is None or not record.is_unfinished:
        return False
    return any(one.run_id == run_id for one in await store.runs.list_in_other_processes(record.thread_id))


class InProcessEngine:
    """Implements `Engine` with one asyncio task per run. Use `open_engine`."""

    def __init__(self, tasks: RunTasks, kind: Kind) -> None:
        self.tasks = tasks
        self._driver = tasks.driver
        self._services = tasks.services
        self._store = tasks.store
        self.teams = tasks.services.teams
        self.decisions = RunDecisions(tasks.services, kind)
        self._waiting = WaitingMessages(tasks)
        self._suggester = QuestionSuggester(tasks)
        self._brancher = ThreadBrancher(tasks.services, tasks.driver.environment.workspaces)
        self._steps = StepAnswers(tasks)

    async def submit(self, request: RunRequest) -> AcceptedRun:
        """Accept a run (see `Engine`)."""
        run_id = request.run_id or str(uuid4())
        thread_id = request.thread_id or run_id
        if request.is_message and (steered := await self._steer(thread_id, request)) is not None:
            return steered
        # Requests for one thread are handled one after another.
        async with self.tasks.admission.admit(request.owner), self.tasks.thread_locks.acquire(thread_id):
            thread = await self.decisions.find_thread(thread_id, request)
            await self._recover_orphans(thread_id, lambda _: request.ends_others)
            if request.run_id and (known := await self._store.runs.get(run_id, request.owner)) is not None:
                return AcceptedRun(known, after=0)
            waiting = await self._waiting_run(thread_id) or await self._clear_thread(
                thread_id, request.when_busy
            )
            if waiting is not None:
                if request.run_id:
                    raise ThreadBusy(NO_ANSWER)
                return await self._answer(waiting, request.messages[-1].text)
            if not thread.title:
                await self._store.threads.touch(thread_id, self.decisions.make_title(request))
            return AcceptedRun(await self._add(run_id, thread_id, request), after=0)

    async def send_message(self, run_id: str, text: str, owner: str = "") -> AcceptedRun:
        """Send a message to a run that works, or waits (see `Engine`)."""
        record = await self.status(run_id, owner)
        async with self.tasks.thread_locks.acquire(record.thread_id):
            await self._recover_orphans(record.thread_id, lambda _: False)
            active = self.tasks.active.get(run_id)
            if active is not None:
                await self._wait_for_stored_status(active)
                if active.can_be_steered:
                    with suppress(InputRefused):  # it came to its end meanwhile
                        return await self._send(active, text)
                    await self._wait_for_stored_status(active)
            record = await self.status(run_id, owner)
            if record.is_unfinished and active is None:
                await refuse_other_process(self._store, record.thread_id)
            forms = await self.decisions.pending_interrupts(record)
            if not forms or run_id in self.tasks.active:
                raise RunNotWorking(
                    f"The run is {record.status} and takes no message. Start a new run with it."
                )
            newest = await newest_number(self._store.events, run_id)
            message_id = await self._waiting.accept(record, text)
        await self._waiting.answer(record, message_id, forms)
        return AcceptedRun(record, after=newest, message_id=message_id)

    async def _steer(self, thread_id: str, request: RunRequest) -> AcceptedRun | None:
        """Send the request's message to the run that works on the thread; None if none does.

        No run is created, so that no limit of runs applies. The result's events begin where the run began,
        or went on after an answer: those behind the message alone begin in the middle of a turn.
        """
        async with self.tasks.thread_locks.acquire(thread_id):
            await self._recover_orphans(thread_id, lambda _: False)
            for active in self.tasks.of_thread(thread_id):
                if active.can_be_steered and active.record.owner == request.owner:
                    with suppress(InputRefused):
                        sent = await self._send(active, request.messages[-1].text)
                        segment = active.inbox.segment
                        return replace(sent, after=segment.after if segment is not None else 0)
        return None

    async def _send(self, active: ActiveRun, text: str) -> AcceptedRun:
        newest = active.log.newest_number
        message_id = await accept_message(self._services, active, text)
        return AcceptedRun(active.record, after=newest, message_id=message_id)

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Follow a run (see `Engine`)."""
        active = self.tasks.active.get(run_id)
        pages = active.log.follow(after) if active else follow_other_process(self._store, run_id, after)
        async for page in pages:
            yield page

    async def status(self, run_id: str, owner: str = "") -> RunRecord:
        """Return the record of a run (see `Engine`)."""
        return await self.tasks.read(run_id, owner)

    async def cancel(self, run_id: str, owner: str = "") -> RunRecord:
        """End a run (see `Engine`)."""
        record = await self.status(run_id, owner)
        async with self.tasks.thread_locks.acquire(record.thread_id):
            await self._recover_orphans(record.thread_id, lambda orphan: orphan.run_id == run_id)
            record = await self.status(run_id, owner)
            active = self.tasks.active.get(run_id)
            if active is None and record.status == "interrupted":
                # Claimed, so that either this cancellation or an answer in another process takes effect, not
                # both.
                claimed = await self._store.runs.answer(run_id, self.decisions.as_record(Cancel()))
                active = await self.tasks.resume(claimed, "new") if claimed is not None else None
            if active is not None:
                await self._end(active)
            elif record.is_unfinished or record.status == "interrupted":
                await refuse_other_process(self._store, record.thread_id)
        return await self.status(run_id, owner)

    async def _end(self, active: ActiveRun, cancel: Cancel | None = None) -> None:
        """Cancel a run and wait for its end. It ends also if this program stops meanwhile."""
        if active.status is None and not active.inbox.is_cancelled:
            with suppress(InputRefused, StoreError):
                await active.inbox.put(ReceivedInput(str(uuid4()), cancel or Cancel()))
        await active.end()

    async def suggest_questions(self, record: RunRecord, answer: str) -> SuggestedQuestions:
        """Return questions that follow from an answer (see `Engine`)."""
        return await self._suggester.suggest(record, answer)

    async def read_quota(self, owner: str = "") -> KeyQuota:
        """Return the limits of an API key and what is used of them (see `Engine`)."""
        return await self.tasks.driver.quotas.refresh_owner(owner)

    async def delete_thread(self, thread_id: str, owner: str = "") -> Sequence[str]:
        """End a thread's runs and delete it (see `Engine`)."""
        deleted = await list_deletions(self._store, thread_id, owner)
        for one in deleted:
            await self._delete_alone(one)
        return deleted

    async def _delete_alone(self, thread_id: str) -> None:
        async with self.tasks.thread_locks.acquire(thread_id):
            await refuse_other_process(self._store, thread_id)
            for active in self.tasks.of_thread(thread_id):
                await self._end(active)
            await refuse_other_process(self._store, thread_id)
            if (sandbox := self._driver.environment.sandbox) is not None:
                await sandbox.stop(thread_id)
            await self._store.threads.delete(thread_id)

    async def resume(
        self, run_id: str, answer: Any, *, interrupt_id: str = "", owner: str = ""
    ) -> AcceptedRun:
        """Answer a run (see `Engine`)."""
        record = await self.status(run_id, owner)
        end = time.monotonic() + ASKED_AGAIN_SECONDS
        while True:
            if answered := await self._steps.answer(record, answer, interrupt_id, end):
                return answered
            async with self.tasks.admission.admit(owner), self.tasks.thread_locks.acquire(record.thread_id):
                if (active := self.tasks.active.get(run_id)) is not None:
                    if await self._steps.asks_again(active, interrupt_id, end):
                        continue  # it went on with another answer meanwhile
                    if not active.inbox.takes_answers and active.task is not None:
                        await asyncio.wait([active.task], timeout=CANCEL_SECONDS)  # it is about to wait
                    await self._wait_for_stored_status(active)
                return await self._answer(await self.status(run_id, owner), answer, interrupt_id)

    async def retry(self, run_id: str, owner: str = "") -> AcceptedRun:
        """Continue a run that failed, has gaps, or was cancelled in a retry (see `Engine`)."""
        record = await self.status(run_id, owner)
        async with self.tasks.admission.admit(owner), self.tasks.thread_locks.acquire(record.thread_id):
            if (active := self.tasks.active.get(run_id)) is not None:
                await self._wait_for_stored_status(active)
            record = await self.status(run_id, owner)
            retry = await self.decisions.make_retry(record)
            await refuse_other_process(self._store, record.thread_id)
            if self.tasks.of_thread(record.thread_id):
                raise ThreadBusy(BUSY)
            changed = await self._store.runs.retry(run_id, self.decisions.as_record(retry), record.status)
            if changed is None:
                raise NothingToRetry("The run was retried by another request.")
            await self.tasks.resume(changed, "retry")
            return AcceptedRun(changed, after=retry.after)

    async def branch_run(
        self, run_id: str, text: str = "", owner: str = "", chosen: RunRequest | None = None
    ) -> AcceptedRun:
        """Ask the question of a run again on a new branch (see `Engine`)."""
        record = await self.status(run_id, owner)
        async with self.tasks.admission.admit(owner), self.tasks.thread_locks.acquire(record.thread_id):
            await self._require_idle(record.thread_id)
            record = await self.status(run_id, owner)
            branch = await self._brancher.make(record)
            try:
                request = ask_again(record, branch.thread_id, text, chosen)
                return AcceptedRun(await self._add(str(uuid4()), branch.thread_id, request), after=0)
            except ManipleError:
                await self._brancher.discard(branch)
                raise

    async def copy_thread(self, thread_id: str, owner: str = "") -> Thread:
        """Copy a thread (see `Engine`)."""
        async with self.tasks.admission.admit(owner), self.tasks.thread_locks.acquire(thread_id):
            source = await find_thread(self._store, thread_id, owner)
            await self._require_idle(thread_id)
            return await self._brancher.copy(source)

    async def change_plan(self, run_id: str, change: PlanChange, owner: str = "") -> dict[str, Any]:
        """Change a plan (see `Engine`)."""
        record = await self.status(run_id, owner)
        async with self.tasks.thread_locks.acquire(record.thread_id):
            active = self.tasks.active.get(run_id)
            if active is not None:
                return await request_plan_edit(self._services, active, change)
            record = await self.status(run_id, owner)
            pending = await self.decisions.pending_interrupts(record)
            request = RunRequest.of(record)
            interrupt_id, plan = edit_reviewed_plan(self._services.team, request, pending, change)
            async with self.tasks.admission.admit(owner):
                await self._answer(record, plan.model_dump(exclude_none=True), interrupt_id)
            return PlanProgress.of(plan).to_state()

    def waits_for_store(self, run_id: str) -> bool:
        """Return whether a run waits for the store (see `Engine`)."""
        return self.tasks.waits_for_store(run_id)

    async def drain(self) -> None:
        """Refuse new runs and stop active ones at a checkpoint (see `Engine`)."""
        await self.tasks.drain()

    async def _require_idle(self, thread_id: str) -> None:
        """Raise `ThreadBusy` if a run of a thread works or waits."""
        await self._recover_orphans(thread_id, lambda _: False)
        await refuse_other_process(self._store, thread_id)
        if await self._waiting_run(thread_id) is not None or self.tasks.of_thread(thread_id):
            raise ThreadBusy(BRANCH_BUSY)

    async def _recover_orphans(self, thread_id: str, unwanted: Callable[[RunRecord], bool]) -> None:
        """Recover the orphaned runs of a thread; cancel those for which `unwanted` returns True."""
        for orphan in await self._store.runs.list_orphaned(None, self.tasks.active, thread_id):
            await recover_or_fail(self.tasks, orphan)
            if unwanted(orphan) and (active := self.tasks.active.get(orphan.run_id)) is not None:
                active.cancel()  # before its first step, so that no model is called

    async def _waiting_run(self, thread_id: str) -> RunRecord | None:
        """Return the interrupted run that the next message on the thread answers."""
        for active in self.tasks.of_thread(thread_id):
            await self._wait_for_stored_status(active)
        return await self.decisions.find_waiting(thread_id)

    async def _wait_for_stored_status(self, active: ActiveRun) -> None:
        """Wait until the stored status of a run matches the status in its events."""
        if active.status is not None and active.task is not None:
            await asyncio.wait([active.task], timeout=CANCEL_SECONDS)

    async def _clear_thread(self, thread_id: str, when_busy: DoubleTexting) -> RunRecord | None:
        """Apply `when_busy` to the active runs of a thread.

        Return a run that paused before it could be cancelled.
        """
        if when_busy in ("enqueue", "steer"):
            return None
        await refuse_other_process(self._store, thread_id)
        busy = self.tasks.of_thread(thread_id)
        if busy and when_busy == "reject":
            raise ThreadBusy(BUSY)
        for active in busy:
            await self._end(active, Cancel(undoes=when_busy == "rollback"))
        if busy:  # the end may have taken a while
            await refuse_other_process(self._store, thread_id)
        waiting = await self._waiting_run(thread_id)
        if waiting is not None or not busy:
            return waiting
        if when_busy == "interrupt":
            await remember(self._services.team, thread_id, [run.request.messages[-1] for run in busy])
        else:
            await self.decisions.roll_back(thread_id, [run.record.run_id for run in busy])
        return None

    async def _add(self, run_id: str, thread_id: str, request: RunRequest) -> RunRecord:
        record = await self.decisions.make_record(run_id, thread_id, request)
        record = await self._store.runs.add(record)
        self.tasks.start(record)
        return record

    async def _answer(self, record: RunRecord, answer: Any, interrupt_id: str = "") -> AcceptedRun:
        resume = await self.decisions.make_resume(record, answer, interrupt_id)
        changed = await self._store.runs.answer(record.run_id, self.decisions.as_record(resume))
        if changed is None:
            raise RunNotWaiting("The run was answered by another request.")
        await self.tasks.resume(changed, "answer")
        return AcceptedRun(changed, after=resume.after)


@asynccontextmanager
async def open_engine(
    team: Team | TeamSource,
    store: Store,
    *,
    kind: Kind,
    config: EngineConfig | None = None,
    telemetry: RunTelemetry | None = None,
    environment: ExecutionEnvironment | None = None,
) -> AsyncGenerator[InProcessEngine]:
    """Open an engine.

    A "server" recovers the orphaned runs of earlier servers. A "chat" recovers a run if its user requests it
    (`recover_run`). On leaving, active runs stop at a checkpoint, from which the next process continues.
    """
    config, telemetry, environment = (
        config or EngineConfig(),
        telemetry or RunTelemetry(),
        environment or ExecutionEnvironment(),
    )
    limit = WaitLimit(config.outage_seconds)
    async with open_recorder(store.events, telemetry.metrics, limit=limit) as recorder:
        workspaces = environment.workspaces
        file_collector = (
            WorkspaceCollector(store, workspaces, config.redactor) if workspaces is not None else None
        )
        quotas = QuotaRegistry(store)
        teams = Teams(team)
        services = RunServices(teams, store, recorder, config, telemetry)
        # At a terminal, a person sees at once that an endpoint is configured wrong.
        outages = ModelOutages(config.outage_seconds, waits_unanswered=kind == "server")
        scheduler = LocalTurnScheduler(services, FairSemaphore(config.working))
        driver = RunDriver(services, scheduler, quotas, environment, file_collector, outages, limit)
        tasks = RunTasks(driver)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(teams.close)
            stack.push_async_callback(tasks.drain)
            if kind == "server":
                await recover_orphaned_runs(tasks, kind)
                await stack.enter_async_context(index_older_runs(store))
                await stack.enter_async_context(watch_orphaned_runs(tasks, kind))
            yield InProcessEngine(tasks, kind)
