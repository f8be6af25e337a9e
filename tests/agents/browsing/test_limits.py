"""How far one call of the browser may go."""

import asyncio
import json
import re

import pytest

from maniple.graph import TeamRules
from maniple.scope.budget import Budget, UsageMeter
from maniple.scope.run_scope import RunScope
from tests.agents.browsing.shop import HOME, Shop, done, shop_script, shopping, use
from tests.openai_server import call, reply
from tests.team import data

pytestmark = pytest.mark.anyio


async def outcome(script, shop: Shop | None = None, **browsing) -> tuple[str, int]:
    """The content of the call's result, and how often the loop's model was asked."""
    async with shopping(script, shop=shop, browsing=browsing) as (team, _):
        frames = await team.run()
        return (
            json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"],
            team.server.stats["by_role"]["browser"] // len(data(frames, "tool_call_result")),
        )


async def test_after_so_many_iterations_the_call_ends_with_what_was_found():
    ways = [use("go_to_url", url=f"{HOME}{n}") for n in range(9)]
    said, asked = await outcome(shop_script(*ways), max_iterations=4)
    assert said.startswith("STEP FAILED: Max iterations")
    assert f"Navigated to {HOME}3" in said
    assert "<data" not in said
    assert asked == 4


async def test_findings_before_a_failure_are_passed_on_as_data():
    ways = [use("go_to_url", url=f"{HOME}{n}") for n in range(9)]
    script = shop_script(*ways, supervisor=[reply('{"next": "reporter"}')])
    async with shopping(script, browsing={"max_iterations": 2}) as (team, _):
        frames = await team.run()
    result = data(frames, "plan")[-1]["steps"][0]
    assert result["reason"] == "Max iterations reached"
    report = team.prompts("reporter")[0]
    assert re.search(rf"<data (\w+)>\nUntil then:\n[^<]*Navigated to {HOME}1[^<]*</data \1>", report)


async def test_failures_one_after_another_end_the_call():
    said, asked = await outcome(shop_script(*[use("click_element", index=n) for n in range(50, 60)]))
    assert said.startswith("STEP FAILED: Too many")
    assert "index 52 not found" in said
    assert asked == 3


async def test_an_action_that_is_not_offered_takes_at_most_a_line():
    script = shop_script(use("extract_content", goal="prices"))
    async with shopping(script, browsing={"mode": "execute"}) as (team, _):
        frames = await team.run()
        prompts = team.prompts("browser")
    said = json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"]
    assert "'extract_content' is not offered" in said
    assert "It takes:" not in said
    assert "extract_content" not in prompts[0]


async def test_the_reason_is_the_first_line_of_the_last_failure():
    said, _ = await outcome(shop_script(call("terminate", status="maybe")))
    assert re.match(r"STEP FAILED: Too many .*: terminate was not run\.\nUntil", said)


async def test_a_success_resets_the_count_of_failures():
    bad, good = use("click_element", index=99), use("wait", seconds=0)
    said, asked = await outcome(shop_script(bad, bad, good, bad, bad, done()))
    assert (said, asked) == ("It costs 3.50 EUR.", 6)


async def test_calls_refused_beside_a_failed_one_are_one_failure():
    three = {"tool_calls": [use("click_element", index=n)["tool_calls"][0] for n in (97, 98, 99)]}
    said, asked = await outcome(shop_script(use("go_to_url", url=HOME), three, three, done()))
    assert (said, asked) == ("It costs 3.50 EUR.", 4)


async def test_the_time_of_a_call_is_limited():
    said, _ = await outcome(
        shop_script(use("go_to_url", url=HOME)), Shop(hangs_at="go_to_url"), max_seconds=2.5
    )
    assert said.startswith("STEP FAILED: The time limit")


async def test_repeating_an_action_on_a_page_is_warned_about_and_then_stopped():
    ways = [use("go_to_url", url=HOME), *[use("click_element", index=3)] * 8]
    async with shopping(shop_script(*ways), rules=TeamRules(step_retries=0)) as (team, shop):
        frames = await team.run()
    clicks = [one for one in shop.only.done if one["action"] == "click_element"]
    assert len(clicks) == 5
    asked = [json.dumps(one["messages"]) for one in team.server.requests if "terminate" in str(one)]
    nudged = ["going round in circles" in one for one in asked[:6]]
    assert nudged == [False] * 4 + [True, True]
    assert "click_element" in asked[4][asked[4].index("going round in circles") :]
    said = json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"]
    assert said.startswith("STEP FAILED: the agent")
    assert "Clicked element at index 3" in said


async def test_the_same_action_on_a_page_that_changes_is_progress():
    class Pager(Shop):
        @property
        def words(self) -> str:
            page = self.pages.get(next(iter(self.pages), ""))
            return f"\npage {len(page.done) if page else 0}"

        @words.setter
        def words(self, words: str) -> None: ...

    ways = [use("go_to_url", url=HOME), *[use("click_element", index=3)] * 8, done()]
    said, asked = await outcome(shop_script(*ways), Pager())
    assert (said, asked) == ("It costs 3.50 EUR.", 10)


async def test_the_calls_of_the_loop_count_for_the_budget_of_the_run():
    from tests.agents.browsing.test_pausing import BEGIN

    meter = UsageMeter(Budget(model_calls=5))
    ways = [use("go_to_url", url=HOME), *[use("wait", seconds=n) for n in range(9)]]
    async with shopping(shop_script(*ways)) as (team, shop):
        scope = RunScope(run_id="r", meter=meter)
        config = {"configurable": {"thread_id": "t", "maniple_scope": scope}, "callbacks": meter.callbacks}
        await team.team.ainvoke(BEGIN, config)
    assert meter.exhausted
    assert team.server.stats["by_role"]["browser"] == 3
    assert len(shop.only.done) == 3


async def test_a_cancelled_run_ends_its_call_immediately_and_reports_it():
    shop = Shop(hangs_at="go_to_url")
    async with shopping(shop_script(use("go_to_url", url=HOME)), shop=shop) as (team, _):
        task = asyncio.create_task(team.run())
        async with asyncio.timeout(60):
            await shop.stuck.wait()
        task.cancel()
        async with asyncio.timeout(60):
            await asyncio.wait({task})
    assert task.cancelled()
