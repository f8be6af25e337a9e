"""The threads of the LangGraph API: the conversations of the service."""

import json
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import Body, Path, Response
from pydantic import BaseModel, ConfigDict, Field

from maniple.api.auth import CallerOf, keyed_router
from maniple.api.error_responses import error_responses
from maniple.api.not_used import describe_not_used
from maniple.api.protocols.chat_request import TEAM
from maniple.api.protocols.langgraph.assistants import UnsupportedRequest, make_assistant_id
from maniple.api.protocols.langgraph.interrupts import describe_interrupts
from maniple.api.protocols.langgraph.run_request import MAX_METADATA_CHARACTERS, ClientMetadata
from maniple.api.protocols.langgraph.thread_states import (
    StateTree,
    StateView,
    find_newest_line,
    read_state_tree,
)
from maniple.api.protocols.langgraph.transcripts import (
    format_time,
    make_values,
    read_transcripts,
)
from maniple.api.protocols.run_choices import OpenBody
from maniple.api.routes import threads as conversations
from maniple.api.state import ServiceOf
from maniple.errors import ManipleError
from maniple.runs import NotFound
from maniple.service import Service
from maniple.service.thread_views import ThreadId, get_thread, read_thread_views, resolve_thread_id
from maniple.store import Thread
from maniple.text import fix_surrogates

router = keyed_router("langgraph", is_protocol=True)
MAX_PRUNED_THREADS = 100
_PAGE_THREADS = 100
_FIXED_METADATA = {"graph_id": TEAM, "assistant_id": make_assistant_id(TEAM)}
_COMPUTED_METADATA = (*_FIXED_METADATA, "title", "maniple")
ThreadPath = Annotated[ThreadId, Path(description="The conversation")]


class ThreadExists(ManipleError):
    """A thread was to be made under an id that exists."""

    code = "thread_exists"


class InvalidMetadata(ManipleError):
    """The metadata of a thread are too long."""

    code = "invalid_input"


class LangGraphThread(BaseModel):
    """A conversation or a branch of one. `graph_id` and `assistant_id` of the metadata are the team's."""

    thread_id: str
    created_at: datetime
    updated_at: datetime
    state_updated_at: datetime
    metadata: dict[str, Any]
    status: Literal["idle", "busy", "interrupted", "error"]
    config: dict[str, Any] = {}
    values: dict[str, Any] | None = None
    interrupts: dict[str, list[dict[str, Any]]] = {}


class LangGraphThreadCreate(OpenBody):
    """A new conversation; without a `thread_id` it gets a new id."""

    thread_id: ThreadId | None = None
    metadata: ClientMetadata | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    supersteps: list[Any] | None = None
    ttl: Any = None


class LangGraphThreadUpdate(OpenBody):
    """What changes: the metadata that is given; the rest of it stays."""

    metadata: ClientMetadata | None = None
    ttl: Any = None


class ThreadFilter(OpenBody):
    """Which threads are counted."""

    metadata: dict[str, Any] | None = None
    values: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None


class ThreadSearch(ThreadFilter):
    """Which threads are looked for, and in which order. `select` names the fields that are needed."""

    model_config = ConfigDict(extra="allow", title="LangGraphThreadSearch")

    ids: list[str] | None = None
    limit: int = Field(10, ge=1, le=1000)
    offset: int = Field(0, ge=0)
    sort_by: Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None


class ThreadPruning(OpenBody):
    """The threads that are deleted. `keep_latest` is refused."""

    model_config = ConfigDict(extra="allow", title="LangGraphThreadPrune")

    thread_ids: list[ThreadId] = Field(min_length=1, max_length=MAX_PRUNED_THREADS)
    strategy: Literal["delete", "keep_latest"] = "delete"


class PrunedThreads(BaseModel):
    """How many of them there were."""

    pruned_count: int


class CheckpointChoice(BaseModel):
    """A state, by the id of the run that made it."""

    model_config = ConfigDict(extra="allow")

    checkpoint_id: str | None = None


class StateAtCheckpoint(OpenBody):
    """Which state is read. `subgraphs` has no effect: a state has none."""

    without_effect = ("subgraphs",)

    checkpoint: CheckpointChoice
    subgraphs: bool | None = None


