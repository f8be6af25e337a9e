"""Settings of the team: its roles, their tools and skills, the enabled members, and the limits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from maniple.config.values import HARMLESS, Reference, Section, UserPath
from maniple.types import (
    DIRECTORS,
    GENERAL,
    WORKERS,
    AgentName,
    Depth,
    JudgeMode,
    LLMType,
    ReportStyle,
    Worker,
)

MAX_PROMPT_BYTES = 32_768
MAX_NAMES = 32
MAX_TOOLS = 64
# Names of other nodes of the graph, of LangChain's nodes inside of an agent, and of terminal commands.
_TAKEN = frozenset(
    {*DIRECTORS, *WORKERS, GENERAL, "solo", "clarify", "review", "model", "tools", "plan", "all", "everyone"}
)


Names = TypeVar("Names", bound=Collection[str])


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A Markdown file and its content."""

    path: Path
    text: str = field(repr=False)


def _read_prompt(path: object) -> object:
    if not isinstance(path, str | Path):
        return path
    file = Path(path).expanduser()
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_PROMPT_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8 text") from error
    if len(content) > MAX_PROMPT_BYTES:
        raise ValueError(f"{file} is longer than {MAX_PROMPT_BYTES} bytes. Every call sends it; shorten it")
    if not text.strip():
        raise ValueError(f"{file} is empty. Describe the role's work in it")
    return PromptFile(file, text)


def _is_free(name: str) -> str:
    if name in _TAKEN:
        raise ValueError(f"{name} is reserved. Reserved names: {', '.join(sorted(_TAKEN))}")
    return name


