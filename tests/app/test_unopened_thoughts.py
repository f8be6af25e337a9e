"""Whole runs on a model whose template opens the thoughts, so that answers only close them."""

import json
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from maniple.app import open_runtime
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.runs.turn import stream_run
from tests.openai_server import SIMPLE, Json, reply, serving
from tests.team import checked, data, joined_text

pytestmark = pytest.mark.anyio
THOUGHT = "I think. SECRET\n</think>\n\n"


async def run(folder: Path, script: Json) -> list[tuple[str, Json]]:
    with serving(script) as server:
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        settings = Settings(
            models=ModelsSettings(basic=basic), data_dir=folder / "data", cache_dir=folder / "cache"
        )
        async with open_runtime(settings) as runtime:
            events = stream_run(runtime.graph, [HumanMessage("Compute 1+3.")], thread_id="t")
            return checked([event async for event in events])


async def test_small_talk_has_no_thoughts(tmp_path):
    frames = await run(tmp_path, {**SIMPLE, "coordinator": [reply(f"{THOUGHT}Hello!")]})
    assert joined_text(frames).strip() == "Hello!"


async def test_neither_plan_nor_report_has_thoughts(tmp_path):
    plan, report = SIMPLE["planner"][0]["text"], SIMPLE["reporter"][0]["text"]
    script = {**SIMPLE, "planner": [reply(THOUGHT + plan)], "reporter": [reply(THOUGHT + report)]}
    frames = await run(tmp_path, script)
    assert [one["agent_name"] for one in data(frames, "plan")[-1]["steps"]] == ["coder", "reporter"]
    assert "The answer is **4**" in joined_text(frames)
    assert "SECRET" not in joined_text(frames)
    assert "SECRET" not in json.dumps(data(frames, "final_session_state"))
