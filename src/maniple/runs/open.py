"""Open the engine of this process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maniple.graph import Team
from maniple.runs.driver import Driver
from maniple.runs.inprocess import InProcessEngine
from maniple.runs.recorder import open_recorder
from maniple.runs.recovery import recover
from maniple.runs.rules import Rules, Telemetry
from maniple.runs.slots import FairSlots
from maniple.store import Store


@asynccontextmanager
async def open_engine(
    team: Team,
    store: Store,
    *,
    kind: str,
    rules: Rules | None = None,
    telemetry: Telemetry | None = None,
    recovering: bool = True,
) -> AsyncIterator[InProcessEngine]:
    """Open the engine and, when `recovering`, go on with what an earlier process of this `kind` left behind.

    On leaving, runs under way are brought to a checkpoint, from which the next process goes on.
    """
    rules, telemetry = rules or Rules(), telemetry or Telemetry()
    async with open_recorder(store.events, telemetry.metrics) as recorder:
        slots = FairSlots(rules.working)
        if telemetry.metrics is not None:
            telemetry.metrics.watch_queue(lambda: slots.waiting)
        driver = Driver(team, store, recorder, slots, rules, telemetry)
        engine = InProcessEngine(store, driver, kind=kind, rules=rules)
        if recovering:
            await recover(engine, store, kind)
        try:
            yield engine
        finally:
            await engine.drain()
