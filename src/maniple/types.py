"""Names shared by every layer."""

from dataclasses import dataclass
from typing import Literal, get_args

LLMType = Literal["basic", "reasoning", "vision"]
LLM_TYPES: tuple[LLMType, ...] = get_args(LLMType)

Worker = str
"""The name of a role: a built-in one of `WORKERS`, or one of the team's own."""
WORKERS: tuple[Worker, ...] = ("researcher", "coder", "browser", "file_manager", "reporter")

GENERAL: Worker = "manus"
"""The built-in role that is not on the team unless it is wanted: it works alone, with all the tools."""

AgentName = str
"""A worker, or one of those who direct them."""
DIRECTORS: tuple[AgentName, ...] = ("coordinator", "planner", "supervisor")
AGENTS: tuple[AgentName, ...] = (*DIRECTORS, *WORKERS)

AGENT_MARK = "maniple_agent"
"""The metadata by which events tell our nodes, and messages our workers, from those of others."""
RUN_MARK = "maniple_run"
"""The metadata that names the run: checkpoints keep it, and tools of the run find it."""
SUMMARY_SOURCE = "summarization"
"""Marks a model call that only shortens a conversation (`lc_source`, LangChain's own word)."""
REPAIR_SOURCE = "report_repair"
"""Marks the model call that mends passages of a report."""
UNSPOKEN = frozenset({SUMMARY_SOURCE, REPAIR_SOURCE})
"""Calls whose words are no part of what an agent says."""
TOOL_OUTPUT = "maniple_tool_output"
"""The custom event, of LangChain's kind, by which a tool tells what is printed while it runs."""
BROWSER_STEP = "maniple_browser_step"
"""The custom event by which a call of the browser tells of a step: as `BrowserStepped` but the call's id."""
BROWSER_STATE = "maniple_browser_state"
"""The custom event that tells where the browser is: `{url, title, tabs, screenshot}`."""

ProfileName = Literal["standard", "compact"]
"""How the team works with a model: `compact` is for models of a few billion parameters at most."""

StepStatus = Literal["not_started", "in_progress", "blocked", "completed", "failed", "skipped"]
"""Of a step of the plan. A blocked one has failed and waits for what it lacks, to be tried again."""
RunStatus = Literal["completed", "failed", "cancelled", "interrupted", "budget_exhausted"]
RunState = Literal["queued", "running", "interrupted", "completed", "failed", "cancelled", "budget_exhausted"]
"""A run as it is stored; the first three are not its end."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why something the team could use is not there, and the command or setting that mends it."""

    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason} To fix it: {self.remedy}"


def installing(extra: str) -> str:
    """Return the command that adds what an optional part of maniple needs; it is on no package index."""
    return f"`.venv/bin/python -m pip install -e '.[{extra}]'` in your clone of maniple"
