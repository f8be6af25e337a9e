"""Conversations as clients receive them, and how they are read from the store.

Times are Unix seconds.
"""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Annotated, Any, Literal, Self

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, Field

from maniple.agents import find_author
from maniple.events import (
    ChatMessage,
    PlanChanged,
    read_event,
)
from maniple.events.conversation import as_chat_message
from maniple.graph import Team
from maniple.graph.state import private_of
from maniple.runs import NotFound, RunRequest
from maniple.runs.ended_runs import find_left, read_ended_run
from maniple.runs.turn import thread_state
from maniple.service.views import StoredView
from maniple.store import RunRecord, Store, Thread, make_thread_id, read_event_pages, read_runs
from maniple.types import RunState

ThreadStatus = Literal["idle", "busy", "interrupted", "error"]
"""busy: a run works or is queued; interrupted: a run waits for an answer; error: the newest run failed."""
_NO_PATH = r"\x00-\x1f\x7f-\x9f/"
ThreadId = Annotated[
    str, Field(min_length=1, max_length=200, pattern=rf"^[^{_NO_PATH}]*[^\s{_NO_PATH}][^{_NO_PATH}]*$")
]
"""A conversation's name: one segment of a path, without control characters, and not blank."""


class ThreadView(StoredView):
    """A conversation."""

    thread_id: str
    title: str
    created_at: float
    updated_at: float
    status: ThreadStatus

    @classmethod
    def of(cls, thread: Thread, status: ThreadStatus) -> "ThreadView":
        """Return the view of a thread."""
        return cls(
            thread_id=thread.name,
            title=thread.title,
            created_at=thread.created_at,
            updated_at=thread.updated_at,
            status=status,
        )


class ConversationView(ThreadView):
    """A conversation with all of its branches: the status of all, and the newest `updated_at` of any.

    `newest_branch` is the thread among them that was touched last: its own one, or a branch.
    """

    newest_branch: str


class ThreadPage(BaseModel):
    """Conversations, newest first; `next_before` is the `before` of the next page, null on the last one."""

    threads: list[ConversationView]
    next_before: float | None


class PlanStepStatus(BaseModel):
    """One step and its status."""

    id: int
    agent_name: str
    title: str
    description: str
    status: str


class PlanStatus(BaseModel):
    """The newest plan of a conversation."""

    title: str
    steps: list[PlanStepStatus]

    def cut_off(self) -> "PlanStatus":
        """Return the plan of a conversation on which no run works: a step that was begun begins again."""
        steps = [
            one.model_copy(update={"status": "not_started"}) if one.status == "in_progress" else one
            for one in self.steps
        ]
        return self.model_copy(update={"steps": steps})


class RunReference(BaseModel):
    """A run of a conversation; `question` is that of a queued one, whose events may not have it yet."""

    run_id: str
    status: RunState
    question: str | None

    @classmethod
    def of(cls, run: RunRecord) -> Self:
        """Return the reference of a stored run."""
        return cls(run_id=run.run_id, status=run.status, question=_read_question(run))


class MessageView(ChatMessage):
    """A message; `name` is the agent that wrote it, null when it is not the team's."""

    name: str | None


class BranchReference(BaseModel):
    """One way in which a conversation goes on: its thread, and the run that asks the question there."""

    thread_id: str
    run_id: str


class BranchPoint(BaseModel):
    """A question that was asked in several ways: `run_id` is the run that the thread goes on with.

    `branches` are all of them, oldest first. `note` says what of the files is not as it was at the question.
    """

    run_id: str
    branches: list[BranchReference]
    note: str


class ThreadDetail(ThreadView):
    """A conversation, or a branch of one, with its messages, its newest plan and its newest runs.

    A branch begins with the runs before the question at which it branches off. `conversation_id` is the
    conversation that it belongs to; `branch_points` are the questions of its runs with several branches.
    """

    messages: list[MessageView]
    plan: PlanStatus | None
    runs: list[RunReference]
    conversation_id: str
    branch_points: list[BranchPoint]


class DeletedThreads(BaseModel):
    """The conversation and the branches that were deleted with it."""

    deleted: list[str] = Field(description="Their ids, the conversation's own last")


SHOWN_RUNS = 50


_PLANNED_RUNS = 5
"""The number of newest runs in which the newest plan is looked for."""


async def get_thread(store: Store, name: str, owner: str) -> Thread:
    """Return an owner's thread by its name; raises `NotFound`, also for a thread of another owner."""
    thread = await _find_thread(store, name, owner)
    if thread is None:
        raise NotFound("There is no such thread.")
    return thread


async def resolve_thread_id(store: Store, name: str, owner: str) -> str:
    """Return the id of an owner's thread by its name, also of a thread that does not exist yet."""
    thread = await _find_thread(store, name, owner)
    return thread.thread_id if thread is not None else make_thread_id(owner, name)


async def _find_thread(store: Store, name: str, owner: str) -> Thread | None:
    # Threads that the service named, and those of older versions, are found by their id.
    return await store.threads.get(name, owner) or await store.threads.get(make_thread_id(owner, name), owner)


async def read_thread_views(store: Store, threads: Sequence[Thread]) -> list[ThreadView]:
    """Return the views of threads; one query reads the statuses of all their runs."""
    found = await store.runs.list_statuses([one.thread_id for one in threads])
    return [ThreadView.of(one, _status(found[one.thread_id])) for one in threads]


