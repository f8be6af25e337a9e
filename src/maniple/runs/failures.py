"""Why a run is not begun, answered or found."""

from maniple.errors import ManipleError


class TooManyRuns(ManipleError):
    """As many runs as are allowed are running or waiting."""

    code = "too_many_runs"
    retryable = True


class Stopping(ManipleError):
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


class NotWaiting(ManipleError):
    """The run does not wait for an answer, or not for this one."""

    code = "not_waiting"


class PlanNotOpen(ManipleError):
    """The run's plan cannot be changed now: it is not worked through and not shown for review."""

    code = "plan_not_open"


class WrongPlanChange(ManipleError):
    """The change does not fit the plan; the words say why."""

    code = "wrong_plan_change"
