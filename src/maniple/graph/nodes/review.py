"""Let the user accept, edit or send back the plan before anything is done."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from maniple.agents.middleware.tool_calls import is_acceptance
from maniple.graph.plan import Plan, PlanProgress
from maniple.graph.state import RunOptions, State, make_update, private_of, request_of
from maniple.graph.written_plan import normalised
from maniple.tools.interaction import answer_text
from maniple.types import Worker

_SAY = 'say "accept", send the edited plan as JSON, or say in words what is to be different'


@dataclass(frozen=True, slots=True)
class ReviewNode:
    """Pause with the plan; go on with the user's answer.

    The answer is a word of acceptance, an edited plan as JSON text or object, or a wish in words, which goes
    back to the planner. A plan that cannot be followed is asked about again, with what is wrong (`error`).
    """

    available: Sequence[Worker]
    max_steps: int = 12

    async def __call__(
        self, state: State, runtime: Runtime[Any]
    ) -> Command[Literal["supervisor", "planner"]]:
        plan = Plan.model_validate_json(private_of(state).get("full_plan") or "")
        members = RunOptions.of(runtime, state).enabled(self.available)
        question: dict[str, Any] = {"kind": "plan_review", "plan": plan.model_dump(exclude_none=True)}
        while True:
            answer = _read(interrupt(question))
            if is_acceptance(answer):
                return Command(goto="supervisor")
            if isinstance(answer, str) and answer:
                return Command(goto="planner", update=_wished(state, answer))
            try:
                edited = normalised(Plan.model_validate(answer), members, self.max_steps)
            except ValueError as error:
                question = {**question, "error": _wrong(error)}
            else:
                return Command(goto="supervisor", update=_instead(edited))


def _read(answer: Any) -> Any:
    """Return the plan in an answer, or the words in it."""
    if isinstance(answer, str):
        answer = _plan_text(answer.strip())
    if not isinstance(answer, Mapping) or is_acceptance(answer) or "steps" in answer:
        return answer
    return answer.get("plan") or answer_text(answer) or answer


def _plan_text(text: str) -> Any:
    try:
        return json.loads(text) if text.startswith("{") else text
    except ValueError:
        return text


def _wished(state: State, wish: str) -> dict[str, Any]:
    """Keep the wish for everyone who works on the request, and as what the user said in the conversation."""
    request = f"{request_of(state)}\n\nShown a plan for this, the user said: {wish}"
    return make_update(HumanMessage(wish), feedback=wish, request=request)


def _instead(plan: Plan) -> dict[str, Any]:
    text = plan.as_text()
    message = HumanMessage(text, name="planner")
    return make_update(message, full_plan=text, plan=PlanProgress.of(plan).to_state())


def _wrong(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return f"{error}."
    places = (f"{'.'.join(map(str, one['loc'])) or 'it'}: {one['msg']}" for one in error.errors()[:3])
    return f"This is no plan ({'; '.join(places)}); {_SAY}."
