"""What every route may ask for: the objects that the service opened when it started."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Depends, Request

from maniple.api.readiness import ModelReach, open_reach
from maniple.api.revocation import KeyWatch
from maniple.config import Settings
from maniple.llms.embedded import Progress
from maniple.redaction import Redactor
from maniple.report_files import Press
from maniple.runs import Engine, Limits, Rules, Spending, Telemetry, Workplace, open_engine, rules_of
from maniple.runtime import Runtime, open_runtime
from maniple.runtime.toolbox import workspaces_of
from maniple.sandbox import Workspaces
from maniple.store import Store
from maniple.store.configured import open_configured_store
from maniple.telemetry.metrics import Metrics
from maniple.telemetry.tracing import open_tracing
from maniple.types import GENERAL


@dataclass(frozen=True, slots=True)
class Service:
    """The open service. `reach` is None for the embedded model."""

    settings: Settings
    runtime: Runtime
    store: Store
    engine: Engine
    workspaces: Workspaces
    metrics: Metrics
    redactor: Redactor
    key_watch: KeyWatch
    spending: Spending
    press: Press
    reach: ModelReach | None = None


@asynccontextmanager
async def open_service(
    settings: Settings, progress: Progress | None = None, *, alone: bool = True
) -> AsyncIterator[Service]:
    """Open store, team and engine, and close them again; raises the `ManipleError` that keeps one shut.

    `alone` wants to be the one server of its database; others stand beside that one.
    """
    metrics = Metrics()
    workspaces = await asyncio.to_thread(workspaces_of, settings)
    rules = _rules(settings)
    async with (
        open_tracing(settings.telemetry, rules.redactor) as tracing,
        open_configured_store(settings, server=alone) as store,
        open_runtime(
            settings, checkpointer=store.checkpointer, progress=progress, on_call=(GENERAL,)
        ) as runtime,
        open_reach(runtime) as reach,
        open_engine(
            runtime.graph,
            store,
            kind="server",
            rules=rules,
            telemetry=Telemetry(metrics, tracing.callbacks),
            workplace=Workplace(workspaces, runtime.sandbox, runtime.warning),
        ) as engine,
    ):
        runtime = replace(runtime, notices=(*runtime.notices, *tracing.notices))
        yield Service(
            settings,
            runtime,
            store,
            engine,
            workspaces,
            metrics,
            rules.redactor,
            KeyWatch(store.keys),
            Spending(store.events, rules.prices),
            Press(runtime.browser, runtime.missing.get("browser", "")),
            reach,
        )


async def service_of(request: Request) -> Service:
    """Return the open service of this process."""
    # Asynchronous, although it waits for nothing: FastAPI would send any other through a thread.
    return request.app.state.service


ServiceOf = Annotated[Service, Depends(service_of)]


def _rules(settings: Settings) -> Rules:
    server = settings.server
    limits = Limits(server.max_runs + server.max_waiting_runs, server.max_runs_per_key)
    return rules_of(settings, working=server.max_runs, limits=limits)
