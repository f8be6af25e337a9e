"""The protocols of a store.

Every call may raise `StoreError`. A cancelled call has been done completely or not at all. Lists are ordered
newest first, by insertion and not by the clock; `before` is the `created_at` of the last record of the
previous page (unique within a table). `owner=None` selects the records of all owners.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypedDict, Unpack

from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.evidence import Evidence
from maniple.store.artifact_contents import ArtifactContent, ArtifactContents
from maniple.store.batches import BatchTable
from maniple.store.records import (
    ApiKey,
    Artifact,
    EventRecord,
    InputRecord,
    KeyLimits,
    RunRecord,
    RunText,
    RunUsage,
    Thread,
    ToolCallRecord,
)
from maniple.store.schedules import ScheduleTable
from maniple.store.search_terms import SearchTerms
from maniple.store.webhooks import WebhookTable
from maniple.types import OutageKind, RunState

EVENT_PAGE_SIZE = 1_000
BRANCHED_RUNS = 20
"""How many of a thread's newest runs keep the checkpoint before them: each holds the whole conversation."""


class ThreadTable(Protocol):
    """Conversations."""

    async def create(self, thread: Thread, *, temporary_of: str = "") -> Thread:
        """Store a new thread and return it as stored: `created_at` may be microseconds later.

        `temporary_of` is the process with which the thread ends; "" if it stays. Raises `StoreError` when the
        id exists.
        """
        ...

    async def get(self, thread_id: str, owner: str | None) -> Thread | None:
        """Return a thread of this owner."""
        ...

    async def list(
        self,
        owner: str | None,
        limit: int = 50,
        before: float | None = None,
        titled: str = "",
        *,
        with_branches: bool = False,
    ) -> Sequence[Thread]:
        """Return the owner's conversations whose title contains `titled` (ASCII letters in either case).

        Branches are left out, unless they are asked for.
        """
        ...

    async def list_branches(self, thread_ids: Collection[str]) -> Mapping[str, Sequence[Thread]]:
        """Return the branches of each of these conversations, oldest first."""
        ...

    async def touch(
        self,
        thread_id: str,
        title: str | None = None,
        *,
        history: str | None = None,
        cut_history: str | None = None,
        metadata: str | None = None,
    ) -> None:
        """Set `updated_at` to now, and what is given of title, metadata and digests of conversations.

        `history` is of the conversation at a run's end, `cut_history` of the one with which a stream was
        closed before it: the run's end does not replace it.
        """
        ...

    async def list_abandoned(self) -> Sequence[Thread]:
        """Return the threads that were to end with a process that is not alive any more."""
        ...

    async def take_history(self, owner: str, history: str) -> Thread | None:
        """Return the thread whose client was returned a conversation with this digest; forget its digests.

        A digest of the form `A:B` is also found by `A`. Of several threads it is the one that was touched
        last. So no two clients continue one thread by one digest.
        """
        ...

    async def delete(self, thread_id: str) -> bool:
        """Delete a thread with its runs, artifacts and checkpoints; return whether it existed."""
        ...


class RunChange(TypedDict, total=False):
    """The fields of a run that change."""

    process: str
    status: RunState
    request: str
    stalls: int
    started_at: float | None
    ended_at: float | None
    usage: RunUsage
    error_code: str | None
    error: str | None
    recoveries: int
    base_checkpoint: str | None
    waiting_for: OutageKind | None
    waiting_since: float | None
    waiting_until: float | None