class HistorySearch(OpenBody):
    """Which states are read: at most `limit`, newest first, of those before the state `before`."""

    limit: int = Field(10, ge=1, le=1000)
    before: CheckpointChoice | str | None = None
    metadata: dict[str, Any] | None = None
    checkpoint: CheckpointChoice | None = None


def describe_metadata(thread: Thread) -> dict[str, Any]:
    """Return the metadata of a thread."""
    return {**json.loads(thread.metadata), **_FIXED_METADATA, "title": thread.title}


def _with_not_used(view: LangGraphThread, given: Mapping[str, Any] | None) -> LangGraphThread:
    """Return the answer to a request with this metadata; the keys that are not stored are named in it."""
    not_used = [name for name, value in _FIXED_METADATA.items() if (given or {}).get(name, value) != value]
    if "title" in (given or {}) and _read_title(given) is None:
        not_used.append("title")
    if not not_used:
        return view
    return view.model_copy(update={"metadata": {**view.metadata, "maniple": {"not_used": not_used}}})


@router.post("/threads", summary="Make a thread", responses=error_responses(409))
async def create_thread(
    response: Response,
    service: ServiceOf,
    caller: CallerOf,
    new: Annotated[LangGraphThreadCreate | None, Body()] = None,
) -> LangGraphThread:
    """Create a conversation. `supersteps` and `ttl` are refused."""
    given = new or LangGraphThreadCreate()
    response.headers.update(describe_not_used(given.not_used))
    if given.supersteps or given.ttl:
        raise UnsupportedRequest("supersteps and ttl are not supported here. Leave them out.")
    name = given.thread_id or str(uuid4())
    thread_id = await resolve_thread_id(service.store, name, caller.owner)
    thread = await service.store.threads.get(thread_id, None)
    if thread is None:
        now = time.time()
        title, metadata = _read_metadata(service, given.metadata)
        thread = Thread(thread_id, caller.owner, title or "", now, now, metadata=metadata)
        thread = await service.store.threads.create(thread)
    elif given.if_exists != "do_nothing" or thread.owner != caller.owner:
        raise ThreadExists(f"There is a thread {name!r} already. Send if_exists: do_nothing to use it.")
    [view] = await _describe(service, [thread], has_values=True)
    return _with_not_used(view, given.metadata)


def _read_title(metadata: Mapping[str, Any] | None) -> str | None:
    title = (metadata or {}).get("title")
    return fix_surrogates(title.strip()) if isinstance(title, str) else None


def _read_metadata(
    service: Service, given: Mapping[str, Any] | None, stored: str = "{}"
) -> tuple[str | None, str]:
    """Return the title in metadata, None without one, and what is stored (JSON) with the rest of it.

    Raises `InvalidMetadata`.
    """
    title = _read_title(given)
    known: dict[str, Any] = json.loads(stored)
    known |= {name: value for name, value in (given or {}).items() if name not in _COMPUTED_METADATA}
    text = json.dumps(service.redactor.value(fix_surrogates(known)), ensure_ascii=False)
    if len(text) > MAX_METADATA_CHARACTERS:
        raise InvalidMetadata(
            f"The metadata of a thread may have {MAX_METADATA_CHARACTERS:,} characters as JSON. Send less."
        )
    return (None if title is None else service.redactor.text(title)), text


@router.post("/threads/search", summary="Find threads", responses=error_responses())
async def search_threads(
    search: ThreadSearch, response: Response, service: ServiceOf, caller: CallerOf
) -> list[LangGraphThread]:
    """The key's conversations with this metadata and status, the newest first unless `sort_by` is given."""
    response.headers.update(describe_not_used(search.not_used))
    end = search.offset + search.limit
    is_newest_first = search.sort_by in (None, "created_at") and search.sort_order != "asc"
    found: list[LangGraphThread] = []
    async for view in _find(service, caller.owner, search):
        if search.ids is None or view.thread_id in search.ids:
            found.append(view)
        if is_newest_first and len(found) >= end:
            break
    if not is_newest_first:
        key = search.sort_by or "created_at"
        found.sort(key=lambda one: str(getattr(one, key)), reverse=search.sort_order != "asc")
    page = found[search.offset : end]
    if search.select is None or {"values", "interrupts"} & {*search.select}:
        threads = [await get_thread(service.store, one.thread_id, caller.owner) for one in page]
        return await _describe(service, threads, has_values=True)
    return page


