"""Routes of runs: status, events, answers, cancellation, reports and artifacts."""

import json
from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from sse_starlette import EventSourceResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import EVENT_PAGE, RUN_STREAM, describe_location
from maniple.api.downloads import (
    ATTACHMENT,
    FILE_HEADERS,
    REPORT_RESPONSES,
    ReportForm,
    content_disposition,
    negotiate_form,
    read_figure,
    render_report,
)
from maniple.api.error_responses import error_responses
from maniple.api.requests import (
    BranchCreate,
    MessageCreate,
    PageBefore,
    PageLimit,
    PlanEditRequest,
    ResumeRequest,
    check_agent_name,
    check_budget,
    check_choices,
)
from maniple.api.sse import StreamStart, ViewQuery, event_stream, frames_until
from maniple.api.state import ServiceOf
from maniple.replay import Replay
from maniple.run_files.pictures import FigureFinder
from maniple.runs import AcceptedRun
from maniple.service import Service
from maniple.service.asked_options import AskedView
from maniple.service.replays import build_run_replay
from maniple.service.reports import read_claim_list, read_markdown, read_report_view
from maniple.service.thread_views import PlanStatus
from maniple.service.views import (
    AgentUsageView,
    ArtifactView,
    ClaimList,
    FindingView,
    MessageAccepted,
    ReportView,
    RunAccepted,
    RunDetail,
    RunPage,
    RunSummary,
    Sources,
    SourceView,
    Suggestions,
    UnreadPageView,
    UsageView,
    Verdict,
    next_before,
    read_gaps,
    read_interrupts,
    read_step_questions,
)
from maniple.store import EVENT_PAGE_SIZE, EventRecord, RunRecord

router = keyed_router("runs")
_MAX_EVENTS = 2**53
_NOT_STORED = {"cache-control": "no-store"}
_RunPath = Annotated[str, Path(max_length=200, pattern=r"^[A-Za-z0-9-]+$", description="The run")]
_FigurePath = Annotated[str, Path(max_length=500, description="The figure's path in the workspace")]
_Number = Annotated[
    int, Query(ge=0, le=_MAX_EVENTS, description="Number of the newest event that the client has")
]
_LastEventId = Annotated[int, Header(ge=0, le=_MAX_EVENTS, description="The same; the greater one counts")]
_Verdicts = Annotated[Sequence[Verdict], Query(description="Only claims with one of these verdicts")]
_Timed = Annotated[bool, Query(description="Add the time of each event: `at` (Unix seconds), its last key")]


class ReportQuery(BaseModel):
    """How a report is wanted. A parameter by another name is refused: the answer would be another format."""

    model_config = ConfigDict(extra="forbid")
    form: ReportForm | None = Field(None, description="The format; takes precedence over `Accept`")
    download: bool = Field(False, description="As an attachment, named after the conversation")


async def _stream_start(
    view: ViewQuery = "langmanus", after: _Number = 0, last_event_id: _LastEventId = 0
) -> StreamStart:
    return StreamStart(view, max(after, last_event_id))


_PAGE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The page, in one self-contained file",
        "content": {"text/html": {"schema": {"type": "string"}}},
    }
}
_FRAGMENT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The text of the report, which loads and runs nothing but its figures",
        "content": {"text/html": {"schema": {"type": "string"}}},
    }
}
_CONTINUED = describe_location(202, "the events that follow")


@router.get("/api/runs", summary="List runs", responses=error_responses())
async def list_runs(
    service: ServiceOf, caller: CallerOf, limit: PageLimit = 50, before: PageBefore = None
) -> RunPage:
    """The key's runs on all its conversations, newest first."""
    runs = await service.store.runs.list(caller.owner, limit, before)
    return RunPage(runs=[RunSummary.of(run) for run in runs], next_before=next_before(runs, limit))


