"""Admission and scheduling: whether a run is accepted, and when it may work."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from maniple.runs.active_run import ActiveRun
from maniple.runs.engine import ServiceStopping, TooManyRuns
from maniple.runs.engine_config import RunLimits
from maniple.runs.usage import QuotaRegistry


class ThreadLocks:
    """One lock per thread, granted in the order of requests."""

    def __init__(self) -> None:
        self._locks: dict[str, asyncio.Lock] = {}
        self._holders: Counter[str] = Counter()

    def is_locked(self, thread_id: str) -> bool:
        """Return whether the lock of a thread is held or awaited."""
        return thread_id in self._locks

    @asynccontextmanager
    async def acquire(self, thread_id: str) -> AsyncGenerator[None]:
        """Wait for the lock of a thread and hold it."""
        lock = self._locks.setdefault(thread_id, asyncio.Lock())
        self._holders[thread_id] += 1
        try:
            async with lock:
                yield
        finally:
            self._holders[thread_id] -= 1
            if not self._holders[thread_id]:
                del self._holders[thread_id], self._locks[thread_id]


class FairSemaphore:
    """A semaphore that serves waiting owners in turn, and the requests of one owner in order.

    An owner with a thousand runs therefore delays another owner's first run by one position, not by a
    thousand.
    """

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def hold(self, owner: str) -> AsyncGenerator["Slot"]:
        """Wait for a slot and hold it, but for the time in which the caller gives it back."""
        slot = Slot(self, owner)
        await slot.acquire()
        try:
            yield slot
        finally:
            slot.release()

    async def acquire(self, owner: str) -> None:
        """Wait for a slot."""
        if self._free > 0:
            self._free -= 1
            return
        slot: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(slot)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self.release()  # the slot was granted already
            else:
                self._cancel_wait(owner, slot)
            raise

    def take(self) -> None:
        """Take a slot at once, even if that is one more than there are; the next ones are granted later."""
        self._free -= 1

    def release(self) -> None:
        """Give a slot back: to the next owner, unless too many are taken."""
        while self._waiting and self._free >= 0:
            owner, queue = self._waiting.popitem(last=False)
            slot = queue.popleft()
            if queue:
                self._waiting[owner] = queue  # at the end, after the other owners
            if not slot.done():
                slot.set_result(None)
                return
        self._free += 1

    def _cancel_wait(self, owner: str, slot: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner)
        if queue is not None and slot in queue:
            queue.remove(slot)
            if not queue:
                del self._waiting[owner]


class Slot:
    """A slot of a `FairSemaphore` that its holder can give back for a while."""

    def __init__(self, slots: FairSemaphore, owner: str) -> None:
        self._slots = slots
        self._owner = owner
        self._is_held = False

    async def acquire(self) -> None:
        """Wait for a slot, unless one is held."""
        if not self._is_held:
            await self._slots.acquire(self._owner)
            self._is_held = True

    def take(self) -> None:
        """Hold a slot at once (`FairSemaphore.take`)."""
        if not self._is_held:
            self._is_held = True
            self._slots.take()

    def release(self) -> None:
        """Give the slot back, if one is held."""
        if self._is_held:
            self._is_held = False
            self._slots.release()


class AdmissionControl:
    """Decides whether another run is accepted; `active` holds the active runs by id."""

    def __init__(self, limits: RunLimits, active: Mapping[str, ActiveRun], quotas: QuotaRegistry) -> None:
        self._limits = limits
        self._active = active
        self._quotas = quotas
        self._being_created: Counter[str] = Counter()
        self._closed = False

    def close(self) -> None:
        """Accept no more runs."""
        self._closed = True

    @property
    def is_closed(self) -> bool:
        """Whether no more runs are accepted."""
        return self._closed

    def _count_active(self, owner: str) -> int:
        return self._being_created[owner] + sum(run.record.owner == owner for run in self._active.values())

    @asynccontextmanager
    async def admit(self, owner: str) -> AsyncGenerator[None]:
        """Count a run as active while it is being created.

        Raises `ServiceStopping`, `TooManyRuns` or `DailyLimitReached`.
        """
        quota = await self._quotas.refresh_owner(owner)
        self._raise_if_full(owner, quota.limits.max_runs)
        quota.raise_if_used_up()
        self._being_created[owner] += 1
        try:
            yield
        finally:
            self._being_created[owner] -= 1

    def _raise_if_full(self, owner: str, most: int | None) -> None:
        if self._closed:
            raise make_stopping()
        if len(self._active) + self._being_created.total() >= self._limits.under_way:
            raise make_too_many(self._limits.under_way)
        allowed = self._limits.of_owner(most)
        if allowed is not None and self._count_active(owner) >= allowed:
            raise make_too_many_of_key(allowed)


def make_stopping() -> ServiceStopping:
    """Return the error for a request that comes while the service stops."""
    return ServiceStopping("The service is stopping. Try again in a moment.")


def make_too_many(limit: int) -> TooManyRuns:
    """Return the error for one run more than all owners may have."""
    return TooManyRuns(f"{limit} runs are active or waiting, which is the limit. Try again in a moment.")


def make_too_many_of_key(limit: int) -> TooManyRuns:
    """Return the error for one run more than an API key may have."""
    return TooManyRuns(
        f"{limit} runs of this key are active, which is its limit. Try again when one has ended."
    )
