"""The usage of each agent of a run, while the run goes on and afterwards."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from maniple.agents.budget import Prices
from maniple.events import UsageReported, UsageTotals, read_event
from maniple.runs.usage import AgentUsage, usage_by_agent
from maniple.store import EventRecord, EventTable, read_event_pages

CACHED_RUNS = 256


@dataclass(frozen=True, slots=True)
class _CachedTotals:
    """The totals as of an event, by its number. They are never changed: two requests may read them."""

    number: int = 0
    totals: UsageTotals = field(default_factory=UsageTotals)


class Spending:
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
