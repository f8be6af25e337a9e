"""Answers to the questions of steps, while other steps of the run go on."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from maniple.events import is_open_question
from maniple.runs.active_run import ActiveRun
from maniple.runs.request import AcceptedRun
from maniple.runs.run_tasks import RunTasks
from maniple.runs.steering import accept_step_answer
from maniple.scope.inbox import InputRefused
from maniple.store import RunRecord

ASKED_AGAIN_SECONDS = 30.0
"""How long an answer waits for a run that goes on with another one to ask its question again."""


@dataclass(frozen=True, slots=True)
class StepAnswers:
    """Hands answers to the steps of the runs that this process drives."""

    tasks: RunTasks

    async def answer(
        self, record: RunRecord, answer: Any, interrupt_id: str, end: float
    ) -> AcceptedRun | None:
        """Answer a step of a run at work; None if it does not take the answer while it works.

        Until the time `end`, the answer waits for its question to be asked again.
        """
        while (active := self.tasks.active.get(record.run_id)) is not None and active.task is not None:
            changed = active.inbox.changed()
            async with self.tasks.thread_locks.acquire(record.thread_id):
                if answered := await self._answer(active, answer, interrupt_id):
                    return answered
            if not await self.asks_again(active, interrupt_id, end):
                return None
            seconds = max(end - time.monotonic(), 0)
            await asyncio.wait({changed, active.task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        return None

    async def asks_again(self, active: ActiveRun, interrupt_id: str, end: float) -> bool:
        """Return whether a run will ask an open question again, as one that goes on with another answer."""
        if not interrupt_id or time.monotonic() >= end or not active.can_be_steered:
            return False
        # The event of another answer to it may not be stored yet.
        await self.tasks.services.recorder.wait_until_stored()
        return await is_open_question(self.tasks.store.events, active.record.run_id, interrupt_id)

    async def _answer(self, active: ActiveRun, answer: Any, interrupt_id: str) -> AcceptedRun | None:
        """Answer a step that waits while others go on; None if there is no such question."""
        asked = active.inbox.questions if active.can_be_steered else ()
        question = next((one for one in asked if interrupt_id in ("", one.interrupt_id)), None)
        if question is None:
            return None
        newest = active.log.newest_number
        try:
            await accept_step_answer(self.tasks.services, active, question, answer)
        except InputRefused:  # it was answered, or the run has paused, in the meantime
            return None
        return AcceptedRun(active.record, after=newest)
