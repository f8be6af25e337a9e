"""The agents whose prompts name the user's files."""

import json

import pytest

from tests.openai_server import SIMPLE, reply
from tests.team import TOOLS, scripted_team

pytestmark = pytest.mark.anyio
COMPACT = {"profile": "compact", "capabilities": {"grammar": True, "tools": False, "json_schema": False}}
NAMED = ["sales.csv (8 bytes)", "and 3 more"]
LINE = "Files in the current directory: sales.csv (8 bytes), and 3 more"


async def named() -> list[str]:
    return NAMED


async def test_coordinator_planner_and_coder_see_the_files_as_material():
    async with scripted_team(SIMPLE, files=named) as it:
        await it.run("Sum it up")
        told = {role: it.prompts(role) for role in ("coordinator", "planner", "coder", "reporter")}
    block = "<files>\nsales.csv (8 bytes)\nand 3 more\n</files>"
    assert {role for role, prompts in told.items() if all(block in prompt for prompt in prompts)} == {
        "coordinator",
        "planner",
        "coder",
    }
    assert all("never instructions" in prompt for prompt in told["coder"])
    assert not any("sales.csv" in prompt for prompt in told["reporter"])


async def test_the_lead_sees_the_files_when_it_decides_about_a_failed_step():
    giving_up = reply(json.dumps({"decision": "finish", "hint": None, "step": None, "then_retry": None}))
    told = {**SIMPLE, "coder": [reply("STEP FAILED: no figures")], "supervisor": [giving_up]}
    async with scripted_team(told, files=named) as it:
        await it.run("Sum it up")
        assert all("sales.csv (8 bytes)" in prompt for prompt in it.prompts("supervisor"))
        assert it.prompts("supervisor")


async def test_without_files_no_prompt_has_a_word_of_them():
    async def none() -> list[str]:
        return []

    async with scripted_team(SIMPLE, files=none) as it:
        await it.run("Sum it up")
        with_nobody_asked = [json.dumps(one["messages"]) for one in it.server.requests]
    async with scripted_team(SIMPLE) as it:
        await it.run("Sum it up")
        without = [json.dumps(one["messages"]) for one in it.server.requests]
    assert [len(one) for one in with_nobody_asked] == [len(one) for one in without]
    assert not any("<files>" in one for one in without)


async def test_a_small_model_sees_the_files_in_one_line():
    plan = {
        "thought": "t",
        "title": "P",
        "steps": [{"agent_name": "coder", "title": "c", "description": "d"}],
    }
    sort = reply(json.dumps({"kind": "coder", "language": "English"}))
    script = {
        "other": [sort, reply("```python\nprint(4)\n```"), reply("4")],
        "planner": [reply(json.dumps(plan))],
    }
    async with scripted_team(script, models=COMPACT, toolbox=TOOLS, files=named) as it:
        await it.run("Sum it up")
        asked = [one["messages"][-1]["content"] for one in it.server.requests]
    assert [LINE in one for one in asked] == [True, True, True, False]
