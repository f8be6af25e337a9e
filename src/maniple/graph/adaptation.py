"""Replanning: replaces the remaining steps of a plan that cannot be completed (seed 003).

It also lists for the planner of the next request which steps were not done.
"""

from langchain_core.messages import BaseMessage, HumanMessage

from maniple.agents import StepResult
from maniple.agents.briefing import format_removed, format_results
from maniple.agents.task import explain_failure
from maniple.graph.plan import DECISIONS_FOR_A_STEP, OPEN, Plan, PlanProgress, TrackedStep
from maniple.types import STEP_FAILED

_REWRITTEN = "The rest of the plan was written again without it."


def prepare_replanning(progress: PlanProgress) -> PlanProgress:
    """Return the plan before replanning: failed, partial and blocked steps are settled, thus not retried."""
    ended = [step.id for step in progress.steps if step.status == "blocked" or step.awaits_decision]
    steps = tuple(step.closed("failed", step.reason) if step.id in ended else step for step in progress.steps)
    changes = {"steps": steps, "to_replace": tuple(ended), "adaptations": progress.adaptations + 1}
    return progress.model_copy(update=changes)


def request_for_rest(progress: PlanProgress, tokens: int, feedback: str = "") -> list[BaseMessage]:
    """Return the messages that ask the planner for the remaining steps.

    They contain the plan so far with results of at most `tokens`. `feedback` is the user's message that made
    replanning necessary, if there is one. The lead's hint comes last.
    """
    lines = [
        f"{n}. {step.agent_name}: {step.title} ({_how(progress, step)})"
        for n, step in enumerate(progress.steps, 1)
        if not step.is_removed
    ]
    words = (
        "Your plan does not work. This is what came of its steps:\n{steps}\n"
        "Write the rest of the plan again, without the steps that are done: their results stay and are given "
        "to each new step. Choose another approach than the one that failed; if there is none, plan the "
        "report alone, which says what is missing."
    )
    if feedback:
        words = (
            "This is what came of the steps of your plan:\n{steps}\n"
            "The user wrote meanwhile: {feedback}\n"
            "Write the rest of the plan again as the user says, without the steps that are done: their "
            "results stay and are given to each new step."
        )
    text = words.format(steps="\n".join(lines), feedback=feedback)
    if removed := format_removed(progress.removed):
        text = f"{text}\n{removed}"
    if progress.replan_hint:
        text = f"{text}\nThe lead's hint: {progress.replan_hint}"
    return [*answers_of(progress, tokens), HumanMessage(text)]


def format_unfinished(progress: PlanProgress) -> str:
    """Return which steps of the previous request's plan were not done, why, and which the user removed.

    "" for none.
    """
    lacking = (*progress.unfinished, *(one for one in progress.steps if progress.lacks_part(one)))
    missing = [f"- {step.agent_name}: {step.title} ({_why(step)})" for step in lacking]
    removed = [f"- {title} (removed by the user)" for title in progress.removed]
    if not missing and not removed:
        return ""
    head = "Not done of the plan for the previous request; plan it only if the user wants it now:"
    return "\n".join([head, *missing, *removed])


def _why(step: TrackedStep) -> str:
    if step.is_partial:
        return f"done in part; missing: {step.outcome.summary}"
    if step.status in OPEN:
        return "the run ended during it" if step.status == "in_progress" else "the run ended before it"
    return explain_failure(step.reason or step.result).rstrip(".")


def apply_rest(progress: PlanProgress, rest: Plan) -> PlanProgress:
    """Return the plan with its open steps replaced by those of `rest`; each needs all earlier results.

    If only the report is left, it replaces no step but the report: it says what is missing.
    """
    is_replaced = any(step.agent_name != "reporter" for step in rest.steps)
    finished = [
        _close(progress, step, is_replaced=is_replaced)
        for step in progress.steps
        if step.status not in OPEN
        or step.outcome.status == "partial"
        or not (is_replaced or _is_report(step))
    ]
    first = max(step.id for step in progress.steps) + 1
    new = (
        TrackedStep(id=number, **step.model_dump(exclude={"needs"}))
        for number, step in enumerate(rest.steps, start=first)
    )
    more = progress.decisions_left + DECISIONS_FOR_A_STEP * len(rest.steps)
    changed = {"steps": (*finished, *new), "decisions_left": more, "replan_hint": None, "to_replace": ()}
    return progress.model_copy(update=changed)


def _is_report(step: TrackedStep) -> bool:
    return step.agent_name == "reporter"


def _close(progress: PlanProgress, step: TrackedStep, *, is_replaced: bool) -> TrackedStep:
    """Return a step before the new rest, which replaces none that the run had continued without before."""
    if step.status in OPEN:
        return step.closed("skipped", _REWRITTEN)
    is_meant = is_replaced and step.id in progress.to_replace
    return step.model_copy(update={"is_replaced": True}) if is_meant else step


def _how(progress: PlanProgress, step: TrackedStep) -> str:
    if step.status in OPEN:
        return "not done, to be replaced"
    if step.is_partial:
        return f"done in part; missing: {step.outcome.summary}"
    if place := progress.place_of_replacement(step):
        return f"{step.status}, step {place} was done instead: {step.reason}"
    return f"failed: {step.reason}" if step.status == "failed" else step.status


def answers_of(progress: PlanProgress, tokens: int) -> list[HumanMessage]:
    """Return the results of the steps that were tried, in the order of the plan, in at most `tokens`."""
    results = [_result(step) for step in progress.steps if step.result]
    return [HumanMessage(text) for text in format_results(results, tokens)]


def _result(step: TrackedStep) -> StepResult:
    has_part = step.status == "completed" or step.outcome.status == "partial"
    text = step.found if has_part else f"{STEP_FAILED} {step.found}"
    return StepResult(step.agent_name, step.title, text, step=step.id)
