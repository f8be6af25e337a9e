"""What a store does. Any call may raise `StoreError`; a cancelled one has been done whole or not at all.

Lists come newest first, in the order of arrival, whatever the clock did; `before` is the `created_at` of
the last record of the page before (no two of a table are equal). `owner=None` asks for everybody's.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypedDict, Unpack

from langgraph.checkpoint.base import BaseCheckpointSaver

from maniple.evidence import Evidence
from maniple.store.records import (
    ApiKey,
    Artifact,
    EventRecord,
    KeyLimits,
    RunRecord,
    Thread,
    ToolCallRecord,
    Usage,
)
from maniple.types import RunState


class Threads(Protocol):
    """Conversations."""

    async def create(self, thread: Thread) -> Thread:
        """Keep a new thread; returns it as kept: `created_at` may be microseconds later.

        Raises `StoreError` if there is one of this id.
        """
        ...

    async def get(self, thread_id: str, owner: str | None) -> Thread | None:
        """Return a thread of this owner."""
        ...

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None, titled: str = ""
    ) -> Sequence[Thread]:
        """Return the owner's threads; those whose title has these words, if any are given.

        The case of ASCII letters does not count.
        """
        ...

    async def touch(self, thread_id: str, title: str | None = None) -> None:
        """Set `updated_at` to now, and the title if one is given."""
        ...

    async def delete(self, thread_id: str) -> bool:
        """Delete it with its runs, artifacts and checkpoints; says whether there was one."""
        ...


class RunChange(TypedDict, total=False):
    """The fields of a run that change."""

    process: str
    status: RunState
    request: str
    started_at: float | None
    ended_at: float | None
    usage: Usage
    error_code: str | None
    error: str | None
    recoveries: int
    base_checkpoint: str | None


class RunTable(Protocol):
    """Turns."""

    async def add(self, run: RunRecord) -> RunRecord:
        """Keep a new run of a kept thread; returns it as kept, see `Threads.create`."""
        ...

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        """Return a run of this owner."""
        ...

    async def of_thread(
        self, thread_id: str, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        """Return the runs of a thread."""
        ...

    async def statuses(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[RunState]]:
        """Return, newest first, the statuses of each thread's newest run and of all that have not ended."""
        ...

    async def waiting(self, thread_id: str) -> Sequence[RunRecord]:
        """Return the runs of a thread that are `interrupted`, newest first."""
        ...

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        """Return the owner's runs."""
        ...

    async def change(self, run_id: str, **fields: Unpack[RunChange]) -> RunRecord | None:
        """Change these fields; returns the run as it is now, None if there is no such run."""
        ...

    async def answer(self, run_id: str, request: str) -> RunRecord | None:
        """Let a run that is `interrupted` go on in this process, `queued`; None if it waits no more."""
        ...

    async def begin(self, run_id: str, **fields: Unpack[RunChange]) -> RunRecord | None:
        """Change a queued or running run of this process to `running`, with these fields.

        Returns None, and changes nothing, while another living process works on its thread, and when it is
        no such run any more.
        """
        ...

    async def elsewhere(self, thread_id: str) -> Sequence[RunRecord]:
        """Return, oldest first, the queued and running runs of a thread that other living processes drive."""
        ...

    async def unfinished(
        self, kind: str | None, driven: Collection[str] = (), thread_id: str | None = None
    ) -> Sequence[RunRecord]:
        """Return, oldest first, the queued and running runs that nobody drives; `kind=None` is any.

        That is: those of dead processes, and those of this process but the `driven`.
        """
        ...

    async def claim(self, run: RunRecord) -> RunRecord | None:
        """Make this process the one that drives it, and count a recovery.

        Returns None if it changed hands or ended since it was read.
        """
        ...

    async def used(self, owner: str, since: float, until: float) -> Usage:
        """Return what the runs of an owner have used together, those included that were deleted.

        Counted are those that began or ended after `since` and not after `until`: what a clock that was ahead
        has dated later does not count before its time. Of deleted ones the last two days are known.
        """
        ...


