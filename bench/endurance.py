"""What 50 runs leave in memory, whether 64 concurrent ones all progress, and what storing a run costs."""

import asyncio
import gc
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from bench.framework import python_repl_tool
from maniple.agents.offers import Offer
from maniple.agents.profiles import build_workers
from maniple.config import ModelSettings, ModelsSettings, TeamSettings
from maniple.graph import build_graph
from maniple.llms import open_chat_models
from maniple.runs import InProcessEngine, RunRequest, open_engine
from maniple.runs.turn import stream_run
from maniple.store import open_store
from tests.serving import memory_mb

GROWTH_RUNS = 50
AT_ONCE = 64
PERSISTENCE_ROUNDS = 30


async def measure(base_url: str) -> dict[str, float]:
    """Run the same question again and again, then many times concurrently."""
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_engine(base_url, Path(folder)) as engine:
            return {
                "growth_mb_in_50_runs": await _growth(engine),
                "streams_progressing": await _at_once(engine),
            }


@asynccontextmanager
async def open_sqlite_engine(base_url: str, folder: Path) -> AsyncIterator[InProcessEngine]:
    settings = ModelsSettings(basic=ModelSettings(model="scripted", base_url=base_url))
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        open_chat_models(settings) as models,
    ):
        workers = build_workers(TeamSettings(), models, Offer({"coder": [python_repl_tool]}))
        team = build_graph(models, workers, checkpointer=store.checkpointer)
        async with open_engine(team, store, kind="server") as engine:
            yield engine


async def measure_persistence(base_url: str, rounds: int = PERSISTENCE_ROUNDS) -> dict[str, float]:
    """Return what storing a run costs: CPU in an engine with SQLite beside the same graph without a store.

    Both run in this process, in turn; the model does not.
    """
    stored: list[float] = []
    bare: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_engine(base_url, Path(folder)) as engine, _open_team(base_url) as team:
            for number in range(rounds + 5):
                cost = await _cpu_ms(run_in_engine(engine, f"k{number}"))
                free = await _cpu_ms(_stream(team, f"m{number}"))
                if number >= 5:  # the first ones warm up
                    stored.append(cost)
                    bare.append(free)
    costs = [cost - free for cost, free in zip(stored, bare, strict=True)]
    return {
        "persistence_ms": round(statistics.median(costs), 1),
        "persistence_run_ms": round(statistics.median(stored), 1),
    }


@asynccontextmanager
async def _open_team(base_url: str) -> AsyncIterator[Any]:
    settings = ModelsSettings(basic=ModelSettings(model="scripted", base_url=base_url))
    async with open_chat_models(settings) as models:
        workers = build_workers(TeamSettings(), models, Offer({"coder": [python_repl_tool]}))
        yield build_graph(models, workers, checkpointer=InMemorySaver())


async def _stream(team: Any, name: str) -> None:
    async for _ in stream_run(team, [HumanMessage(f"1+3=? #run={name}")], thread_id=name):
        pass


async def _cpu_ms(work: Awaitable[object]) -> float:
    began = time.process_time()
    await work
    return 1000 * (time.process_time() - began)


async def run_in_engine(engine: InProcessEngine, name: str) -> int:
    request = RunRequest([HumanMessage(f"1+3=? #run={name}")])
    accepted = await engine.submit(request)
    count = 0
    async for page in engine.events(accepted.run.run_id):
        count += len(page)
    assert (await engine.status(accepted.run.run_id)).status == "completed"
    return count


async def _growth(engine: InProcessEngine) -> float:
    for number in range(GROWTH_RUNS):
        await run_in_engine(engine, f"g{number}")
    gc.collect()
    before = memory_mb(os.getpid())
    for number in range(GROWTH_RUNS):
        await run_in_engine(engine, f"h{number}")
    gc.collect()
    return round(memory_mb(os.getpid()) - before, 1)


async def _at_once(engine: InProcessEngine) -> int:
    """Return how many of 64 runs at once had told something before the first of them ended."""
    begun: set[int] = set()
    when_first_ended: list[int] = []

    async def follow(number: int) -> None:
        accepted = await engine.submit(RunRequest([HumanMessage(f"1+3=? #run=a{number}")]))
        async for page in engine.events(accepted.run.run_id):
            if any(event.type == "start_of_llm" for event in page):
                begun.add(number)
        when_first_ended.append(len(begun))

    await asyncio.gather(*(follow(number) for number in range(AT_ONCE)))
    return when_first_ended[0]
