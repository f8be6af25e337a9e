"""What can be set of the team: who works, with which models, and how far it may go."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal, TypeVar

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from maniple.config.role_settings import MAX_NAMES, RoleSettings
from maniple.config.section import Section
from maniple.types import DIRECTORS, GENERAL, WORKERS, AgentName, LLMType, Worker

Names = TypeVar("Names", bound=Collection[str])


class TeamSettings(Section):
    """Who works, and how far the team may go."""

    roles: tuple[RoleSettings, ...] = Field(default=(), max_length=MAX_NAMES)
    """Members beside the built-in ones."""
    members: tuple[Worker, ...] = WORKERS
    """Who works; the reporter and the own roles always do, `manus` only if it is named here."""
    llms: dict[AgentName, LLMType] = Field(default_factory=dict)
    """Which model type each role uses, over the defaults in `maniple.agents.roles`."""
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = Field(default=2, ge=0, le=5)
    max_model_calls_per_step: int = Field(default=25, gt=0)
    max_tool_calls_per_step: int = Field(default=100, gt=0)
    tool_timeout_seconds: float = Field(default=600, gt=0)
    """Of one call of a tool that says no time of its own; the sandbox and the web have shorter ones."""
    max_plan_steps: int = Field(default=12, gt=0, le=50)
    max_plan_adaptations: int = Field(default=1, ge=0, le=5)
    """How often the planner writes the rest of a plan anew that does not work; 0 turns it off."""
    max_clarifications: int = Field(default=1, ge=0, le=5)
    """How often the coordinator may ask back before the team begins; 0 turns it off."""
    max_questions: int = Field(default=3, ge=0, le=20)
    """How many questions the workers may ask the user in one run; 0 turns it off."""

    @property
    def workers(self) -> tuple[Worker, ...]:
        """Everybody who may work, whether on the team or not."""
        *others, reporter = WORKERS
        general = [GENERAL] if GENERAL in self.members else []
        return (*others, *general, *self.own, reporter)

    @property
    def own(self) -> tuple[Worker, ...]:
        """Those who are not built in."""
        return tuple(role.name for role in self.roles)

    @property
    def equipped(self) -> tuple[Worker, ...]:
        """Those who can be given tools: all but the reporter."""
        return (*self.workers[:-1], GENERAL)

    @property
    def enabled(self) -> tuple[Worker, ...]:
        """Who is on the team."""
        return tuple(name for name in self.workers if name in (*self.members, *self.own, "reporter"))

    def having(self, *members: Worker) -> "TeamSettings":
        """Return the same team with these members more."""
        return self.model_copy(update={"members": tuple(dict.fromkeys((*self.members, *members)))})

    @field_validator("roles")
    @classmethod
    def _differ(cls, roles: tuple[RoleSettings, ...]) -> tuple[RoleSettings, ...]:
        names = [role.name for role in roles]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise mistake(f"there is another role called {name}", place, "name")
        return roles

    @field_validator("members")
    @classmethod
    def _are_members(cls, names: tuple[Worker, ...], info: ValidationInfo) -> tuple[Worker, ...]:
        return known(names, _workers(info)) if "roles" in info.data else names

    @field_validator("llms")
    @classmethod
    def _are_agents(cls, llms: dict[AgentName, LLMType], info: ValidationInfo) -> dict[AgentName, LLMType]:
        return known(llms, (*DIRECTORS, *_workers(info))) if "roles" in info.data else llms


def _workers(info: ValidationInfo) -> tuple[Worker, ...]:
    return (*WORKERS, GENERAL, *(role.name for role in info.data["roles"]))


def known(names: Names, all_names: Sequence[str], at: tuple[str | int, ...] = ()) -> Names:
    """Return `names`; the mistake of one that is not among `all_names` tells by `at` where it stands."""
    for place, name in enumerate(names):
        if name not in all_names:
            *others, last = (f"'{one}'" for one in all_names)
            words = f"Input should be {', '.join(others)} or {last}"
            raise mistake(words, *at, name if isinstance(names, Mapping) else place)
    return names


def mistake(words: str, *at: str | int) -> PydanticCustomError:
    """Return the error of a check of several values together; `at` says which of them it is."""
    return PydanticCustomError("mistake", "{words}", {"words": words, "at": at})
