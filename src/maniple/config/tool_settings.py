"""What can be set of tools and skills that are not built in."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from maniple.config.role_settings import MAX_NAMES
from maniple.config.section import Section
from maniple.config.values import UserPath
from maniple.types import Worker

_PART = r"[A-Za-z_][A-Za-z0-9_]*"
MAX_TOOLS = 64
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
