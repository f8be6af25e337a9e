"""The engine whose runs any process on a PostgreSQL database may drive."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from maniple.errors import ManipleError, RunTakenOver
from maniple.events import SessionState, is_open_question, read_question_ids
from maniple.graph import PlanProgress
from maniple.runs.active_run import CANCEL_SECONDS
from maniple.runs.branches import BRANCH_BUSY, ThreadBrancher, ask_again, find_thread, list_deletions
from maniple.runs.decisions import BUSY, NO_ANSWER, RunDecisions
from maniple.runs.engine import NothingToRetry, RunNotWaiting, RunNotWorking, SuggestedQuestions, ThreadBusy
from maniple.runs.event_log import newest_number
from maniple.runs.queue.bells import RunBells
from maniple.runs.queue.commands import CommandSender
from maniple.runs.queue.following import RunFollower
from maniple.runs.recovery import continue_or_fail
from maniple.runs.request import AcceptedRun, RunRequest
from maniple.runs.run_tasks import RunTasks
from maniple.runs.scheduling import make_stopping, make_too_many, make_too_many_of_key
from maniple.runs.steering import edit_reviewed_plan, refuse_more_messages
from maniple.runs.step_answers import ASKED_AGAIN_SECONDS
from maniple.runs.stored_inputs import as_record, read_inputs
from maniple.runs.suggestions import QuestionSuggester
from maniple.runs.turn import remember
from maniple.runs.usage import KeyQuota
from maniple.runs.waiting_messages import WaitingMessages
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import Cancel, Message, PlanChange, ReceivedInput
from maniple.store import EventRecord, RunRecord, Thread
from maniple.store.postgres.queue import QueueLimits, Refusal, RunQueue

END_SECONDS = 15.0
"""How long a request waits for the end of a run that it cancels: also for one whose process has died."""
LOOK_SECONDS = 1.0
_NEWEST_RUNS = 20
_OTHER_PROGRAM = "Another program works on this thread. Wait until it has ended."


class QueueEngine:
    """Implements `Engine` with jobs. Use `open_queue_engine`.

    It drives no run but those that it ends before anybody has begun them: a `RunWorker` does, here or
    elsewhere.
    """

    def __init__(
        self, tasks: RunTasks, queue: RunQueue, bells: RunBells, drain: Callable[[], Awaitable[None]]
    ) -> None:
        self.tasks = tasks
        self._drain = drain
        self.decisions = RunDecisions(tasks.services, "server")
        self._store = tasks.store
        self._queue = queue
        self._bells = bells
        self._follower = RunFollower(queue, tasks.driver.store_limit)
        self._commands = CommandSender(tasks, queue, bells)
        self._waiting = WaitingMessages(tasks)
        self._suggester = QuestionSuggester(tasks)
        self._brancher = ThreadBrancher(tasks.services, tasks.driver.environment.workspaces)

    async def submit(self, request: RunRequest) -> AcceptedRun:
        """Accept a run (see `Engine`)."""
        run_id = request.run_id or str(uuid4())
        thread_id = request.thread_id or run_id
        if request.run_id and (known := await self._store.runs.get(run_id, request.owner)) is not None:
            return AcceptedRun(known, after=0)
        if request.is_message and (steered := await self._steer(thread_id, request)) is not None:
            return steered
        limits = await self._limits(request.owner)
        thread = await self.decisions.find_thread(thread_id, request)
        waiting = await self._waiting_run(thread_id)
        if waiting is None and request.ends_others:
            waiting = await self._end_others(thread_id, request)
        if waiting is not None:
            if request.run_id:
                raise ThreadBusy(NO_ANSWER)
            return await self._answer(waiting, request.messages[-1].text)
        if not thread.title:
            await self._store.threads.touch(thread_id, self.decisions.make_title(request))
        record = await self.decisions.make_record(run_id, thread_id, request)
        added = await self._queue.submit(record, limits, rejects=request.when_busy == "reject")
        return AcceptedRun(_accepted(added, limits), after=0)

    async def send_message(self, run_id: str, text: str, owner: str = "") -> AcceptedRun:
        """Send a message to a run that works, or waits (see `Engine`)."""
        record = await self._settled(await self.status(run_id, owner))
        newest = await newest_number(self._store.events, run_id)
        if record.is_unfinished and (message_id := await self._send(record, text)):
            return AcceptedRun(record, after=newest, message_id=message_id)
        record = await self._settled(await self.status(run_id, owner))
        async with self.tasks.thread_locks.acquire(record.thread_id):
            forms = await self.decisions.pending_interrupts(record)
            if not forms:
                raise RunNotWorking(
                    f"The run is {record.status} and takes no message. Start a new run with it."
                )
            message_id = await self._waiting.accept(record, text)
        await self._waiting.answer(record, message_id, forms)
        return AcceptedRun(record, after=newest, message_id=message_id)

    async def _steer(self, thread_id: str, request: RunRequest) -> AcceptedRun | None:
        """Send the request's message to the run that works on the thread; None if none does."""
        for record in await self._unfinished(thread_id):
            if record.owner == request.owner and record.status == "running":
                message_id = await self._send(record, request.messages[-1].text)
                if message_id:
                    segment = Inbox(await read_inputs(self._store.inputs, record.run_id)).segment
                    after = segment.after if segment is not None else 0
                    return AcceptedRun(record, after=after, message_id=message_id)
        return None

    async def _send(self, record: RunRecord, text: str) -> str:
        """Store a message to an unfinished run and return its id; "" if the run is not unfinished any more.

        Who drives the run takes it in. One that comes after its end becomes a run of its own.
        """
        _refuse_chat(record)
        redactor, message_id = self.tasks.services.config.redactor, str(uuid4())
        sent = as_record(ReceivedInput(message_id, Message(redactor.text(text))), redactor)

        async def may_take() -> None:
            received = Inbox(await read_inputs(self._store.inputs, record.run_id))
            refuse_more_messages(received.messages)

        return message_id if await self._queue.send(record, sent, may_take) else ""

    async def events(self, run_id: str, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Follow a run (see `Engine`)."""
        number, may_go_on = max(after, 0), True
        while may_go_on:
            rung = self._bells.rung(run_id)
            page = await self._follower.read(run_id, number)
            if page.events:
                yield page.events
                number = page.events[-1].number
            may_go_on = page.has_more or page.is_unfinished
            if page.is_unfinished and not page.has_more:
                await asyncio.wait({rung}, timeout=LOOK_SECONDS)

    def waits_for_store(self, run_id: str) -> bool:
        """Return whether nothing of a run can be read or stored now (see `Engine`)."""
        return self._queue.is_away or self.tasks.waits_for_store(run_id)

    async def status(self, run_id: str, owner: str = "") -> RunRecord:
        """Return the record of a run (see `Engine`). The usage of one at work is some seconds old."""
        return await self.tasks.read(run_id, owner)

    async def cancel(self, run_id: str, owner: str = "") -> RunRecord:
        """End a run (see `Engine`)."""
        await self.status(run_id, owner)
        await self._end(run_id, Cancel())
        return await self.status(run_id, owner)

    async def _end(self, run_id: str, cancel: Cancel) -> None:
        """End a run: who drives it does it, or this process if nobody has begun it or it waits."""
        deadline, is_sent = time.monotonic() + END_SECONDS, False
        while True:
            rung = self._bells.rung(run_id)
            record = await self._store.runs.get(run_id)
            if record is None or not (record.is_unfinished or record.status == "interrupted"):
                return
            if record.is_unfinished:
                _refuse_chat(record)
            if record.status in ("queued", "interrupted"):
                claimed = await self._queue.claim_to_end(record, self.decisions.as_record(cancel))
                if claimed is not None:
                    await self._close(claimed)
                    continue
            if record.is_unfinished and not is_sent:
                is_sent = await self._queue.send(record, self.decisions.as_record(cancel))
            if time.monotonic() > deadline:
                return
            await asyncio.wait({rung}, timeout=LOOK_SECONDS)

    async def _close(self, claimed: RunRecord) -> None:
        """Close the stream of a run that is cancelled, and store its end."""
        with suppress(RunTakenOver):  # who drives it now has read that it is cancelled
            await continue_or_fail(self.tasks, claimed, was_begun=False)
            active = self.tasks.active.get(claimed.run_id)
            if active is not None and active.task is not None:
                await asyncio.wait({active.task}, timeout=END_SECONDS)

    async def suggest_questions(self, record: RunRecord, answer: str) -> SuggestedQuestions:
        """Return questions that follow from an answer (see `Engine`)."""
        return await self._suggester.suggest(record, answer)

    async def read_quota(self, owner: str = "") -> KeyQuota:
        """Return the limits of an API key and what is used of them (see `Engine`)."""
        return await self.tasks.driver.quotas.refresh_owner(owner)

    async def delete_thread(self, thread_id: str, owner: str = "") -> Sequence[str]:
        """End a thread's runs and delete it with its branches (see `Engine`)."""
        deleted = await list_deletions(self._store, thread_id, owner)
        for one in deleted:
            await self._delete_alone(one)
        return deleted

    async def _delete_alone(self, thread_id: str) -> None:
        for record in reversed(await self._unfinished(thread_id)):
            await self._end(record.run_id, Cancel())
        if await self._unfinished(thread_id):
            raise ThreadBusy("A run of the thread has not ended yet. Try again in a moment.")
        if (sandbox := self.tasks.driver.environment.sandbox) is not None:
            await sandbox.stop(thread_id)
        await self._store.threads.delete(thread_id)

    async def branch_run(
        self, run_id: str, text: str = "", owner: str = "", chosen: RunRequest | None = None
    ) -> AcceptedRun:
        """Ask the question of a run again on a new branch (see `Engine`)."""
        record = await self._settled(await self.status(run_id, owner))
        limits = await self._limits(owner)
        async with self.tasks.thread_locks.acquire(record.thread_id):
            await self._require_idle(record.thread_id)
            branch = await self._brancher.make(record)
            try:
                request = ask_again(record, branch.thread_id, text, chosen)
                made = await self.decisions.make_record(str(uuid4()), branch.thread_id, request)
                added = await self._queue.submit(made, limits, rejects=False)
                return AcceptedRun(_accepted(added, limits), after=0)
            except ManipleError:
                await self._brancher.discard(branch)
                raise

    async def copy_thread(self, thread_id: str, owner: str = "") -> Thread:
        """Copy a thread (see `Engine`)."""
        async with self.tasks.thread_locks.acquire(thread_id):
            source = await find_thread(self._store, thread_id, owner)
            await self._require_idle(thread_id)
            return await self._brancher.copy(source)

    async def _require_idle(self, thread_id: str) -> None:
        """Raise `ThreadBusy` if a run of a thread works or waits."""
        if await self._unfinished(thread_id) or await self._waiting_run(thread_id):
            raise ThreadBusy(BRANCH_BUSY)

    async def resume(
        self, run_id: str, answer: Any, *, interrupt_id: str = "", owner: str = ""
    ) -> AcceptedRun:
        """Answer a run (see `Engine`)."""
        end = time.monotonic() + ASKED_AGAIN_SECONDS
        while True:
            record = await self._settled(await self.status(run_id, owner))
            is_last = time.monotonic() >= end
            if not record.is_unfinished or is_last or not await self._asks(record, interrupt_id):
                return await self._answer(record, answer, interrupt_id)
            after = await self._commands.answer(record, answer, interrupt_id)
            if after is not None:
                return AcceptedRun(record, after=after)
            rung = self._bells.rung(run_id)
            if (await self.status(run_id, owner)).is_unfinished:
                await asyncio.wait({rung}, timeout=LOOK_SECONDS)

    async def _asks(self, record: RunRecord, interrupt_id: str) -> bool:
        """Return whether a run at work has asked a question that may still be open."""
        if record.kind != "server":
            return False
        if interrupt_id:
            return await is_open_question(self._store.events, record.run_id, interrupt_id)
        return bool(await read_question_ids(self._store.events, record.run_id))

    async def _answer(self, record: RunRecord, answer: Any, interrupt_id: str = "") -> AcceptedRun:
        limits = await self._limits(record.owner)
        resume = await self.decisions.make_resume(record, answer, interrupt_id)
        sent = self.decisions.as_record(resume)
        changed = await self._queue.continue_run(record, sent, limits)
        if changed == "changed":
            raise RunNotWaiting("The run was answered by another request.")
        return AcceptedRun(_accepted(changed, limits), after=resume.after)

    async def retry(self, run_id: str, owner: str = "") -> AcceptedRun:
        """Continue a run that failed, has gaps, or was cancelled in a retry (see `Engine`)."""
        record = await self._settled(await self.status(run_id, owner))
        limits = await self._limits(owner)
        retry = await self.decisions.make_retry(record)
        sent = self.decisions.as_record(retry)
        changed = await self._queue.continue_run(record, sent, limits, retries=True)
        if changed == "changed":
            raise NothingToRetry("The run was retried by another request.")
        return AcceptedRun(_accepted(changed, limits), after=retry.after)

    async def change_plan(self, run_id: str, change: PlanChange, owner: str = "") -> dict[str, Any]:
        """Change a plan (see `Engine`); raises `WorkerAway` too."""
        record = await self._settled(await self.status(run_id, owner))
        if record.is_unfinished:
            _refuse_chat(record)
            if (plan := await self._commands.change_plan(record, change)) is not None:
                return plan
            record = await self._settled(await self.status(run_id, owner))
        pending = await self.decisions.pending_interrupts(record)
        request = RunRequest.of(record)
        interrupt_id, plan = edit_reviewed_plan(self.tasks.services.team, request, pending, change)
        await self._answer(record, plan.model_dump(exclude_none=True), interrupt_id)
        return PlanProgress.of(plan).to_state()

    async def drain(self) -> None:
        """Refuse new runs and stop active ones at a checkpoint (see `Engine`)."""
        await self._drain()

    async def _limits(self, owner: str) -> QueueLimits:
        """Return how many runs there may be; raises `ServiceStopping` or `DailyLimitReached`."""
        if self.tasks.admission.is_closed:
            raise make_stopping()
        quota = await self.tasks.driver.quotas.refresh_owner(owner)
        quota.raise_if_used_up()
        limits = self.tasks.services.config.limits
        return QueueLimits(limits.under_way, limits.of_owner(quota.limits.max_runs))

    async def _unfinished(self, thread_id: str) -> list[RunRecord]:
        """Return the unfinished runs of a thread, oldest first."""
        newest = await self._store.runs.list_by_thread(thread_id, _NEWEST_RUNS)
        return [one for one in reversed(newest) if one.is_unfinished]

    async def _waiting_run(self, thread_id: str) -> RunRecord | None:
        """Return the interrupted run that the next message on the thread answers."""
        for record in await self._unfinished(thread_id):
            await self._settled(record)
        return await self.decisions.find_waiting(thread_id)

    async def _settled(self, record: RunRecord) -> RunRecord:
        """Return a run once its stored status matches the status in its events."""
        deadline = time.monotonic() + CANCEL_SECONDS
        while record.status == "running" and time.monotonic() < deadline:
            rung = self._bells.rung(record.run_id)
            last = await self._store.events.last(record.run_id)
            record = await self._store.runs.get(record.run_id) or record
            if last is None or last.type != SessionState.type or record.status != "running":
                break
            await asyncio.wait({rung}, timeout=max(deadline - time.monotonic(), 0))
        return record

    async def _end_others(self, thread_id: str, request: RunRequest) -> RunRecord | None:
        """End the runs of a thread; return one that paused before it could be cancelled."""
        is_rollback = request.when_busy == "rollback"
        busy = await self._unfinished(thread_id)
        for record in reversed(busy):  # the newest first, or the next one would begin
            await self._end(record.run_id, Cancel(undoes=is_rollback))
        waiting = await self._waiting_run(thread_id)
        if waiting is not None or not busy:
            return waiting
        if is_rollback:
            await self.decisions.roll_back(thread_id, [one.run_id for one in busy])
        else:
            messages = [RunRequest.of(one).messages[-1] for one in busy]
            await remember(self.tasks.services.team, thread_id, messages)
        return None


def _accepted(result: RunRecord | Refusal, limits: QueueLimits) -> RunRecord:
    """Return a run that was queued; raises the error for a refusal."""
    if isinstance(result, RunRecord):
        return result
    if result == "full":
        raise make_too_many(limits.all_runs)
    if result == "owner_full":
        raise make_too_many_of_key(limits.of_owner or 0)
    raise ThreadBusy(BUSY)


def _refuse_chat(record: RunRecord) -> None:
    """Raise `ThreadBusy` for a run of a program that takes no commands."""
    if record.kind != "server":
        raise ThreadBusy(_OTHER_PROGRAM)
