"""What a worker is handed, and what it hands back."""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol, TypeVar

from langchain_core.messages import BaseMessage

from maniple.prompts import render
from maniple.tools.items import Item
from maniple.types import StepStatus

CALLER_CHARACTERS = 4_000
COMPACT_CALLER_CHARACTERS = 600
_MARK = re.compile(r"</?\s*caller\b[^>]*>?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StepResult:
    """What a member answered in an earlier step."""

    agent: str
    title: str
    text: str
    done: bool = True
    step: int = 0
    """The step's id in the plan; 0 outside of a plan."""
    path: str = ""
    """The workspace file that holds the whole text; "" for none."""


@dataclass(frozen=True, slots=True)
class PlanLine:
    """A step of the plan as every member sees it."""

    step: int
    agent: str
    title: str
    status: StepStatus
    is_own: bool = False


@dataclass(frozen=True, slots=True)
class ThreadHistory:
    """What happened on the thread before the present request."""

    requests: Sequence[str] = ()
    """The user's earlier requests, oldest first."""
    report: str = ""
    """The team's last report or answer, with its list of sources."""
    report_path: str = ""
    """The workspace file that holds it; "" for none."""


@dataclass(frozen=True, slots=True)
class Task:
    """One step of the plan, with all that its worker may know."""

    request: str
    title: str
    description: str
    note: str | None = None
    results: Sequence[StepResult] = ()
    team: Sequence[str] = ()
    locale: str = ""
    caller: str = ""
    """What the API's caller asks of the answer; only who writes the answer is told."""
    said: Sequence[str] = ()
    """What the user and earlier reports said on the thread, for the check of the report."""
    files: Sequence[str] = ()
    """What the user put into the workspace, a line each; only who works there is told."""

    is_answer: bool = False
    """Whether the result of the step is the answer that the user reads."""
    history: ThreadHistory = ThreadHistory()
    plan: Sequence[PlanLine] = ()
    items: Sequence[Item] = ()
    """What the thread has, newest last, without what the prompt shows whole."""
    older_items: int = 0
    """How many items are not listed."""
    conversation: Sequence[BaseMessage] = ()
    """What user and team said to each other, the request at its end; for one who answers alone."""

    def instruction(self) -> str:
        """Return the step in words, and what the caller asks of it."""
        lines = [f"Your step: {self.title}", self.description]
        if self.note:
            lines.append(f"Note: {self.note}")
        if self.is_answer:
            lines.append(ANSWER_LINE)
        return "\n".join(lines) + format_files(self.files) + format_caller(self.caller)


ANSWER_LINE = (
    "No report is written after this step: your result is the answer that the user reads. Write it for the "
    "user, complete in itself, in Markdown, and cite sources as `[3]`."
)

# Not the graph's context, which is the run's options: tools look there whether anybody may be asked.
_CURRENT: ContextVar[Task] = ContextVar("maniple_task")


def set_current_task(task: Task) -> AbstractContextManager[None]:
    """Make `task` the current one of everything that is done within."""
    return set_in_context(_CURRENT, task)


def current_task() -> Task:
    """Return the task that the caller works on; raises `LookupError` outside of any."""
    return _CURRENT.get()


class Agent(Protocol):
    """A worker: it gets one task and returns its answer as text.

    Raises `ModelError` when its model fails. A `StepFailed` says that the step could not be done.
    """

    async def work(self, task: Task) -> str: ...


class StepFailed(Exception):
    """The worker could not do its step; the words say why."""


def format_caller(caller: str, limit: int = CALLER_CHARACTERS) -> str:
    """Return the caller's system messages as an addition to a prompt; nothing when there are none."""
    if not caller.strip():
        return ""
    # Whoever could write the closing mark would go on in our voice.
    return "\n\n" + render("caller", text=truncate_middle(_MARK.sub("", caller.strip()), limit))


def format_files(files: Sequence[str]) -> str:
    """Return the user's files as an addition to a prompt; nothing when there are none."""
    return "\n\n" + render("files", files=files) if files else ""


def append_files(request: str, files: Sequence[str]) -> str:
    """Return a request with the user's files in one line, for small models."""
    return f"{request}\nFiles in the current directory: {', '.join(files)}" if files else request


def truncate_middle(text: str, limit: int) -> str:
    """Return `text` cut in its middle to about `limit` characters, saying so."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


T = TypeVar("T")


@contextmanager
def set_in_context(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Give `variable` a value in everything that is done within."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
