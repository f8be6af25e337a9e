"""Let the user accept, edit or send back the plan before anything is done."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt
from pydantic import ValidationError

from maniple.agents.answers import accepts
from maniple.graph.plan import Plan, Progress
from maniple.graph.state import RunOptions, State
from maniple.graph.written_plan import normalised
from maniple.types import Worker


@dataclass(frozen=True, slots=True)
class ReviewNode:
    """Pause with the plan; go on with the user's answer.

    The answer is a word of acceptance, an edited plan as JSON text or object, or a wish in words,
    which goes back to the planner.
    """

    available: Sequence[Worker]
    max_steps: int = 12

    async def __call__(
        self, state: State, runtime: Runtime[Any]
    ) -> Command[Literal["supervisor", "planner"]]:
        plan = Plan.model_validate_json(state.get("full_plan") or "")
        answer = interrupt({"kind": "plan_review", "plan": plan.model_dump(exclude_none=True)})
        if accepts(answer):
            return Command(goto="supervisor")
        edited = self._edited(answer, RunOptions.of(runtime, state))
        if edited is None:
            return Command(goto="planner", update={"feedback": str(answer)})
        text = edited.as_text()
        update = {
            "full_plan": text,
            "plan": Progress.of(edited).to_state(),
            "messages": [HumanMessage(text, name="planner")],
        }
        return Command(goto="supervisor", update=update)

    def _edited(self, answer: object, options: RunOptions) -> Plan | None:
        members = options.enabled(self.available)
        try:
            if isinstance(answer, dict):
                plan = Plan.model_validate(answer)
            else:
                plan = Plan.model_validate_json(str(answer))
            return normalised(plan, members, self.max_steps)
        except (ValidationError, ValueError):
            return None
