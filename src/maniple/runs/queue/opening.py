"""Opens the engine of the queue: the side that accepts requests, the side that works, or both."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from maniple.background import background_task
from maniple.errors import StoreError
from maniple.graph import Team
from maniple.runs.active_run import RunServices
from maniple.runs.artifact_collector import WorkspaceCollector
from maniple.runs.driver import RunDriver
from maniple.runs.engine_config import EngineConfig, ExecutionEnvironment, RunTelemetry
from maniple.runs.event_log import open_recorder
from maniple.runs.outages import ModelOutages
from maniple.runs.queue.bells import RunBells
from maniple.runs.queue.engine import QueueEngine
from maniple.runs.queue.scheduler import QueueScheduler
from maniple.runs.queue.worker import RunWorker
from maniple.runs.run_tasks import RunTasks
from maniple.runs.scheduling import FairSemaphore
from maniple.runs.teams import Teams, TeamSource
from maniple.runs.usage import QuotaRegistry
from maniple.store.postgres.queue import RunQueue
from maniple.store.postgres.store import PostgresStore
from maniple.store.waiting import WaitLimit
from maniple.types import EngineRole

if TYPE_CHECKING:
    from maniple.telemetry.queue_metrics import QueueMetrics

GROUP_SECONDS = 0.02
"""The pause between two groups of events: longer than for a file, since each is a transaction and a bell."""
MEASURE_SECONDS = 5.0
"""The interval between two readings of the queue for the metrics."""


@dataclass(frozen=True, slots=True)
class OpenQueue:
    """An engine of the queue, and the worker of this process if it is one."""

    engine: QueueEngine
    worker: RunWorker | None


@asynccontextmanager
async def _measuring(queue: RunQueue, bells: RunBells, metrics: "QueueMetrics") -> AsyncGenerator[None]:
    """Report the figures of the queue now and then."""

    async def measure() -> None:
        while True:
            with suppress(StoreError):
                figures = await queue.measure()
                metrics.observe(**asdict(figures))
                metrics.observe_bell(bells.lag_seconds)
                await bells.measure_lag()
            await asyncio.sleep(MEASURE_SECONDS)

    async with background_task(measure(), "queue metrics"):
        yield


@asynccontextmanager
async def open_queue(
    team: Team | TeamSource,
    store: PostgresStore,
    *,
    role: EngineRole = "all",
    config: EngineConfig | None = None,
    telemetry: RunTelemetry | None = None,
    environment: ExecutionEnvironment | None = None,
) -> AsyncGenerator[OpenQueue]:
    """Open an engine on a store, which must not be open as that of the only server.

    A worker drives up to `config.working` runs at once. On leaving, runs under way are given back to the
    queue at a checkpoint, and another process goes on with them.
    """
    config, telemetry = config or EngineConfig(), telemetry or RunTelemetry()
    environment, database = environment or ExecutionEnvironment(), store.database
    queue, bells = RunQueue(database), RunBells(database)
    async with AsyncExitStack() as stack:
        limit = WaitLimit(config.outage_seconds)
        recorder = open_recorder(store.events, telemetry.metrics, limit=limit, group_seconds=GROUP_SECONDS)
        recorder = await stack.enter_async_context(recorder)
        teams = Teams(team)
        services = RunServices(teams, store, recorder, config, telemetry)
        workspaces = environment.workspaces
        collector = WorkspaceCollector(store, workspaces, config.redactor) if workspaces is not None else None
        scheduler = QueueScheduler(services, queue, FairSemaphore(config.working))
        outages = ModelOutages(config.outage_seconds, waits_unanswered=True)
        driver = RunDriver(services, scheduler, QuotaRegistry(store), environment, collector, outages, limit)
        tasks = RunTasks(driver)
        stack.push_async_callback(teams.close)
        stack.push_async_callback(tasks.drain)
        await stack.enter_async_context(bells.listening())
        if telemetry.metrics is not None:
            await stack.enter_async_context(_measuring(queue, bells, telemetry.metrics.add_queue()))
        worker = None
        if role != "api":
            worker = RunWorker(tasks, queue, bells, database, config.working)
            await stack.enter_async_context(worker.at_work())
        drain = tasks.drain if worker is None else worker.drain
        yield OpenQueue(QueueEngine(tasks, queue, bells, drain), worker)
