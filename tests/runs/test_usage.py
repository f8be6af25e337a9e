"""What each member of the team has used of a run, as its stored events tell."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from maniple.events import UsageReported, UsageTotals, as_json
from maniple.runs import RunUsageReader
from maniple.runs.usage import CACHED_RUNS, usage_of_run
from maniple.scope.budget import Prices
from maniple.store import EventRecord, open_store
from tests.store.samples import some_events, stored_run

pytestmark = pytest.mark.anyio
PRICES = {"dear": Prices(2.0, 10.0), "local": Prices(0.0, 0.0)}


def call(
    agent: str, model: str, given: int = 1_000_000, said: int = 100_000, seconds: float = 0.5
) -> UsageReported:
    return UsageReported(
        agent_name=agent, model=model, input_tokens=given, output_tokens=said, seconds=seconds
    )


class Read:
    """The events of runs, one list for all; counts those that are read."""

    def __init__(self) -> None:
        self.records: list[EventRecord] = []
        self.count = 0

    def tell(self, *events: UsageReported) -> None:
        for event in events:
            self.records.append(EventRecord(len(self.records) + 1, event.type, as_json(event)))
            self.records += some_events(len(self.records) + 1, len(self.records) + 700)

    async def read(
        self, run_id: str, after: int = 0, limit: int = 1000, types: Collection[str] | None = None
    ) -> list[EventRecord]:
        page = self.records[after : after + limit]
        self.count += len(page)
        return page


def over(events: Any) -> RunUsageReader:
    return RunUsageReader(events, PRICES)


async def shares(spending: RunUsageReader, run_id: str = "r") -> list[tuple[str, int, float, bool]]:
    told = await spending.of_run(run_id)
    return [(one.agent_name, one.model_calls, one.cost, one.is_priced) for one in told]


async def test_each_member_has_its_calls_and_their_cost_and_no_cost_is_cache_of_a_model_without_a_price():
    events = Read()
    events.tell(call("coder", "dear"), call("planner", "local"), call("coder", "dear-2026-01-31"))
    events.tell(call("reporter", "dear"), call("reporter", "somebody else's"))
    spending = over(events)
    assert await shares(spending) == [
        ("coder", 2, 6.0, True),
        ("planner", 1, 0.0, True),
        ("reporter", 2, 3.0, False),
    ]
    [coder, *_] = await spending.of_run("r")
    assert (coder.input_tokens, coder.output_tokens, coder.seconds) == (2_000_000, 200_000, 1.0)


async def test_each_event_is_read_once_for_many_requests_during_the_run():
    events = Read()
    spending = over(events)
    for number in range(1, 6):
        events.tell(call("coder", "dear"))
        for _ in range(3):
            assert await shares(spending) == [("coder", number, 3.0 * number, True)]
    assert events.count == len(events.records)


async def test_a_limited_number_of_runs_is_cached_and_others_are_read_again():
    events = Read()
    spending = over(events)
    events.tell(call("coder", "dear"))
    for number in range(CACHED_RUNS + 1):
        await spending.of_run(f"r{number}")
    assert len(spending._cache) == CACHED_RUNS
    before = events.count
    assert await shares(spending, f"r{CACHED_RUNS}") == await shares(spending, "r0")
    assert events.count == before + len(events.records)


async def test_what_a_recovered_run_had_used_is_what_its_members_had(tmp_path: Path):
    calls = [call("coder", "dear-2026-01-31", -5, 7), call("reporter", "dear", 10**12, 1)]
    async with open_store(tmp_path / "maniple.db", tmp_path, server=True) as store:
        run = await stored_run(store)
        records = [EventRecord(n, one.type, as_json(one)) for n, one in enumerate(calls, start=1)]
        await store.events.append([(run.run_id, records)])
        told = await over(store.events).of_run(run.run_id)
    totals = UsageTotals()
    for one in calls:
        totals.apply(one)
    used = usage_of_run(totals, PRICES)
    assert used.model_calls == len(told) == 2
    assert (used.input_tokens, used.output_tokens) == (1_000_000_000, 8)
    assert used.cost == sum(one.cost for one in told) > 2_000
