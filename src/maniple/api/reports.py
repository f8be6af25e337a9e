"""The answer of a run, in the form that is asked for."""

import asyncio
from typing import Any, Literal

from fastapi.responses import JSONResponse
from starlette.responses import Response

from maniple.api.schemas import ArtifactView, ReportView, UsageView
from maniple.errors import ManipleError
from maniple.events import SessionState, read_event
from maniple.run_page.markup import POLICY, as_page, harmless
from maniple.runs import NotFound
from maniple.store import RunRecord, Store

Form = Literal["text/markdown", "text/html", "application/json"]
MEDIA_TYPES: tuple[Form, ...] = ("text/markdown", "text/html", "application/json")
FORMS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The report: Markdown unless `Accept` says otherwise",
        "content": {
            "text/markdown": {"schema": {"type": "string"}},
            "text/html": {"schema": {"type": "string"}},
        },
    }
}


class NotFinished(ManipleError):
    """The run has not come to its end."""

    code = "not_finished"
    retryable = True


class NoReport(ManipleError):
    """The run ended without an answer."""

    code = "no_report"


class NotAcceptable(ManipleError):
    """None of the forms that the client accepts is among ours."""

    code = "not_acceptable"


async def report_of(store: Store, run: RunRecord) -> ReportView:
    """Return the answer that a run came to; raises `NotFinished` or `NoReport`."""
    if run.status in ("queued", "running", "interrupted"):
        raise NotFinished(f"The run has no report yet; it is {run.status}.")
    last = await store.events.last(run.run_id) if run.status in ("completed", "budget_exhausted") else None
    event = read_event(last.type, last.data) if last else None
    if not isinstance(event, SessionState) or not event.messages:
        raise NoReport(f"The run has no report: it ended {run.status}. Its events hold what was done.")
    thread = await store.threads.get(run.thread_id, run.owner)
    if thread is None:
        raise NotFound("There is no such run.")
    content = event.messages[-1].content
    return ReportView(
        run_id=run.run_id,
        thread_id=run.thread_name,
        status=run.status,
        title=thread.title,
        markdown=content if isinstance(content, str) else "",
        ended_at=run.ended_at,
        usage=UsageView.model_validate(run.usage),
        artifacts=[ArtifactView.of(artifact) for artifact in await store.artifacts.of_run(run.run_id)],
    )


async def answer(report: ReportView, accept: str) -> Response:
    """Return the report as the `Accept` header asks; raises `NotAcceptable`."""
    form = preferred(accept)
    headers = {
        "content-security-policy": POLICY,
        "x-content-type-options": "nosniff",
        "referrer-policy": "no-referrer",
        "vary": "accept",
    }
    if form == "text/html":
        page = await asyncio.to_thread(as_page, report.markdown, report.title)
        return Response(page, media_type="text/html", headers=headers)
    markdown = await asyncio.to_thread(harmless, report.markdown)
    if form == "text/markdown":
        return Response(markdown, media_type="text/markdown", headers=headers)
    content = report.model_copy(update={"markdown": markdown}).model_dump()
    return JSONResponse(content, headers=headers)


def preferred(accept: str) -> Form:
    """Return our form that an `Accept` header wants most, ours in order among equals."""
    ranges = [_range(part) for part in accept.split(",") if part.strip()] or [("*/*", 1.0)]

    def quality(form: Form) -> float:
        matching = [
            (wanted.count("*"), -q)
            for wanted, q in ranges
            if wanted in (form, f"{form.split('/')[0]}/*", "*/*")
        ]
        return -min(matching)[1] if matching else 0.0

    best = max(MEDIA_TYPES, key=quality)
    if quality(best) <= 0:
        raise NotAcceptable(f"A report can be had as {', '.join(MEDIA_TYPES)}.")
    return best


def _range(part: str) -> tuple[str, float]:
    media_type, *parameters = (piece.strip() for piece in part.casefold().split(";"))
    for parameter in parameters:
        if parameter.startswith("q="):
            return media_type, _number(parameter[2:])
    return media_type, 1.0


def _number(text: str) -> float:
    try:
        return min(max(float(text), 0.0), 1.0)
    except ValueError:
        return 0.0
