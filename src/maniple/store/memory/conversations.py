"""Threads and their runs."""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Unpack

from maniple.errors import StoreError
from maniple.store.memory.content import Content, newest_first
from maniple.store.protocols import RunChange
from maniple.store.records import RunRecord, Thread, Usage
from maniple.store.spent import is_within
from maniple.text import whole
from maniple.types import RunState


class MemoryThreads:
    """See `protocols.Threads`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def create(self, thread: Thread) -> Thread:
        threads = self._content.threads
        if thread.thread_id in threads:
            raise StoreError(f"Thread {thread.thread_id} is stored already.")
        kept = replace(
            thread, title=whole(thread.title), created_at=self._content.unused_time(thread.created_at)
        )
        threads[kept.thread_id] = kept
        return kept

    async def get(self, thread_id: str, owner: str | None) -> Thread | None:
        thread = self._content.threads.get(thread_id)
        return thread if thread is not None and owner in (None, thread.owner) else None

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None, titled: str = ""
    ) -> Sequence[Thread]:
        found = newest_first(self._content.threads.values(), before)
        owned = [one for one in found if owner in (None, one.owner)]
        return [one for one in owned if titled.lower() in one.title.lower()][: max(limit, 0)]

    async def touch(self, thread_id: str, title: str | None = None) -> None:
        thread = self._content.threads.get(thread_id)
        if thread is not None:
            title = thread.title if title is None else whole(title)
            self._content.threads[thread_id] = replace(thread, updated_at=time.time(), title=title)

    async def delete(self, thread_id: str) -> bool:
        await self._content.saver.adelete_thread(thread_id)
        await self._content.drop(r.run_id for r in self._content.runs.values() if r.thread_id == thread_id)
        return self._content.threads.pop(thread_id, None) is not None


class MemoryRuns:
    """See `protocols.RunTable`."""

    def __init__(self, content: Content) -> None:
        self._content = content

    async def add(self, run: RunRecord) -> RunRecord:
        content = self._content
        if run.run_id in content.runs or run.thread_id not in content.threads:
            raise StoreError(f"Run {run.run_id} is stored already or its thread was deleted.")
        kept = replace(run, created_at=content.unused_time(run.created_at))
        content.runs[run.run_id] = kept
        return kept

    async def get(self, run_id: str, owner: str | None = None) -> RunRecord | None:
        run = self._content.runs.get(run_id)
        return run if run is not None and owner in (None, run.owner) else None

    async def of_thread(
        self, thread_id: str, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        found = newest_first(self._content.runs.values(), before)
        return [one for one in found if one.thread_id == thread_id][: max(limit, 0)]

    async def statuses(self, thread_ids: Sequence[str]) -> Mapping[str, Sequence[RunState]]:
        found: dict[str, list[RunState]] = {thread_id: [] for thread_id in thread_ids}
        for run in newest_first(self._content.runs.values(), None):
            of_thread = found.get(run.thread_id)
            if of_thread is not None and (not of_thread or run.is_unfinished or run.status == "interrupted"):
                of_thread.append(run.status)
        return found

    async def waiting(self, thread_id: str) -> Sequence[RunRecord]:
        found = newest_first(self._content.runs.values(), None)
        return [one for one in found if one.thread_id == thread_id and one.status == "interrupted"]

    async def list(
        self, owner: str | None, limit: int = 50, before: float | None = None
    ) -> Sequence[RunRecord]:
        found = newest_first(self._content.runs.values(), before)
        return [one for one in found if owner in (None, one.owner)][: max(limit, 0)]

    async def change(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        if unknown := set(changes) - set(RunChange.__annotations__):
            raise TypeError(f"{', '.join(unknown)} of a run does not change")
        run = self._content.runs.get(run_id)
        if run is not None:
            run = self._content.runs[run_id] = replace(run, **changes)
        return run

    async def answer(self, run_id: str, request: str) -> RunRecord | None:
        run = self._content.runs.get(run_id)
        if run is None or run.status != "interrupted":
            return None
        return await self.change(run_id, status="queued", process=self._content.process, request=request)

    async def begin(self, run_id: str, **changes: Unpack[RunChange]) -> RunRecord | None:
        run = self._content.runs.get(run_id)
        if run is None or not run.is_unfinished:
            return None
        return await self.change(run_id, **{**changes, "status": "running"})

    async def elsewhere(self, thread_id: str) -> Sequence[RunRecord]:
        return []

    async def unfinished(
        self, kind: str | None, driven: Collection[str] = (), thread_id: str | None = None
    ) -> Sequence[RunRecord]:
        runs = [one for one in self._content.runs.values() if one.is_unfinished]
        asked = [r for r in runs if kind in (None, r.kind) and thread_id in (None, r.thread_id)]
        return [run for run in asked if run.run_id not in driven]

    async def claim(self, run: RunRecord) -> RunRecord | None:
        kept = self._content.runs.get(run.run_id)
        if kept is None or kept.process != run.process or not kept.is_unfinished:
            return None
        return await self.change(run.run_id, process=self._content.process, recoveries=kept.recoveries + 1)

    async def used(self, owner: str, since: float, until: float) -> Usage:
        known = (*map(self._content.until_it_waited, self._content.runs.values()), *self._content.spent)
        used = [astuple(one.usage) for one in known if one.owner == owner and is_within(one, since, until)]
        return Usage(*(sum(amounts) for amounts in zip(*used, strict=True)))
