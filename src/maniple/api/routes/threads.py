"""Conversations, and starting runs on them."""

import time
from typing import Annotated
from uuid import uuid4

from fastapi import Body, Path, Query, Response

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.document import describe_location
from maniple.api.error_responses import error_responses
from maniple.api.not_used import describe_not_used, name_unused_options
from maniple.api.requests import (
    PageBefore,
    PageLimit,
    RunCreate,
    ThreadCreate,
    ThreadUpdate,
    check_budget,
    check_choices,
)
from maniple.api.state import ServiceOf
from maniple.service.deletion import delete_conversation
from maniple.service.search import FoundPassages, search_runs
from maniple.service.thread_views import (
    DeletedThreads,
    ThreadDetail,
    ThreadId,
    ThreadPage,
    ThreadView,
    get_thread,
    read_conversation_views,
    read_thread_detail,
    read_thread_views,
)
from maniple.service.views import RunAccepted, next_before
from maniple.store import Thread
from maniple.text import fix_surrogates

router = keyed_router("threads")
_Words = Annotated[str, Query(max_length=200, description="Words of the title")]
_Query = Annotated[str, Query(max_length=200, description="Words of questions and answers")]
_HitLimit = Annotated[int, Query(ge=1, le=50, description="The most runs that are returned")]
_ThreadPath = Annotated[ThreadId, Path(description="The conversation")]


@router.post("/api/threads", status_code=201, summary="Make a conversation", responses=error_responses())
async def make_thread(
    service: ServiceOf, caller: CallerOf, new: Annotated[ThreadCreate | None, Body()] = None
) -> ThreadView:
    """Create a conversation, in which runs can be started."""
    now = time.time()
    title = service.redactor.text(fix_surrogates(new.title)) if new else ""
    thread = await service.store.threads.create(Thread(str(uuid4()), caller.owner, title, now, now))
    return ThreadView.of(thread, "idle")


@router.get("/api/threads", summary="List conversations", responses=error_responses())
async def list_threads(
    service: ServiceOf, caller: CallerOf, limit: PageLimit = 50, before: PageBefore = None, q: _Words = ""
) -> ThreadPage:
    """The key's conversations, newest first."""
    threads = await service.store.threads.list(caller.owner, limit, before, fix_surrogates(q.strip()))
    return ThreadPage(
        threads=await read_conversation_views(service.store, threads), next_before=next_before(threads, limit)
    )


@router.get(
    "/api/search",
    operation_id="search_runs",
    summary="Search questions and answers",
    responses=error_responses(),
)
async def search(service: ServiceOf, caller: CallerOf, q: _Query, limit: _HitLimit = 20) -> FoundPassages:
    """The key's runs whose question and answer have all words, the best first; without words none.

    The last word may be the beginning of one. A run is found once it has ended.
    """
    return await search_runs(service.store, caller.owner, fix_surrogates(q), limit)


@router.get("/api/threads/{thread_id}", summary="Read a conversation", responses=error_responses(404))
async def read_thread(thread_id: _ThreadPath, service: ServiceOf, caller: CallerOf) -> ThreadDetail:
    """Return the messages, the newest plan and the newest runs of a thread."""
    thread = await get_thread(service.store, thread_id, caller.owner)
    return await read_thread_detail(service.store, service.runtime.graph, thread)


@router.patch("/api/threads/{thread_id}", summary="Rename a conversation", responses=error_responses(404))
async def rename_thread(
    thread_id: _ThreadPath, change: ThreadUpdate, service: ServiceOf, caller: CallerOf
) -> ThreadView:
    """Give a conversation another title."""
    thread = await get_thread(service.store, thread_id, caller.owner)
    title = service.redactor.text(fix_surrogates(change.title.strip()))
    await service.store.threads.touch(thread.thread_id, title)
    # As it is now: it may have been deleted meanwhile.
    [view] = await read_thread_views(
        service.store, [await get_thread(service.store, thread_id, caller.owner)]
    )
    return view


@router.delete(
    "/api/threads/{thread_id}", summary="Delete a conversation", responses=error_responses(404, 409)
)
async def delete_thread(thread_id: _ThreadPath, service: ServiceOf, caller: CallerOf) -> DeletedThreads:
    """Cancel its runs, then remove it with all runs, events, checkpoints, artifacts, files and tabs.

    The branches that begin with its runs are removed as well.
    """
    thread = await get_thread(service.store, thread_id, caller.owner)
    return DeletedThreads(deleted=[*await delete_conversation(service, thread.thread_id, caller.owner)])


@router.post(
    "/api/threads/{thread_id}/runs",
    status_code=202,
    summary="Start a run",
    responses={**describe_location(202, "the run"), **error_responses(404, 409, 429)},
)
async def start_run(
    thread_id: _ThreadPath, ask: RunCreate, response: Response, service: ServiceOf, caller: CallerOf
) -> RunAccepted:
    """Start a run, which continues without clients.

    On a thread that waits for an answer, it is the answer, and with `steer` it may become a message to the
    run at work; then options of a new run have no effect, and `X-Maniple-Not-Used` names them.
    """
    check_choices(ask, service.runtime)
    thread = await get_thread(service.store, thread_id, caller.owner)
    budget = check_budget(ask.asked_budget(), service.settings.models)
    request = ask.as_run(thread.thread_id, caller.owner, budget)
    accepted = await service.engine.submit(request)
    response.headers["location"] = f"/api/runs/{accepted.run.run_id}"
    response.headers.update(describe_not_used(name_unused_options(ask, accepted)))
    return RunAccepted.of(accepted.run)
