"""The review: the user accepts, edits or rejects the plan before it is executed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from maniple.graph.plan import Plan, PlanProgress
from maniple.graph.plan_edits import record_review
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
    planner writes the plan again. For an invalid plan the review is repeated with an `error`.
    """

    available: Sequence[Worker]
    order_of: Callable[[PlanProgress], Sequence[StepOrder]]
    """Returns when each step of a plan will begin; nothing if they run one by one."""
    max_steps: int = 12

    async def __call__(
        self, state: State, runtime: Runtime[Any]
    ) -> Command[Literal["supervisor", "planner"]]:
        plan = Plan.model_validate_json(private_of(state).get("full_plan") or "")
        members = RunOptions.of(runtime, state).enabled(self.available)
        shown = plan.model_dump(exclude_none=True)
        question: dict[str, Any] = {"kind": "plan_review", "plan": shown, "answers": dict(PLAN_ANSWERS)}
        if order := self.order_of(PlanProgress.of(plan)):
            question["order"] = list(order)
        while True:
            answer = _read(interrupt(question))
            if is_plan_acceptance(answer):
                return Command(goto="supervisor")
            if isinstance(answer, str) and answer:
                return Command(goto="planner", update=_send_back(state, parse_plan_feedback(answer)))
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


def _send_back(state: State, feedback: str) -> dict[str, Any]:
    """Return the update that adds the feedback to the request and to the conversation."""
    request = f"{request_of(state)}\n\nShown a plan for this, the user said: {feedback}"
    message_id = run_scope().inbox.answer_id
    message = HumanMessage(feedback, id=message_id, additional_kwargs={STEERING_MARK: True})
    return make_update(message, feedback=feedback, request=request)


def _replace_plan(reviewed: Plan, edited: Plan) -> dict[str, Any]:
    text = edited.as_text()
    message = HumanMessage(text, name="planner")
    return make_update(message, full_plan=text, plan=record_review(reviewed, edited).to_state())


def _explain_error(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"{error}."
    places = (f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()[:3])
    return f"This is not a valid plan ({'; '.join(places)}); {_EXPECTED}."
