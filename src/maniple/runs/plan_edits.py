"""Changes the plan of a run while it is executed or under review."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from maniple.agents.plan_edits import PlanChange
from maniple.graph import Plan, Team, members_of
from maniple.graph.plan_edits import apply_change, apply_to_review
from maniple.graph.state import progress_of
from maniple.runs.active_run import ActiveRun
from maniple.runs.driver import RunDriver
from maniple.runs.engine import InvalidPlanEdit, PlanNotEditable
from maniple.runs.request import RunRequest
from maniple.runtime import thread_state
from maniple.types import Worker

PLAN_NOT_EDITABLE = (
    "The plan cannot be changed now: the run is neither executing it nor waiting for its review."
)


async def request_plan_edit(driver: RunDriver, active: ActiveRun, change: PlanChange) -> dict[str, Any]:
    """Accept a change of a plan that is being executed; return the resulting plan.

    The change is stored before it is applied. Raises `PlanNotEditable` or `InvalidPlanEdit`.
    """
    team = driver.team
    state = await thread_state(team, active.record.thread_id)
    progress = progress_of(state.values)
    if not active.plan_edits.is_open or progress is None:
        raise PlanNotEditable(PLAN_NOT_EDITABLE)
    try:
        preview = apply_change(progress, change, _allowed_members(team, active.request))
    except ValueError as error:
        raise InvalidPlanEdit(str(error)) from error
    before = active.request
    await driver.store_request(active, replace(before, wishes=(*before.wishes, change)))
    try:
        active.plan_edits.put(change)
    except ValueError as error:  # the run has ended in the meantime
        await driver.store_request(active, before)
        raise PlanNotEditable(PLAN_NOT_EDITABLE) from error
    return preview.to_state()


def edit_reviewed_plan(
    team: Team, request: RunRequest, pending: Mapping[str, Any], change: PlanChange
) -> tuple[str, Plan]:
    """Return the interrupt id of the pending review, and the changed plan."""
    for interrupt_id, payload in pending.items():
        question: Mapping[str, Any] = (
            cast("Mapping[str, Any]", payload) if isinstance(payload, Mapping) else {}
        )
        if question.get("kind") == "plan_review":
            try:
                plan = apply_to_review(
                    Plan.model_validate(question["plan"]), change, _allowed_members(team, request)
                )
            except ValueError as error:
                raise InvalidPlanEdit(str(error)) from error
            return interrupt_id, plan
    raise PlanNotEditable(PLAN_NOT_EDITABLE)


def _allowed_members(team: Team, request: RunRequest) -> Sequence[Worker]:
    return request.options.at_work(members_of(team))
