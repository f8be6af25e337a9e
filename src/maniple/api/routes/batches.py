"""Batches: many tasks that are done as runs under one budget."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any, Literal

from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_location
from maniple.api.error_responses import error_responses
from maniple.api.requests import BudgetIn, NewRunOptions, check_budget, check_choices
from maniple.api.state import ServiceOf
from maniple.batches import (
    MAX_ITEMS,
    AnswerRule,
    BatchSpecification,
    change_limits,
    make_batch,
    read_results,
    retry_batch,
)
from maniple.batches.results import write_csv, write_json_line
from maniple.batches.tasks import without_secrets
from maniple.runs import NotFound
from maniple.service import Service
from maniple.store import Batch, ItemState

MAX_PARALLEL = 100
MAX_ATTEMPTS = 10

router = keyed_router("batches")
_BatchPath = Annotated[str, Path(max_length=100, description="The batch")]
_Form = Annotated[Literal["jsonl", "csv"], Query(description="The format of the results")]

_After = Annotated[int, Query(ge=0, description="Only the items after this number")]
_Limit = Annotated[int, Query(ge=1, le=MAX_ITEMS, description="Most items to return")]


class BatchCreate(BaseModel):
    """The body of `POST /api/batches`."""

    items: Annotated[
        list[Annotated[str, Field(min_length=1, pattern=r"\S")]], Field(min_length=1, max_length=MAX_ITEMS)
    ] = Field(examples=[["1+3=?", "2+3=?"]])
    name: Annotated[str, Field(max_length=200)] = ""
    parallel: int = Field(default=4, ge=1, le=MAX_PARALLEL, description="Most runs at the same time.")
    attempts: int = Field(default=1, ge=1, le=MAX_ATTEMPTS, description="Most runs of one item.")
    budget: BudgetIn | None = Field(default=None, description="Limits of the whole batch.")
    rule: AnswerRule = Field(default=AnswerRule(), description="What an answer must be to be accepted.")
    run: NewRunOptions = Field(default_factory=NewRunOptions, description="The options of each run.")


class BatchRetry(BaseModel):
    """The body of `POST /api/batches/{batch_id}/retry`, which may be left out."""

    budget: BudgetIn | None = Field(
        default=None, description="Replaces the budget; what was used before counts for it."
    )
    parallel: int | None = Field(default=None, ge=1, le=MAX_PARALLEL, description="Replaces `parallel`.")


class BatchView(BaseModel):
    """A batch: its items by state, and what their runs have used. `done`: none waits or works."""

    batch_id: str
    name: str
    created_at: float
    done: bool
    counts: dict[ItemState, int]
    tokens: int
    model_calls: int
    tool_calls: int
    seconds: float
    cost: float


class BatchList(BaseModel):
    """The batches of a key."""

    batches: list[BatchView]


@router.post(
    "/api/batches",
    status_code=202,
    summary="Start a batch",
    responses={**describe_location(202, "the batch"), **error_responses(409)},
)
async def start_batch(
    ask: BatchCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> BatchView:
    """Do each item as a run of its own, under one budget, and check each answer by the rule."""
    check_choices(ask.run, service.runtime)
    models = service.settings.models
    budget = check_budget(ask.budget.as_budget() if ask.budget else BatchSpecification().budget, models)
    request = ask.run.as_run(caller.owner, check_budget(ask.run.asked_budget(), models))
    asked = BatchSpecification(ask.name, ask.parallel, ask.attempts, budget, ask.rule)
    batch, items = await asyncio.to_thread(make_batch, asked, ask.items, request, "server", time.time())
    batch, items = await asyncio.to_thread(without_secrets, batch, items, service.redactor)
    await service.store.batches.add(batch, items)
    response.headers["location"] = f"/api/batches/{batch.batch_id}"
    return await _view(service, batch)


@router.get("/api/batches", summary="List batches", responses=error_responses())
async def list_batches(service: ServiceOf, caller: CallerOf) -> BatchList:
    """The key's newest batches, newest first."""
    found = await service.store.batches.list(caller.owner)
    return BatchList(batches=[await _view(service, one) for one in found])


