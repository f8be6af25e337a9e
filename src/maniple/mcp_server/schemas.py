"""The arguments and results of the tools, and the questions of a run as text and as forms."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from langchain_core.messages import HumanMessage
from mcp.server.context import ServerRequestContext
from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitResult, TextContent
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from maniple.errors import ManipleError
from maniple.events import (
    PlanChanged,
    UserAnswered,
    UserMessageAnswered,
    UserMessageReceived,
    describe_next_times,
    load_run_view,
    read_outage,
)
from maniple.graph import RunOptions
from maniple.report_files import read_claims
from maniple.run_files.markup import sanitize_markdown
from maniple.runs import RunRequest
from maniple.service import Service
from maniple.service.reports import ReportMissing, RunNotFinished, read_report_view
from maniple.service.thread_views import PlanStatus, ThreadId
from maniple.service.views import ErrorView, GapView, InterruptView, UsageView, read_gaps, read_interrupts
from maniple.store import RunRecord, Store
from maniple.types import Depth, Effort, ReportStyle, RunState

QUESTION_CHARACTERS = 200_000
"""`server.max_body_bytes` bounds a whole request over HTTP."""
WAIT_SECONDS = 45
"""Below the 60 s after which the official SDKs' clients give up a call."""
MAX_WAIT_SECONDS = 3_600
_SHOWN_FAULTS = 5
SHOWN_SOURCES = 200
RUN_ID = r"^[A-Za-z0-9-]{0,200}$"
ANSWER_FIELD = "answer"
ANSWER_CHARACTERS = 200_000
_APPROVAL = 'Answer "yes" to run it, or "no" and why not, which is sent to the team.'
_UNKNOWN = 'Answer "run it again" or "skip", or "result:" and what its result was.'
_REVIEW = 'Answer "accept" to execute it, or say what to change.'


class InvalidArguments(ManipleError):
    """The arguments of a tool call do not fit its schema."""

    code = "invalid_request"


def _check_not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


_Question = Annotated[
    str,
    Field(min_length=1, max_length=QUESTION_CHARACTERS, description="The task or question, in any language."),
    AfterValidator(_check_not_empty),
]


_WaitSeconds = Annotated[
    float,
    Field(
        ge=0,
        le=MAX_WAIT_SECONDS,
        description="How long to wait until the run has ended or waits for an answer. It goes on after that; "
        "get_run returns its result. Many clients give up a call after 60 seconds.",
    ),
]


class Arguments(BaseModel):
    """The arguments of a tool."""

    model_config = ConfigDict(extra="forbid")


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


class AskTeam(Arguments):
    """The arguments of `ask_team`."""

    question: _Question
    thread_id: ThreadId | None = Field(
        default=None,
        description="The conversation to continue. If its run waits for an answer, `question` is the answer.",
    )
    deep_thinking: bool = Field(default=False, description="Plan with the reasoning model.")
    search_first: bool = Field(default=False, description="Search before planning.")
    depth: Depth | None = Field(
        default=None,
        description="quick: one step with few sources. deep: sub-questions, and further rounds "
        "for what stays open. Default: as the team is set.",
    )
    review_plan: bool = Field(default=False, description="Show the plan and wait for its approval.")
    agent: str = Field(
        default="",
        max_length=100,
        description="The agent that answers alone, without a plan. Default: the whole team.",
    )
    report_style: ReportStyle | Literal[""] = Field(
        default="", description="The style of the report. Default: that of the settings."
    )
    effort: Effort | Literal[""] = Field(
        default="", description="How much the models are to reason. Default: as they do by themselves."
    )
    wait_seconds: _WaitSeconds = WAIT_SECONDS

    def as_run(self, thread_id: str | None, owner: str) -> RunRequest:
        """Return the requested run."""
        options = RunOptions(
            deep_thinking_mode=self.deep_thinking,
            search_before_planning=self.search_first,
            auto_accepted_plan=not self.review_plan,
            agent=self.agent,
            depth=self.depth or "",
            report_style=self.report_style,
            effort=self.effort,
        )
        return RunRequest([HumanMessage(self.question)], thread_id, options, owner)


class MakePlan(Arguments):
    """The arguments of `plan`."""

    question: _Question
    wait_seconds: _WaitSeconds = WAIT_SECONDS

    def as_run(self, owner: str) -> RunRequest:
        """Return a run that pauses after planning."""
        return RunRequest([HumanMessage(self.question)], None, RunOptions(auto_accepted_plan=False), owner)


