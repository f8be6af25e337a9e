"""The usage of runs: per agent, and per API key and day."""

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from maniple.errors import ManipleError
from maniple.events import UsageReported, UsageTotals, read_event
from maniple.scope.budget import (
    LIMITS,
    Budget,
    LimitUsage,
    Prices,
    UsageMeter,
    find_price,
    iterate_limits,
    usage_by_limit,
    usage_of,
)
from maniple.store import EventRecord, EventTable, KeyLimits, RunUsage, Store, read_event_pages


@dataclass(frozen=True, slots=True)
class AgentUsage:
    """The usage of one agent in a run. `seconds` is the time of its model calls.

    `cached_tokens` are those of the input that the endpoints had in their caches.

    `cost` includes the models with a price. `is_priced` is False if the agent also called models without one.
    """

    agent_name: str
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    is_priced: bool = True


def usage_by_agent(totals: UsageTotals, prices: Mapping[str, Prices]) -> list[AgentUsage]:
    """Return the usage of each agent, in the order of their first model calls."""
    agents: dict[str, AgentUsage] = {}
    for one in totals.by_model.values():
        price = find_price(prices, one.model)
        before = agents.get(one.agent_name, AgentUsage(one.agent_name))
        agents[one.agent_name] = replace(
            before,
            model_calls=before.model_calls + one.calls,
            input_tokens=before.input_tokens + one.input_tokens,
            output_tokens=before.output_tokens + one.output_tokens,
            cached_tokens=before.cached_tokens + one.cached_tokens,
            seconds=before.seconds + one.seconds,
            cost=before.cost
            + (price.of(one.input_tokens, one.output_tokens, one.cached_tokens) if price else 0.0),
            is_priced=before.is_priced and price is not None,
        )
    return [*agents.values()]


def usage_of_run(totals: UsageTotals, prices: Mapping[str, Prices]) -> RunUsage:
    """Return the usage of a whole run; `seconds` is the time of its model calls.

    After its process was killed, a run's meter starts with this usage, so that its budget is not renewed.
    """
    agents = usage_by_agent(totals, prices)
    return RunUsage(
        model_calls=totals.model_calls,
        tool_calls=totals.tool_calls,
        input_tokens=totals.input_tokens,
        output_tokens=totals.output_tokens,
        seconds=sum(one.seconds for one in agents),
        cost=sum(one.cost for one in agents),
    )


CACHED_RUNS = 256


@dataclass(frozen=True, slots=True)
class _CachedTotals:
    """The totals up to the event `number`. They are never modified, because two requests may share them."""

    number: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)


class RunUsageReader:
    """Adds up the stored `usage` events of runs at the given prices.

    The totals of the `CACHED_RUNS` runs that were requested last are cached; only newer events are read.
    """

    def __init__(self, events: EventTable, prices: Mapping[str, Prices]) -> None:
        self._events = events
        self._prices = prices
        self._cache: OrderedDict[str, _CachedTotals] = OrderedDict()

    async def of_run(self, run_id: str) -> Sequence[AgentUsage]:
        """Return the usage of each agent so far, in the order of their first model calls."""
        cached = self._cache.get(run_id, _CachedTotals())
        async for page in read_event_pages(self._events, run_id, cached.number):
            cached = _with_page(cached, page)
        self._store(run_id, cached)
        return usage_by_agent(cached.totals, self._prices)

    def _store(self, run_id: str, cached: _CachedTotals) -> None:
        self._cache[run_id] = cached
        self._cache.move_to_end(run_id)
        if len(self._cache) > CACHED_RUNS:
            self._cache.popitem(last=False)


def _with_page(cached: _CachedTotals, page: Sequence[EventRecord]) -> _CachedTotals:
    totals = cached.totals.copy()
    for record in page:
        if record.type == UsageReported.type:
            totals.apply(read_event(record.type, record.data))
    return _CachedTotals(page[-1].number, totals)


DAY_SECONDS = 24 * 3600.0


class DailyLimitReached(ManipleError):
    """The key has used up one of its daily limits."""

    code = "daily_limit"
    retryable = True


@dataclass(frozen=True, slots=True)
class _RunningMeter:
    """The meter of a working run, and the amounts that its stored row has meanwhile."""

    meter: UsageMeter
    row: Mapping[str, float]


