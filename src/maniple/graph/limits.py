"""What the nodes do when the run's budget comes to its end: wrap up, and report what is missing."""

from maniple.agents import Task
from maniple.agents.budget import UsageMeter
from maniple.agents.middleware.fencing import fences_to_code
from maniple.agents.report import check_report
from maniple.agents.run_scope import run_scope
from maniple.agents.task import find_partial_work
from maniple.errors import BudgetExhausted
from maniple.graph.plan import OPEN, Plan, PlannedStep, PlanProgress

_NOT_BEGUN = "it was not begun: "


def current_meter() -> UsageMeter:
    """Return the meter of the current run; one without limits outside of our runs."""
    return run_scope().meter or UsageMeter()


def wrapped_up(progress: PlanProgress, reason: str, *, gives_up: bool = False) -> PlanProgress:
    """Return the plan with every step but the report given up, and note in the meter what that cost the run.

    `gives_up` says that it costs the run something even when no step is left to be begun.
    """
    for step in progress.steps:
        is_open = step.status in OPEN and step.agent_name != "reporter"
        # After a restart the meter has forgotten what the plan still says.
        gives_up = gives_up or is_open or (step.status == "skipped" and step.reason.startswith(_NOT_BEGUN))
    if gives_up:
        current_meter().mark_exhausted(reason)
    return progress.skipped_to_report(_NOT_BEGUN + reason)


def report_alone(request: str, error: BudgetExhausted) -> Plan:
    """Return the plan for when not even the planner can be asked."""
    words = f"{error} Nothing could be done before that. Say so, and what would have been needed."
    report = PlannedStep(agent_name="reporter", title="Report what is missing", description=words)
    return Plan(thought=str(error), title=request.strip()[:80] or "Report", steps=[report])


async def bare_report(task: Task, why: str) -> str:
    """Return the report that no model wrote: what is missing, and the results, checked as in any report."""
    missing = [result.describe_missing() for result in task.results if not result.done]
    found = [
        (result.title, result.text if result.done else find_partial_work(result.text))
        for result in task.results
    ]
    results = [f"## {title}\n\n{fences_to_code(text)}" for title, text in found if text]
    notice = f"*No report could be written: {why}*"
    # The sentences about what is missing are written by code, and therefore not checked.
    report = await check_report(task, "\n\n".join([f"# {task.title}", notice, *results]))
    before, _, after = report.partition(notice)
    return "\n\n".join([f"{before}{notice}", *missing]) + after
