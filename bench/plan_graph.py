"""Wall time of plans with concurrent steps beside their critical paths."""

import asyncio
import json
import time
from collections.abc import Mapping

from langchain_core.messages import HumanMessage

from maniple.agents import Task
from maniple.config import ModelSettings, ModelsSettings
from maniple.graph import RunOptions, TeamRules, build_graph
from maniple.llms import open_chat_models
from tests.openai_server import call, reply, serving

UNEVEN: Mapping[str, tuple[float, list[int]]] = {
    "A": (1.0, []),
    "B": (1.0, [1]),
    "C": (3.0, []),
    "D": (0.5, [2, 3]),
}
"""Seconds and needs of each step; the critical path is C, D."""
UNEVEN_SECONDS = 3.5
FLAT: Mapping[str, tuple[float, list[int]]] = {name: (2.0, []) for name in "ABCD"}
FLAT_SECONDS = 2.0


class Sleeper:
    """A worker whose steps take as long as their titles say."""

    def __init__(self, steps: Mapping[str, tuple[float, list[int]]]) -> None:
        self._steps = steps

    async def work(self, task: Task) -> str:
        await asyncio.sleep(self._steps.get(task.title, (0.0, []))[0])
        return f"{task.title} is done."


async def measure() -> dict[str, float]:
    """Return each plan's wall time as a ratio to its critical path."""
    return {
        "uneven_plan_ratio": round(await _seconds(UNEVEN) / UNEVEN_SECONDS, 2),
        "flat_plan_ratio": round(await _seconds(FLAT) / FLAT_SECONDS, 2),
    }


async def _seconds(steps: Mapping[str, tuple[float, list[int]]]) -> float:
    planned = [
        {"agent_name": "researcher", "title": title, "description": title, "needs": needs}
        for title, (_, needs) in steps.items()
    ]
    report = {"agent_name": "reporter", "title": "Report", "description": "Report"}
    plan = {"thought": "", "title": "Plan", "steps": [*planned, report]}
    script = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan))],
    }
    with serving(script) as server:
        endpoint = ModelSettings(model="scripted", base_url=server.base_url)
        async with open_chat_models(ModelsSettings(basic=endpoint)) as models:
            workers = dict.fromkeys(("researcher", "reporter"), Sleeper(steps))
            team = build_graph(models, workers, rules=TeamRules(parallel_steps=4))
            started = time.perf_counter()
            await team.ainvoke({"messages": [HumanMessage("Do it")]}, context=RunOptions())
            return time.perf_counter() - started
