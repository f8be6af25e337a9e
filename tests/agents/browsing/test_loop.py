"""One call of the browser, from its instruction to its result."""

import json

import pytest

from tests.agents.browsing.shop import HOME, done, shopping, told, use
from tests.team import agents, data, status

pytestmark = pytest.mark.anyio
WAY = (use("go_to_url", url=HOME), use("click_element", index=0), done())


async def test_a_step_is_one_call_of_the_browser_without_a_model_around_it():
    async with shopping(told(*WAY)) as (team, shop):
        frames = await team.run("What do apples cost?")
    assert status(frames) == "completed"
    assert agents(frames) == ["coordinator", "planner", "browser", "reporter"]
    assert [one["tool_name"] for one in data(frames, "tool_call")] == ["browser"]
    (result,) = data(frames, "tool_call_result")
    assert json.loads(result["tool_result"]) == {
        "result_content": "It costs 3.50 EUR.",
        "generated_gif_path": None,
    }
    assert team.server.stats["by_role"]["browser"] == 3
    assert shop.only.url == f"{HOME}basket"
