"""What came of the steps of a plan, as those who direct the team are told."""

from langchain_core.messages import HumanMessage

from maniple.agents import StepResult
from maniple.agents.briefing import format_results
from maniple.graph.plan import PlanProgress, TrackedStep


def answers_of(progress: PlanProgress, tokens: int) -> list[HumanMessage]:
    """Return what each step gave that has been tried, in the order of the plan, in at most `tokens`."""
    results = [_result(step) for step in progress.steps if step.result]
    return [HumanMessage(text) for text in format_results(results, tokens)]


def _result(step: TrackedStep) -> StepResult:
    text = step.result if step.status == "completed" else f"STEP FAILED: {step.result}"
    return StepResult(step.agent_name, step.title, text, step=step.id)
