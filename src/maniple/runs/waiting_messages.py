"""Messages to a run that waits for an answer. The run stays as it is; its lead may answer a question."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maniple.errors import UnconfiguredModel
from maniple.runs.active_run import ActiveRun
from maniple.runs.run_tasks import RunTasks
from maniple.runs.scheduling import ThreadLocks
from maniple.runs.steering import MessageDesk, accept_message, show_inputs
from maniple.scope.inputs import UserMessage
from maniple.store import RunRecord
from maniple.types import is_mapping

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WaitingMessages:
    """Takes messages to interrupted runs, stores them, and lets the lead answer those that are questions.

    What is no question waits, as does what could not be answered: the lead of the run that goes on decides.
    """

    tasks: RunTasks
    _asking: ThreadLocks = field(default_factory=ThreadLocks)
    """So that the usage of two calls for one run is added up."""

    async def accept(self, record: RunRecord, text: str) -> str:
        """Store a message, with its event, and return its id. The caller holds the lock of the thread.

        Raises `InputRefused`, `TooManyRuns` and `StoreError`.
        """
        active = await self._open(record)
        message_id = await accept_message(self.tasks.services, active, text)
        await self._store(active)
        return message_id

    async def answer(self, record: RunRecord, message_id: str, forms: Mapping[str, Any]) -> None:
        """Let the lead answer a message to a run that waits for `forms`, if the run still waits then."""
        async with self._asking.acquire(record.thread_id):
            asked = await self._waiting(record)
            if asked is None:
                return
            active = await self.tasks.prepare(asked)
            message = next((one for one in active.inbox.undecided if one.message_id == message_id), None)
            if message is None:
                return
            active.meter.start()
            await self._answer(active, message, [one for one in forms.values() if is_mapping(one)])

    async def _answer(
        self, active: ActiveRun, message: UserMessage, forms: Sequence[Mapping[str, Any]]
    ) -> None:
        services, record = self.tasks.services, active.record
        try:
            reply, events = await MessageDesk(services, active).answer_waiting(message, forms)
        except UnconfiguredModel as error:
            _LOG.warning("A message to a waiting run stays unanswered until the run goes on: %s", error)
            return
        async with self.tasks.thread_locks.acquire(record.thread_id):
            waiting = await self._waiting(record)
            if waiting is None:
                return  # it went on meanwhile, and its lead decides
            now = await self._open(waiting)
            for event in events:
                await now.record_event(event, services.recorder)
            if reply is not None:
                await now.inbox.decide(message.message_id, reply)
                await show_inputs(services, now)
            await self._store(now)
            await services.store.runs.change(record.run_id, usage=active.meter.answered)

    async def _waiting(self, record: RunRecord) -> RunRecord | None:
        """Return the newest record of a run that still waits; None if it has gone on."""
        newest = await self.tasks.store.runs.get(record.run_id)
        is_waiting = newest is not None and newest.status == "interrupted"
        return newest if is_waiting and record.run_id not in self.tasks.active else None

    async def _open(self, record: RunRecord) -> ActiveRun:
        """Return the run with its newest events, to which some can be added."""
        # It may have paused in a process that has ended.
        adopted = await self.tasks.store.runs.adopt(record.run_id)
        active = await self.tasks.prepare(adopted or record)
        await MessageDesk(self.tasks.services, active).resume()
        return active

    async def _store(self, active: ActiveRun) -> None:
        await self.tasks.services.recorder.wait_until_stored()
        if active.log.failure is not None:
            raise active.log.failure
