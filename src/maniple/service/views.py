"""What clients receive: the response models, and how they are read from the store.

Times are Unix seconds, sizes are bytes.
"""

from collections.abc import Sequence
from typing import Any, Literal, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field

from maniple.config import Settings
from maniple.events import (
    AgentEnded,
    AgentStarted,
    ClaimView,
    MarkedCitation,
    RunGap,
    RunInterrupted,
    RunStarted,
    RunStatusChanged,
    RunViewReader,
    StepInterrupted,
    StepResumed,
    read_event,
)
from maniple.evidence import SourceKind
from maniple.runs import AgentUsage
from maniple.service.asked_options import AskedView
from maniple.store import Artifact, RunRecord, Store, Thread
from maniple.types import OutageKind, RunState
from maniple.workspace import StoredUpload

MAX_UPLOADED_FILES = 100


class StoredView(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class UsageView(StoredView):
    """The usage of a run; `cost` is in the currency of the configured prices."""

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    cost: float


class AgentUsageView(StoredView):
    """The usage of one agent in a run; `seconds` are those of its model calls.

    `cached_tokens` are those of the input that the endpoints had in their caches.

    `cost` is in the currency of the configured prices, null when a model that it called has no price.
    """

    agent_name: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    seconds: float
    cost: float | None

    @classmethod
    def of(cls, usage: AgentUsage) -> "AgentUsageView":
        """Return the view of an agent's usage."""
        return cls(
            agent_name=usage.agent_name,
            model_calls=usage.model_calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_tokens=usage.cached_tokens,
            seconds=round(usage.seconds, 3),
            cost=usage.cost if usage.is_priced else None,
        )


class ErrorView(BaseModel):
    """Why a run failed."""

    code: str
    message: str


class InterruptView(BaseModel):
    """What a run, or one of its steps, waits for: from its `interrupt` or `step_interrupt` event."""

    interrupt_id: str
    kind: Literal["plan_review", "tool_approval", "question"]
    payload: dict[str, Any]
    options: list[str]

    @classmethod
    def of(cls, event: RunInterrupted) -> "InterruptView":
        """Return the view of the event."""
        return cls(**event.data())


class RunAccepted(BaseModel):
    """An accepted run. It ends in exactly one status, also when the server is restarted."""

    run_id: str
    thread_id: str
    status: RunState

    @classmethod
    def of(cls, run: RunRecord) -> "RunAccepted":
        """Return the view of a run that was just accepted."""
        return cls(run_id=run.run_id, thread_id=run.thread_name, status=run.status)


class MessageAccepted(RunAccepted):
    """A message to a run that works. It is stored, and its effects come with the run's events.

    If the run ends before the lead has answered, the message becomes the next run of the conversation: one
    with the id of the message.
    """

    message_id: str


class Suggestions(BaseModel):
    """What the user may want to ask next, and what it used: no usage of the run."""

    questions: list[str] = Field(description="One to three, each one line of plain text")
    usage: UsageView
    effort_not_used: list[str] = Field(description="The models that do not take the effort of the run")


class RunSummary(RunAccepted):
    """The status and the usage of a run."""

    usage: UsageView
    created_at: float
    started_at: float | None
    ended_at: float | None
    error: ErrorView | None
    waiting_for: OutageKind | None = None
    """What is away while the run is `queued`: it has begun, and goes on by itself."""
    waiting_since: float | None = None
    waiting_until: float | None = None

    @classmethod
    def of(cls, run: RunRecord, **more: Any) -> Self:
        """Return the view of a run."""
        error = ErrorView(code=run.error_code, message=run.error or "") if run.error_code else None
        is_waiting = run.status == "queued"
        return cls(
            run_id=run.run_id,
            thread_id=run.thread_name,
            status=run.status,
            usage=UsageView.model_validate(run.usage),
            created_at=run.created_at,
            started_at=run.started_at,
            ended_at=run.ended_at,
            error=error,
            waiting_for=run.waiting_for if is_waiting else None,
            waiting_since=run.waiting_since if is_waiting else None,
            waiting_until=run.waiting_until if is_waiting else None,
            **more,
        )


class GapView(RunGap):
    """A step whose result the answer lacks: its title, and in one line why it was not done.

    `rejected` is true where the user did not approve it: a retry would only ask again.
    """


class ArtifactView(BaseModel):
    """A file that the run made; `size` in bytes."""

    artifact_id: str
    name: str
    media_type: str
    size: int
    url: str

    @classmethod
    def of(cls, artifact: Artifact) -> "ArtifactView":
        """Return the view of an artifact."""
        return cls(
            artifact_id=artifact.artifact_id,
            name=artifact.name,
            media_type=artifact.media_type,
            size=artifact.size,
            url=f"/api/artifacts/{artifact.artifact_id}",
        )


class RunDetail(RunSummary):
    """The status of a run, what it waits for, what its answer lacks, and the usage and the files so far.

    `asked` is null if the stored request cannot be read.
    """

    asked: AskedView | None = None
    gaps: list[GapView] = []

    interrupts: list[InterruptView]
    by_agent: list[AgentUsageView]
    artifacts: list[ArtifactView]


class LimitView(BaseModel):
    """A daily limit of an API key, and what its runs have used of it in the last 24 hours."""

    limit: str
    allowed: float
    used: float
    left: float


class QuotaView(BaseModel):
    """What an API key may still use. Limits that it does not have are left out."""

    max_runs: int | None = Field(description="How many runs it may have at work; null: those of the settings")
    daily: list[LimitView]


class RunPage(BaseModel):
    """Runs, newest first; `next_before` is the `before` of the next page, null on the last one."""

    runs: list[RunSummary]
    next_before: float | None


class SourceView(StoredView):
    """A page that the run has read: found by a search (`result`) or fetched (`page`).

    Reports cite it as `[number]`; `retrieved_at` in Unix seconds, `sha256` (hex) of the newest text. `also`
    are other addresses of it: what redirected there, or where it redirected to. `published` (`YYYY-MM-DD`,
    `YYYY-MM` or `YYYY`), `author` and `publisher` are what the page says itself; "" where it does not.
    """

    number: int
    url: str
    title: str
    kind: SourceKind
    retrieved_at: float
    sha256: str
    also: list[str]
    published: str
    author: str
    publisher: str


class UnreadPageView(StoredView):
    """An address that the run tried to read in vain, and why; `tried_at` in Unix seconds."""

    url: str
    reason: str
    tried_at: float


class FindingView(StoredView):
    """A statement that a member noted while reading, and the words of the source that it was checked against.

    The words stand from `start` to `end`, in characters, in the text of the source with the digest `sha256`
    (hex). `noted_at` in Unix seconds; `inherited` ones are of an earlier run of the thread.
    """

    source: int
    statement: str
    quote: str
    sha256: str
    start: int
    end: int
    noted_at: float
    inherited: bool


class Sources(BaseModel):
    """The pages that the run has read so far, by number."""

    sources: list[SourceView]
    unread: list[UnreadPageView] = []
    """Addresses that could not be read; the report cannot rest on them."""
    findings: list[FindingView] = []
    """What members noted while reading, in the order in which they did."""


class ReportView(BaseModel):
    """The answer of a run that has ended; `markdown` holds no HTML, and no image that loads automatically."""

    run_id: str
    thread_id: str
    status: RunState
    title: str
    markdown: str
    ended_at: float | None
    usage: UsageView
    artifacts: list[ArtifactView]


Verdict = Literal["supported", "contradicted", "absent", "open"]
"""A verdict on a claim, as the event `claims` has it."""


class ClaimCounts(BaseModel):
    """The number of claims by verdict, and of their citations.

    `open`: no rule decides them; `not_checked`: claims behind the limit; `exempt`: nothing in them has to be
    in a source. `supporting_citations` are those that are known to say what their claim says.
    """

    supported: int
    contradicted: int
    absent: int
    open: int
    not_checked: int
    exempt: int
    citations: int
    supporting_citations: int


class ClaimList(BaseModel):
    """The claims of a run's answer in order, with their verdicts.

    `score` is the last line of the report, as Markdown. `counts` are always of all claims; null if nothing in
    the answer was checked. `unlisted` is the number of claims behind the limit of 500, whatever their
    verdict. `marked_citations` are the marks that are about an address, a source number or a quotation.
    `unsearched` are the numbers of sources that no claim cites and that were too long to be searched.
    """

    run_id: str
    score: str = ""
    counts: ClaimCounts | None = None
    claims: list[ClaimView] = Field(default_factory=list[ClaimView])
    unlisted: int = 0
    marked_citations: list[MarkedCitation] = Field(default_factory=list[MarkedCitation])
    unsearched: list[int] = Field(default_factory=list[int])


class ThreadFile(BaseModel):
    """A file; `uploaded` is true for a file of the user, which came at `uploaded_at` (Unix seconds)."""

    path: str
    size: int
    uploaded: bool
    uploaded_at: float | None
    url: str

    @classmethod
    def of(cls, thread_id: str, path: str, size: int, uploaded_at: float | None) -> "ThreadFile":
        """Return the view of a file; `uploaded_at` is None for a file of the team."""
        return cls(
            path=path,
            size=size,
            uploaded=uploaded_at is not None,
            uploaded_at=uploaded_at,
            url=_url(thread_id, path),
        )


class ThreadFiles(BaseModel):
    """The files by path; `has_more` is true when the list is cut."""

    files: list[ThreadFile]
    has_more: bool


class StoredFile(BaseModel):
    """A stored file; `sha256` is in hex, `replaced` is true when it replaced a file of its name."""

    path: str
    size: int
    sha256: str
    replaced: bool
    url: str

    @classmethod
    def of(cls, thread_id: str, stored: StoredUpload) -> "StoredFile":
        """Return the view of an upload."""
        given = stored.upload
        return cls(
            path=given.path,
            size=given.size,
            sha256=given.sha256,
            replaced=stored.replaced,
            url=_url(thread_id, given.path),
        )


class StoredFiles(BaseModel):
    """The files in the order in which they were sent."""

    files: list[StoredFile]


def _url(thread_id: str, path: str) -> str:
    return f"/api/threads/{quote(thread_id, safe='')}/files/{quote(path)}"


class ErrorResponse(BaseModel):
    """The reason for a refused request: a text (a list of places for an invalid body) and a code."""

    detail: str | list[dict[str, Any]]
    code: str


class FileMissing(BaseModel):
    """A recording that does not exist, as LangManus answers it."""

    detail: str = "File not found"


class TeamMember(BaseModel):
    """An agent of the team in the form that the LangManus client reads."""

    name: str
    desc: str
    is_optional: bool


class TeamMembers(BaseModel):
    """The agents that a request can name."""

    team_members: dict[str, TeamMember]


class UploadLimits(BaseModel):
    """How large the files are that a client may put into a conversation, in bytes."""

    files: int = MAX_UPLOADED_FILES
    """The files of one upload."""
    upload_bytes: int
    """One upload, with all its files (`server.max_upload_bytes`)."""
    workspace_bytes: int
    """All files of a conversation (`sandbox.disk_mb`)."""

    @classmethod
    def of(cls, settings: Settings) -> "UploadLimits":
        """Return the limits of a service with these settings."""
        return cls(
            upload_bytes=settings.server.max_upload_bytes, workspace_bytes=settings.sandbox.workspace_bytes
        )


class Health(BaseModel):
    """The process is alive. `model`, `notices` and `limits` are sent only to callers with access."""

    status: Literal["ok"] = "ok"
    model: str = ""
    notices: list[str] = Field(default_factory=list[str])
    limits: UploadLimits | None = None


def next_before(page: Sequence[Thread | RunRecord], limit: int) -> float | None:
    """Return the `before` of the next page; None when this is the last one."""
    return page[-1].created_at if len(page) == limit else None


PAGE_EVENTS = 200


async def read_gaps(store: Store, run: RunRecord) -> list[GapView]:
    """Return what the answer of a run lacks, and what a cancelled retry left; empty without an answer."""
    if run.status not in ("completed", "budget_exhausted", "failed", "cancelled"):
        return []
    newest = await store.events.last(run.run_id)
    end = newest.number if newest else 0
    # The status is among the last events.
    for record in reversed(await store.events.read(run.run_id, max(0, end - PAGE_EVENTS), PAGE_EVENTS)):
        if record.type == RunStatusChanged.type:
            event = read_event(record.type, record.data)
            gaps = event.gaps if isinstance(event, RunStatusChanged) else None
            return [GapView(**gap.model_dump()) for gap in gaps or ()]
    return []


STEP_EVENTS = (RunStarted, AgentStarted, AgentEnded, StepInterrupted, StepResumed)
"""The events that determine the open questions of steps while other steps continue."""


async def read_step_questions(views: RunViewReader, run: RunRecord) -> list[InterruptView]:
    """Return the open questions of the steps of a running run; an empty list for any other run.

    `views` are made of `STEP_EVENTS`.
    """
    if run.status != "running":
        return []
    view = await views.read(run.run_id)
    return [InterruptView.of(one) for one in view.step_questions.values()]


async def read_interrupts(store: Store, run: RunRecord) -> list[InterruptView]:
    """Return the interrupts of the newest segment of an interrupted run; an empty list for any other run.

    They are together near the end of the log, which is therefore read backwards.
    """
    if run.status != "interrupted":
        return []
    newest = await store.events.last(run.run_id)
    end, size = newest.number if newest else 0, PAGE_EVENTS
    found: list[InterruptView] = []
    while end > 0:
        begin = max(0, end - size)
        for record in reversed(await store.events.read(run.run_id, begin, end - begin)):
            if record.type == RunInterrupted.type:
                event = read_event(record.type, record.data)
                found += [InterruptView.of(event)] if isinstance(event, RunInterrupted) else []
            elif found or record.type == RunStarted.type:
                return found[::-1]
        end, size = begin, 2 * size
    return found[::-1]
