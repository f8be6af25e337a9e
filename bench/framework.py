"""Time of a run beside that of a bare graph, when its first event comes, and the modules that take part."""

import statistics
import time
from collections.abc import AsyncIterator
from typing import Any

import coverage
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from bench.bare import open_bare_graph
from maniple.agents.offers import Offer
from maniple.agents.profiles import build_workers
from maniple.config import ModelSettings, ModelsSettings, TeamSettings
from maniple.graph import build_graph
from maniple.llms import open_chat_models
from maniple.runs.turn import stream_run

ROUNDS = 40
WARM_UP = 5


@tool
async def python_repl_tool(code: str) -> str:
    """Run Python code."""
    return "4"


async def measure(base_url: str) -> dict[str, float]:
    """Run both in turn, so that a busy machine slows both alike; times in milliseconds, medians."""
    models_settings = ModelsSettings(basic=ModelSettings(model="scripted", base_url=base_url))
    async with (
        open_chat_models(models_settings) as models,
        open_bare_graph(base_url, {"coder": [python_repl_tool]}) as bare,
    ):
        workers = build_workers(TeamSettings(), models, Offer({"coder": [python_repl_tool]}))
        team = build_graph(models, workers, checkpointer=InMemorySaver())
        ours: list[float] = []
        theirs: list[float] = []
        first: list[float] = []
        modules = await _count_modules(stream_run(team, [HumanMessage("1+3=? #run=a")]))
        for number in range(WARM_UP + ROUNDS):
            question = [HumanMessage(f"1+3=? #run=b{number}")]
            took, to_first = await _timed(stream_run(team, question))
            question = [HumanMessage(f"1+3=? #run=c{number}")]
            bare_took, _ = await _timed(bare.astream_events({"messages": question}, version="v2"))
            if number >= WARM_UP:
                ours.append(took)
                first.append(to_first)
                theirs.append(bare_took)
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return {
        "run_ms": _median(ours),
        "bare_graph_ms": _median(theirs),
        "ratio": round(statistics.median(ratios), 2),
        "modules": modules,
        "first_event_ms": _median(first),
        "first_event_worst_ms": round(max(first) * 1000, 2),
    }


async def _timed(events: AsyncIterator[Any]) -> tuple[float, float]:
    """Read all events; return the seconds to the last, and to the first that the graph itself caused."""
    started, first = time.perf_counter(), 0.0
    number = 0
    async for _ in events:
        number += 1
        # The very first, `run`, only says that there is a run.
        if number == 2:
            first = time.perf_counter() - started
    return time.perf_counter() - started, first


async def _count_modules(events: AsyncIterator[Any]) -> int:
    """Read all events of the first run; return how many modules of maniple had a line executed meanwhile."""
    tracer = coverage.Coverage(source_pkgs=["maniple"], data_file=None)
    tracer.set_option("run:disable_warnings", ["module-not-measured"])
    with tracer.collect():
        async for _ in events:
            pass
    data = tracer.get_data()
    return sum(bool(data.lines(path)) for path in data.measured_files())


def _median(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 2)