class GetRun(Arguments):
    """The arguments of `get_run`."""

    run_id: str = Field(
        default="",
        pattern=RUN_ID,
        description="The run_id from ask_team or plan. Default: the newest run, if a call has timed out.",
    )
    wait_seconds: _WaitSeconds = 0


class CancelRun(Arguments):
    """The arguments of `cancel_run`."""

    run_id: str = Field(min_length=1, pattern=RUN_ID, description="The run_id from ask_team or plan.")


def parse_arguments(takes: type[ArgumentsT], given: Mapping[str, Any]) -> ArgumentsT:
    """Return the arguments of a tool; raises `InvalidArguments`, which does not repeat the input."""
    try:
        return takes.model_validate(given)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
    messages = [f"{'.'.join(map(str, one['loc'])) or 'arguments'}: {one['msg']}"[:300] for one in faults]
    raise InvalidArguments("; ".join(messages[:_SHOWN_FAULTS]))


class CitedSource(BaseModel):
    """A page that the run has read; the answer cites it as `[number]`."""

    number: int
    url: str
    title: str
    publisher: str = ""
    published: str = ""
    """When, as the page says itself: `YYYY-MM-DD`, `YYYY-MM` or `YYYY`."""


class UserMessageView(BaseModel):
    """What the user wrote to a run while it worked, and what the lead replied; "" for no reply yet."""

    message: str
    reply: str


class RunResult(BaseModel):
    """The status of a run and its results so far."""

    run_id: str
    thread_id: str = Field(description="Pass it to ask_team to continue this conversation.")
    status: RunState
    answer: str = Field(description="Markdown; empty if there is none yet.")
    score: str = Field(description="How many claims of the answer its sources support; empty if unknown.")
    plan: PlanStatus | None = Field(description="With the status of each step; null without a plan.")
    messages: list[UserMessageView] = Field(description="What the user wrote to the run while it worked.")
    gaps: list[GapView] = Field(description="The steps whose results are missing in the answer, and why.")
    waits_for: list[InterruptView] = Field(description="The questions that an interrupted run waits for.")
    outage: str = Field(
        description="What a queued run waits for, by itself: what is away, and why; else empty."
    )
    error: ErrorView | None
    usage: UsageView
    sources: list[CitedSource]

    def texts(self) -> Iterator[str]:
        """Yield the result as texts; the first one is only the answer."""
        if self.answer:
            yield self.answer
        if self.error is not None:
            yield f"The run {self.status}: {self.error.message}"
        yield from (pause_text(one, self.thread_id) for one in self.waits_for)
        if self.outage:
            yield f"The run waits and goes on by itself: {self.outage}"
        if self.status in ("queued", "running"):
            yield (
                "The run is still in progress. Call get_run with this run_id and wait_seconds for its answer."
            )
        yield "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"status: {self.status}, run_id: {self.run_id}, thread_id: {self.thread_id}"
        if self.plan is not None:
            yield f"plan: {self.plan.title}"
            for step in self.plan.steps:
                yield f"  {step.id}. {step.agent_name}: {step.title} ({step.status})"
        for one in self.messages:
            yield f"the user wrote: {one.message}"
            if one.reply:
                yield f"  the lead replied: {one.reply}"
        if self.score and self.score not in self.answer:
            yield f"score: {self.score.strip('*')}"
        yield from (f"not complete: {gap.step} ({gap.reason})" for gap in self.gaps)
        used = self.usage
        yield (
            f"used: {used.model_calls} model calls, {used.tool_calls} tool calls, "
            f"{used.input_tokens} tokens read, {used.output_tokens} written, {used.seconds:.0f} s"
        )
        yield from (f"[{one.number}] {one.title} <{one.url}>" for one in self.sources)


def build_call_result(result: RunResult, *, is_error: bool) -> CallToolResult:
    """Return a run as the result of a tool: as text for the model, and as data."""
    return CallToolResult(
        content=[TextContent(text=text) for text in result.texts()],
        structured_content=result.model_dump(mode="json"),
        is_error=is_error,
    )


