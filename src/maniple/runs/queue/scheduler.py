"""The turns of runs that have come out of the queue: the queue has given them their thread already."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from maniple.runs.active_run import ActiveRun, RunServices
from maniple.runs.queue.commands import refuse_command
from maniple.runs.scheduling import FairSemaphore, Slot
from maniple.runs.steering import ENDED, ENDED_BEFORE, make_next_runs
from maniple.runs.stored_inputs import COMMAND, from_record, reply_json
from maniple.runs.turn import Start
from maniple.runs.turn_scheduler import Begin
from maniple.scope.inputs import Cancel, Message, Reply, UserMessage
from maniple.store import InputRecord, RunChange, RunRecord
from maniple.store.postgres.queue import RunQueue

_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.005, 1.0


@dataclass(slots=True, eq=False)
class QueueScheduler:
    """Implements `TurnScheduler` for a process that takes runs from the queue."""

    services: RunServices
    queue: RunQueue
    slots: FairSemaphore

    @asynccontextmanager
    async def enter(self, active: ActiveRun, start: Start, begin: Begin) -> AsyncGenerator[Slot]:
        """Hold a slot. A program without a queue, such as a chat, may still be at work on the thread."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            async with self.slots.hold(active.record.owner) as slot:
                if await begin():
                    yield slot
                    return
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    async def end(self, active: ActiveRun, change: RunChange) -> RunRecord | None:
        """Store the end of a run, what follows from it, and the job of the thread's next run, all or none."""
        # A rollback may need the checkpoints of a cancelled run, so the next run that ends prunes them.
        prunes = (active.status or "failed") not in ("interrupted", "cancelled")

        def settle(pending: Sequence[InputRecord]) -> tuple[Mapping[str, str], Sequence[RunRecord]]:
            return self._settle(active, pending)

        return await self.queue.end(active.record, change, settle, prunes=prunes)

    def _settle(
        self, active: ActiveRun, pending: Sequence[InputRecord]
    ) -> tuple[Mapping[str, str], Sequence[RunRecord]]:
        """Return the replies to inputs that came too late for the run, and the runs that messages become."""
        status, redactor = active.status or "failed", self.services.config.redactor
        replies, late = dict[str, str](), list[UserMessage]()
        for one in pending:
            if one.kind == COMMAND:
                replies[one.input_id] = refuse_command()
                continue
            match from_record(one).content:
                case Cancel():
                    reply = Reply("taken") if status == "cancelled" else Reply("refused", ENDED_BEFORE)
                    replies[one.input_id] = reply_json(reply, redactor)
                case Message(text) if status not in ("interrupted", "cancelled"):
                    reply = Reply("next_run", ENDED)
                    late.append(UserMessage(one.input_id, text, reply))
                    replies[one.input_id] = reply_json(reply, redactor)
                case _:
                    pass  # it waits for the answer, or a retry
        messages = {one.message_id: one for one in (*late, *active.inbox.messages)}
        return replies, make_next_runs(
            self.services, active.record, active.request, messages.values(), status
        )
