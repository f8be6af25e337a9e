"""The plan of a complex task in the browser: phases with goals; one that fails changes what follows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.task import truncate_middle
from maniple.llms import Shape, ShapeError, ask_for

PhaseStatus = Literal["not_started", "completed", "failed"]
GOAL_CHARACTERS = 500
_RESULT_CHARACTERS = 2_000
_LONG_CHARACTERS = 600
"""A task of so many is no single one."""
_SEVERAL = 3
"""So many pieces of work make a task complex."""
_SHORT_FORM = re.compile(
    r"\b(?:(?:[^\W\d_]\.){2,}|(?:dr|mrs?|ms|prof|st|nr|vs|etc|approx|incl|bzw|usw|mme|sr|sra)\.)", re.I
)
"""Whose full stop ends no sentence, such as "Dr." and "e.g."."""
_PIECE = re.compile(
    r"[.;!?]\s+(?=\S)|[。；！？]|\n\s*(?:[-*•]|\d+[.)])\s+|,\s+(?:and\s+)?(?:next|last(?:ly)?)\b"
    r"|\b(?:then|afterwards|after that|finally|danach|dann|anschließend|puis|ensuite|luego|después)\b"
    r"|然后|接着|最后|その後|次に",
    re.I,
)
_PLAN = (
    "You plan a task for an agent that works in a browser. Break it into {most} phases at most, in order; "
    "each has one goal, said in one sentence with how one sees that it is reached. Fewer are better: a "
    "phase is several actions. The last one ends with the whole answer. Answer with JSON only."
)
_ADAPT = (
    "A phase of your plan failed. What is done stays done. Give new phases, {most} at most, that reach the "
    "same task from where the browser is now, by another way. Answer with JSON only."
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "phases": {
            "type": "array",
            "items": {"type": "object", "properties": {"goal": {"type": "string"}}, "required": ["goal"]},
        }
    },
    "required": ["phases"],
}


class _Goal(BaseModel):
    goal: str


class _Plan(BaseModel):
    phases: list[_Goal] = Field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a task, and what came of it."""

    goal: str
    status: PhaseStatus = "not_started"
    result: str = ""

    def ended(self, result: str, *, done: bool) -> "Phase":
        """Return the phase as it is after its work."""
        return replace(self, status="completed" if done else "failed", result=result)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Phase":
        """Read what `to_state` wrote."""
        return cls(**state)

    def to_state(self) -> dict[str, str]:
        """Return plain data for a checkpoint."""
        return asdict(self)


def is_complex(task: str) -> bool:
    """Say whether a task is several pieces of work: by its sentences, list items and words such as "then"."""
    said = _SHORT_FORM.sub("", task).strip().rstrip(".。!！?？")
    return len(task) > _LONG_CHARACTERS or len(_PIECE.findall(said)) + 1 >= _SEVERAL


class PhasePlanner:
    """Makes plans, and adapts them."""

    def __init__(self, model: BaseChatModel, most_phases: int) -> None:
        self._model = model
        self._most = most_phases

    async def plan(self, task: str) -> list[Phase]:
        """Return the phases of a task; the task itself, as one, where it is simple or no plan was given."""
        whole = [Phase(task)]
        if self._most < 2 or not is_complex(task):
            return whole
        return await self._asked([SystemMessage(_PLAN.format(most=self._most)), HumanMessage(task)]) or whole

    async def adapt(self, task: str, phases: Sequence[Phase]) -> list[Phase]:
        """Return the plan after its failure: what is completed, then new phases; [] when there are none."""
        done = [one for one in phases if one.status == "completed"]
        told = "\n".join(_line(number, one) for number, one in enumerate(phases, 1))
        messages: list[BaseMessage] = [
            SystemMessage(_PLAN.format(most=self._most)),
            HumanMessage(f"Task: {task}\n\nThe plan so far:\n{told}\n\n{_ADAPT.format(most=self._most)}"),
        ]
        new = await self._asked(messages)
        return [*done, *new] if new else []

    async def _asked(self, messages: list[BaseMessage]) -> list[Phase]:
        def check(plan: _Plan) -> _Plan:
            if not any(one.goal.strip() for one in plan.phases):
                raise ValueError("there is no phase in it")
            return plan

        try:
            plan, _ = await ask_for(self._model, messages, Shape("phases", _SCHEMA, _Plan), check=check)
        except ShapeError:
            return []
        goals = [one.goal.strip()[:GOAL_CHARACTERS] for one in plan.phases if one.goal.strip()]
        return [Phase(goal) for goal in goals[: self._most]]


def _line(number: int, phase: Phase) -> str:
    result = f"\n{fence_untrusted(truncate_middle(phase.result, _RESULT_CHARACTERS))}" if phase.result else ""
    return f"{number}. [{phase.status}] {phase.goal}{result}"
