"""What clients are told of threads, runs, reports and artifacts. Times are Unix seconds."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from maniple.events import ChatMessage, RunInterrupted
from maniple.evidence import SourceKind
from maniple.runs import AgentUsage
from maniple.store import Artifact, RunRecord, Thread
from maniple.types import RunState

ThreadStatus = Literal["idle", "busy", "interrupted", "error"]
"""busy: a run works or waits for its turn; interrupted: one waits for an answer; error: the newest failed."""


class _Told(BaseModel):
    model_config = ConfigDict(from_attributes=True)


class ThreadView(_Told):
    """A conversation."""

    thread_id: str
    title: str
    created_at: float
    updated_at: float
    status: ThreadStatus

    @classmethod
    def of(cls, thread: Thread, status: ThreadStatus) -> "ThreadView":
        """Return what is told of a thread."""
        return cls(
            thread_id=thread.name,
            title=thread.title,
            created_at=thread.created_at,
            updated_at=thread.updated_at,
            status=status,
        )


class ThreadPage(BaseModel):
    """Conversations, newest first; `next_before` asks for the next page and is null on the last one."""

    threads: list[ThreadView]
    next_before: float | None


class PlanStep(BaseModel):
    """One step, and where it stands."""

    id: int
    agent_name: str
    title: str
    description: str
    status: str


class PlanView(BaseModel):
    """The newest plan of a conversation."""

    title: str
    steps: list[PlanStep]


class RunStub(_Told):
    """A run of a conversation."""

    run_id: str
    status: RunState


class SaidView(ChatMessage):
    """A message; `name` is the member of the team that wrote it, null when nobody of the team did."""

    name: str | None


class ThreadDetail(ThreadView):
    """A conversation with what was said, its newest plan and its newest runs."""

    messages: list[SaidView]
    plan: PlanView | None
    runs: list[RunStub]


class UsageView(_Told):
    """What a run has used; `cost` is in the currency of the configured prices."""

    model_calls: int
    tool_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    cost: float


class AgentUsageView(_Told):
    """What one member of the team has used of a run; `seconds` are those of its model calls.

    `cost` is in the currency of the configured prices, null when a model that it asked has no price.
    """

    agent_name: str
    model_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float
    cost: float | None

    @classmethod
    def of(cls, usage: AgentUsage) -> "AgentUsageView":
        """Return what is told of a agent's usage."""
        return cls(
            agent_name=usage.agent_name,
            model_calls=usage.model_calls,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            seconds=round(usage.seconds, 3),
            cost=usage.cost if usage.is_priced else None,
        )


class ErrorView(BaseModel):
    """Why a run failed."""

    code: str
    message: str


class InterruptView(BaseModel):
    """What a run waits for, as its `interrupt` event told it."""

    interrupt_id: str
    kind: Literal["plan_review", "tool_approval", "question"]
    payload: dict[str, Any]
    options: list[str]

    @classmethod
    def of(cls, event: RunInterrupted) -> "InterruptView":
        """Return what the event says."""
        return cls(**event.data())


class RunAccepted(BaseModel):
    """A run that was accepted: it ends in exactly one status, whatever happens to the server."""

    run_id: str
    thread_id: str
    status: RunState

    @classmethod
    def of(cls, run: RunRecord) -> "RunAccepted":
        """Return what is told of a run at once."""
        return cls(run_id=run.run_id, thread_id=run.thread_name, status=run.status)


class RunSummary(RunAccepted):
    """How a run stands, and what it has used."""

    usage: UsageView
    created_at: float
    started_at: float | None
    ended_at: float | None
    error: ErrorView | None

    @classmethod
    def of(cls, run: RunRecord, **more: Any) -> Self:
        """Return what is told of a run."""
        error = ErrorView(code=run.error_code, message=run.error or "") if run.error_code else None
        return cls(
            run_id=run.run_id,
            thread_id=run.thread_name,
            status=run.status,
            usage=UsageView.model_validate(run.usage),
            created_at=run.created_at,
            started_at=run.started_at,
            ended_at=run.ended_at,
            error=error,
            **more,
        )


class RunView(RunSummary):
    """How a run stands, what it waits for, and what each member has used, as far as it is told already."""

    interrupts: list[InterruptView]
    by_agent: list[AgentUsageView]


class RunPage(BaseModel):
    """Runs, newest first; `next_before` asks for the next page and is null on the last one."""

    runs: list[RunSummary]
    next_before: float | None


class ArtifactView(BaseModel):
    """A file that the run made; `size` in bytes."""

    artifact_id: str
    name: str
    media_type: str
    size: int
    url: str

    @classmethod
    def of(cls, artifact: Artifact) -> "ArtifactView":
        """Return what is told of an artifact."""
        return cls(
            artifact_id=artifact.artifact_id,
            name=artifact.name,
            media_type=artifact.media_type,
            size=artifact.size,
            url=f"/api/artifacts/{artifact.artifact_id}",
        )


class SourceView(_Told):
    """What the run has read at one address, found by a search (`result`) or fetched (`page`).

    Reports cite it as `[number]`; `retrieved_at` in Unix seconds, `sha256` (hex) of the newest text. `also`
    are other addresses of it: what redirected there, or where it redirected to.
    """

    number: int
    url: str
    title: str
    kind: SourceKind
    retrieved_at: float
    sha256: str
    also: list[str]


class Sources(BaseModel):
    """What the run has read so far, by number."""

    sources: list[SourceView]


class ReportView(BaseModel):
    """The answer of a run that has ended; `markdown` holds no HTML, and no image that loads by itself."""

    run_id: str
    thread_id: str
    status: RunState
    title: str
    markdown: str
    ended_at: float | None
    usage: UsageView
    artifacts: list[ArtifactView]
