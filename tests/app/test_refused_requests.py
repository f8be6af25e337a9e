"""Whole runs on endpoints that refuse what the team sends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.app import open_runtime
from maniple.config import ModelSettings, ModelsSettings, Settings
from maniple.runs.turn import stream_run
from tests.openai_server import SIMPLE, Json, call, serving
from tests.team import checked, data, joined_text

pytestmark = pytest.mark.anyio
THINKING = {
    **SIMPLE,
    "coder": [{**call("python_repl_tool", code="print(1+3)"), "reasoning": "I add."}, SIMPLE["coder"][1]],
}


async def run(folder: Path, refuse: Callable[[Json], str]) -> tuple[Any, list[Json]]:
    with serving(THINKING) as server:
        server.refuse = refuse
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        settings = Settings(
            models=ModelsSettings(basic=basic), data_dir=folder / "data", cache_dir=folder / "cache"
        )
        async with open_runtime(settings) as runtime:
            events = stream_run(runtime.graph, [HumanMessage("Compute 1+3.")], thread_id="t")
            return checked([event async for event in events]), server.requests


async def test_a_thinking_model_gets_its_reasoning_back_and_the_step_completes(tmp_path):
    def refuse(body: Json) -> str:
        lacks = any(one.get("tool_calls") and "reasoning_content" not in one for one in body["messages"])
        return "The reasoning_content in the thinking mode must be passed back to the API." if lacks else ""

    frames, requests = await run(tmp_path, refuse)
    assert not data(frames, "run_status")[-1].get("gaps")
    sent = [
        one["reasoning_content"]
        for body in requests
        for one in body["messages"]
        if one.get("reasoning_content")
    ]
    assert sent[0] == "I add."
    stored = json.loads((tmp_path / "cache" / "capabilities.json").read_text())
    assert [entry["features"]["reasoning_content"] for entry in stored.values()] == [True]


async def test_a_template_with_two_roles_carries_a_whole_run(tmp_path):
    def refuse(body: Json) -> str:
        if body.get("tools") and any(one["role"] == "tool" for one in body["messages"]):
            return "Conversation roles must alternate user/assistant/user/assistant/..."
        roles = [one["role"] for one in body["messages"]]
        if roles[0] == "system":
            return "System role not supported"
        wanted = [("user", "assistant")[index % 2] for index in range(len(roles))]
        return (
            "" if roles == wanted else "Conversation roles must alternate user/assistant/user/assistant/..."
        )

    frames, requests = await run(tmp_path, refuse)
    assert not data(frames, "run_status")[-1].get("gaps")
    assert "**4**" in joined_text(frames)
    assert "Result of python_repl_tool" in json.dumps(requests)


async def test_a_refusal_that_nobody_understands_is_the_reason_of_the_gap(tmp_path):
    frames, _ = await run(
        tmp_path,
        lambda body: "The moon is wrong." if "python_repl_tool" in json.dumps(body.get("tools")) else "",
    )
    [gap] = data(frames, "run_status")[-1]["gaps"]
    assert "HTTP 400: The moon" in gap["reason"]
