"""Models without tool calling answer with one JSON object a step."""

import json
from typing import Any

import pytest

from tests.agents.browsing.shop import HOME, shop_script, shopping
from tests.openai_server import reply
from tests.team import data, status

pytestmark = pytest.mark.anyio
MODELS = {"capabilities": {"tools": False, "vision": False}}


def said(
    tool: str = "browser_use", *, complete: bool = False, result: Any = None, **given: Any
) -> dict[str, Any]:
    return reply(
        json.dumps(
            {
                "thought": {"content": f"I use {tool}.", "reasoning_type": "action_selection"},
                "action": {"tool_name": tool, "parameters": given},
                "is_complete": complete,
                "result": result,
            }
        )
    )


def content(frames) -> str:
    return json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"]


ENDED = reply(said("terminate", status="success", answer="3.50 EUR")["text"].replace("answer", "result"))
OPEN, CLICK = said(action="go_to_url", url=HOME), said(action="click_element", index=0)
HANDOFF = {"coordinator": [reply('{"name": "handoff_to_planner", "arguments": {}}')]}


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (said(complete=True, result="3.50 EUR"), "3.50 EUR"),
        (said(complete=True, result={"price": 3.5}), '{"price": 3.5}'),
        (said(complete=True), "I use browser_use."),
        (ENDED, "3.50 EUR"),
    ],
)
async def test_the_steps_of_the_schema_are_done_and_their_completion_ends_the_call(last, expected):
    async with shopping(shop_script(OPEN, CLICK, last, **HANDOFF), models=MODELS) as (team, shop):
        frames = await team.run()
    assert (status(frames), content(frames)) == ("completed", expected)
    assert [one["action"] for one in shop.only.done] == ["go_to_url", "click_element"]
    assert data(frames, "browser_step")[1]["thought"] == "I use browser_use."


async def test_a_model_without_tools_receives_tools_schema_and_page_as_text():
    async with shopping(shop_script(OPEN, said(complete=True), **HANDOFF), models=MODELS) as (team, _):
        await team.run()
    (first, second) = [one for one in team.server.requests if "is_complete" in str(one["messages"])]
    assert "tools" not in first
    assert first["response_format"]["json_schema"]["schema"]["required"] == [
        "thought",
        "action",
        "is_complete",
    ]
    prompt = first["messages"][0]["content"]
    assert "browser_use" in prompt and "You are the browser" in prompt
    assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant", "user"]
    assert json.loads(second["messages"][2]["content"])["action"]["tool_name"] == "browser_use"
    assert "Result of browser_use" in second["messages"][-1]["content"]
    assert f"URL: {HOME}" in second["messages"][-1]["content"]


async def test_broken_json_is_repaired_without_asking_again():
    broken = reply(OPEN["text"][:-1] + ",")
    async with shopping(shop_script(broken, said(complete=True, result="ok"), **HANDOFF), models=MODELS) as (
        team,
        shop,
    ):
        frames = await team.run()
    assert content(frames) == "ok"
    assert len(shop.only.done) == 1
    assert team.server.stats["by_role"]["browser"] == 2


async def test_a_missed_shape_is_shown_to_the_model_once():
    wrong = said("fly_to", where="the moon")
    async with shopping(
        shop_script(wrong, OPEN, said(complete=True, result="ok"), **HANDOFF), models=MODELS
    ) as it:
        frames = await it[0].run()
    assert content(frames) == "ok"
    again = [one for one in it[0].server.requests if "That cannot be used" in str(one["messages"])]
    assert len(again) == 1 and "'fly_to'" in str(again[0]["messages"][-1])


async def test_a_shape_that_is_missed_with_two_repairs_is_one_failed_step():
    misses = [reply("no")] * 3
    async with shopping(
        shop_script(*misses, OPEN, said(complete=True, result="ok"), **HANDOFF), models=MODELS
    ) as (
        team,
        shop,
    ):
        frames = await team.run()
    assert content(frames) == "ok"
    assert [one["action"] for one in shop.only.done] == ["go_to_url"]
    assert team.server.stats["by_role"]["browser"] == 5


async def test_three_such_steps_end_the_call():
    async with shopping(shop_script(reply("no"), **HANDOFF), models=MODELS) as (team, _):
        frames = await team.run()
    assert content(frames).startswith("STEP FAILED: Too many")


async def test_after_refused_tools_json_is_requested_immediately():
    script = {**shop_script(OPEN, said(complete=True, result="ok"), **HANDOFF), "reject": ["tools"]}
    async with shopping(script) as (team, _):
        frames = await team.run()
    assert content(frames) == "ok"


async def test_a_failed_action_is_reported_and_the_next_one_tried():
    gone, opened = said(action="click_element", index=99), said(action="go_to_url", url=HOME)
    script = shop_script(opened, gone, said(complete=True, result="ok"), **HANDOFF)
    async with shopping(script, models=MODELS) as (team, _):
        frames = await team.run()
    assert content(frames) == "ok"
    assert "index 99 not found" in str(team.server.requests[-2]["messages"])