class RunTable(Protocol):
    """Runs: the turns of conversations."""

    async def add(self, run: RunRecord) -> RunRecord:
        """Store a new run of a stored thread and return it as stored (see `ThreadTable.create`)."""
        ...

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        """Return a run of this owner."""
        ...

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        """Return the owner's runs."""
        ...

    async def list_by_thread(
        self, thread_id: str, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        """Return the runs of a thread; for a branch, also those that it begins with."""
        ...

    async def list_first(self, thread_ids: Sequence[str]) -> Mapping[str, str]:
        """Return the id of the first run of each of these threads that has one of its own."""
        ...

    async def list_statuses(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[RunState]]:
        """Return the statuses of each thread's newest run and of all that have not ended, newest first."""
        ...

    async def list_interrupted(self, thread_id: str) -> Sequence[RunRecord]:
        """Return the runs of a thread that are `interrupted`, newest first."""
        ...

    async def list_in_other_processes(self, thread_id: str) -> Sequence[RunRecord]:
        """Return, oldest first, the queued and running runs of a thread in other living processes."""
        ...

    async def list_orphaned(
        self, kind: str | None, driven: Collection[str] = (), thread_id: str | None = None
    ) -> Sequence[RunRecord]:
        """Return, oldest first, the queued and running runs that no process drives; `kind=None` is any.

        These are the runs of dead processes, and those of this process that are not in `driven`.
        """
        ...

    async def change(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        """Change these fields; return the changed run, or None if it does not exist."""
        ...

    async def adopt(self, run_id: str) -> RunRecord | None:
        """Move an `interrupted` run, which no process drives, to this process, which may then write for it.

        Returns None if it is not `interrupted` any more.
        """
        ...

    async def answer(self, run_id: str, sent: InputRecord) -> RunRecord | None:
        """Queue an `interrupted` run in this process, with the input that ends its pause.

        Returns None, and stores nothing, if it is not `interrupted` any more.
        """
        ...

    async def retry(self, run_id: str, sent: InputRecord, status: RunState) -> RunRecord | None:
        """Queue a run that has ended with `status` in this process again, without its end and its error.

        Returns None, and stores nothing, if that is not its status any more.
        """
        ...

    async def start(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        """Change a queued or running run of this process to `running`, with these fields.

        A run that starts for the first time is given the sources of the runs before it (`list_by_thread`).

        Returns None and changes nothing while another living process has a running run on the thread, and
        when the run has ended or moved to another process.
        """
        ...

    async def claim(self, run: RunRecord) -> RunRecord | None:
        """Move an orphaned run to this process and count a recovery.

        Returns None if the run has ended or moved to another process since it was read.
        """
        ...

    async def sum_usage(self, owner: str, since: float, until: float) -> RunUsage:
        """Return the total usage of an owner's runs, including runs deleted within the last two days.

        Counts the runs that started or ended after `since` and not after `until`. A run that a wrong clock
        has dated into the future counts when that time has come.
        """
        ...

    async def add_usage(self, owner: str, usage: RunUsage, at: float) -> None:
        """Add to what `sum_usage` counts the usage of an owner at a time (Unix seconds) outside of any run.

        It is stored for two days, as the usage of a deleted run is.
        """
        ...


class RunTextTable(Protocol):
    """The questions and answers of ended runs, for the full-text search. A deleted run leaves nothing."""

    async def put(self, run_id: str, question: str, answer: str) -> None:
        """Store the text of a run in place of an earlier one; that of a deleted run is dropped."""
        ...

    async def list_unindexed(self, limit: int) -> Sequence[RunRecord]:
        """Return ended runs without a text, the newest first."""
        ...

    async def search(self, owner: str | None, terms: SearchTerms, limit: int) -> Sequence[RunText]:
        """Return the owner's texts that have all terms, the best ones first.

        The last term may be the beginning of a word; of a short one the newest texts may come first. Case and
        accents do not matter. In scripts without spaces a term may stand anywhere, the newest texts come
        first, and accents matter.
        """
        ...


class InputTable(Protocol):
    """What was sent to runs, in order."""

    async def write(
        self, run_id: str, added: Sequence[InputRecord], replies: Mapping[str, str] | None = None
    ) -> None:
        """Add inputs to a run, and set the replies to inputs by their ids: all or none.

        A known input stays as it is, and so does its reply. Inputs of a deleted run are dropped.
        """
        ...

    async def list_by_run(self, run_id: str) -> Sequence[InputRecord]:
        """Return the inputs of a run, oldest first."""
        ...


class EventTable(Protocol):
    """The numbered events of runs."""

    async def append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        """Store events of several runs, as (run_id, events): all or none.

        Raises `StoreError` unless the numbers continue those of the run. Events of a deleted run are
        dropped.
        """
        ...

    async def read(
        self,
        run_id: str,
        after: int = 0,
        limit: int = EVENT_PAGE_SIZE,
        types: Collection[str] | None = None,
    ) -> list[EventRecord]:
        """Return at most `limit` events that follow number `after`, only those of `types` if given."""
        ...

    async def last(self, run_id: str) -> EventRecord | None:
        """Return the newest event."""
        ...


async def read_runs(runs: RunTable, thread_id: str) -> AsyncGenerator[RunRecord]:
    """Yield all runs that `RunTable.list_by_thread` returns, newest first."""
    before: float | None = None
    while page := await runs.list_by_thread(thread_id, before=before):
        for run in page:
            yield run
        before = page[-1].created_at


async def read_event_pages(
    events: EventTable, run_id: str, after: int = 0, types: Collection[str] | None = None
) -> AsyncIterator[Sequence[EventRecord]]:
    """Yield the stored events of a run after number `after`, at most `EVENT_PAGE_SIZE` at a time.

    With `types`, only events of these types are read.
    """
    number = max(after, 0)
    while page := await events.read(run_id, number, EVENT_PAGE_SIZE, types):
        yield page
        number = page[-1].number


class ToolCallLedger(Protocol):
    """Tool calls: the intent is recorded before the call, the result after it."""

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        """Record the intent. A known call is returned with one more attempt."""
        ...

    async def start(self, run_id: str, tool_call_id: str) -> None:
        """Record that the work of the call begins: from now on it may have had an effect."""
        ...

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        """Record the result, unless one is recorded already."""
        ...

    async def list_by_run(self, run_id: str) -> list[ToolCallRecord]:
        """Return the calls of a run in the order in which they began."""
        ...


class ArtifactStore(Protocol):
    """Files that runs created."""

    @property
    def contents(self) -> ArtifactContents:
        """What holds their contents."""
        ...

    async def add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        """Store bytes, or a copy of a file: an open one, or a path without symbolic links.

        Stores the last component of `name`, without control characters. Raises `FileError` for a path that is
        not an ordinary file with one name.
        """
        ...

    async def get(self, artifact_id: str, owner: str | None) -> Artifact | None:
        """Return an artifact of this owner."""
        ...

    async def open(self, artifact: Artifact) -> ArtifactContent:
        """Return the content; raises `FileError` unless it is there and of its size."""
        ...

    async def list_by_run(self, run_id: str) -> list[Artifact]:
        """Return the artifacts of a run, oldest first."""
        ...

    async def list_by_thread(self, thread_id: str) -> list[Artifact]:
        """Return the artifacts of the runs that `RunTable.list_by_thread` returns, oldest first."""
        ...


class ApiKeyTable(Protocol):
    """API keys."""

    async def add(self, name: str, limits: KeyLimits | None = None) -> tuple[ApiKey, str]:
        """Create a key; return it and its secret, which is not stored."""
        ...

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret unless it was revoked."""
        ...

    async def get(self, key_id: str) -> ApiKey | None:
        """Return a key by its id, also a revoked one."""
        ...

    async def list(self) -> Sequence[ApiKey]:
        """Return all keys, also revoked ones, oldest first."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key; return whether it was valid before."""
        ...

    async def delete_revoked(self) -> int:
        """Delete all keys if every one is revoked; return how many, 0 if a valid one exists."""
        ...


async def count_valid_keys(keys: ApiKeyTable) -> int:
    """Return how many keys are not revoked."""
    return sum(key.revoked_at is None for key in await keys.list())


class CheckpointHistory(Protocol):
    """Deletes LangGraph's checkpoints."""

    async def prune(self, thread_id: str) -> None:
        """Delete the checkpoints that nothing goes on from. No run of the thread may work or wait.

        What stays is the main graph's newest one, and those before the newest `BRANCHED_RUNS` runs of the
        thread, from which branches begin.
        """
        ...

    async def rollback(self, thread_id: str, checkpoint_id: str | None) -> None:
        """Delete what followed a checkpoint of the main graph; everything if the id is None."""
        ...


class Store(Protocol):
    """An open store."""

    @property
    def process(self) -> str:
        """The id under which this process drives runs."""
        ...

    @property
    def threads(self) -> ThreadTable: ...
    @property
    def runs(self) -> RunTable: ...
    @property
    def texts(self) -> RunTextTable: ...
    @property
    def inputs(self) -> InputTable: ...
    @property
    def events(self) -> EventTable: ...
    @property
    def ledger(self) -> ToolCallLedger: ...
    @property
    def artifacts(self) -> ArtifactStore: ...
    @property
    def keys(self) -> ApiKeyTable: ...
    @property
    def schedules(self) -> ScheduleTable: ...
    @property
    def webhooks(self) -> WebhookTable: ...
    @property
    def batches(self) -> BatchTable: ...
    @property
    def checkpoints(self) -> CheckpointHistory: ...
    @property
    def checkpointer(self) -> BaseCheckpointSaver[Any]: ...

    def evidence(self, run_id: str) -> Evidence:
        """Return the sources that a run has read; adding to a deleted run raises `StoreError`."""
        ...

    async def probe(self) -> str:
        """Raise the `StoreError` that a read or write would raise now, as far as a cheap test can tell.

        Return what is wrong although both work, or "".
        """
        ...

    async def check(self) -> list[str]:
        """Return the defects of the stored data, one sentence each."""
        ...

    async def vacuum(self) -> None:
        """Return unused space to the file system and delete files that belong to no artifact."""
        ...