class KeyQuota:
    """The daily limits of an API key, and the usage of its runs.

    The usage is the sum of the stored rows when they were last read, the meters of working runs, and the runs
    that ended since. A check of the limits reads nothing from the store.
    """

    def __init__(self) -> None:
        self.limits = KeyLimits()
        self.budget = Budget()
        # Amounts of rows and ended runs, minus the rows of working runs, whose meters are newer.
        self._stored_amounts: Counter[str] = Counter()
        self._working: dict[str, _RunningMeter] = {}
        # Rows are not read while one is written, so that each amount is counted once.
        self._rows = asyncio.Lock()

    def levels(self, **coming: float) -> Iterator[LimitUsage]:
        """Yield the usage of the key's limits (see `SharedLimits`)."""
        if self.budget != Budget():
            reserved: Mapping[str, float] = self._reserved() if "tokens" in coming else {}
            yield from iterate_limits(self.budget, self.used, coming, reserved, is_daily=True)

    @property
    def used(self) -> dict[str, float]:
        """The used amounts by limit; only limits that the key has."""
        return {
            limit: self._stored_amounts[limit]
            + sum(_used_amount(run.meter, limit) for run in self._working.values())
            for limit in LIMITS
            if getattr(self.budget, limit) is not None
        }

    @property
    def daily(self) -> list[LimitUsage]:
        """The usage of all daily limits that the key has."""
        return [*self.levels(model_calls=0, tool_calls=0)]

    def raise_if_used_up(self) -> None:
        """Raise `DailyLimitReached` if one of the daily limits is used up."""
        for level in self.daily:
            if level.is_over:
                raise DailyLimitReached(
                    f"This key has used up its {level.limit.replace('_', ' ')} of a day: {level.used:.6g} of "
                    f"{level.allowed:.6g} in the last 24 hours. Try again later."
                )

    def attach(self, run_id: str, meter: UsageMeter) -> None:
        """Count the meter of a run that starts to work, instead of its row."""
        self._working[run_id] = _RunningMeter(meter, usage_by_limit(meter.used))
        self._stored_amounts.subtract(usage_by_limit(meter.used))

    @asynccontextmanager
    async def writing(self, run_id: str) -> AsyncGenerator[None]:
        """Count the row of a run instead of its meter after the body has written it.

        After an error, the meter stays.
        """
        async with self._rows:
            yield
            run = self._working.pop(run_id, None)
            if run is not None:
                self._stored_amounts.update(usage_by_limit(run.meter.answered))

    def forget(self, run_id: str, meter: UsageMeter) -> None:
        """Remove the meter of a run whose row could not be written. A recovery writes the row."""
        if run_id in self._working and self._working[run_id].meter is meter:
            self._stored_amounts.update(self._working.pop(run_id).row)

    async def refresh(self, limits: KeyLimits, read: Callable[[], Awaitable[RunUsage]]) -> None:
        """Set the limits and, if there are any, read the amounts of the rows."""
        self.limits, self.budget = limits, _daily_budget(limits)
        if self.budget != Budget():
            async with self._rows:
                self._stored_amounts = Counter(usage_by_limit(await read()))
                for run in self._working.values():
                    self._stored_amounts.subtract(run.row)

    def _reserved(self) -> Mapping[str, float]:
        reserved = [run.meter.reserved for run in self._working.values()]
        return {limit: sum(one[limit] for one in reserved) for limit in ("tokens", "cost")}


class QuotaRegistry:
    """The quotas of the API keys whose runs this engine drives, by key id; "" is no key."""

    def __init__(self, store: Store, *, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._clock = clock
        self._quotas: dict[str, KeyQuota] = {}

    def of(self, owner: str) -> KeyQuota:
        """Return the owner's quota as last refreshed."""
        return self._quotas.setdefault(owner, KeyQuota())

    async def refresh_owner(self, owner: str) -> KeyQuota:
        """Return the owner's quota, refreshed from the store."""
        quota = self.of(owner)
        key = await self._store.keys.get(owner) if owner else None
        if key is not None:
            await quota.refresh(key.limits, lambda: self._used(owner))
        return quota

    async def _used(self, owner: str) -> RunUsage:
        now = self._clock()
        return await self._store.runs.sum_usage(owner, now - DAY_SECONDS, now)


def _used_amount(meter: UsageMeter, limit: str) -> float:
    # Called for every working run at every model call, so the clock is read only for seconds.
    return usage_of(meter.used if limit == "seconds" else meter.usage_without_time, limit)


def _daily_budget(limits: KeyLimits) -> Budget:
    return Budget(**{name: getattr(limits, f"daily_{name}") for name in LIMITS})