@router.post("/threads/count", summary="Count threads", responses=error_responses())
async def count_threads(
    search: ThreadFilter, response: Response, service: ServiceOf, caller: CallerOf
) -> int:
    """The number of the key's conversations with this metadata and status."""
    response.headers.update(describe_not_used(search.not_used))
    return len([one async for one in _find(service, caller.owner, search)])


@router.post("/threads/prune", summary="Delete several threads", responses=error_responses(409))
async def prune_threads(
    given: ThreadPruning, response: Response, service: ServiceOf, caller: CallerOf
) -> PrunedThreads:
    """Delete threads, each as `DELETE /threads/{thread_id}` does. One that does not exist is not counted."""
    response.headers.update(describe_not_used(given.not_used))
    if given.strategy == "keep_latest":
        raise UnsupportedRequest(
            "strategy: keep_latest is not supported: what follows in a thread builds on each of its states."
        )
    count = 0
    for name in dict.fromkeys(given.thread_ids):
        with suppress(NotFound):
            await conversations.delete_thread(name, service, caller)
            count += 1
    return PrunedThreads(pruned_count=count)


async def _find(service: Service, owner: str, search: ThreadFilter) -> AsyncIterator[LangGraphThread]:
    """Yield the threads that a search finds, newest first, without their values."""
    if search.values:
        raise UnsupportedRequest("Threads cannot be found by their values. Search by metadata or status.")
    before: float | None = None
    while page := await service.store.threads.list(owner, _PAGE_THREADS, before, with_branches=True):
        for one in await _describe(service, page, has_values=False):
            if search.status in (None, one.status) and _has_metadata(one.metadata, search.metadata):
                yield one
        before = page[-1].created_at


@router.get("/threads/{thread_id}", summary="Read a thread", responses=error_responses(404))
async def read_thread(thread_id: ThreadPath, service: ServiceOf, caller: CallerOf) -> LangGraphThread:
    """A conversation with its newest state."""
    thread = await get_thread(service.store, thread_id, caller.owner)
    return (await _describe(service, [thread], has_values=True))[0]


@router.patch("/threads/{thread_id}", summary="Change a thread", responses=error_responses(404))
async def update_thread(
    thread_id: ThreadPath,
    change: LangGraphThreadUpdate,
    response: Response,
    service: ServiceOf,
    caller: CallerOf,
) -> LangGraphThread:
    """Change the metadata, of which `title` is the title of the conversation."""
    response.headers.update(describe_not_used(change.not_used))
    if change.ttl:
        raise UnsupportedRequest("ttl is not supported here. Leave it out.")
    thread = await get_thread(service.store, thread_id, caller.owner)
    if change.metadata:
        title, metadata = _read_metadata(service, change.metadata, thread.metadata)
        await service.store.threads.touch(thread.thread_id, title, metadata=metadata)
    return _with_not_used(await read_thread(thread_id, service, caller), change.metadata)


@router.delete(
    "/threads/{thread_id}",
    status_code=204,
    summary="Delete a thread",
    response_class=Response,
    responses=error_responses(404, 409),
)
async def delete_thread(thread_id: ThreadPath, service: ServiceOf, caller: CallerOf) -> None:
    """Cancel its runs and remove it with its copies, as `DELETE /api/threads/{thread_id}` does."""
    await conversations.delete_thread(thread_id, service, caller)


@router.post("/threads/{thread_id}/copy", summary="Copy a thread", responses=error_responses(404, 409))
async def copy_thread(thread_id: ThreadPath, service: ServiceOf, caller: CallerOf) -> LangGraphThread:
    """Make a thread with the same runs, state, files and metadata, which goes on by itself.

    It is a branch of the conversation, and deleted with the thread whose runs it begins with.
    """
    thread = await get_thread(service.store, thread_id, caller.owner)
    copy = await service.engine.copy_thread(thread.thread_id, caller.owner)
    return (await _describe(service, [copy], has_values=True))[0]


@router.get(
    "/threads/{thread_id}/state", summary="Read the state of a thread", responses=error_responses(404)
)
async def read_state(thread_id: ThreadPath, service: ServiceOf, caller: CallerOf) -> StateView:
    """The newest state."""
    return await _find_state(service, thread_id, caller.owner, None)


