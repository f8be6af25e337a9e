"""Commands: what only the process that drives a run can decide, asked and answered in the run's inputs."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from maniple.errors import ManipleError
from maniple.runs.active_run import ActiveRun
from maniple.runs.engine import InvalidPlanEdit, PlanNotEditable, WorkerAway
from maniple.runs.queue.bells import RunBells
from maniple.runs.run_tasks import RunTasks
from maniple.runs.steering import request_plan_edit
from maniple.runs.step_answers import ASKED_AGAIN_SECONDS, StepAnswers
from maniple.runs.stored_inputs import COMMAND
from maniple.scope.inputs import PlanChange
from maniple.store import InputRecord, RunRecord
from maniple.store.postgres.queue import RunQueue
from maniple.types import is_mapping

ANSWER_SECONDS = 5.0
"""How long a command waits for its reply. It stays, and is carried out when a process drives the run."""
_LOOK_SECONDS = 1.0
_ERRORS: Mapping[str, type[ManipleError]] = {one.code: one for one in (PlanNotEditable, InvalidPlanEdit)}


@dataclass(frozen=True, slots=True)
class CommandSender:
    """Asks the process that drives a run, whichever that is."""

    tasks: RunTasks
    queue: RunQueue
    bells: RunBells

    async def change_plan(self, record: RunRecord, change: PlanChange) -> dict[str, Any] | None:
        """Change the plan of a run at work and return it; None if the run does not work any more.

        Raises `PlanNotEditable`, `InvalidPlanEdit` or `WorkerAway`.
        """
        command = {"do": "change_plan", "change": asdict(change)}
        # By the id of the change: one that is sent again is carried out once.
        reply = await self._ask(record, f"{COMMAND} {change.change_id}", command, ANSWER_SECONDS)
        if reply is None or "plan" not in reply:
            return None
        return dict(reply["plan"])

    async def answer(self, record: RunRecord, answer: Any, interrupt_id: str) -> int | None:
        """Answer a step of a run at work; return the number of its newest event.

        Returns None if no step takes the answer while the run works. Raises `WorkerAway`.
        """
        redacted = self.tasks.services.config.redactor.value(answer)
        command = {"do": "answer", "answer": redacted, "interrupt_id": interrupt_id}
        reply = await self._ask(record, str(uuid4()), command, ASKED_AGAIN_SECONDS)
        return reply.get("after") if reply is not None else None

    async def _ask(
        self, record: RunRecord, input_id: str, command: Mapping[str, Any], seconds: float
    ) -> Mapping[str, Any] | None:
        """Return the reply to a command; None if the run is not unfinished any more."""
        sent = InputRecord(input_id, COMMAND, "user", json.dumps(command, ensure_ascii=False), time.time())
        if not await self.queue.send(record, sent):
            return None
        deadline = time.monotonic() + seconds
        while True:
            rung = self.bells.rung(record.run_id)
            if (reply := await self.queue.read_reply(record.run_id, input_id)) is not None:
                return _read_reply(reply)
            if (left := deadline - time.monotonic()) <= 0:
                raise WorkerAway(
                    "The process that drives the run has not answered yet. What you sent is stored and is "
                    "carried out when the run goes on. Look at the run, or try again in a moment."
                )
            await asyncio.wait({rung}, timeout=min(left, _LOOK_SECONDS))


def _read_reply(reply: str) -> Mapping[str, Any]:
    read = json.loads(reply)
    content: Mapping[str, Any] = read if is_mapping(read) else {}
    if (error := _ERRORS.get(content.get("code", ""))) is not None:
        raise error(content.get("message", ""))
    return content


async def _until_plan_is_executed(active: ActiveRun) -> None:
    """Wait until a run that another process has begun is where it takes changes of its plan again.

    Raises `WorkerAway` if this process drives it no longer before that.
    """
    while active.record.recoveries and not active.inbox.was_open and active.task is not None:
        await asyncio.wait({active.inbox.changed(), active.task}, return_when=asyncio.FIRST_COMPLETED)
        if active.task.done():
            raise WorkerAway("The run is driven here no longer. Whoever goes on with it carries this out.")


def refuse_command() -> str:
    """Return the reply to a command that the run has not taken before it ended or paused."""
    return "{}"


@dataclass(frozen=True, slots=True)
class CommandHandler:
    """Carries out the commands for runs that this process drives."""

    tasks: RunTasks

    async def reply(self, active: ActiveRun, sent: InputRecord) -> str:
        """Carry out a command and return its reply (JSON)."""
        command = json.loads(sent.content)
        try:
            if command["do"] == "change_plan":
                change = PlanChange(**command["change"])
                await _until_plan_is_executed(active)
                async with self.tasks.thread_locks.acquire(active.record.thread_id):
                    plan = await request_plan_edit(self.tasks.services, active, change)
                return json.dumps({"plan": plan}, ensure_ascii=False)
            answered = await StepAnswers(self.tasks).answer(
                active.record,
                command["answer"],
                command["interrupt_id"],
                time.monotonic() + ASKED_AGAIN_SECONDS,
            )
            return json.dumps({"after": answered.after}) if answered is not None else refuse_command()
        except (PlanNotEditable, InvalidPlanEdit) as error:
            return json.dumps({"code": error.code, "message": str(error)}, ensure_ascii=False)
