"""Open the engine of this process."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from maniple.graph import Team
from maniple.runs.driver import Driver
from maniple.runs.inprocess import InProcessEngine
from maniple.runs.left_behind import recover, watching
from maniple.runs.outputs import Outputs
from maniple.runs.quota import Quotas
from maniple.runs.recorder import open_recorder
from maniple.runs.rules import Rules, Telemetry, Workplace
from maniple.runs.slots import FairSlots
from maniple.store import Store

Kind = Literal["server", "chat"]


@asynccontextmanager
async def open_engine(
    team: Team,
    store: Store,
    *,
    kind: Kind,
    rules: Rules | None = None,
    telemetry: Telemetry | None = None,
    workplace: Workplace | None = None,
) -> AsyncIterator[InProcessEngine]:
    """Open the engine of a "server", which goes on with what an earlier one left behind, or of a "chat".

    A chat takes up what was left behind when its person wants it (`recover_run`). On leaving, runs under way
    are brought to a checkpoint, from which the next process goes on.
    """
    rules, telemetry, workplace = rules or Rules(), telemetry or Telemetry(), workplace or Workplace()
    async with open_recorder(store.events, telemetry.metrics) as recorder:
        slots = FairSlots(rules.working)
        workspaces = workplace.workspaces
        outputs = Outputs(store, workspaces, rules.redactor) if workspaces is not None else None
        quotas = Quotas(store)
        driver = Driver(team, store, recorder, slots, rules, telemetry, quotas, workplace, outputs)
        engine = InProcessEngine(store, driver, kind=kind, rules=rules)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(engine.drain)
            if kind == "server":
                await recover(engine, store, kind)
                await stack.enter_async_context(watching(engine, store, kind, rules.watch_seconds))
            yield engine
