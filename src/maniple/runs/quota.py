"""What a key may use in any 24 hours, all its runs together."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from maniple.agents.budget import (
    LIMITS,
    Budget,
    LimitUsage,
    UsageMeter,
    iterate_limits,
    usage_by_limit,
    usage_of,
)
from maniple.errors import ManipleError
from maniple.store import KeyLimits, RunUsage, Store

DAY_SECONDS = 24 * 3600.0


class DailyLimit(ManipleError):
    """The key has used up one of its daily amounts."""

    code = "daily_limit"
    retryable = True


@dataclass(frozen=True, slots=True)
class _Working:
    """A run that works, and what its row says meanwhile, which it had used before."""

    meter: UsageMeter
    row: Mapping[str, float]


class Allowance:
    """What the runs of one key may use of its day, and have used; without limits, anything.

    That is what their rows said when they were read last, and what was used since: by runs that work, as
    their meters say, and by runs that have ended meanwhile. Nothing is read when a run asks.
    """

    def __init__(self) -> None:
        self.limits = KeyLimits()
        self.budget = Budget()
        # What rows and ended runs say, less the rows of the runs that work: their meters say more.
        self._kept: Counter[str] = Counter()
        self._working: dict[str, _Working] = {}
        # Rows are not read while one is written: each use is counted once, in its row or here.
        self._rows = asyncio.Lock()

    def levels(self, **coming: float) -> Iterator[LimitUsage]:
        """Yield how far the key's limits are used up (see `SharedLimits`)."""
        if self.budget != Budget():
            reserved = self._reserved() if "tokens" in coming else {}
            yield from iterate_limits(self.budget, self.used, coming, reserved, is_daily=True)

    @property
    def used(self) -> dict[str, float]:
        """What the key has used of its day, by those limits that it has."""
        return {
            limit: self._kept[limit] + sum(_used(run.meter, limit) for run in self._working.values())
            for limit in LIMITS
            if getattr(self.budget, limit) is not None
        }

    def refuse_when_used_up(self) -> None:
        """Raise `DailyLimit` when nothing is left of one of the day's amounts."""
        for level in self.levels(model_calls=0, tool_calls=0):
            if level.is_over:
                raise DailyLimit(
                    f"This key has used up its {level.limit.replace('_', ' ')} of a day: {level.used:.6g} of "
                    f"{level.allowed:.6g} in the last 24 hours. Try again later."
                )

    def attach(self, run_id: str, meter: UsageMeter) -> None:
        """Count a run that begins to work; its meter says what its row does."""
        self._working[run_id] = _Working(meter, usage_by_limit(meter.used))
        self._kept.subtract(usage_by_limit(meter.used))

    @asynccontextmanager
    async def writing(self, run_id: str) -> AsyncIterator[None]:
        """Let go of a run while its row is made to say what its meter does; if that fails, it stays."""
        async with self._rows:
            yield
            run = self._working.pop(run_id, None)
            if run is not None:
                self._kept.update(usage_by_limit(run.meter.used))

    def forget(self, run_id: str, meter: UsageMeter) -> None:
        """Let go of a run whose row could not be written: that is done when it is taken up again."""
        if run_id in self._working and self._working[run_id].meter is meter:
            self._kept.update(self._working.pop(run_id).row)

    async def refresh(self, limits: KeyLimits, read: Callable[[], Awaitable[RunUsage]]) -> None:
        """Take over the limits and, if there are any, what the rows say by now."""
        self.limits, self.budget = limits, _daily(limits)
        if self.budget != Budget():
            async with self._rows:
                self._kept = Counter(usage_by_limit(await read()))
                for run in self._working.values():
                    self._kept.subtract(run.row)

    def _reserved(self) -> Mapping[str, float]:
        reserved = [run.meter.reserved for run in self._working.values()]
        return {limit: sum(one[limit] for one in reserved) for limit in ("tokens", "cost")}


class Quotas:
    """The allowances of the keys whose runs are driven here, by key id; "" stands for no key."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._allowances: dict[str, Allowance] = {}

    def of(self, owner: str) -> Allowance:
        """Return the owner's allowance as it was last refreshed."""
        return self._allowances.setdefault(owner, Allowance())

    async def refreshed(self, owner: str) -> Allowance:
        """Return the owner's allowance with what the store says by now."""
        allowance = self.of(owner)
        key = await self._store.keys.get(owner) if owner else None
        if key is not None:
            await allowance.refresh(key.limits, lambda: self._used(owner))
        return allowance

    async def _used(self, owner: str) -> RunUsage:
        now = self._clock()
        return await self._store.runs.sum_usage(owner, now - DAY_SECONDS, now)


def _used(meter: UsageMeter, limit: str) -> float:
    # Asked of every run that works, at every call: only seconds need the clock.
    return usage_of(meter.used if limit == "seconds" else meter.counted, limit)


def _daily(limits: KeyLimits) -> Budget:
    return Budget(**{name: getattr(limits, f"daily_{name}") for name in LIMITS})
