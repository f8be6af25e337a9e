"""The options of a run that a client of another protocol sends beside its messages."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maniple.graph import RunOptions
from maniple.service.thread_views import ThreadId
from maniple.text import fix_surrogates
from maniple.types import Depth, Effort, ReportStyle


class RunChoices(BaseModel):
    """The options of a run; their values may be texts."""

    thread_id: ThreadId | None = None
    depth: Depth | None = None
    report_style: ReportStyle | None = None
    effort: Effort | None = None
    locale: Annotated[str, Field(pattern=r"^[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8}){0,3}$")] | None = None
    auto_accepted_plan: bool = True
    deep_thinking_mode: bool = False
    search_before_planning: bool = False

    def as_options(self, agent: str) -> RunOptions:
        """Return the options of a run of the team, or of one agent."""
        return RunOptions(
            auto_accepted_plan=self.auto_accepted_plan,
            deep_thinking_mode=self.deep_thinking_mode,
            search_before_planning=self.search_before_planning,
            locale=self.locale or "",
            agent=agent,
            depth=self.depth or "",
            report_style=self.report_style or "",
            effort=self.effort or "",
        )


class OpenBody(BaseModel):
    """A body that may have other fields, which have no effect."""

    model_config = ConfigDict(extra="allow")
    without_effect: ClassVar[tuple[str, ...]] = ()
    """Known fields that are read and change nothing."""

    @property
    def not_used(self) -> list[str]:
        """The names of what it has that has no effect."""
        idle = {name: getattr(self, name) for name in self.without_effect}
        given = {**idle, **(self.model_extra or {})}
        return fix_surrogates([name for name, value in given.items() if value is not None])


class InvalidChoice(ValueError):
    """An option has a value that it cannot have; `place` names it."""

    def __init__(self, place: str, message: str) -> None:
        super().__init__(message)
        self.place = place


def name_unknown(name: str, given: Mapping[str, Any]) -> list[str]:
    """Return the keys in the part `name` of a request that are no options, and have no effect."""
    return [fix_surrogates(f"{name}.{key}") for key in given if key not in RunChoices.model_fields]


def read_choices(name: str, given: Mapping[str, Any]) -> RunChoices:
    """Return the options in the part `name` of a request; raises `InvalidChoice`."""
    try:
        return RunChoices.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidChoice(".".join((name, *map(str, first["loc"]))), first["msg"]) from error
