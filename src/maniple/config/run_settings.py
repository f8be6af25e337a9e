"""What can be set of runs: where they are kept, what they may use up, what needs a person's word."""

import difflib
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from maniple.config.section import Section
from maniple.config.values import UserPath

TOOLS = (
    "ask_human",
    "bash_tool",
    "browser",
    "crawl_tool",
    "list_files",
    "python_repl_tool",
    "read_file",
    "search_files",
    "str_replace_editor",
    "tavily_search",
    "write_file",
)
"""Every tool of our own that the team can have; this room may not look into that of the tools."""
_OF_A_SERVER = re.compile(r"(?=.{4,64}$)[A-Za-z0-9_-]+?__[A-Za-z0-9_-]+")
"""`SERVER__TOOL`: `Settings` checks that there is such a server; which tools it has, it alone knows."""


def _is_tool(name: str) -> str:
    if name not in TOOLS and not _OF_A_SERVER.fullmatch(name):
        near = difflib.get_close_matches(name.casefold(), TOOLS, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(TOOLS)}"
        raise ValueError(f"no tool has this name, so it would run without being approved; {hint}")
    return name


ToolName = Annotated[str, AfterValidator(_is_tool)]


class StoreSettings(Section):
    """Where threads, runs, their events and checkpoints are kept."""

    backend: Literal["sqlite", "memory"] = "sqlite"
    path: UserPath | None = None
    """The SQLite file; without one, `maniple.db` in the data directory."""


class BudgetSettings(Section):
    """What one run may use up; a limit left out is none."""

    tokens: int | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    model_calls: int | None = Field(default=None, gt=0)
    tool_calls: int | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)


class RunsSettings(Section):
    """How runs are driven."""

    approval: tuple[ToolName, ...] = ()
    """Tools that run only after a person has approved their exact arguments, such as `bash_tool`."""
    budget: BudgetSettings = BudgetSettings()
    drain_seconds: float = Field(default=5, ge=0)
    """How long a stopping server waits for its runs to come to a checkpoint."""
