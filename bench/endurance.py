"""What 50 runs leave behind in memory, and whether 64 at once all get on, kept in SQLite."""

import asyncio
import gc
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from langchain_core.messages import HumanMessage

from bench.framework import python_repl_tool
from maniple.agents.offers import Offer
from maniple.agents.profiles import build_workers
from maniple.config import ModelSettings, ModelsSettings, TeamSettings
from maniple.graph import build_graph
from maniple.llms import open_chat_models
from maniple.runs import InProcessEngine, RunRequest, open_engine
from maniple.store import open_store
from tests.serving import memory_mb

GROWTH_RUNS = 50
AT_ONCE = 64


async def measure(base_url: str) -> dict[str, float]:
    """Run the same question again and again, then many times at once."""
    with tempfile.TemporaryDirectory() as folder:
        async with _engine(base_url, Path(folder)) as engine:
            return {
                "growth_mb_in_50_runs": await _growth(engine),
                "streams_progressing": await _at_once(engine),
            }


@asynccontextmanager
async def _engine(base_url: str, folder: Path) -> AsyncIterator[InProcessEngine]:
    settings = ModelsSettings(basic=ModelSettings(model="scripted", base_url=base_url))
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        open_chat_models(settings) as models,
    ):
        workers = build_workers(TeamSettings(), models, Offer({"coder": [python_repl_tool]}))
        team = build_graph(models, workers, checkpointer=store.checkpointer)
        async with open_engine(team, store, kind="server") as engine:
            yield engine


async def _run(engine: InProcessEngine, name: str) -> int:
    request = RunRequest([HumanMessage(f"1+3=? #run={name}")])
    accepted = await engine.submit(request)
    count = 0
    async for page in engine.events(accepted.run.run_id):
        count += len(page)
    assert (await engine.status(accepted.run.run_id)).status == "completed"
    return count


async def _growth(engine: InProcessEngine) -> float:
    for number in range(GROWTH_RUNS):
        await _run(engine, f"g{number}")
    gc.collect()
    before = memory_mb(os.getpid())
    for number in range(GROWTH_RUNS):
        await _run(engine, f"h{number}")
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
