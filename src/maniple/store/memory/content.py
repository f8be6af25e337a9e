"""What is kept in memory."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver

from maniple.evidence import MemoryEvidence
from maniple.store.files import ArtifactFiles
from maniple.store.records import ApiKey, Artifact, EventRecord, RunRecord, Thread, ToolCallRecord
from maniple.store.spent import Spent

R = TypeVar("R", Thread, RunRecord)

_MICROSECOND = 1e-6


@dataclass(slots=True)
class Content:
    """What is kept; dicts keep the order of arrival."""

    files: ArtifactFiles
    saver: InMemorySaver
    times: set[float] = field(default_factory=set)
    process: str = field(default_factory=lambda: str(uuid4()))
    threads: dict[str, Thread] = field(default_factory=dict)
    runs: dict[str, RunRecord] = field(default_factory=dict)
    events: dict[str, list[EventRecord]] = field(default_factory=dict)
    calls: dict[tuple[str, str], ToolCallRecord] = field(default_factory=dict)
    artifacts: dict[str, Artifact] = field(default_factory=dict)
    evidence: dict[str, MemoryEvidence] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)

    def until_it_waited(self, run: RunRecord) -> RunRecord:
        """Take the time at which a run began to wait, and its thread was touched, for that of its end."""
        thread = self.threads.get(run.thread_id)
        return replace(run, ended_at=thread.updated_at) if run.status == "interrupted" and thread else run

    async def drop(self, runs: Iterable[str]) -> None:
        """Delete runs with what belongs to them, but for what they have used."""
        gone = set(runs)
        spent = [Spent.by(self.until_it_waited(self.runs[name])) for name in gone if name in self.runs]
        self.spent = [one for one in (*self.spent, *spent) if one.is_kept(time.time())]
        self.calls = {key: call for key, call in self.calls.items() if key[0] not in gone}
        files = [one.artifact_id for one in self.artifacts.values() if one.run_id in gone]
        for name in files:
            del self.artifacts[name]
        for run_id in gone:
            self.runs.pop(run_id, None)
            self.events.pop(run_id, None)
            self.evidence.pop(run_id, None)
        await self.files.remove(files)

    def unused_time(self, at: float) -> float:
        """Return `at`, or as little later as makes it the only one."""
        while at in self.times:
            at += _MICROSECOND
        self.times.add(at)
        return at


def newest_first(kept: Iterable[R], until: float | None) -> list[R]:
    """Newest first; see `sqlite.pages.page`."""
    ordered = [*kept]
    if until is not None:
        newer = [(one.created_at, place) for place, one in enumerate(ordered) if one.created_at >= until]
        ordered = ordered[: min(newer)[1]] if newer else ordered
    return ordered[::-1]
