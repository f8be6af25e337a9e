"""Settings of the team: its roles, their tools and skills, who works, and how far it may go."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError

from maniple.config.values import Section, UserPath
from maniple.types import DIRECTORS, GENERAL, WORKERS, AgentName, LLMType, Worker

MAX_PROMPT_BYTES = 32_768
MAX_NAMES = 32
MAX_TOOLS = 64
# Other nodes of the graph, LangChain's nodes inside of an agent, and words of the terminal's.
_TAKEN = frozenset(
    {*DIRECTORS, *WORKERS, GENERAL, "solo", "clarify", "review", "model", "tools", "plan", "all", "everyone"}
)


_PART = r"[A-Za-z_][A-Za-z0-9_]*"

Names = TypeVar("Names", bound=Collection[str])


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A Markdown file and what stands in it."""

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
        raise ValueError(f"{file} is no text in UTF-8") from error
    if len(content) > MAX_PROMPT_BYTES:
        raise ValueError(f"{file} is longer than {MAX_PROMPT_BYTES} bytes, which every call would send")
    if not text.strip():
        raise ValueError(f"{file} is empty: write what the role is to do")
    return PromptFile(file, text)


def _is_free(name: str) -> str:
    if name in _TAKEN:
        raise ValueError(f"{name} is taken; there are {', '.join(sorted(_TAKEN))} already")
    return name


RoleName = Annotated[Worker, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$"), AfterValidator(_is_free)]


class RoleSettings(Section):
    """One role that is added to the team."""

    name: RoleName
    brief: str = Field(min_length=1, max_length=300)
    """What the planner and the supervisor are told: what it does, what it cannot."""
    description: str = Field(default="", max_length=300)
    """What clients are told; the brief, if nothing."""
    prompt: Annotated[PromptFile, BeforeValidator(_read_prompt)]
    """A Markdown file; a relative path begins at the folder of conf.yaml."""
    llm: LLMType = "basic"
    tools: tuple[str, ...] = Field(default=(), max_length=MAX_NAMES)
    """Names of tools: built-in ones, those of `tools`, and those that installed packages offer."""
    optional: bool = True
    """Whether clients may leave it out."""


Reference = Annotated[str, Field(pattern=rf"^{_PART}(\.{_PART})*:{_PART}$", max_length=200)]
"""An object in a module, as `module:attribute`."""


class ToolSettings(Section):
    """One tool: a function with type hints and a docstring, or a LangChain tool.

    A text alone is its `use`.
    """

    use: Reference
    roles: tuple[Worker, ...] = Field(default=(), max_length=MAX_NAMES)
    """Who is given it, beside the roles that name it themselves."""

    @property
    def name(self) -> str:
        """What models and `runs.approval` call it: as its attribute is called."""
        return self.use.partition(":")[2]

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value


class SkillSettings(Section):
    """One folder of skills, each a folder with a `SKILL.md`. A text alone is its `folder`."""

    folder: UserPath
    """A relative path begins at the folder of conf.yaml."""
    roles: tuple[Worker, ...] = Field(default=("coder",), max_length=MAX_NAMES)
    """Who is told of them."""

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        return {"folder": value} if isinstance(value, str) else value


class TeamSettings(Section):
    """Who works, and how far the team may go."""

    roles: tuple[RoleSettings, ...] = Field(default=(), max_length=MAX_NAMES)
    """Members beside the built-in ones."""
    members: tuple[Worker, ...] = WORKERS
    """Who works; the reporter and the own roles always do, `manus` only if it is named here."""
    llms: dict[AgentName, LLMType] = Field(default_factory=dict)
    """Which model type each role uses, over the defaults in `maniple.agents.roles`."""
    supervisor: Literal["plan", "always"] = "plan"
    step_retries: int = Field(default=1, ge=0, le=5)
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
                raise validation_error(f"there is another role called {name}", place, "name")
        return roles

    @field_validator("members")
    @classmethod
    def _are_members(cls, names: tuple[Worker, ...], info: ValidationInfo) -> tuple[Worker, ...]:
        return check_known(names, _workers(info)) if "roles" in info.data else names

    @field_validator("llms")
    @classmethod
    def _are_agents(cls, llms: dict[AgentName, LLMType], info: ValidationInfo) -> dict[AgentName, LLMType]:
        return check_known(llms, (*DIRECTORS, *_workers(info))) if "roles" in info.data else llms


def _workers(info: ValidationInfo) -> tuple[Worker, ...]:
    return (*WORKERS, GENERAL, *(role.name for role in info.data["roles"]))


def check_known(names: Names, all_names: Sequence[str], at: tuple[str | int, ...] = ()) -> Names:
    """Return `names`; the mistake of one that is not among `all_names` tells by `at` where it stands."""
    for place, name in enumerate(names):
        if name not in all_names:
            *others, last = (f"'{one}'" for one in all_names)
            words = f"Input should be {', '.join(others)} or {last}"
            raise validation_error(words, *at, name if isinstance(names, Mapping) else place)
    return names


def validation_error(words: str, *at: str | int) -> PydanticCustomError:
    """Return the error of a check of several values together; `at` says which of them it is."""
    return PydanticCustomError("mistake", "{words}", {"words": words, "at": at})
