"""The task of a worker, its result, and their formats in prompts."""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from langchain_core.messages import BaseMessage

from maniple.agents.step_state import enter_step_state, step_state
from maniple.prompts import render
from maniple.scope.client_tools import ClientTool
from maniple.scope.inputs import SKIPPED
from maniple.text import fix_surrogates, join_title, shorten
from maniple.tools.items import Item, ThreadItems
from maniple.types import ReportStyle, StepStatus

CALLER_CHARACTERS = 4_000
COMPACT_CALLER_CHARACTERS = 600
MISSING = "MISSING:"
"""Begins the line of a report about a step that is not done."""
REJECTED_BY_USER = "Not approved:"
"""Begins the reason of a step that lacks something because the user rejected its calls."""
MISSING_IN_IT = "Missing in it:"
"""Precedes what a partial result lacks."""
NOT_ANSWERED = "Not answered:"
"""Precedes why a question of a deep run has no answer."""
NEEDED_FOR_IT = "Needed for it:"
"""Precedes what a failed or partial step needs."""
LATER_TRY_FAILED = "Another try failed:"
"""Precedes why a partial result was not completed."""
PARTIAL_WORK = "\nUntil then:\n"
"""Follows the reason of a failure; what was found before it comes after."""
NOT_WRITTEN = "No report could be written"
"""Precedes the reason in a report that code assembled because no model wrote one."""
_GIVEN_UP: tuple[StepStatus, ...] = ("failed", "skipped")
_OPEN: tuple[StepStatus, ...] = ("not_started", "in_progress", "blocked")
NEEDS_CHARACTERS = 600
SENTENCE_ENDS = ".!?…。！？"
_LIST_MARK = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,2}[.)])[ \t]+")
FUNCTION_CHARACTERS = 200
"""How much of the description of a client's function is shown to those who do not call it."""
_MARK = re.compile(r"</?\s*(?:caller|functions)\b[^>]*>?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StepResult:
    """The answer of a member in an earlier step."""

    agent: str
    title: str
    text: str
    done: bool = True
    step: int = 0
    """The step's id in the plan; 0 outside of a plan."""
    path: str = ""
    """The workspace file that holds the whole text; "" for none."""
    reason: str = ""
    """For a step that is not done: the reason, as a sentence for the user."""
    lacks: str = ""
    """For a partial result that no other step completes: what is missing in it, as a sentence."""

    is_item: bool = False
    """Whether it is no answer of a member, but an item of the thread that the step names."""

    def describe_missing(self) -> str:
        """Return the sentence for the user about a step that is not done, or not completely."""
        if self.lacks:
            return f"{MISSING} in the step {self.title!r}: {self.lacks.removeprefix(MISSING_IN_IT).lstrip()}"
        return f"{MISSING} the step {self.title!r} was not completed. {self.reason}".rstrip()


def names_missing(report: str, title: str, reason: str) -> bool:
    """Return whether a report says that a step is not done, or that code has written it for this reason."""
    lines = report.splitlines()
    is_named = any(
        (line.startswith(MISSING) and title in line) or (line.startswith("**") and f"({title}):**" in line)
        for line in lines
    )
    return is_named or (bool(reason) and any(f"{NOT_WRITTEN}: {reason}" in line for line in lines))


def find_gaps(plan: Mapping[str, Any], *, with_open: bool = False) -> list[tuple[str, str]]:
    """Return title and reason of the steps of `find_gap_steps`, then `find_unanswered`."""
    steps = find_gap_steps(plan, with_open=with_open)
    return [*((step["title"], explain_gap(step)) for step in steps), *find_unanswered(plan)]


def find_unanswered(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the questions of a deep run that the lead says no step can answer, each with the reason."""
    rounds: Mapping[str, Any] = plan.get("gap_rounds") or {}
    return [
        (fix_surrogates(one["question"]), explain_failure(f"{NOT_ANSWERED} {fix_surrogates(one['why'])}"))
        for one in rounds.get("questions", ())
        if one.get("open") and rounds.get("is_over")
    ]


def find_gap_steps(plan: Mapping[str, Any], *, with_open: bool = False) -> list[Mapping[str, Any]]:
    """Return the steps of a plan that lack something; `with_open`: also open ones.

    What the user skipped, or other steps replaced, is no gap: the steps that replaced it may be. Nor is an
    open report that repeats another step's result: nobody works at it, and no plan shows it.
    """
    statuses = (*_GIVEN_UP, *_OPEN) if with_open else _GIVEN_UP
    return [
        step
        for step in plan.get("steps", ())
        if (step["status"] in statuses or is_partial(step))
        and not (step["status"] in _OPEN and step.get("repeats"))
        and step.get("reason") != SKIPPED
        and not step.get("is_replaced")
        and place_of_replacement(plan, step) is None
    ]


def place_of_replacement(plan: Mapping[str, Any], step: Mapping[str, Any]) -> int | None:
    """Return the position, from 1, of the step that another member does instead of `step`; None if none does.

    A step that the user removed does not count.
    """
    new = step.get("replaced_by")
    return next(
        (
            place
            for place, one in enumerate(plan.get("steps", ()), start=1)
            if new is not None and one["id"] == new and one.get("reason") != SKIPPED
        ),
        None,
    )


def is_partial(step: Mapping[str, Any]) -> bool:
    """Return whether a step of a plan is done but for something that its member named."""
    return step["status"] == "completed" and _has_part(step)


def _has_part(step: Mapping[str, Any]) -> bool:
    outcome: Mapping[str, Any] = step.get("outcome") or {}
    return outcome.get("status") == "partial"


def explain_partial(step: Mapping[str, Any]) -> str:
    """Return what a step's partial result lacks, and why a later try did not get it, in plain sentences."""
    lacks = explain_failure(f"{MISSING_IN_IT} {fix_surrogates(step['outcome'].get('reason') or '')}")
    if needs := format_needs(fix_surrogates(step["outcome"].get("needs") or "")):
        lacks = f"{lacks} {explain_failure(needs)}"
    reason = fix_surrogates(step.get("reason") or "") if is_partial(step) else ""
    return f"{lacks} {LATER_TRY_FAILED} {explain_failure(reason)}" if reason else lacks


def format_needs(needs: str) -> str:
    """Return what a step needs in one line; "" for nothing."""
    lines = (strip_list_mark(line).strip() for line in needs.splitlines())
    listed = "; ".join(filter(None, lines))
    return f"{NEEDED_FOR_IT} {shorten(listed, NEEDS_CHARACTERS)}" if listed else ""


def strip_list_mark(line: str) -> str:
    """Return a line without the mark of a list item."""
    return _LIST_MARK.sub("", line)


def is_rejected(step: Mapping[str, Any]) -> bool:
    """Return whether a step lacks only what the user did not approve."""
    outcome: Mapping[str, Any] = step.get("outcome") or {}
    return step["status"] not in _OPEN and str(outcome.get("reason") or "").startswith(REJECTED_BY_USER)


def explain_gap(step: Mapping[str, Any]) -> str:
    """Return why a step of `find_gap_steps` is not done, or not completely, in plain sentences."""
    if is_partial(step) or (step["status"] in _OPEN and _has_part(step)):
        return explain_partial(step)
    if step["status"] in _OPEN:
        return "The run was cancelled before it was done."
    return explain_failure(fix_surrogates(step.get("reason") or ""))


@dataclass(frozen=True, slots=True)
class PlanStepSummary:
    """A step of the plan as members see it."""

    step: int
    agent: str
    title: str
    status: StepStatus
    is_own: bool = False
    needs: Sequence[int] = ()
    """The steps whose results it waits for, where the reader has to know them."""
    replaced_by: int = 0
    """The position of the step that is done instead, or gets what a partial result lacks; 0 for none."""
    is_partial: bool = False


@dataclass(frozen=True, slots=True)
class EarlierTurn:
    """An earlier request with what the user said and decided about it, and what it left without an answer."""

    text: str
    """All of it, the request first."""
    path: str = ""
    """The workspace file that holds it; "" for none."""


@dataclass(frozen=True, slots=True)
class ThreadHistory:
    """The history of the thread before the present request."""

    turns: Sequence[EarlierTurn] = ()
    """The user's earlier requests, oldest first."""
    report: str = ""
    """The team's last report or answer, with its list of sources."""
    report_path: str = ""
    """The workspace file that holds it; "" for none."""
    request: int = 1
    """The number of the present request among the user's requests on the thread, from 1."""


@dataclass(frozen=True, slots=True)
class Task:
    """One step of the plan with everything that its worker can use."""

    request: str
    title: str
    description: str
    note: str | None = None
    results: Sequence[StepResult] = ()
    team: Sequence[str] = ()
    locale: str = ""
    caller: str = ""
    """The system messages of the API's caller; only workers that write the answer get them."""
    thread_texts: Sequence[str] = ()
    """Texts of the user in the thread, for the check of the report."""
    thread_reports: Sequence[str] = ()
    """Earlier reports in the thread, for the same; what they say is not true because of that."""
    files: Sequence[str] = ()
    """Descriptions of the user's files in the workspace, one line each; only workers with files get them."""

    is_answer: bool = False
    """Whether the result of the step is the answer that the user reads."""
    is_added_report: bool = False
    """Whether it is a report that nobody described; its title is that of the plan, or of another's step."""
    history: ThreadHistory = ThreadHistory()
    plan: Sequence[PlanStepSummary] = ()
    items: Sequence[Item] = ()
    """The items of the thread, newest last, without those that the prompt contains completely."""
    named_items: Sequence[StepResult] = ()
    """The contents of the items that the step names, for a member that cannot open them."""
    older_items: int = 0
    """The number of items that are not listed."""
    pictures: Sequence[str] = ()
    """The paths of the pictures that a model which sees is shown with the step, newest last."""
    lost_pictures: Sequence[str] = ()
    """Sentences about pictures of the conversation that are no files; `request` has them as well."""
    unseen_pictures: Sequence[str] = ()
    """The names of the user's pictures that no model has seen; small models cannot say it themselves."""
    number_source: str | None = None
    """The text that gives the numbers of a small model's calculation; None if they are free."""
    screenshots: Sequence[str] = ()
    """The paths of the run's screenshots that are shown where those leave room, newest last."""
    conversation: Sequence[BaseMessage] = ()
    """The conversation of the user with the team, ending with the request.

    For a worker that answers alone.
    """
    start_page: str = ""
    """The page that is opened before the first model call of the browser; "" for none."""
    step: int = 0
    """The id of the step in the plan."""
    items_of_thread: ThreadItems | None = None
    """Where pages that are read become files of the thread; None if they do not."""
    removed: Sequence[str] = ()
    """The titles of the steps that the user removed from the plan."""
    by_user: bool = False
    """Whether the user added or changed this step."""
    continued: Sequence[BaseMessage] = ()
    """The agent's messages of an earlier try whose model gave no answer; the agent continues from them."""
    user_messages: Sequence[str] = ()
    """The messages that the user sent to the run before the step started, oldest first."""
    notes: Sequence[str] = ()
    """What else the user said and decided in this run, oldest first."""
    style: ReportStyle = "auto"
    """The style of the report."""
    remarks: Sequence[str] = ()
    """What the reporter has to know about the material as a whole, one line each."""

    def instruction(self) -> str:
        """Return the prompt of the step, with the files and the caller's system messages."""
        step = REPORT_STEP if self.is_added_report else join_title(self.title, self.description)
        lines = [f"Your step: {step}"]
        if self.by_user:
            lines.append(BY_USER_LINE)
        if self.note:
            lines.append(f"Note: {self.note}")
        if meanwhile := self.meanwhile():
            lines.append(meanwhile)
        if self.is_answer:
            lines.append(ANSWER_LINE)
        if style := STYLE_LINES.get(self.style):
            lines.append(style)
        return "\n".join(lines) + format_files(self.files) + format_caller(self.caller)

    def meanwhile(self) -> str:
        """Return the user's messages to the run as a part of the prompt; "" if there are none."""
        return "\n".join([WRITTEN_MEANWHILE, *self.user_messages]) if self.user_messages else ""


WRITTEN_MEANWHILE = (
    "The user wrote this while the team worked. Heed it in your step; it precedes earlier notes:"
)
BY_USER_LINE = "This step was written or changed as the user wants it: do it as it stands here."
REPORT_STEP = (
    "Write the answer to the request from the results of the other members. Their steps are done or given "
    "up: do none of them yourself."
)
STYLE_LINES: dict[ReportStyle, str] = {
    "brief": "Style: brief. The answer first, then its main reasons; at most 150 words, without headings.",
    "standard": "Style: standard. The answer first, then sections with headings; about 400 to 900 words.",
    "long": "Style: long. A thorough report in sections, of several pages.",
    "comparison": (
        "Style: comparison. A table with a row for each criterion and a column for each of what is compared, "
        "then what differs most, and a recommendation if one is asked for."
    ),
    "table": "Style: table. The answer is a table with its citations, and at most three sentences beside it.",
}
"""The line of the prompt for each style, for the member that writes the answer; `auto` has none."""
ANSWER_LINE = (
    "No report is written after this step: your result is the answer that the user reads. "
    "Write it for the user, complete in itself, in Markdown, in the form that the request wants instead of "
    "your usual one, and say what is missing. Cite sources, if there are any, as `[3]`, and show figures as "
    "`![what it shows](its path)`."
)


def set_current_task(task: Task) -> AbstractContextManager[None]:
    """Return a context in which `task` is the current task."""
    return enter_step_state(task)


def current_task() -> Task:
    """Return the current task; raises `LookupError` outside of a step."""
    if (task := step_state(Task)) is None:
        raise LookupError("no step is being worked on")
    return task


class Agent(Protocol):
    """A worker: it takes one task and returns its answer as text.

    Raises `ModelError` if its model fails, and `StepFailed` if the step could not be done.
    """

    async def work(self, task: Task) -> str: ...


class StepFailed(Exception):
    """The worker could not do its step; the message gives the reason.

    `is_final` says that another attempt would not help, for example because the user refused.
    """

    def __init__(self, reason: str, *, is_final: bool = False) -> None:
        super().__init__(reason)
        self.is_final = is_final


_TOOL_FAILED = re.compile(r"(\w{1,60}) failed: ")
_EXCEPTION = re.compile(
    r"\b[A-Za-z_.]{0,60}(?:Error|Exception|Timeout|Warning)\b\s?[(:]|\bTraceback \(most recent|\[Errno -?\d"
    r"|\(os error \d|<[A-Za-z_.]{1,60}(?: object at 0x| \[Errno)"
)
_FENCE = re.compile(r"</?data\b[^>]{0,40}>")
_MAX_REASON_LENGTH = 1_000
"""A step's reason of `REASON_CHARACTERS`, and what it needs."""
_SEARCH = "The web search did not answer. Check the network, or set another provider in search.providers."
_PAPERS = "The search of papers did not answer. Check the network, or set other sources in search.papers."
_PAGE = "The page could not be read. Check that its address is right and can be reached from here."
_CODE = "The program did not run without an error. Try again, or describe the step in more detail."
_TOOL_REASONS = {
    "tavily_search": _SEARCH,
    "search_papers": _PAPERS,
    "crawl_tool": _PAGE,
    "browser": _PAGE,
    "python_repl_tool": _CODE,
    "bash_tool": _CODE,
}


def is_raw_failure(failure: str) -> bool:
    """Return whether the first line of a failure is the error of a tool or an exception, not a sentence."""
    first = failure.lstrip().partition("\n")[0]
    return _TOOL_FAILED.match(first) is not None or _EXCEPTION.search(first) is not None


def explain_failure(failure: str) -> str:
    """Return why a step failed in a plain sentence with its remedy, without the text of an exception.

    `failure` is a step's result or its reason.
    """
    lines = (line.strip() for line in _FENCE.sub("", failure).splitlines())
    first = next(filter(None, lines), "")
    if found := _TOOL_FAILED.match(first):
        tool = found[1]
        return _TOOL_REASONS.get(tool, f"The tool {tool} failed. Its error is in the log; try again.")
    if found := _EXCEPTION.search(first):
        sentence = first[: found.start()].rstrip(" :;,-(")
        cause = f"{sentence[:1].upper()}{sentence[1:]}." if sentence else "Something failed inside the step."
        return f"{cause} The error is in the log; try again."
    first = shorten(first, _MAX_REASON_LENGTH)
    is_word = first.partition(" ")[0].rstrip(",:;").isalpha()  # no address, and no name of a file
    text = first[:1].upper() + first[1:] if is_word else first
    return text if not text or text[-1] in SENTENCE_ENDS else f"{text}."


def find_partial_work(failure: str) -> str:
    """Return what a failed step had found; "" for nothing, and for further lines of an error."""
    first, _, rest = failure.lstrip().partition("\n")
    found = failure.partition(PARTIAL_WORK)[2]
    if not found and not _TOOL_FAILED.search(first) and not _EXCEPTION.search(first):
        found = rest
    return found.strip()


def format_failure(failure: str) -> str:
    """Return a failed step's result for a report, with a sentence instead of an exception's text."""
    if not is_raw_failure(failure):
        return failure
    found = find_partial_work(failure)
    return f"{explain_failure(failure)}{PARTIAL_WORK}{found}" if found else explain_failure(failure)


def format_caller(caller: str, limit: int = CALLER_CHARACTERS) -> str:
    """Return the caller's system messages as an addition to a prompt; "" if there are none."""
    if not caller.strip():
        return ""
    # A caller that writes the closing mark could continue as if it were the prompt.
    return "\n\n" + render("caller", text=truncate_middle(_MARK.sub("", caller.strip()), limit))


def format_files(files: Sequence[str]) -> str:
    """Return the user's files as an addition to a prompt; "" if there are none."""
    return "\n\n" + render("files", files=files) if files else ""


def format_client_tools(tools: Sequence[ClientTool]) -> str:
    """Return the functions of the user's client as an addition to a prompt, one line each; "" for none."""
    if not tools:
        return ""
    lines = [
        {
            "name": one.name,
            "text": shorten(" ".join(_MARK.sub("", one.description).split()), FUNCTION_CHARACTERS),
        }
        for one in tools
    ]
    return "\n\n" + render("client_tools", functions=lines)


def format_lost_pictures(notes: Sequence[str]) -> str:
    """Return what became of the user's pictures that are no files; "" if there are none."""
    if not notes:
        return ""
    head = (
        "Not every picture that the user sent is a file of the conversation. Who has not got it with the "
        "message does not see it; say so where it matters:"
    )
    return "\n\n" + "\n".join([head, *(f"- {one}" for one in notes)])


def append_files(request: str, files: Sequence[str]) -> str:
    """Return a request with the user's files in one line, for small models."""
    return f"{request}\nFiles in the current directory: {', '.join(files)}" if files else request


def truncate_middle(text: str, limit: int) -> str:
    """Return `text` cut in its middle to about `limit` characters, with a note in between."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


T = TypeVar("T")