@router.get("/api/runs/{run_id}", summary="Read the status of a run", responses=error_responses(404))
async def read_run(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> RunDetail:
    """Status, files, usage, also that of each member, and what the run, or a step at work, waits for."""
    return await _view(service, await service.engine.status(run_id, caller.owner))


@router.get(
    "/api/runs/{run_id}/events",
    summary="Follow a run",
    response_class=EventSourceResponse,
    responses={**RUN_STREAM, **error_responses(404)},
)
async def follow_run(
    run_id: _RunPath,
    service: ServiceOf,
    caller: CallerOf,
    start: Annotated[StreamStart, Depends(_stream_start)],
    timed: _Timed = False,
) -> EventSourceResponse:
    """The run's events from the beginning, or after a number; ends when the run has ended or waits.

    The numbers count the events of a view; those of one view mean nothing in another one.
    """
    run = await service.engine.status(run_id, caller.owner)
    return event_stream(service, run, start, timed=timed)


@router.get(
    "/api/runs/{run_id}/events/page",
    summary="Read stored events",
    response_class=JSONResponse,
    response_model=None,
    responses={**EVENT_PAGE, **error_responses(404)},
)
async def read_events(
    run_id: _RunPath,
    service: ServiceOf,
    caller: CallerOf,
    after: _Number = 0,
    limit: Annotated[int, Query(ge=1, le=EVENT_PAGE_SIZE, description="Most to return")] = 100,
) -> Response:
    """The events that are stored now, in the order and with the numbers of the view `live`.

    A page with fewer than `limit` events of a run that has ended or waits is the last one.
    """
    run = await service.engine.status(run_id, caller.owner)
    records = await service.store.events.read(run.run_id, after, limit)
    newest = records[-1].number if records else after
    events = ", ".join(_write_event(one) for one in records)
    head = f'"status": "{run.status}", "next_after": {newest}'
    return Response(f'{{{head}, "events": [{events}]}}', media_type="application/json", headers=_NOT_STORED)


def _write_event(record: EventRecord) -> str:
    """Return an event as JSON; its data are JSON already."""
    head = {"number": record.number, "event": record.type, "at": record.at}
    return f'{json.dumps(head)[:-1]}, "data": {record.marked_data}}}'


@router.post("/api/runs/{run_id}/cancel", summary="Cancel a run", responses=error_responses(404))
async def cancel_run(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> RunDetail:
    """End the run; its results so far are stored. A run that has ended stays as it is."""
    return await _view(service, await service.engine.cancel(run_id, caller.owner))


async def _continued(service: Service, response: Response, accepted: AcceptedRun) -> RunAccepted:
    """Return the response for a run that continues, with the address of the events that follow."""
    run_id = accepted.run.run_id
    after = await frames_until(service.store.events, run_id, "langmanus", accepted.after)
    response.headers["location"] = f"/api/runs/{run_id}/events?after={after}"
    return RunAccepted.of(accepted.run)


@router.post(
    "/api/runs/{run_id}/resume",
    status_code=202,
    summary="Answer what a run, or one of its steps, waits for",
    responses={**_CONTINUED, **error_responses(404, 409, 429)},
)
async def resume_run(
    run_id: _RunPath, reply: ResumeRequest, response: Response, service: ServiceOf, caller: CallerOf
) -> RunAccepted:
    """Answer a plan, a tool call or a question. The run continues, and so do the numbers of its events.

    A running run accepts answers, too: a step that asked (`step_interrupt`) continues with the answer. The
    answer is stored when this returns. Without `interrupt_id` it answers the oldest question. 409 if nothing,
    or nothing with this id, waits for an answer.
    """
    accepted = await service.engine.resume(
        run_id, reply.answer, interrupt_id=reply.interrupt_id, owner=caller.owner
    )
    return await _continued(service, response, accepted)


@router.post(
    "/api/runs/{run_id}/messages",
    status_code=202,
    summary="Write to a run that works or waits",
    responses={**_CONTINUED, **error_responses(404, 409, 429)},
)
async def send_message(
    run_id: _RunPath, message: MessageCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> MessageAccepted:
    """Write to the team while it works: its lead answers, changes the plan, or passes the message on.

    If the run waits for an answer, its lead answers a question before this returns; the run still waits, and
    reads any other message when it goes on. 409 if the run has ended; 429 if 20 messages to it wait already.
    """
    accepted = await service.engine.send_message(run_id, message.content, caller.owner)
    run = await _continued(service, response, accepted)
    return MessageAccepted(**run.model_dump(), message_id=accepted.message_id)


@router.post(
    "/api/runs/{run_id}/retry",
    status_code=202,
    summary="Retry a run",
    responses={**_CONTINUED, **error_responses(404, 409, 429)},
)
async def retry_run(
    run_id: _RunPath, response: Response, service: ServiceOf, caller: CallerOf
) -> RunAccepted:
    """Do the steps that a run has not done, because it failed or its answer has gaps.

    The run continues, and so do the numbers of its events.
    """
    accepted = await service.engine.retry(run_id, caller.owner)
    return await _continued(service, response, accepted)


@router.post(
    "/api/runs/{run_id}/branch",
    status_code=202,
    summary="Ask a question again on a branch",
    responses={**describe_location(202, "the run"), **error_responses(404, 409, 429)},
)
async def branch_run(
    run_id: _RunPath,
    response: Response,
    service: ServiceOf,
    caller: CallerOf,
    change: Annotated[BranchCreate | None, Body()] = None,
) -> RunAccepted:
    """Ask the question of a run again, edited or as it was; the run and those after it stay.

    `thread_id` of the response is the branch: a conversation that begins with the runs before this one, has a
    copy of the files as they were at the question, and goes on by itself. 409 while a run of the conversation
    works or waits.
    """
    change = change or BranchCreate()
    chosen = None
    if change.run is not None:
        check_choices(change.run, service.runtime)
        chosen = change.run.as_run(
            caller.owner, check_budget(change.run.asked_budget(), service.settings.models)
        )
    accepted = await service.engine.branch_run(run_id, change.input or "", caller.owner, chosen)
    response.headers["location"] = f"/api/runs/{accepted.run.run_id}"
    return RunAccepted.of(accepted.run)


@router.post(
    "/api/runs/{run_id}/suggestions",
    summary="Suggest what to ask next",
    responses=error_responses(404, 409, 429),
)
async def suggest_questions(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> Suggestions:
    """Have the basic model of a run that has ended suggest up to three questions after its report.

    They are not stored; their usage counts for the key's day. 503 `no_suggestions` if the model is away, or
    wrote none.
    """
    run = await service.engine.status(run_id, caller.owner)
    markdown = await read_markdown(service.store, run)
    found = await service.engine.suggest_questions(run, markdown)
    return Suggestions(
        questions=list(found.questions),
        usage=UsageView.model_validate(found.usage),
        effort_not_used=list(found.effortless_models),
    )


@router.post(
    "/api/runs/{run_id}/plan",
    status_code=202,
    summary="Change the plan",
    responses=error_responses(404, 409, 429),
)
async def change_plan(
    run_id: _RunPath, change: PlanEditRequest, service: ServiceOf, caller: CallerOf
) -> PlanStatus:
    """Skip a step, do it again, edit it, add one, or move one that has not begun.

    Only the steps that need its result are done again.

    The response is the changed plan. A step in progress that the change concerns is stopped, no other. A plan
    that waits for its review is accepted with the change.
    """
    check_agent_name(change.agent_name, service.runtime.roles)
    plan = await service.engine.change_plan(run_id, change.as_change(), caller.owner)
    return PlanStatus.model_validate(plan)


@router.get(
    "/api/runs/{run_id}/report",
    summary="Read the report of a run",
    response_class=Response,
    response_model=ReportView,
    responses={**error_responses(404, 406, 409), **REPORT_RESPONSES},
)
async def read_report(
    run_id: _RunPath,
    request: Request,
    service: ServiceOf,
    caller: CallerOf,
    query: Annotated[ReportQuery, Query()],
) -> Response:
    """The answer of a run that has ended: Markdown, or by `Accept` or `form` one of the other formats."""
    run = await service.engine.status(run_id, caller.owner)
    report = await read_report_view(service.store, run)
    wanted = query.form or negotiate_form(request.headers.get("accept", ""))
    finder = FigureFinder(service.store, service.workspaces, run)
    return await render_report(service.report_renderer, report, wanted, finder, as_file=query.download)


@router.get(
    "/api/runs/{run_id}/report/body",
    summary="Read the report of a run for a page",
    response_class=Response,
    responses={**_FRAGMENT, **error_responses(404, 409)},
)
async def read_report_body(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> HTMLResponse:
    """The answer of a run that has ended as a fragment of sanitised HTML, the same as in its files.

    Figures have their addresses at this service. Links within the text lead to its ids: `section-N`,
    `source-N`, `footnote-N` and `reference-N`.
    """
    run = await service.engine.status(run_id, caller.owner)
    markdown = await read_markdown(service.store, run)
    finder = FigureFinder(service.store, service.workspaces, run)
    body = await service.report_renderer.bodies.render(finder, markdown)
    return HTMLResponse(body, headers=_page_headers("sandbox; default-src 'none'"))


@router.get(
    "/api/runs/{run_id}/figures/{path:path}",
    summary="Read a figure of a run's report",
    response_class=Response,
    responses={200: ATTACHMENT, **error_responses(404)},
)
async def show_figure(run_id: _RunPath, path: _FigurePath, service: ServiceOf, caller: CallerOf) -> Response:
    """The picture of the conversation that a report shows by this path, also while the run is active."""
    run = await service.engine.status(run_id, caller.owner)
    return await read_figure(FigureFinder(service.store, service.workspaces, run), path)


@router.get(
    "/api/runs/{run_id}/page",
    summary="Look at a run",
    response_class=Response,
    responses={**_PAGE, **error_responses(404)},
)
async def show_run(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> StreamingResponse:
    """One HTML page for people, which plays the run: its replay file, shown instead of saved.

    It opens at the end of the run; if that was not completed, at its newest step. `#event=NUMBER` opens it at
    the event of this number.
    """
    run = await service.engine.status(run_id, caller.owner)
    replay = await _replay(service, run)
    return StreamingResponse(replay.pieces, media_type="text/html", headers=_page_headers(replay.policy))


def _page_headers(policy: str) -> dict[str, str]:
    return {
        "content-security-policy": f"{policy}; frame-ancestors 'none'",
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "cache-control": "private, no-store",
    }


@router.get(
    "/api/runs/{run_id}/replay",
    summary="Share a run",
    response_class=Response,
    responses={**_PAGE, **error_responses(404)},
)
async def share_run(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> StreamingResponse:
    """Return one HTML file, as an attachment, that plays the run without a server or network.

    It contains the run's events, sources and pictures, and nothing of other runs of the conversation. For an
    active run, it contains the events so far.
    """
    run = await service.engine.status(run_id, caller.owner)
    replay = await _replay(service, run)
    headers = {**FILE_HEADERS, "content-disposition": content_disposition(f"{replay.title}.html")}
    return StreamingResponse(replay.pieces, media_type="text/html", headers=headers)


async def _replay(service: Service, run: RunRecord) -> Replay:
    usage = await service.spending.of_run(run.run_id)
    finder = FigureFinder(service.store, service.workspaces, run)
    return await build_run_replay(finder, service.report_renderer.bodies, usage)


@router.get("/api/runs/{run_id}/sources", summary="List the sources of a run", responses=error_responses(404))
async def read_sources(run_id: _RunPath, service: ServiceOf, caller: CallerOf) -> Sources:
    """What the run's searches found and its members opened, by the report's numbers, with their findings."""
    run = await service.engine.status(run_id, caller.owner)
    evidence = service.store.evidence(run.run_id)
    return Sources(
        sources=[SourceView.model_validate(source) for source in await evidence.sources()],
        unread=[UnreadPageView.model_validate(page) for page in await evidence.unread()],
        findings=[FindingView.model_validate(one) for one in await evidence.findings()],
    )


@router.get(
    "/api/runs/{run_id}/claims",
    summary="List the claims of a report",
    responses=error_responses(404, 409),
)
async def list_claims(
    run_id: _RunPath, service: ServiceOf, caller: CallerOf, verdict: _Verdicts = ()
) -> ClaimList:
    """The claims of the report with their verdicts, the passages that show them, and their marks.

    409 while the run is active; 404 also if it ended without a report.
    """
    run = await service.engine.status(run_id, caller.owner)
    return await read_claim_list(service.store, run, verdict)


async def _view(service: Service, run: RunRecord) -> RunDetail:
    usage = await service.spending.of_run(run.run_id)
    return RunDetail.of(
        run,
        asked=AskedView.of(run),
        gaps=await read_gaps(service.store, run),
        interrupts=[
            *await read_interrupts(service.store, run),
            *await read_step_questions(service.step_views, run),
        ],
        by_agent=[AgentUsageView.of(one) for one in usage],
        artifacts=[ArtifactView.of(one) for one in await service.store.artifacts.list_by_run(run.run_id)],
    )