@router.get("/api/batches/{batch_id}", summary="Read a batch", responses=error_responses(404))
async def read_batch(batch_id: _BatchPath, service: ServiceOf, caller: CallerOf) -> BatchView:
    """How far a batch is."""
    return await _view(service, await _find(service, batch_id, caller.owner))


@router.get(
    "/api/batches/{batch_id}/results",
    summary="Read the results of a batch",
    response_class=Response,
    responses={
        200: {
            "content": {
                "application/jsonl": {"schema": {"type": "string"}},
                "text/csv": {"schema": {"type": "string"}},
            },
            "description": "One line or row for each item",
        },
        **error_responses(404),
    },
)
async def read_batch_results(
    batch_id: _BatchPath,
    service: ServiceOf,
    caller: CallerOf,
    form: _Form = "jsonl",
    after: _After = 0,
    limit: _Limit = MAX_ITEMS,
) -> StreamingResponse:
    """The items by their numbers with their answers, also while the batch works."""
    batch = await _find(service, batch_id, caller.owner)
    media_type = "text/csv; charset=utf-8" if form == "csv" else "application/jsonl"
    headers = {
        "content-disposition": f'attachment; filename="batch.{form}"',
        "x-content-type-options": "nosniff",
    }
    results = read_results(service.store, batch, after, limit)
    return StreamingResponse(_lines(results, form), media_type=media_type, headers=headers)


@router.post("/api/batches/{batch_id}/cancel", summary="Cancel a batch", responses=error_responses(404))
async def cancel_batch(batch_id: _BatchPath, service: ServiceOf, caller: CallerOf) -> BatchView:
    """Start no more items. Runs that work go on to their ends; `retry` continues the batch."""
    batch = await _find(service, batch_id, caller.owner)
    await service.store.batches.change_all(batch.batch_id, "waiting", "left_out", "The batch was cancelled.")
    return await _view(service, batch)


@router.post(
    "/api/batches/{batch_id}/retry",
    status_code=202,
    summary="Retry a batch",
    responses=error_responses(404, 409),
)
async def retry_items(
    batch_id: _BatchPath, service: ServiceOf, caller: CallerOf, ask: BatchRetry | None = None
) -> BatchView:
    """Do the items again that have no accepted answer. What was used before counts for the budget."""
    batch = await _find(service, batch_id, caller.owner)
    if ask is not None:
        budget = check_budget(ask.budget.as_budget(), service.settings.models) if ask.budget else None
        batch = await change_limits(service.store.batches, batch, budget, ask.parallel)
    await retry_batch(service.store.batches, batch)
    return await _view(service, batch)


@router.delete(
    "/api/batches/{batch_id}",
    status_code=204,
    summary="Delete a batch",
    response_class=Response,
    responses=error_responses(404),
)
async def delete_batch(batch_id: _BatchPath, service: ServiceOf, caller: CallerOf) -> None:
    """Delete a batch with its items. Its runs and conversations stay."""
    if not await service.store.batches.delete(batch_id, caller.owner):
        raise NotFound("The batch does not exist.")


async def _lines(results: AsyncIterator[Mapping[str, Any]], form: str) -> AsyncIterator[str]:
    if form == "csv":
        yield write_csv(None)
    async for result in results:
        yield write_csv(result) if form == "csv" else write_json_line(result)


async def _find(service: Service, batch_id: str, owner: str) -> Batch:
    batch = await service.store.batches.get(batch_id, owner)
    if batch is None:
        raise NotFound("The batch does not exist.")
    return batch


async def _view(service: Service, batch: Batch) -> BatchView:
    totals = await service.store.batches.total(batch.batch_id)
    return BatchView(
        batch_id=batch.batch_id,
        name=batch.name,
        created_at=batch.created_at,
        done=not (totals.counts.get("waiting") or totals.counts.get("started")),
        counts=dict(totals.counts),
        tokens=totals.tokens,
        model_calls=totals.model_calls,
        tool_calls=totals.tool_calls,
        seconds=totals.seconds,
        cost=totals.cost,
    )
