"""What can be set of runs: where they are kept, what they may use up, what needs a person's word."""

import difflib
import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from maniple.config.section import Section
from maniple.config.values import UserPath

TOOLS = (
    "ask_human",
    "bash_tool",
    "browser",
    "browser_use",
    "crawl_tool",
    "list_files",
    "python_repl_tool",
    "read_file",
    "read_skill",
    "search_files",
    "str_replace_editor",
    "tavily_search",
    "terminate",
    "write_file",
)
"""Every built-in tool; this room may not look into that of the tools."""
OF_A_SERVER = re.compile(r"(?=.{4,64}$)[A-Za-z0-9_-]+?__[A-Za-z0-9_-]+")
"""`SERVER__TOOL`: `Settings` checks that there is such a server; which tools it has, it alone knows."""


def no_tool(name: str, known: Sequence[str]) -> str:
    """Return the words for a name under `approval` that no tool has."""
    near = difflib.get_close_matches(name.casefold(), known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"no tool has this name, so it would run without being approved; {hint}"


class StoreSettings(Section):
    """Where threads, runs, their events and checkpoints are kept."""

    backend: Literal["sqlite", "memory"] = "sqlite"
    """`memory` uses a database in a temporary folder, which is deleted at exit."""
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

    approval: tuple[str, ...] = ()
    """Tools that run only after a person has approved their exact arguments, such as `bash_tool`."""
    budget: BudgetSettings = BudgetSettings()
    drain_seconds: float = Field(default=5, ge=0)
    """How long a stopping server waits for its runs to come to a checkpoint."""
