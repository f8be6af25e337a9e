"""What came of the steps of a plan, as those who direct the team are told."""

from langchain_core.messages import HumanMessage

from maniple.agents import StepResult, format_response
from maniple.graph.plan import Progress, TrackedStep

RESULT_CHARACTERS = 2_000


def answers_of(progress: Progress) -> list[HumanMessage]:
    """Return what each step gave that has been tried, in the order of the plan."""
    tried = [step for step in progress.steps if step.result]
    return [HumanMessage(format_response(_result(step), limit=RESULT_CHARACTERS)) for step in tried]


def _result(step: TrackedStep) -> StepResult:
    text = step.result if step.status == "completed" else f"STEP FAILED: {step.result}"
    return StepResult(step.agent_name, step.title, text)