@router.post(
    "/threads/{thread_id}/state",
    summary="Refuse to write a state",
    status_code=422,
    responses=error_responses(404),
)
async def refuse_state(thread_id: ThreadPath, service: ServiceOf, caller: CallerOf) -> None:
    """Answer 422 (`unsupported`): a state is what the runs of a thread have done, and nothing else."""
    await get_thread(service.store, thread_id, caller.owner)
    raise UnsupportedRequest(
        "The state of a thread comes from its runs and cannot be written. Send messages as the input of a "
        "run, an earlier conversation before the first question of a new thread; title and metadata by PATCH."
    )


@router.get(
    "/threads/{thread_id}/state/{checkpoint_id}",
    summary="Read an earlier state of a thread",
    responses=error_responses(404),
)
async def read_earlier_state(
    thread_id: ThreadPath,
    checkpoint_id: Annotated[str, Path(max_length=200)],
    service: ServiceOf,
    caller: CallerOf,
) -> StateView:
    """The state after a run, whose id is its `checkpoint_id`, after a question or before the runs."""
    return await _find_state(service, thread_id, caller.owner, checkpoint_id)


@router.post(
    "/threads/{thread_id}/state/checkpoint",
    summary="Read an earlier state of a thread by its checkpoint",
    responses=error_responses(404),
)
async def read_state_at_checkpoint(
    thread_id: ThreadPath,
    given: StateAtCheckpoint,
    response: Response,
    service: ServiceOf,
    caller: CallerOf,
) -> StateView:
    """The same, by a checkpoint; without a `checkpoint_id` the newest state."""
    response.headers.update(describe_not_used(given.not_used))
    return await _find_state(service, thread_id, caller.owner, given.checkpoint.checkpoint_id)


@router.post(
    "/threads/{thread_id}/history", summary="Read all states of a thread", responses=error_responses(404)
)
async def read_history(
    thread_id: ThreadPath, search: HistorySearch, response: Response, service: ServiceOf, caller: CallerOf
) -> list[StateView]:
    """The states before the runs, and after each question and each run, newest first, also of its branches.

    A thread without runs has none.
    """
    response.headers.update(describe_not_used(search.not_used))
    history = await _read_history(service, thread_id, caller.owner)
    before = search.before.checkpoint_id if isinstance(search.before, CheckpointChoice) else search.before
    chosen = search.checkpoint.checkpoint_id if search.checkpoint else None
    if before is None and chosen is not None:
        places = [*history.find(chosen).ancestors()]
    else:
        places = history.places()
    if before is not None:
        known = [one.checkpoint_id for one in places]
        places = places[known.index(history.find(before).checkpoint_id) + 1 :]
    metadata = describe_metadata(history.thread)
    states = (history.past_state(place, metadata) for place in places)
    wanted = (one for one in states if _has_metadata(one.metadata, search.metadata))
    return [*islice(wanted, search.limit)]


def _has_metadata(metadata: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    return all(metadata.get(key) == value for key, value in (wanted or {}).items())


async def _find_state(service: Service, name: str, owner: str, checkpoint_id: str | None) -> StateView:
    history = await _read_history(service, name, owner)
    place = history.newest if checkpoint_id is None else history.find(checkpoint_id)
    return history.state(place, describe_metadata(history.thread))


async def _read_history(service: Service, name: str, owner: str) -> StateTree:
    return await read_state_tree(service.store, await get_thread(service.store, name, owner))


async def _describe(
    service: Service, threads: Sequence[Thread], *, has_values: bool
) -> list[LangGraphThread]:
    views: list[LangGraphThread] = []
    lines = [await find_newest_line(service.store, one) if has_values else one for one in threads]
    shown = await read_thread_views(service.store, lines)
    for thread, line, view in zip(threads, lines, shown, strict=True):
        updated = format_time(thread.updated_at)
        found: dict[str, Any] = {
            "thread_id": thread.name,
            "created_at": format_time(thread.created_at),
            "updated_at": updated,
            "state_updated_at": updated,
            "metadata": describe_metadata(thread),
            "status": view.status,
        }
        if has_values:
            transcripts = await read_transcripts(service.store, line)
            found["values"] = make_values(transcripts) if transcripts else None
            found["interrupts"] = {
                one.run.run_id: describe_interrupts(one.pauses.values())
                for one in transcripts[-1:]
                if one.pauses and one.run.status in ("running", "interrupted")
            }
        views.append(LangGraphThread.model_validate(found))
    return views
