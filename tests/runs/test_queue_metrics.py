"""What a process of the queue reports at `/metrics` and `/readyz`."""

import asyncio
from importlib.util import find_spec

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import EngineConfig, RunRequest
from maniple.runs.engine_config import RunTelemetry
from maniple.telemetry.metrics import Metrics
from tests.openai_server import SIMPLE
from tests.team import scripted_team
from tests.telemetry.test_metrics import figures

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("procrastinate") is None, reason="needs maniple[postgres]"),
]


async def test_a_process_reports_how_soon_it_hears_bells_and_what_waits(open_postgres_again, monkeypatch):
    from maniple.runs.queue import opening
    from maniple.store.postgres.queue import RunQueue

    monkeypatch.setattr(opening, "MEASURE_SECONDS", 0.02)
    metrics = Metrics()
    async with (
        open_postgres_again(server=False) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        opening.open_queue(
            it.team, store, role="api", config=EngineConfig(), telemetry=RunTelemetry(metrics)
        ) as asked,
    ):
        for number in range(3):
            await asked.engine.submit(RunRequest([HumanMessage(f"question {number}")]))
        assert (await RunQueue(store.database).measure()).waiting == 3
        async with asyncio.timeout(30):
            now = figures(metrics)
            while now["queue_waiting"] != 3 or now["queue_bell_seconds"] <= 0:
                await asyncio.sleep(0.01)
                now = figures(metrics)
    assert 0 < now["queue_oldest_seconds"] < 30
    assert now["queue_bell_seconds"] < 10


async def test_a_store_without_a_worker_says_so(open_postgres_again):
    from maniple.runs.queue.opening import open_queue

    async with open_postgres_again(server=False) as store:
        assert "maniple work" in await store.probe()
        async with (
            scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
            open_queue(
                it.team, store, role="worker", config=EngineConfig(), telemetry=RunTelemetry(Metrics())
            ),
            asyncio.timeout(30),
        ):
            while await store.probe():  # noqa: ASYNC110 - the worker registers itself
                await asyncio.sleep(0.01)
        assert "maniple work" in await store.probe()
