"""What is told of a conversation, and how it comes to its end."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage

from maniple.agents import find_author
from maniple.api.schemas import PlanView, RunStub, SaidView, ThreadDetail, ThreadStatus, ThreadView
from maniple.api.state import Service
from maniple.events.conversation import as_chat_message
from maniple.runs import NotFound
from maniple.runtime import thread_state
from maniple.store import Store, Thread, make_thread_id
from maniple.types import RunState

SHOWN_RUNS = 50


async def owned(store: Store, name: str, owner: str) -> Thread:
    """Return the thread that this owner calls so; raises the same `NotFound` for another's as for none."""
    thread = await _called(store, name, owner)
    if thread is None:
        raise NotFound("There is no such thread.")
    return thread


async def id_for(store: Store, name: str, owner: str) -> str:
    """Return the id of the thread that this owner calls so, or is about to make."""
    thread = await _called(store, name, owner)
    return thread.thread_id if thread is not None else make_thread_id(owner, name)


async def _called(store: Store, name: str, owner: str) -> Thread | None:
    # By its own id are known those that the service made, and those of an older version.
    return await store.threads.get(name, owner) or await store.threads.get(make_thread_id(owner, name), owner)


async def views_of(store: Store, threads: Sequence[Thread]) -> list[ThreadView]:
    """Return what is told of threads, each by its runs; the store is asked once for all of them."""
    found = await store.runs.list_statuses([one.thread_id for one in threads])
    return [ThreadView.of(one, _status(found[one.thread_id])) for one in threads]


def _status(newest: Sequence[RunState]) -> ThreadStatus:
    if any(status in ("queued", "running") for status in newest):
        return "busy"
    if "interrupted" in newest:
        return "interrupted"
    return "error" if newest[:1] == ["failed"] else "idle"


async def detail_of(service: Service, thread: Thread) -> ThreadDetail:
    """Return a conversation as the graph remembers it."""
    runs = await service.store.runs.list_by_thread(thread.thread_id, SHOWN_RUNS)
    state = await thread_state(service.runtime.graph, thread.thread_id)
    messages: list[BaseMessage] = state.values.get("messages") or []
    plan = state.values.get("plan")
    [view] = await views_of(service.store, [thread])
    return ThreadDetail(
        **view.model_dump(),
        messages=[_said(message) for message in messages],
        plan=PlanView.model_validate(plan) if plan else None,
        runs=[RunStub.model_validate(run) for run in runs],
    )


def _said(message: BaseMessage) -> SaidView:
    """Return a message under its author's name; the graph keeps what agents write as a human's."""
    told = as_chat_message(message)
    name = find_author(message)
    return SaidView(role="assistant" if name else told.role, name=name, content=told.content)
