"""The protocol of an engine, which executes runs, and its errors."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from maniple.errors import ManipleError
from maniple.events import RunView
from maniple.runs.request import AcceptedRun, RunRequest
from maniple.runs.usage import KeyQuota
from maniple.scope.inputs import PlanChange
from maniple.store import EventRecord, RunRecord, RunUsage, Thread


@dataclass(frozen=True, slots=True)
class SuggestedQuestions:
    """Questions, each one line of plain text, and what they used, which is no usage of the run.

    `effortless_models` do not take the effort of the run.
    """

    questions: Sequence[str]
    usage: RunUsage
    effortless_models: Sequence[str] = ()


class Engine(Protocol):
    """Runs that continue without a connected client (`docs/runs.md`).

    `owner` is the API key of the request; runs of other owners are not found.
    """

    async def submit(self, request: RunRequest) -> AcceptedRun:
        """Accept a run; it ends in exactly one status.

        On a thread that waits for an answer, the newest message answers the waiting run. With `steer`, and
        text alone, it becomes a message to the run that works on the thread, if one does. Raises
        `TooManyRuns`, `DailyLimitReached`, `ThreadBusy`, `NotFound` (the thread has another owner),
        `ServiceStopping` or `StoreError`.
        """
        ...

    async def send_message(self, run_id: str, text: str, owner: str = "") -> AcceptedRun:
        """Send a message to a run that works: its lead answers it, changes the plan or passes it on.

        The message is stored when this returns. If the run ends before the lead has answered, the message
        becomes the next run of the thread, with the message's id. Of a run that waits for an answer, the lead
        answers a question before this returns, and the run still waits; what is no question is for the lead
        when the run goes on. Raises `NotFound`, `RunNotWorking`,
        `ThreadBusy` (another program drives the run), `TooManyRuns` (many messages wait already) or
        `StoreError`.
        """
        ...

    def events(self, run_id: str, after: int = 0) -> AsyncIterator[Sequence[EventRecord]]:
        """Yield the events after number `after`, in pages, until the run ends or waits.

        Raises `StoreError` if the newest events could not be stored.
        """
        ...

    async def status(self, run_id: str, owner: str = "") -> RunRecord:
        """Return the run; raises `NotFound`."""
        ...

    async def cancel(self, run_id: str, owner: str = "") -> RunRecord:
        """Cancel the run, wait for its end, and return its record; raises `NotFound`.

        Its results are retained.
        """
        ...

    async def resume(
        self, run_id: str, answer: Any, *, interrupt_id: str = "", owner: str = ""
    ) -> AcceptedRun:
        """Answer the question that the run waits for; raises `NotFound` or `RunNotWaiting`.

        A step's question can be answered while other steps run; the run keeps running, and no limit of runs
        applies. Without an `interrupt_id` the oldest question is answered. The answer is stored when this
        returns.
        Raises the errors of `submit` if the owner has reached a limit; the run then stays interrupted.
        """
        ...

    async def retry(self, run_id: str, owner: str = "") -> AcceptedRun:
        """Do again what a run that failed, or whose answer has gaps, has not done; what is done stays.

        A cancelled run goes on where it stopped, with the changes that the user had sent. The run continues
        with a new segment of its events and its whole budget again. Raises `NotFound`, `NothingToRetry`,
        `ThreadBusy` and the errors of `submit`.
        """
        ...

    async def branch_run(
        self, run_id: str, text: str = "", owner: str = "", chosen: RunRequest | None = None
    ) -> AcceptedRun:
        """Ask the question of a run again on a new branch, with another `text` unless that is empty.

        `run.thread_id` of the result is the branch: a thread that begins with the runs before this one, has
        a copy of the files as they were at its question (`Thread.note` says what is not), and goes on by
        itself. The run and those after it stay as they are. Options, budget and model are those of `chosen`,
        else those of the run.
        Raises `NotFound`, `ThreadBusy` (a run of the thread works or waits), `BranchPointGone`,
        `TooManyBranches`, `FileError` and the errors of `submit`.
        """
        ...

    async def copy_thread(self, thread_id: str, owner: str = "") -> Thread:
        """Return a new thread that begins with all runs of another one, and has a copy of state and files.

        It is one of the branches of the conversation. Raises `NotFound`, `ThreadBusy` (a run of the thread
        works or waits), `TooManyBranches` and `FileError`.
        """
        ...

    async def suggest_questions(self, record: RunRecord, answer: str) -> SuggestedQuestions:
        """Return questions that follow from the answer of a run; they are stored nowhere.

        Raises `NoSuggestions`, `DailyLimitReached`, `UnconfiguredModel`, `ServiceStopping` or `StoreError`.
        """
        ...

    async def read_quota(self, owner: str = "") -> KeyQuota:
        """Return the limits of an API key, with what its runs have used in the last 24 hours."""
        ...

    async def delete_thread(self, thread_id: str, owner: str = "") -> Sequence[str]:
        """End the runs of a thread and delete all of its data, also of the branches that begin with its runs.

        Return the ids of the deleted threads. Raises `NotFound`.
        """
        ...

    async def change_plan(self, run_id: str, change: PlanChange, owner: str = "") -> dict[str, Any]:
        """Change one step of the plan and return the resulting plan; dependent steps are executed again.

        A change of a plan under review also accepts the plan, as `resume` does. Raises `NotFound`,
        `PlanNotEditable` or `InvalidPlanEdit`.
        """
        ...

    def waits_for_store(self, run_id: str) -> bool:
        """Return whether this process knows that the run waits for a store that is away."""
        ...

    async def drain(self) -> None:
        """Accept no new runs and stop active ones at their next checkpoint, to continue later."""
        ...


class NoSuggestions(ManipleError):
    """The model is away, or gave no question that can be used; the message has the reason."""

    code = "no_suggestions"
    retryable = True


class TooManyRuns(ManipleError):
    """The limit of active and waiting runs is reached."""

    code = "too_many_runs"
    retryable = True


class ServiceStopping(ManipleError):
    """This process is stopping and accepts no new runs."""

    code = "stopping"
    retryable = True


class ThreadBusy(ManipleError):
    """A run is active on the thread, and the request does not allow waiting."""

    code = "thread_busy"
    retryable = True


class WorkerAway(ManipleError):
    """The process that drives the run has not answered in time; what was sent stays stored."""

    code = "worker_away"
    retryable = True


class NotFound(ManipleError):
    """The thread or run does not exist or belongs to another owner."""

    code = "not_found"


class RunNotWaiting(ManipleError):
    """The run does not wait for an answer, or waits for the answer to another interrupt."""

    code = "not_waiting"


class RunNotWorking(ManipleError):
    """A message was sent to a run that has ended, so that nobody would read it."""

    code = "not_working"


class NothingToRetry(ManipleError):
    """The run has neither failed nor gaps, or its thread has gone on since."""

    code = "nothing_to_retry"


class BranchPointGone(ManipleError):
    """What was said before a question is not stored any more, so that it cannot be asked again there."""

    code = "branch_point_gone"


class TooManyBranches(ManipleError):
    """The conversation has as many branches as one may have."""

    code = "too_many_branches"


class PlanNotEditable(ManipleError):
    """The run's plan cannot be changed now: it is neither being executed nor under review."""

    code = "plan_not_open"


class InvalidPlanEdit(ManipleError):
    """The change does not fit the plan; the message has the reason."""

    code = "wrong_plan_change"


def can_be_retried(record: RunRecord, view: RunView) -> bool:
    """Return whether a run ended with something undone: it failed, was cancelled, or has gaps."""
    has_answer = record.status in ("completed", "budget_exhausted")
    return record.status in ("failed", "cancelled") or (has_answer and bool(view.gaps))
