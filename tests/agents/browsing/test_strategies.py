"""How the loop thinks."""

import json

import pytest

from tests.agents.browsing.shop import HOME, done, shop_script, shopping, use
from tests.openai_server import reply
from tests.team import data

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("strategy", "words"),
    [
        ("react_plus", "`Last:` whether"),
        ("cot", "think step by step, in writing"),
        ("tot", "weighed against"),
    ],
)
async def test_each_strategy_has_words_of_its_own(strategy, words):
    async with shopping(shop_script(done()), browsing={"strategy": strategy}) as (team, _):
        await team.run()
    assert words in team.prompts("browser")[0]


async def test_the_standard_strategy_makes_one_model_call_a_step():
    async with shopping(shop_script(use("go_to_url", url=HOME), done())) as (team, _):
        await team.run()
    assert team.server.stats["by_role"]["browser"] == 2
    assert "Known:" not in team.prompts("browser")[0]


@pytest.mark.parametrize(
    ("mode", "offered", "not_offered"),
    [
        ("navigate", {"go_to_url", "click_element", "web_search"}, {"input_text", "extract_content"}),
        ("execute", {"input_text", "send_keys", "select_dropdown_option"}, {"extract_content", "web_search"}),
        ("scrape", {"extract_content", "scroll_down"}, {"input_text", "web_search"}),
        ("research", {"extract_content", "web_search", "input_text"}, set()),
        ("auto", {"extract_content", "web_search", "input_text"}, set()),
    ],
)
async def test_modes_offer_their_actions(mode, offered, not_offered):
    ways = [use(name, index=0, text="x", goal="x", query="x") for name in sorted(not_offered)[:1]]
    async with shopping(shop_script(*ways, done()), browsing={"mode": mode}) as (team, shop):
        await team.run()
    tools = next(one["tools"] for one in team.server.requests if "browser_use" in str(one.get("tools")))
    (schema,) = [one["function"]["parameters"] for one in tools if one["function"]["name"] == "browser_use"]
    actions = set(schema["properties"]["action"]["enum"])
    assert offered <= actions and not actions & not_offered
    assert not shop.pages or shop.only.done == []
    if ways:
        sent = (message for one in team.server.requests for message in one["messages"])
        heard = [one["content"] for one in sent if one["role"] == "tool"]
        assert "is not offered here" in heard[0]


async def test_a_search_that_does_not_answer_is_not_offered_in_that_step():
    outages = ["no network", ""]

    async def find_outage() -> str:
        return outages.pop(0)

    script = shop_script(use("go_to_url", url=HOME), done()) | {
        "browser": [use("go_to_url", url=HOME), done()] * 2
    }
    async with shopping(script, find_outage=find_outage) as (team, _):
        await team.run()
        out = offered_actions(team)
        team.server.reset(script)
        await team.run()
        answered = offered_actions(team)
    assert [("web_search" in actions, "go_to_url" in actions) for actions in out] == [(False, True)] * len(
        out
    )
    assert len(out) > 1 and all("web_search" in actions for actions in answered)


def offered_actions(team):
    """Return the actions that each request to the browser's model offered."""
    tools = [tool for one in team.server.requests for tool in one.get("tools") or ()]
    schemas = [one["function"]["parameters"] for one in tools if one["function"]["name"] == "browser_use"]
    return [schema["properties"]["action"]["enum"] for schema in schemas]


SCORES = reply(json.dumps({"scores": [0.1, 0.9]}))
BRANCHES = [
    {**use("wait", seconds=1), "text": "Wait."},
    {**use("go_to_url", url=HOME), "text": "Open it."},
    {**use("wait", seconds=1), "text": "Just wait."},
]


async def test_of_several_thoughts_the_best_is_taken():
    script = shop_script(*BRANCHES, *[done()] * 3, other=[SCORES])
    async with shopping(script, browsing={"strategy": "tot"}) as (team, shop):
        frames = await team.run()
    (asked,) = [one for one in team.server.requests if "You judge the next steps" in str(one["messages"])]
    listed = asked["messages"][-1]["content"]
    assert "3. " not in listed  # two of them are the same
    second = listed[listed.index("2. ") :]
    (taken,) = [one["action"] for one in shop.only.done]
    assert taken in second
    assert data(frames, "browser_step")[1]["thought"] in second


async def test_thoughts_that_agree_are_not_judged():
    script = shop_script(*[use("go_to_url", url=HOME)] * 3, *[done()] * 3)
    async with shopping(script, browsing={"strategy": "tot"}) as (team, shop):
        await team.run()
    assert team.server.stats["by_role"] == {"coordinator": 1, "planner": 1, "browser": 6, "reporter": 1}
    assert len(shop.only.done) == 1


async def test_a_judge_without_scores_leaves_the_first_thought():
    script = shop_script(*BRANCHES, *[done()] * 3, other=[reply("hm")])
    async with shopping(script, browsing={"strategy": "tot"}) as (team, shop):
        frames = await team.run()
    assert len(shop.only.done) == 1
    assert data(frames, "run_status")[0]["status"] == "completed"