async def read_run_result(service: Service, run: RunRecord) -> RunResult:
    """Return the result of a run from its stored records."""
    store = service.store
    view = await load_run_view(
        store.events, run.run_id, [PlanChanged, UserAnswered, UserMessageReceived, UserMessageAnswered]
    )
    checked = await read_claims(store, run)
    failed = ErrorView(code=run.error_code, message=run.error or "") if run.error_code else None
    return RunResult(
        run_id=run.run_id,
        thread_id=run.thread_name,
        status=run.status,
        answer=await _answer(store, run),
        score=checked.score if checked is not None else "",
        plan=PlanStatus.model_validate(view.plan.data()) if view.plan is not None else None,
        messages=[
            UserMessageView(message=one.message, reply=one.answer.content if one.answer else "")
            for one in view.exchanges.values()
        ],
        gaps=await read_gaps(store, run),
        waits_for=await read_interrupts(store, run),
        outage=await _describe_outage(store, run),
        error=failed,
        usage=UsageView.model_validate(run.usage),
        sources=[
            CitedSource(
                number=one.number,
                url=one.url,
                title=one.title,
                publisher=one.publisher,
                published=one.published,
            )
            for one in (await store.evidence(run.run_id).sources())[:SHOWN_SOURCES]
        ],
    )


async def _describe_outage(store: Store, run: RunRecord) -> str:
    if run.status != "queued" or run.waiting_for is None:
        return ""
    outage = await read_outage(store.events, run.run_id)
    return f"the {run.waiting_for} is away. {outage.reason if outage else ''}".strip()


async def _answer(store: Store, run: RunRecord) -> str:
    try:
        report = await read_report_view(store, run)
    except (RunNotFinished, ReportMissing):
        return ""
    return await asyncio.to_thread(sanitize_markdown, report.markdown)


def pause_text(pause: InterruptView, thread_id: str) -> str:
    """Return the question, and how to answer it without a form."""
    how = f'Give the answer with ask_team, as the question, with thread_id "{thread_id}".'
    return f"The run waits. {question_text(pause)}\n{how}"


def question_text(pause: InterruptView) -> str:
    """Return the question and the accepted answers. Invisible characters are escaped."""
    return "".join(one if one.isprintable() or one in "\n\t" else _escaped(one) for one in _question(pause))


def _question(pause: InterruptView) -> str:
    payload = pause.payload
    match pause.kind:
        case "plan_review":
            return "\n".join(["The plan is:", *_steps(payload.get("plan") or {}), *_error(payload), _REVIEW])
        case "tool_approval":
            arguments = json.dumps(payload.get("tool_input") or {}, ensure_ascii=False, indent=1)
            tool = payload.get("tool_name", "A tool")
            if payload.get("reason") == "unknown_result":
                lost = "was running when the program stopped. Its result is unknown:"
                return "\n".join([f"{tool} {lost}", arguments, *_error(payload), _UNKNOWN])
            times = describe_next_times(payload)
            lines = [f"{tool} asks for approval. Its arguments:", arguments]
            lines += [times] if times else []
            return "\n".join([*lines, *_error(payload), _APPROVAL])
        case "question":
            words = payload.get("question")
            text = words if isinstance(words, str) else json.dumps(payload, ensure_ascii=False)
            return "\n".join([text, *(f"- {option}" for option in pause.options)])


def build_form(pause: InterruptView) -> ElicitRequestFormParams:
    """Return the form that asks the user."""
    field = {"type": "string", "title": "Answer", "minLength": 1}
    schema = {"type": "object", "properties": {ANSWER_FIELD: field}, "required": [ANSWER_FIELD]}
    return ElicitRequestFormParams(message=question_text(pause), requested_schema=schema)


def parse_answer(result: ElicitResult) -> str | None:
    """Return the user's answer; None when the form was declined, closed or left empty."""
    given = (result.content or {}).get(ANSWER_FIELD) if result.action == "accept" else None
    text = given.strip() if isinstance(given, str) else ""
    return text[:ANSWER_CHARACTERS] or None


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can show a form now. Elicitation without a kind means forms."""
    client = context.session.client_capabilities
    elicitation = client.elicitation if client is not None else None
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    return context.session.can_send_request or context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _escaped(letter: str) -> str:
    return letter.encode("unicode_escape").decode()


def _steps(plan: Mapping[str, Any]) -> Iterator[str]:
    yield str(plan.get("title", ""))
    for number, step in enumerate(plan.get("steps") or (), start=1):
        yield f"  {number}. {step.get('agent_name')}: {step.get('title')}: {step.get('description', '')}"


def _error(payload: Mapping[str, Any]) -> Iterator[str]:
    if error := payload.get("error"):
        yield f"The last answer was not valid: {error}"
    if payload.get("unclear"):
        yield "The last answer was not understood, and nothing was decided."
