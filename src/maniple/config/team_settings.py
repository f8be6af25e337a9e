"""What can be set of the team: who works, with which models, and how far it may go."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeVar

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from maniple.config.section import Section
from maniple.types import DIRECTORS, WORKERS, AgentName, LLMType, Worker

Names = TypeVar("Names", bound=Collection[str])


class TeamSettings(Section):
    """Who works, and how far the team may go."""

    members: tuple[Worker, ...] = WORKERS
    llms: dict[AgentName, LLMType] = Field(default_factory=dict)
    """Which model type each role uses, over the defaults in `maniple.agents.roles`."""
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = Field(default=2, ge=0, le=5)
    max_model_calls_per_step: int = Field(default=25, gt=0)
    max_tool_calls_per_step: int = Field(default=100, gt=0)
    tool_timeout_seconds: float = Field(default=600, gt=0)
    """Of one call of a tool that says no time of its own; the sandbox and the web have shorter ones."""
    max_plan_steps: int = Field(default=12, gt=0, le=50)
    max_clarifications: int = Field(default=1, ge=0, le=5)
    """How often the coordinator may ask back before the team begins; 0 turns it off."""
    max_questions: int = Field(default=3, ge=0, le=20)
    """How many questions the workers may ask the user in one run; 0 turns it off."""

    @field_validator("members")
    @classmethod
    def _are_members(cls, names: tuple[Worker, ...]) -> tuple[Worker, ...]:
        return _known(names, WORKERS)

    @field_validator("llms")
    @classmethod
    def _are_agents(cls, llms: dict[AgentName, LLMType]) -> dict[AgentName, LLMType]:
        _known(llms, (*DIRECTORS, *WORKERS))
        return llms


def _known(names: Names, known: Sequence[str]) -> Names:
    """Return `names`; the mistake of one that is not known tells by `at` where among them it stands."""
    for place, name in enumerate(names):
        if name not in known:
            *others, last = (f"'{one}'" for one in known)
            words = f"Input should be {', '.join(others)} or {last}"
            at = name if isinstance(names, Mapping) else place
            raise PydanticCustomError("unknown_name", "{words}", {"words": words, "at": at})
    return names
