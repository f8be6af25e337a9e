"""The review: the user accepts, edits or rejects the plan before it is executed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from maniple.graph.plan import Plan, PlanProgress
from maniple.graph.plan_edits import record_review
from maniple.graph.question_forms import has_question_form
from maniple.graph.state import STEERING_MARK, RunOptions, State, make_update, private_of, request_of
from maniple.graph.waves import StepOrder
from maniple.graph.written_plan import normalize_plan
from maniple.scope.run_scope import run_scope
from maniple.tools.decisions import (
    PLAN_ANSWERS,
    is_acceptance,
    is_plan_acceptance,
    parse_plan_feedback,
    read_json_object,
)
from maniple.tools.interaction import answer_text
from maniple.types import Worker, is_mapping

_EXPECTED = 'answer "accept", send the edited plan as JSON, or say what should be different'


@dataclass(frozen=True, slots=True)
class ReviewNode:
    """Pauses with the plan and continues with the user's answer.

    The answer accepts the plan, is an edited plan as JSON text or object, or says what to change; then the
    planner writes the plan again. What has the form of a question goes to the lead, which answers it and
    comes back, or has the plan changed. For an invalid plan the review is repeated with an `error`.
    """

    available: Sequence[Worker]
    order_of: Callable[[PlanProgress], Sequence[StepOrder]]
    """Returns when each step of a plan will begin; nothing if they run one by one."""
    max_steps: int = 12

    async def __call__(
        self, state: State, runtime: Runtime[Any]
    ) -> Command[Literal["supervisor", "planner"]]:
        plan = reviewed_plan(state)
        members = RunOptions.of(runtime, state).enabled(self.available)
        question = describe_review(plan, self.order_of(PlanProgress.of(plan)))
        while True:
            answer = _read(interrupt(question))
            if is_plan_acceptance(answer):
                return Command(goto="supervisor")
            if isinstance(answer, str) and answer:
                said, feedback = _as_message(answer), parse_plan_feedback(answer)
                if has_question_form(answer):
                    return Command(goto="supervisor", update=make_update(said, asked=feedback))
                return Command(goto="planner", update=send_back(state, feedback, said))
            try:
                edited = normalize_plan(Plan.model_validate(answer), members, self.max_steps)
            except ValueError as error:
                question = {**question, "error": _explain_error(error)}
            else:
                return Command(goto="supervisor", update=_replace_plan(plan, edited))


def _read(answer: Any) -> Any:
    """Return the plan in an answer, or its text."""
    answer = read_json_object(answer.strip() if isinstance(answer, str) else answer)
    if not is_mapping(answer) or is_acceptance(answer) or "steps" in answer:
        return answer
    return answer.get("plan") or answer_text(answer) or answer


def reviewed_plan(state: State) -> Plan:
    """Return the plan that waits for its review."""
    return Plan.model_validate_json(private_of(state).get("full_plan") or "")


def describe_review(plan: Plan, order: Sequence[StepOrder]) -> dict[str, Any]:
    """Return what the user is shown with a plan; `order`: when its steps begin, if not one by one."""
    shown = plan.model_dump(exclude_none=True)
    question = {"kind": "plan_review", "plan": shown, "answers": dict(PLAN_ANSWERS)}
    return {**question, "order": list(order)} if order else question


def send_back(state: State, feedback: str, *said: HumanMessage) -> dict[str, Any]:
    """Return the update that adds the feedback to the request, and what was said to the conversation."""
    request = f"{request_of(state)}\n\nShown a plan for this, the user said: {feedback}"
    return make_update(*said, feedback=feedback, request=request, asked="")


def _as_message(answer: str) -> HumanMessage:
    text, message_id = parse_plan_feedback(answer), run_scope().inbox.answer_id or str(uuid4())
    return HumanMessage(text, id=message_id, additional_kwargs={STEERING_MARK: True})


def _replace_plan(reviewed: Plan, edited: Plan) -> dict[str, Any]:
    text = edited.as_text()
    message = HumanMessage(text, name="planner")
    return make_update(message, full_plan=text, plan=record_review(reviewed, edited).to_state())


def _explain_error(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"{error}."
    places = (f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()[:3])
    return f"This is not a valid plan ({'; '.join(places)}); {_EXPECTED}."
