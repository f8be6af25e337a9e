"""Branches: threads that begin with the runs before a question of another thread, and ask it again."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from maniple.errors import FileError
from maniple.langgraph_internals import checkpoint_config
from maniple.runs.active_run import RunServices
from maniple.runs.driver import NO_CHECKPOINT
from maniple.runs.engine import BranchPointGone, NotFound, TooManyBranches
from maniple.runs.request import RunRequest
from maniple.runs.turn import remember, thread_state
from maniple.store import RunRecord, Store, Thread
from maniple.store.artifact_contents import ArtifactContent
from maniple.workspace import Workspaces
from maniple.workspace.branching import KnownProducts, ReadContent, branch_workspace

BRANCH_BUSY = (
    "A run of this conversation works or waits for an answer. Wait until it has ended, or cancel it; then "
    "ask the question again."
)
MAX_BRANCHES = 50
"""The most branches of a conversation: each has a copy of its files."""
_NO_TIME = 2.0**33
"""A time (Unix seconds) after that of every file."""


@dataclass(frozen=True, slots=True)
class ThreadBrancher:
    """Makes and discards branches. Nothing may work on the thread that they branch off from."""

    services: RunServices
    workspaces: Workspaces | None

    async def make(self, record: RunRecord) -> Thread:
        """Make the branch in which the question of a run is asked again, with state and workspace.

        Raises `BranchPointGone`, `TooManyBranches`, `FileError` or `StoreError`; then nothing is left of it.
        """
        store = self.services.store
        source = await find_thread(store, record.thread_id, None)
        branch = await self._describe(source, record)
        try:
            note = await self._copy_workspace(record, branch.thread_id)
            if note:
                branch = replace(branch, note=" ".join(filter(None, (branch.note, note))))
            await self._copy_state(record, branch.thread_id)
            return await store.threads.create(branch)
        except BaseException:  # also a cancellation must leave nothing
            await asyncio.shield(self.discard(branch))
            raise

    async def copy(self, source: Thread) -> Thread:
        """Make a thread that begins with all runs of another one, with its state, its files and its metadata.

        Raises `TooManyBranches`, `FileError` or `StoreError`; then nothing is left of it.
        """
        store = self.services.store
        now = time.time()
        copy = replace(source, thread_id=str(uuid4()), created_at=now, updated_at=now, note="")
        copy = replace(copy, parent_id="", branched_run="", root_id="")
        if newest := await store.runs.list_by_thread(source.thread_id, 1):
            await self._require_room(source.conversation_id)
            copy = replace(copy, parent_id=newest[0].thread_id, copied_run=newest[0].run_id)
            copy = replace(copy, root_id=source.conversation_id)
        try:
            if self.workspaces is not None:
                copied = (source.thread_id, copy.thread_id, _NO_TIME, KnownProducts())
                note = await asyncio.to_thread(branch_workspace, self.workspaces, *copied)
                copy = replace(copy, note=note)
            if (saver := self._saver) is not None:
                stored = await saver.aget_tuple(_place_of(source.thread_id))
                if stored is not None:
                    await _copy_checkpoint(saver, stored, copy.thread_id)
            return await store.threads.create(copy)
        except BaseException:  # also a cancellation must leave nothing
            await asyncio.shield(self.discard(copy))
            raise

    async def discard(self, branch: Thread) -> None:
        """Remove a branch on which no run was started."""
        await self.services.store.threads.delete(branch.thread_id)
        if self.workspaces is not None:
            await asyncio.to_thread(self.workspaces.remove, branch.thread_id)

    async def _describe(self, source: Thread, record: RunRecord) -> Thread:
        """Return the thread of a new branch. One of the first run of a branch stands beside that branch."""
        store = self.services.store
        root_id = source.conversation_id
        await self._require_room(root_id)
        parent_id, branched_run, note = source.thread_id, record.run_id, ""
        if source.branched_run:
            before = await store.runs.list_by_thread(source.thread_id, 1, record.created_at)
            if not before or before[0].thread_id != source.thread_id:
                parent_id, branched_run, note = source.parent_id, source.branched_run, source.note
        now = time.time()
        branch = Thread(str(uuid4()), source.owner, source.title, now, now)
        return replace(branch, parent_id=parent_id, branched_run=branched_run, root_id=root_id, note=note)

    async def _require_room(self, root_id: str) -> None:
        branches = await self.services.store.threads.list_branches([root_id])
        if len(branches[root_id]) >= MAX_BRANCHES:
            raise TooManyBranches(
                f"The conversation has {MAX_BRANCHES} branches. Ask the question in a new conversation."
            )

    async def _copy_workspace(self, record: RunRecord, branch_id: str) -> str:
        if self.workspaces is None:
            return ""
        products = await find_products(self.services.store, record)
        since = record.started_at or record.created_at
        return await asyncio.to_thread(
            branch_workspace, self.workspaces, record.thread_id, branch_id, since, products
        )

    async def _copy_state(self, record: RunRecord, branch_id: str) -> None:
        """Give the branch the checkpoint before the run; where that is gone, the messages before it."""
        saver = self._saver
        if saver is None or record.base_checkpoint == NO_CHECKPOINT:
            return
        if record.base_checkpoint is not None:
            place = checkpoint_config(record.thread_id, "", record.base_checkpoint)
            if (stored := await saver.aget_tuple(place)) is not None:
                await _copy_checkpoint(saver, stored, branch_id)
                return
        if before := await self._find_messages_before(record):
            await remember(self.services.team, branch_id, before)

    @property
    def _saver(self) -> BaseCheckpointSaver[Any] | None:
        saver = cast("Any", self.services.team).checkpointer
        found = isinstance(saver, BaseCheckpointSaver)
        return cast("BaseCheckpointSaver[Any]", saver) if found else None

    async def _find_messages_before(self, record: RunRecord) -> Sequence[BaseMessage]:
        state = await thread_state(self.services.team, record.thread_id)
        messages: list[BaseMessage] = state.values.get("messages") or []
        asked = read_request(record).messages[-1].id
        place = next((at for at, message in enumerate(messages) if message.id == asked), None)
        if place is None and messages:
            raise BranchPointGone(
                "What was said before this question is not stored any more. Ask it in a new conversation."
            )
        return messages[:place]


def read_request(record: RunRecord) -> RunRequest:
    """Return the request of a run; raises `BranchPointGone` if it cannot be read."""
    try:
        return RunRequest.of(record)
    except ValueError as error:
        raise BranchPointGone(f"The question of the run cannot be read: {error}") from error


def ask_again(record: RunRecord, thread_id: str, text: str, chosen: RunRequest | None = None) -> RunRequest:
    """Return the request of a run for another thread, with another text unless `text` is empty.

    Pictures of the question stay, and without a `text` its id does, too. Options, budget and model are those
    of `chosen`, if it is given, and so is its metadata, if it has any.
    """
    request = read_request(record)
    if chosen is not None:
        request = replace(request, options=chosen.options, budget=chosen.budget, model=chosen.model)
        request = replace(request, metadata=chosen.metadata or request.metadata)
    *before, asked = request.messages
    content = replace_text(asked.content, text) if text else asked.content
    messages = [*before, HumanMessage(content=content, id=None if text else asked.id)]
    return replace(request, messages=messages, thread_id=thread_id, when_busy="enqueue")


def replace_text(content: Any, text: str) -> Any:
    """Return the content of a message with another text, and the parts of it that are no text."""
    if isinstance(content, str):
        return text
    parts = cast("list[str | dict[str, Any]]", content)
    others = [part for part in parts if not isinstance(part, str) and part.get("type") != "text"]
    return [{"type": "text", "text": text}, *others]


async def find_products(store: Store, record: RunRecord) -> KnownProducts:
    """Return what a run and those after it on its thread have made, and what of a name was before them."""
    later_runs: set[str] = set()
    before: float | None = None
    while record.run_id not in later_runs and (
        page := await store.runs.list_by_thread(record.thread_id, before=before)
    ):
        for run in page:
            later_runs.add(run.run_id)
            if run.run_id == record.run_id:
                break
        before = page[-1].created_at
    artifacts = await store.artifacts.list_by_thread(record.thread_id)
    later = {(one.name, one.sha256) for one in artifacts if one.run_id in later_runs}
    names = {name for name, _ in later}
    earlier: dict[str, dict[str, ReadContent]] = {}
    for one in artifacts:
        if one.name in names and one.run_id not in later_runs:
            try:
                content = await store.artifacts.open(one)
            except FileError:
                continue
            earlier.setdefault(one.name, {})[one.sha256] = _read_from_thread(content)
    return KnownProducts(later, earlier)


def _read_from_thread(content: ArtifactContent) -> ReadContent:
    """Return a function that reads the content in this loop, and waits for it in a thread of its own."""
    loop = asyncio.get_running_loop()
    return lambda: asyncio.run_coroutine_threadsafe(content.read(), loop).result()


async def _copy_checkpoint(saver: BaseCheckpointSaver[Any], stored: CheckpointTuple, branch_id: str) -> None:
    place = _place_of(branch_id)
    versions = stored.checkpoint["channel_versions"]
    copy = await saver.aput(place, stored.checkpoint, stored.metadata, versions)
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for task_id, channel, value in stored.pending_writes or ():
        by_task.setdefault(task_id, []).append((channel, value))
    for task_id, writes in by_task.items():
        await saver.aput_writes(copy, writes, task_id)


def _place_of(thread_id: str) -> RunnableConfig:
    """Return the place of the newest checkpoint of a thread."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


async def list_deletions(store: Store, thread_id: str, owner: str) -> Sequence[str]:
    """Return the ids of a thread and of the branches that begin with its runs, in the order to delete them.

    No branch is left without the thread that it begins with. Raises `NotFound`.
    """
    thread = await find_thread(store, thread_id, owner)
    return [one.thread_id for one in reversed(await list_family(store, thread))]


async def find_thread(store: Store, thread_id: str, owner: str | None) -> Thread:
    """Return a thread of this owner; raises `NotFound`."""
    thread = await store.threads.get(thread_id, owner)
    if thread is None:
        raise NotFound("The thread does not exist.")
    return thread


async def list_family(store: Store, thread: Thread, *, with_copies: bool = True) -> Sequence[Thread]:
    """Return a thread and the branches that begin with its runs, each after the one that it begins with.

    Copies and their branches are left out unless they are asked for.
    """
    family = [thread]
    known = {thread.thread_id}
    branches = await store.threads.list_branches([thread.conversation_id])
    for one in branches[thread.conversation_id]:
        if one.parent_id in known and (with_copies or one.branched_run):
            known.add(one.thread_id)
            family.append(one)
    return family
