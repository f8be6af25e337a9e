"""The model reads for the browser."""

import json

import pytest

from maniple.agents.browsing.middleware import MAX_CHUNKS, ModelPageReader
from tests.agents.browsing.shop import HOME, alone, done, shop_script, shopping, use
from tests.agents.endpoints import model_at
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
EXTRACT = use("extract_content", goal="the price of apples")


async def test_the_model_extracts_what_a_page_has_on_a_goal_as_a_source():
    script = shop_script(use("go_to_url", url=HOME), EXTRACT, done(), other=[reply("Apples: 3.50 EUR")])
    async with shopping(script) as (team, _):
        await team.run()
    (asked,) = [one["messages"] for one in team.server.requests if "Goal: " in str(one["messages"])]
    assert asked[1]["content"].startswith("Goal: the price of apples\n\n<data ")
    assert "Apples cost 3.50 EUR." in asked[1]["content"]
    heard = [one["content"] for one in team.server.requests[-2]["messages"] if one["role"] == "tool"]
    assert f"Extracted from page:\nSource [1]: {HOME}\n\nApples: 3.50 EUR\n" in heard[1]


async def test_an_agent_with_other_tools_reads_with_its_own_model():
    script = shop_script(
        manus=[use("go_to_url", url=HOME), EXTRACT, reply("3.50")], other=[reply("Apples: 3.50 EUR")]
    )
    async with alone(script) as (team, _):
        await team.run(agent="manus")
    assert "Apples: 3.50 EUR" in str(team.server.requests[-1]["messages"])


async def test_extractions_outlive_the_shortening_of_the_conversation():
    long = {**use("wait", seconds=0), "text": "word " * 3_000}
    script = shop_script(
        *(use("go_to_url", url=HOME), EXTRACT, long, long, long, done()),
        other=[reply("Apples: 3.50 EUR"), reply("Summary: nothing.")],
    )
    async with shopping(script, models={"context_tokens": 8_000}) as (team, _):
        await team.run()
    last = json.dumps([one["messages"] for one in team.server.requests if "terminate" in str(one)][-1])
    assert "Summary: nothing." in last
    assert "What you extracted earlier" in last
    assert "Apples: 3.50 EUR" in last


@pytest.mark.parametrize("nothing", ["NOTHING", "`Nothing.`", ""])
async def test_a_page_without_anything_on_a_goal_yields_nothing(nothing):
    with serving({"other": [reply(nothing or "<think>hm</think>")]}) as server:
        async with model_at(server) as model:
            assert await ModelPageReader(model).extract("x", "# Page") == ""


async def test_a_long_page_is_read_in_parts_that_fit_the_window():
    page = "\n\n".join(f"Paragraph {n} speaks of apples and of much else." for n in range(3_000))
    with serving({"other": [reply("found")]}) as server:
        async with model_at(server, window=4_000) as model:
            found = await ModelPageReader(model).extract("apples", page)
    assert 2 <= len(server.requests) <= MAX_CHUNKS + 1
    assert found.split("\n\n") == ["found"] * len(server.requests)
    assert all(len(str(one["messages"])) < 4_000 * 4 for one in server.requests)


@pytest.mark.parametrize(
    ("said", "chosen"), [('{"way": 1}', 1), ('{"way": null}', None), ('{"way": 9}', None), ("hm", None)]
)
async def test_of_the_ways_around_an_obstacle_the_model_picks_one_that_there_is(said, chosen):
    with serving({"other": [reply(said)]}) as server:
        async with model_at(server) as model:
            assert (
                await ModelPageReader(model).choose("Cookies?", ("accept", "reject"), b"\xff\xd8") == chosen
            )
    assert "0: accept\n1: reject" in str(server.requests[0]["messages"][1]["content"][0]["text"])
