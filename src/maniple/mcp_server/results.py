"""What the tools answer: how a run stands, as data and in words."""

import asyncio
from collections.abc import Iterator

from pydantic import BaseModel, Field

from maniple.api.reports import NoReport, NotFinished, report_of
from maniple.api.schemas import ErrorView, InterruptView, PlanView, UsageView
from maniple.api.state import Service
from maniple.api.waiting import waits_for
from maniple.events import PlanChanged, load_run_view
from maniple.mcp_server.pauses import asked
from maniple.run_page.markup import harmless
from maniple.store import RunRecord, Store
from maniple.types import RunState

MOST_SOURCES = 200


class Source(BaseModel):
    """What the run has read at one address; the answer cites it as `[number]`."""

    number: int
    url: str
    title: str


class RunResult(BaseModel):
    """How a run stands, and what it came to so far."""

    run_id: str
    thread_id: str = Field(description="Give it to ask_team to go on with this conversation.")
    status: RunState
    answer: str = Field(description="Markdown; empty while there is none.")
    plan: PlanView | None = Field(description="With the status of each step; null without a plan.")
    waits_for: list[InterruptView] = Field(description="What an interrupted run waits for.")
    error: ErrorView | None
    usage: UsageView
    sources: list[Source]

    def texts(self) -> Iterator[str]:
        """Yield the same in words, the answer by itself first."""
        if self.answer:
            yield self.answer
        if self.error is not None:
            yield f"The run {self.status}: {self.error.message}"
        yield from (asked(one, self.thread_id) for one in self.waits_for)
        if self.status in ("queued", "running"):
            yield "The run is not over. get_run tells how it stands."
        yield "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"status: {self.status}, run_id: {self.run_id}, thread_id: {self.thread_id}"
        if self.plan is not None:
            yield f"plan: {self.plan.title}"
            for step in self.plan.steps:
                yield f"  {step.id}. {step.agent_name}: {step.title} ({step.status})"
        used = self.usage
        yield (
            f"used: {used.model_calls} model calls, {used.tool_calls} tool calls, "
            f"{used.input_tokens} tokens read, {used.output_tokens} written, {used.seconds:.0f} s"
        )
        yield from (f"[{one.number}] {one.title} <{one.url}>" for one in self.sources)


async def result_of(service: Service, run: RunRecord) -> RunResult:
    """Return how a run stands by what was recorded of it."""
    store = service.store
    failed = ErrorView(code=run.error_code, message=run.error or "") if run.error_code else None
    return RunResult(
        run_id=run.run_id,
        thread_id=run.thread_name,
        status=run.status,
        answer=await _answer(store, run),
        plan=await _newest_plan(store, run.run_id),
        waits_for=await waits_for(store, run),
        error=failed,
        usage=UsageView.model_validate(run.usage),
        sources=[
            Source(number=one.number, url=one.url, title=one.title)
            for one in (await store.evidence(run.run_id).sources())[:MOST_SOURCES]
        ],
    )


async def _answer(store: Store, run: RunRecord) -> str:
    try:
        report = await report_of(store, run)
    except (NotFinished, NoReport):
        return ""
    return await asyncio.to_thread(harmless, report.markdown)


async def _newest_plan(store: Store, run_id: str) -> PlanView | None:
    view = await load_run_view(store.events, run_id, [PlanChanged])
    return PlanView.model_validate(view.plan.data()) if view.plan is not None else None
