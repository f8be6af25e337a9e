"""What runs the team's turns, wherever it does so."""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

from maniple.agents.plan_edits import PlanChange
from maniple.errors import ManipleError
from maniple.runs.request import AcceptedRun, RunRequest
from maniple.store import EventRecord, RunRecord


class Engine(Protocol):
    """Runs that go on whoever follows them (`docs/runs.md`).

    A run is known by its id. `owner` is the API key that asks; a run of another one is not found.
    """

    async def submit(self, request: RunRequest) -> AcceptedRun:
        """Accept a run; from here on it ends in exactly one status.

        On a thread that waits for an answer, the newest message is the answer, and the waiting run goes on.
        Raises `TooManyRuns`, `DailyLimit`, `ThreadBusy`, `NotFound` (the thread is somebody else's),
        `Stopping` or `StoreError`.
        """
        ...

    def events(self, run_id: str, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Yield the events after number `after`, some at a time, until the run ends or waits.

        Raises `StoreError` when the newest events could not be kept.
        """
        ...

    async def status(self, run_id: str, owner: str = "") -> RunRecord:
        """Return how the run stands; raises `NotFound`."""
        ...

    async def cancel(self, run_id: str, owner: str = "") -> RunRecord:
        """End the run, keeping what was done, and return how it ended; raises `NotFound`."""
        ...

    async def resume(
        self, run_id: str, answer: Any, *, interrupt_id: str = "", owner: str = ""
    ) -> AcceptedRun:
        """Answer what the run waits for; raises `NotFound` or `NotWaiting`.

        And what `submit` does when the owner may do no more: then the run waits on.
        """
        ...

    async def delete_thread(self, thread_id: str, owner: str = "") -> None:
        """End the runs of a thread and delete it with all that is kept of it; raises `NotFound`."""
        ...

    async def change_plan(self, run_id: str, change: PlanChange, owner: str = "") -> dict[str, Any]:
        """Skip, redo or edit one step; what depends on it is done again. Returns the plan as it will be.

        In a plan under review the change accepts the plan, as `resume` does. Raises `NotFound`, `PlanNotOpen`
        or `WrongPlanChange`.
        """
        ...

    async def drain(self) -> None:
        """Take no new runs, let those under way come to a checkpoint, and leave them there to go on later."""
        ...


class TooManyRuns(ManipleError):
    """As many runs as are allowed are running or waiting."""

    code = "too_many_runs"
    retryable = True


class ServiceStopping(ManipleError):
    """This process is about to stop and takes no new runs."""

    code = "stopping"
    retryable = True


class ThreadBusy(ManipleError):
    """A run is under way on the thread, and the new one did not want to wait."""

    code = "thread_busy"
    retryable = True


class NotFound(ManipleError):
    """There is no such thread or run, or it belongs to somebody else."""

    code = "not_found"


class RunNotWaiting(ManipleError):
    """The run does not wait for an answer, or not for this one."""

    code = "not_waiting"


class PlanNotEditable(ManipleError):
    """The run's plan cannot be changed now: it is not worked through and not shown for review."""

    code = "plan_not_open"


class InvalidPlanEdit(ManipleError):
    """The change does not fit the plan; the words say why."""

    code = "wrong_plan_change"
