"""What the nodes do when the run's budget is nearly exhausted: skip to the report, or compile one by code."""

from maniple.agents import Task
from maniple.agents.middleware.fencing import fences_to_code
from maniple.agents.report import check_report
from maniple.agents.task import NOT_WRITTEN, find_partial_work
from maniple.errors import BudgetExhausted
from maniple.graph.plan import OPEN, TITLE_CHARACTERS, Plan, PlannedStep, PlanProgress
from maniple.scope.run_scope import current_meter
from maniple.text import shorten

_NOT_BEGUN = "it was not begun: "


def wrap_up(progress: PlanProgress, reason: str, *, gives_up: bool = False) -> PlanProgress:
    """Return the plan with all open steps but the report skipped; mark the budget as exhausted if any were.

    With `gives_up` the budget is marked as exhausted even if no step was skipped.
    """
    for step in progress.steps:
        is_open = step.status in OPEN and step.agent_name != "reporter"
        # After a restart the meter no longer has the mark, but the plan has the skipped steps.
        gives_up = gives_up or is_open or (step.status == "skipped" and step.reason.startswith(_NOT_BEGUN))
    if gives_up:
        current_meter().mark_exhausted(reason)
    return progress.skipped_to_report(_NOT_BEGUN + reason)


def plan_report_only(request: str, error: BudgetExhausted) -> Plan:
    """Return a plan with only a report, for a run whose planner cannot be asked within the budget."""
    words = f"{error} Nothing could be done before that. Say so, and what would have been needed."
    report = PlannedStep(agent_name="reporter", title="Report what is missing", description=words)
    return Plan(thought=str(error), title=shorten(request, TITLE_CHARACTERS) or "Report", steps=[report])


async def write_bare_report(task: Task, why: str) -> str:
    """Return a report without a model: the missing steps and the results, with their citations checked."""
    missing = [result.describe_missing() for result in task.results if not result.done]
    found = [
        (result.title, result.text if result.done else find_partial_work(result.text))
        for result in task.results
    ]
    results = [f"## {title}\n\n{fences_to_code(text)}" for title, text in found if text]
    # The notice may quote an error, which must not be checked; a placeholder replaces it during the check.
    placeholder = f"*{NOT_WRITTEN}.*"
    report = await check_report(task, "\n\n".join([f"# {task.title}", placeholder, *results]))
    before, _, after = report.partition(placeholder)
    return "\n\n".join([f"{before}*{NOT_WRITTEN}: {why}*", *missing]) + after