class EventTable(Protocol):
    """The numbered events of runs."""

    async def append(self, batches: Sequence[tuple[str, Sequence[EventRecord]]]) -> None:
        """Store events of several runs, (run_id, events), all or none.

        Numbers go on where the run's last event ended, else `StoreError`. What belongs to a run that was
        deleted meanwhile is dropped.
        """
        ...

    async def read(self, run_id: str, after: int = 0, limit: int = 1000) -> list[EventRecord]:
        """Return at most `limit` events that follow number `after`."""
        ...

    async def last(self, run_id: str) -> EventRecord | None:
        """Return the newest event."""
        ...


class Ledger(Protocol):
    """Tool calls: the intent before, the result after."""

    async def begin(self, run_id: str, tool_call_id: str, tool_name: str, arguments: str) -> ToolCallRecord:
        """Record the intent; one that is known already is returned, with one attempt more."""
        ...

    async def end(self, run_id: str, tool_call_id: str, result: str) -> None:
        """Record the result; the first one stays."""
        ...

    async def of_run(self, run_id: str) -> list[ToolCallRecord]:
        """Return the calls in the order of their beginning."""
        ...


class Artifacts(Protocol):
    """Files that runs made."""

    async def add(
        self, run: RunRecord, name: str, media_type: str, data: bytes | Path | BinaryIO
    ) -> Artifact:
        """Keep bytes, or a copy of a file: an open one, or a path on which no symbolic link lies.

        Of `name` the last component stays, without control characters. Raises `FileError` for a path that
        is no ordinary file with one name.
        """
        ...

    async def get(self, artifact_id: str, owner: str | None) -> Artifact | None:
        """Return an artifact of this owner."""
        ...

    async def open(self, artifact: Artifact) -> Path:
        """Return where its content lies; raises `FileError` unless that is an ordinary file of its size."""
        ...

    async def of_run(self, run_id: str) -> list[Artifact]:
        """Return the artifacts of a run in the order of their making."""
        ...

    async def of_thread(self, thread_id: str) -> list[Artifact]:
        """Return the artifacts of a thread's runs in the order of their making."""
        ...


class Keys(Protocol):
    """API keys."""

    async def add(self, name: str, limits: KeyLimits | None = None) -> tuple[ApiKey, str]:
        """Make a key; returns it and its secret, which is kept nowhere."""
        ...

    async def find(self, secret: str) -> ApiKey | None:
        """Return the key with this secret unless it was revoked."""
        ...

    async def get(self, key_id: str) -> ApiKey | None:
        """Return the key of this id, a revoked one too."""
        ...

    async def list(self) -> Sequence[ApiKey]:
        """Return all keys, revoked ones too, oldest first."""
        ...

    async def revoke(self, key_id: str) -> bool:
        """Make a key useless; says whether it was of use before."""
        ...

    async def forget(self) -> int:
        """Forget all keys when every one of them is revoked; returns how many, 0 if one is valid."""
        ...


class Checkpoints(Protocol):
    """What may be thrown away of LangGraph's checkpoints."""

    async def prune(self, thread_id: str) -> None:
        """Keep only the newest checkpoint of the main graph. No run may go on or wait on the thread."""
        ...

    async def rollback(self, thread_id: str, checkpoint_id: str | None) -> None:
        """Delete what came after a checkpoint of the main graph; after None: everything."""
        ...


class Store(Protocol):
    """All of it, open."""

    @property
    def process(self) -> str:
        """The id under which this process drives runs."""
        ...

    @property
    def threads(self) -> Threads: ...
    @property
    def runs(self) -> RunTable: ...
    @property
    def events(self) -> EventTable: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def artifacts(self) -> Artifacts: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def checkpoints(self) -> Checkpoints: ...
    @property
    def checkpointer(self) -> BaseCheckpointSaver: ...

    def evidence(self, run_id: str) -> Evidence:
        """Return what a run has read; to add to that of a run that is not there is a `StoreError`."""
        ...

    async def try_out(self) -> None:
        """Raise the `StoreError` that reading or writing would meet now, as far as that shows cheaply."""
        ...

    async def check(self) -> list[str]:
        """Return what is wrong with the stored data, a sentence each; nothing when all is well."""
        ...

    async def vacuum(self) -> None:
        """Give unused space back and delete files that belong to no artifact."""
        ...
