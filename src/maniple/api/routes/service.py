"""Health, readiness and metrics of the service."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.state import ServiceOf
from maniple.service.readiness import Readiness, readiness
from maniple.service.views import Health, LimitView, QuotaView

router = APIRouter(tags=["service"], generate_unique_id_function=lambda route: route.name)
_keyed = keyed_router("service")
_FIGURES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {}}, "description": "Prometheus text, or OpenMetrics by `Accept`"}
}
_UNREADY = {503: {"model": Readiness, "description": "No run can be answered now"}}


@router.get(
    "/healthz",
    summary="Ask whether the process is alive",
    response_model_exclude_none=True,
    responses=error_responses(),
)
async def healthz(request: Request, service: ServiceOf) -> Health:
    """Whether the process is alive and, for callers with access, its model, notices and limits for files."""
    if request.state.caller is None:
        return Health()
    runtime = service.runtime
    return Health(
        model=runtime.answering.model, notices=list(runtime.notices), limits=request.app.state.limits
    )


@_keyed.get(
    "/readyz",
    summary="Ask which parts are ready",
    response_model=Readiness,
    responses={**error_responses(), **_UNREADY},
)
async def readyz(service: ServiceOf) -> Response:
    """Whether runs can be answered (else 503), and for each part whether it is ready or why not."""
    found = await readiness(service.runtime, service.store, service.reach, service.redactor)
    return JSONResponse(found.model_dump(), status_code=200 if found.ready else 503)


@_keyed.get("/api/quota", summary="Read the quota", responses=error_responses())
async def read_quota(service: ServiceOf, caller: CallerOf) -> QuotaView:
    """The limits of the API key, and what its runs have left of those of a day."""
    quota = await service.engine.read_quota(caller.owner)
    daily = [
        LimitView(limit=one.limit, allowed=one.allowed, used=one.used, left=one.left) for one in quota.daily
    ]
    return QuotaView(max_runs=quota.limits.max_runs, daily=daily)


@_keyed.get(
    "/metrics",
    summary="Read the figures",
    response_class=Response,
    responses={**error_responses(), **_FIGURES},
)
async def metrics(request: Request, service: ServiceOf) -> Response:
    """The metrics of this process for Prometheus."""
    text, media_type = service.metrics.text(request.headers.get("accept", ""))
    return Response(text, headers={"content-type": media_type})


router.include_router(_keyed)
