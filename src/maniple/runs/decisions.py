"""What a request for a run means, whichever engine executes it: nothing here is changed but the thread."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from uuid import uuid4

from maniple.errors import StoreError
from maniple.events import RunStatusChanged, load_run_view, read_question_ids
from maniple.runs.active_run import RunServices
from maniple.runs.engine import NotFound, NothingToRetry, RunNotWaiting, can_be_retried
from maniple.runs.event_log import newest_number
from maniple.runs.request import RunRequest
from maniple.runs.stored_inputs import as_record, read_inputs
from maniple.runs.turn import run_of, thread_state
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import Cancel, ReceivedInput, Reply, Resume, Retry, RunInput
from maniple.store import InputRecord, RunRecord, Store, Thread
from maniple.text import shorten_words
from maniple.tools.questions import interrupt_of

Kind = Literal["server", "chat"]
MAX_TITLE_CHARACTERS = 80
NO_CHECKPOINT = ""
"""The `base_checkpoint` of a thread's first run."""
NO_ANSWER = "A run on this thread waits for an answer, which this request is not."
BUSY = "A run is active on this thread. Wait until it has ended, or cancel it."


@dataclass(frozen=True, slots=True)
class RunDecisions:
    """Decides about requests for the runs of one engine of a `kind`."""

    services: RunServices
    kind: Kind

    @property
    def _store(self) -> Store:
        return self.services.store

    async def find_thread(self, thread_id: str, request: RunRequest) -> Thread:
        """Return the thread, created if necessary; raises `NotFound` if it belongs to another owner."""
        thread = await self._store.threads.get(thread_id, None)
        if thread is None:
            now = time.time()
            made = Thread(thread_id, request.owner, self.make_title(request), now, now)
            try:
                thread = await self._store.threads.create(made)
            except StoreError:
                thread = await self._store.threads.get(thread_id, None)  # another process was faster
                if thread is None:
                    raise
        if thread.owner != request.owner:
            raise NotFound("The thread does not exist.")
        return thread

    def make_title(self, request: RunRequest) -> str:
        """Return the title of a thread that begins with a request."""
        text = self.services.config.redactor.text(request.messages[-1].text)
        return shorten_words(text, MAX_TITLE_CHARACTERS)

    async def make_record(self, run_id: str, thread_id: str, request: RunRequest) -> RunRecord:
        """Return the record of a new run, without secrets and not stored yet."""
        config = self.services.config
        # The id identifies a message that is sent to the graph again after a crash.
        messages = [
            one if one.id else one.model_copy(update={"id": str(uuid4())}) for one in request.messages
        ]
        budget = request.budget.within(config.budget)
        request = replace(request, messages=messages, budget=budget, approval=config.approval)
        # In a thread: its history may have megabytes.
        stored = await asyncio.to_thread(request.without_secrets, config.redactor)
        return RunRecord(
            run_id=run_id,
            thread_id=thread_id,
            owner=request.owner,
            kind=self.kind,
            process=self._store.process,
            status="queued",
            request=stored,
            created_at=time.time(),
        )

    async def pending_interrupts(self, record: RunRecord) -> dict[str, Any]:
        """Return what an interrupted run waits for, by interrupt id.

        It is empty for a run that does not wait, or whose thread a later run has used.
        """
        if record.status != "interrupted":
            return {}
        state = await thread_state(self.services.team, record.thread_id)
        if run_of(state) != record.run_id:
            return {}
        return {pause.id: pause.value for pause in state.interrupts}

    async def find_waiting(self, thread_id: str) -> RunRecord | None:
        """Return the interrupted run that the next message on the thread answers."""
        for record in await self._store.runs.list_interrupted(thread_id):
            if await self.pending_interrupts(record):
                return record
        return None

    async def make_resume(self, record: RunRecord, answer: Any, interrupt_id: str = "") -> Resume:
        """Return the input that answers a run that waits; raises `RunNotWaiting`."""
        pending = await self.pending_interrupts(record)
        if not pending:
            raise RunNotWaiting(f"The run does not wait for an answer; it is {record.status}.")
        asked = await read_question_ids(self._store.events, record.run_id)
        shown = [one for one in asked if one in pending]
        open_questions = [asked.get(one, one) for one in dict.fromkeys([*shown, *pending])]
        if interrupt_id and interrupt_id not in open_questions:
            waits_for = ", ".join(open_questions)
            raise RunNotWaiting(f"The run does not wait for {interrupt_id!r}, but for {waits_for}.")
        newest = await newest_number(self._store.events, record.run_id)
        question = interrupt_id or open_questions[0]
        return Resume(question, answer, newest, pending.get(interrupt_of(question)))

    async def make_retry(self, record: RunRecord) -> Retry:
        """Return the input that retries a run; raises `NothingToRetry`."""
        view = await load_run_view(self._store.events, record.run_id, [RunStatusChanged])
        if not can_be_retried(record, view):
            raise NothingToRetry(
                f"There is nothing to retry: the run is {record.status} and its answer has no gaps. "
                "Send a new request."
            )
        if not await self._is_newest(record):
            raise NothingToRetry("The conversation has gone on since this run. Send the request again.")
        received = Inbox(await read_inputs(self._store.inputs, record.run_id))
        budget = received.budget or RunRequest.of(record).budget
        newest = await newest_number(self._store.events, record.run_id)
        return Retry(newest, budget.extended(record.usage))

    async def _is_newest(self, record: RunRecord) -> bool:
        """Return whether no other run has used the thread of a run after it."""
        state = await thread_state(self.services.team, record.thread_id)
        if run_of(state) == record.run_id:
            return True
        checkpoint = state.config.get("configurable", {}).get("checkpoint_id")
        return record.base_checkpoint is None or record.base_checkpoint == (checkpoint or NO_CHECKPOINT)

    async def roll_back(self, thread_id: str, run_ids: Sequence[str]) -> None:
        """Reset the thread to its state before the first cancelled one of these runs. Completed runs stay."""
        for run_id in run_ids:
            record = await self._store.runs.get(run_id)
            if record is None:
                raise NotFound("The run does not exist.")
            if record.status == "cancelled":
                if record.base_checkpoint is not None:
                    await self._store.checkpoints.rollback(thread_id, record.base_checkpoint or None)
                return

    def as_record(self, content: RunInput) -> InputRecord:
        """Return the record of an input that takes effect when it is stored."""
        reply = None if isinstance(content, Cancel) else Reply("taken")
        return as_record(ReceivedInput(str(uuid4()), content, reply=reply), self.services.config.redactor)