async def read_conversation_views(store: Store, threads: Sequence[Thread]) -> list[ConversationView]:
    """Return the views of conversations, each with its branches; two queries read all of them."""
    branches = await store.threads.list_branches([one.thread_id for one in threads])
    families = [[one, *branches[one.thread_id]] for one in threads]
    found = await store.runs.list_statuses([one.thread_id for family in families for one in family])
    return [_conversation_view(family, found) for family in families]


def _conversation_view(
    family: Sequence[Thread], statuses: Mapping[str, Sequence[RunState]]
) -> ConversationView:
    newest = sorted(family, key=lambda one: one.updated_at, reverse=True)
    status = _status([status for one in newest for status in statuses[one.thread_id]])
    view = ThreadView.of(family[0], status).model_dump()
    view["updated_at"] = newest[0].updated_at
    return ConversationView(**view, newest_branch=newest[0].name)


async def read_branch_points(
    store: Store, thread: Thread, runs: Sequence[RunRecord]
) -> tuple[str, list[BranchPoint]]:
    """Return the name of a thread's conversation, and those of its `runs` whose question has branches."""
    root = await store.threads.get(thread.conversation_id, None) or thread
    branches = (await store.threads.list_branches([root.thread_id]))[root.thread_id]
    names = {one.thread_id: one for one in (root, *branches)}
    first = await store.runs.list_first([one.thread_id for one in branches])
    groups: dict[str, list[BranchReference]] = {}
    question_of: dict[str, tuple[str, str]] = {}
    for one in branches:
        # A branch without a run is being made, or was not finished.
        if one.thread_id not in first or one.parent_id not in names:
            continue
        beside = one.branched_run or await _find_next_run(store, one)
        # Of a branch of a copy's first run: what that one stands beside.
        question, _ = question_of.get(beside, (beside or f"after {one.copied_run}", ""))
        original = BranchReference(thread_id=names[one.parent_id].name, run_id=beside)
        group = groups.setdefault(question, [original] if beside else [])
        group.append(BranchReference(thread_id=one.name, run_id=first[one.thread_id]))
        question_of[first[one.thread_id]] = (question, one.note)
    points: list[BranchPoint] = []
    for run in reversed(runs):
        question, note = question_of.get(run.run_id, (run.run_id, ""))
        if len(groups.get(question, ())) > 1:
            points.append(BranchPoint(run_id=run.run_id, branches=groups[question], note=note))
    return root.name, points


async def _find_next_run(store: Store, copy: Thread) -> str:
    """Return the id of the run that followed on the thread from which a copy was made; "" for none."""
    following = ""
    async with aclosing(read_runs(store.runs, copy.parent_id)) as newest_first:
        async for run in newest_first:
            if run.run_id == copy.copied_run:
                break
            following = run.run_id
    return following


def _status(newest: Sequence[RunState]) -> ThreadStatus:
    if any(status in ("queued", "running") for status in newest):
        return "busy"
    if "interrupted" in newest:
        return "interrupted"
    return "error" if newest[:1] == ["failed"] else "idle"


async def read_thread_detail(store: Store, graph: Team, thread: Thread) -> ThreadDetail:
    """Return a conversation from the checkpoint of its graph, and from its runs what the graph lacks."""
    runs = await store.runs.list_by_thread(thread.thread_id, SHOWN_RUNS)
    state = await thread_state(graph, thread.thread_id)
    messages = await read_thread_messages(store, runs, state.values)
    [view] = await read_thread_views(store, [thread])
    plan = await _read_newest_plan(store, runs) or private_of(state.values).get("plan")
    shown = PlanStatus.model_validate(plan, from_attributes=True) if plan else None
    if shown is not None and view.status in ("idle", "error"):
        shown = shown.cut_off()
    conversation_id, branch_points = await read_branch_points(store, thread, runs)
    return ThreadDetail(
        **view.model_dump(),
        conversation_id=conversation_id,
        branch_points=branch_points,
        messages=[_message_view(message) for message in messages],
        plan=shown,
        runs=[RunReference.of(run) for run in runs],
    )


def _read_question(run: RunRecord) -> str | None:
    if run.status != "queued":
        return None
    try:
        return RunRequest.of(run).messages[-1].text
    except ValueError:  # its request cannot be read
        return None


async def read_thread_messages(
    store: Store, runs: Sequence[RunRecord], values: Mapping[str, Any]
) -> list[BaseMessage]:
    """Return the messages of a thread whose newest runs (the newest first) and graph state these are."""
    messages: list[BaseMessage] = values.get("messages") or []
    stored = private_of(values).get("folded") or ()
    new = [await read_ended_run(store, one) for one in reversed(runs) if one.run_id not in stored]
    return [*messages, *find_left(new, messages)]


async def _read_newest_plan(store: Store, runs: Sequence[RunRecord]) -> PlanChanged | None:
    """Return the plan that the newest of `runs` with a plan has shown last; None if none has.

    The graph has it only up to its last checkpoint, without changes of the user that it has not come to.
    """
    for run in runs[:_PLANNED_RUNS]:
        newest: PlanChanged | None = None
        async for page in read_event_pages(store.events, run.run_id, types={PlanChanged.type}):
            plans = (read_event(record.type, record.data) for record in reversed(page))
            shown = (one for one in plans if isinstance(one, PlanChanged) and not one.draft)
            newest = next(shown, newest)
        if newest is not None:
            return newest
    return None


def _message_view(message: BaseMessage) -> MessageView:
    """Return a message with its author; those of agents have the role `assistant` here."""
    plain = as_chat_message(message)
    name = find_author(message)
    return MessageView(role="assistant" if name else plain.role, name=name, content=plain.content)