RoleName = Annotated[Worker, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$"), AfterValidator(_is_free)]


class RoleSettings(Section):
    """One additional role of the team."""

    name: RoleName
    brief: str = Field(min_length=1, max_length=300)
    """What the role can and cannot do, for the prompts of the planner and the supervisor."""
    description: str = Field(default="", max_length=300)
    """The description for clients; default: the brief."""
    prompt: Annotated[PromptFile, BeforeValidator(_read_prompt)]
    """The Markdown file of the prompt; a relative path starts at the folder of conf.yaml."""
    llm: LLMType = "basic"
    tools: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    """The names of its tools: built-in tools, those of `tools`, and those of installed packages."""
    optional: bool = True
    """Whether clients may disable it."""


class ToolSettings(Section):
    """One tool: a function with type hints and a docstring, or a LangChain tool.

    A text alone is its `use`.
    """

    use: Reference
    roles: tuple[Worker, ...] = Field(default=(), max_length=MAX_NAMES)
    """The workers that get it, in addition to roles that name it."""

    @property
    def name(self) -> str:
        """Its name for models and in `runs.approval`: the name of its attribute."""
        return self.use.partition(":")[2]

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value


class SkillSettings(Section):
    """One folder of skills, each a folder with a `SKILL.md`. A plain text is its `folder`."""

    folder: UserPath
    """A relative path starts at the folder of conf.yaml."""
    roles: tuple[Worker, ...] = Field(default=("coder",), max_length=MAX_NAMES)
    """The workers that can read them."""

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        return {"folder": value} if isinstance(value, str) else value


class TeamSettings(Section):
    """The enabled members and the limits of the team."""

    roles: tuple[RoleSettings, ...] = Field(default=(), max_length=MAX_NAMES)
    """Members in addition to the built-in ones."""
    members: tuple[Worker, ...] = WORKERS
    """The enabled members.

    The reporter and the user's own roles are always enabled, `manus` only if named here.
    """
    llms: dict[AgentName, LLMType] = Field(default_factory=dict)
    """Which model type each role uses, over the defaults in `maniple.agents.roles`."""
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = Field(default=1, ge=0, le=5)
    max_model_calls_per_step: int = Field(default=25, gt=0)
    max_tool_calls_per_step: int = Field(default=100, gt=0)
    tool_timeout_seconds: float = Field(default=600, gt=0)
    """The time limit of a call, for tools without their own; the sandbox and the web have shorter limits."""
    max_plan_steps: int = Field(default=12, gt=0, le=50)
    depth: Depth = "standard"
    """How far questions are researched if the request names no depth."""
    parallel_steps: int = Field(default=4, gt=0, le=16)
    """How many steps of a plan may run concurrently."""
    message_type: Annotated[Literal["ai", "human"], HARMLESS] = "ai"
    """The type of the graph's messages with plans, results and reports; `human` is LangManus's."""
    max_plan_adaptations: int = Field(default=1, ge=0, le=5)
    """How often the planner may replace the rest of a plan that does not work; 0 turns it off."""
    max_clarifications: Annotated[int, HARMLESS] = Field(default=1, ge=0, le=5)
    """How often the coordinator may ask the user for clarification before the team begins; 0 turns it off."""
    max_questions: Annotated[int, HARMLESS] = Field(default=3, ge=0, le=20)
    """How many questions the workers may ask the user in one run; 0 turns it off."""

    @property
    def workers(self) -> tuple[Worker, ...]:
        """The names of all workers, enabled or not."""
        *others, reporter = WORKERS
        general = [GENERAL] if GENERAL in self.members else []
        return (*others, *general, *self.own, reporter)

    @property
    def own(self) -> tuple[Worker, ...]:
        """The names of the roles that are not built in."""
        return tuple(role.name for role in self.roles)

    @property
    def equipped(self) -> tuple[Worker, ...]:
        """The workers that can get tools: all but the reporter."""
        return (*self.workers[:-1], GENERAL)

    @property
    def enabled(self) -> tuple[Worker, ...]:
        """The enabled members."""
        return tuple(name for name in self.workers if name in (*self.members, *self.own, "reporter"))

    def having(self, *members: Worker) -> "TeamSettings":
        """Return the team with additional members."""
        return self.model_copy(update={"members": tuple(dict.fromkeys((*self.members, *members)))})

    @field_validator("roles")
    @classmethod
    def _differ(cls, roles: tuple[RoleSettings, ...]) -> tuple[RoleSettings, ...]:
        names = [role.name for role in roles]
        for place, name in enumerate(names):
            if name in names[:place]:
                raise validation_error(f"the name {name} is used by another role", place, "name")
        return roles

    @field_validator("members")
    @classmethod
    def _are_members(cls, names: tuple[Worker, ...], info: ValidationInfo) -> tuple[Worker, ...]:
        return check_known(names, _workers(info)) if "roles" in info.data else names

    @field_validator("llms")
    @classmethod
    def _are_agents(cls, llms: dict[AgentName, LLMType], info: ValidationInfo) -> dict[AgentName, LLMType]:
        return check_known(llms, (*DIRECTORS, *_workers(info))) if "roles" in info.data else llms


class EvidenceSettings(Section):
    """The check of reports against what was read."""

    judge: JudgeMode = "auto"
    """Whether a model judges the claims, or rules alone. `auto`: a model does if `maniple eval judge` has
    measured at most 3 % of false marks on 300 honest claims or more, and a recall of 0.85 or more, for it."""
    llm: LLMType = "basic"
    """The type of the model that judges."""


class ReportSettings(Section):
    """The reports of the team."""

    style: Annotated[ReportStyle, HARMLESS] = "auto"
    """The style of reports where a run sets none. `auto`: as the request asks; `long`: section by section.
    Models with the profile `compact` do not follow it."""


def _workers(info: ValidationInfo) -> tuple[Worker, ...]:
    return (*WORKERS, GENERAL, *(role.name for role in info.data["roles"]))


def check_known(names: Names, all_names: Sequence[str], at: tuple[str | int, ...] = ()) -> Names:
    """Return `names`; raises a validation error at the path `at` for a name that is not in `all_names`."""
    for place, name in enumerate(names):
        if name not in all_names:
            *others, last = (f"'{one}'" for one in all_names)
            words = f"Input should be {', '.join(others)} or {last}"
            raise validation_error(words, *at, name if isinstance(names, Mapping) else place)
    return names


def validation_error(words: str, *at: str | int) -> PydanticCustomError:
    """Return the validation error of a check of several values; `at` is the path of the invalid one."""
    return PydanticCustomError("mistake", "{words}", {"words": words, "at": at})
