"""The rest of a plan written anew, when what was planned cannot be done (seed 003)."""

from langchain_core.messages import BaseMessage, HumanMessage

from maniple.agents import StepResult
from maniple.agents.briefing import format_results
from maniple.graph.plan import DECISIONS_FOR_A_STEP, OPEN, Plan, PlanProgress, TrackedStep


def begun(progress: PlanProgress) -> PlanProgress:
    """Return the plan as the planner is given it to be adapted: what failed is not tried again by itself."""
    over = {"status": "failed", "settled": True}
    steps = tuple(
        step.model_copy(update=over) if step.status in ("failed", "blocked") else step
        for step in progress.steps
    )
    counted = {"adaptations": progress.adaptations + 1}
    return progress.model_copy(update={"steps": steps, **counted})


def request_for_rest(progress: PlanProgress, tokens: int) -> list[BaseMessage]:
    """Return the plan so far, with results of at most `tokens`, and what the planner is to write now."""
    lines = [
        f"{n}. {step.agent_name}: {step.title} ({_how(step)})" for n, step in enumerate(progress.steps, 1)
    ]
    words = (
        "Your plan does not work. This is what came of its steps:\n{steps}\n"
        "Write the rest of the plan anew, without the steps that are done: their results stay and are handed "
        "on to each new step. Go another way than the one that failed; where there is none, plan the report "
        "alone, which says what is missing."
    )
    return [*answers_of(progress, tokens), HumanMessage(words.format(steps="\n".join(lines)))]


def adapted(progress: PlanProgress, rest: Plan) -> PlanProgress:
    """Return the plan whose open steps are those of `rest`; each is given all the results before it."""
    # A rest that is only the report replaces nothing: the report says what is missing.
    is_replaced = any(step.agent_name != "reporter" for step in rest.steps)
    over = [
        step.model_copy(update={"is_replaced": is_replaced}) if step.status == "failed" else step
        for step in progress.steps
        if step.status not in OPEN
    ]
    first = max(step.id for step in progress.steps) + 1
    new = (
        TrackedStep(id=number, **step.model_dump(exclude={"needs"}))
        for number, step in enumerate(rest.steps, start=first)
    )
    more = progress.decisions_left + DECISIONS_FOR_A_STEP * len(rest.steps)
    return progress.model_copy(update={"steps": (*over, *new), "decisions_left": more})


def _how(step: TrackedStep) -> str:
    if step.status in OPEN:
        return "not done, to be replaced"
    return f"failed: {step.reason}" if step.status == "failed" else step.status


def answers_of(progress: PlanProgress, tokens: int) -> list[HumanMessage]:
    """Return what each step gave that has been tried, in the order of the plan, in at most `tokens`."""
    results = [_result(step) for step in progress.steps if step.result]
    return [HumanMessage(text) for text in format_results(results, tokens)]


def _result(step: TrackedStep) -> StepResult:
    text = step.result if step.status == "completed" else f"STEP FAILED: {step.result}"
    return StepResult(step.agent_name, step.title, text, step=step.id)
