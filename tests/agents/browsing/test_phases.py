"""Plans of complex tasks in the browser."""

import json

import pytest
from langgraph.types import Command

from maniple.agents.browsing.loop import is_complex
from tests.agents.browsing.shop import HOME, Shop, done, shop_script, shopping, use
from tests.agents.browsing.test_pausing import BEGIN, open_team
from tests.agents.memory_ledger import MemoryLedger
from tests.openai_server import call, reply
from tests.team import data

pytestmark = pytest.mark.anyio
LONG = "Open the shop. Put apples into the basket. Then pay and tell the number of the order."

OPEN = use("go_to_url", url=HOME)
"""What a browser does before it can report anything."""


def phases(*goals: str) -> dict:
    return reply(json.dumps({"phases": [{"goal": goal} for goal in goals]}))


def result(frames) -> str:
    return json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"]


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("Find the price of apples on https://shop.test/a.b.c.", False),
        ("Open the shop and read the price.", False),
        (LONG, True),
        ("- open it\n- buy one\n- tell the number", True),
        ("打开商店，然后把苹果放进购物车。最后付款。", True),
        ("x" * 601, True),
        ("Find the price of Dr. Smith's book, e.g. on shop.example.", False),
        ("Is St. John's wort better than Echinacea, i.e. for sleep? Say why.", False),
        ("First open the page, next log in, and last download it", True),
    ],
)
def test_a_task_of_several_pieces_is_complex(task, expected):
    assert is_complex(task) is expected


async def test_a_complex_task_is_done_phase_by_phase():
    script = shop_script(
        *(use("go_to_url", url=HOME), done("in the shop"), use("click_element", index=0), done("order 7")),
        task=LONG,
        other=[phases("Open the shop", "Pay")],
    )
    async with shopping(script) as (team, _):
        frames = await team.run()
    assert result(frames) == "order 7"
    steps = {(one["number"], one["phase"]) for one in data(frames, "browser_step")}
    assert steps == {(1, "Open the shop"), (2, "Open the shop"), (3, "Pay"), (4, "Pay")}
    second = team.prompts("browser")[2]
    assert "in the shop" in second and "Navigated" not in second
    assert "This is phase 2 of 2" in second


async def test_a_failed_phase_adapts_the_plan_and_finished_ones_stay():
    script = shop_script(
        *(OPEN, done("in the shop"), done("no such button", "failure"), done("paid by phone")),
        task=LONG,
        other=[phases("Open the shop", "Pay"), phases("Pay by phone")],
    )
    async with shopping(script) as (team, _):
        frames = await team.run()
    assert result(frames) == "paid by phone"
    asked = [
        str(one["messages"]) for one in team.server.requests if "Give new phases" in str(one["messages"])
    ]
    assert len(asked) == 1
    assert "[completed] Open the shop" in asked[0] and "[failed] Pay" in asked[0]
    assert "in the shop" in team.prompts("browser")[-1]


async def test_failures_in_a_row_adapt_a_plan_before_they_end_it():
    bad = use("click_element", index=99)
    script = shop_script(
        *(OPEN, bad, bad, bad, done("otherwise")),
        task=LONG,
        other=[phases("Open the shop", "Pay"), phases("Ask")],
    )
    async with shopping(script) as (team, _):
        frames = await team.run()
    assert result(frames) == "otherwise"


async def test_a_plan_is_adapted_so_often_and_no_more():
    script = shop_script(
        done("no", "failure"),
        task=LONG,
        other=[phases("a", "b"), phases("c", "d"), phases("e", "f"), phases("g")],
    )
    async with shopping(script, browsing={"max_adaptations": 2}) as (team, _):
        frames = await team.run()
    assert result(frames) == "STEP FAILED: no"
    tried = [one["phase"] for one in data(frames, "browser_step") if one["state"] == "acting"]
    assert tried[:3] == ["a", "c", "e"]


async def test_the_iterations_of_all_phases_count_together():
    ways = [use("wait", seconds=n) for n in range(9)]
    script = shop_script(
        use("wait", seconds=0), done("a"), *ways, task=LONG, other=[phases("a", "b"), phases("c")]
    )
    async with shopping(script, browsing={"max_iterations": 5}) as (team, _):
        frames = await team.run()
    assert result(frames).startswith("STEP FAILED: Max iterations")
    assert "Done before:\na: a" in result(frames)
    assert len([one for one in data(frames, "browser_step") if one["state"] == "thinking"]) % 5 == 0


@pytest.mark.parametrize(("mode", "planned"), [("auto", 8), ("navigate", 3), ("execute", 0), ("scrape", 0)])
async def test_the_mode_decides_whether_the_task_is_planned(mode, planned):
    script = shop_script(OPEN, done("done"), task=LONG, other=[phases(*map(str, range(12)))])
    async with shopping(script, browsing={"mode": mode}) as (team, _):
        frames = await team.run()
    assert len({one["phase"] for one in data(frames, "browser_step")} - {""}) == planned


async def test_a_simple_task_is_not_planned():
    async with shopping(shop_script(done())) as (team, _):
        await team.run()
    assert "other" not in team.server.stats["by_role"]


async def test_a_model_that_gives_no_plan_works_without():
    script = shop_script(OPEN, done("done"), task=LONG, other=[reply("I would rather not.")])
    async with shopping(script) as (team, _):
        frames = await team.run()
    assert result(frames) == "done"


async def test_a_plan_outlives_a_pause(tmp_path):
    script = shop_script(
        *(OPEN, done("in the shop"), call("ask_human", inquire="Which?"), done("ordered")),
        task=LONG,
        other=[phases("Open the shop", "Pay"), phases("wrong")],
    )
    shop, book = Shop(), MemoryLedger()
    async with open_team(tmp_path, script, shop, book) as (team, go):
        (question,) = await go(BEGIN)
        assert await go(Command(resume={question.id: "red ones"})) == []
        last = team.server.requests[-2]["messages"]
        assert team.server.stats["by_role"]["other"] == 1
    assert "This is phase 2 of 2" in str(last) and "red ones" in str(last)


@pytest.mark.slow
async def test_phases_that_are_done_when_the_time_is_over_are_reported():
    ways = (use("refresh"), done("in the shop"), use("go_to_url", url=HOME))
    script = shop_script(*ways, task=LONG, other=[phases("Open the shop", "Pay")])
    async with shopping(script, shop=Shop(hangs_at="go_to_url"), browsing={"max_seconds": 6}) as (team, _):
        frames = await team.run()
    assert result(frames).startswith("STEP FAILED: The time limit")
    assert result(frames).endswith("Done before:\nOpen the shop: in the shop")


def asked_for_phases(team) -> list[str]:
    shown = (str(one["messages"]) for one in team.server.requests)
    return [one for one in shown if "You plan a task" in one]


async def test_a_step_that_is_planned_again_knows_what_another_member_has_found_for_it():
    pin = {"agent_name": "coder", "title": "The PIN", "description": "Read the PIN."}
    decision = {"decision": "reassign", "hint": None, "step": pin, "then_retry": True}
    script = shop_script(
        *(OPEN, call("terminate", status="failure", result="no PIN", needs="the PIN"), OPEN, done("order 7")),
        task=LONG,
        other=[phases("Open the shop", "Pay"), phases("Pay with the PIN")],
        supervisor=[reply(json.dumps(decision))],
        coder=[reply("The PIN is 4711.")],
    )
    async with shopping(script, browsing={"max_adaptations": 0}) as (team, _):
        await team.run()
    first, again = asked_for_phases(team)
    assert "4711" not in first
    assert "The PIN is 4711." in again and "The PIN" in team.prompts("browser")[-1]


@pytest.mark.parametrize("ends", [done("no such button", "failure"), done("in the shop")])
async def test_what_the_user_said_in_a_phase_is_known_to_the_next_and_to_a_new_plan(tmp_path, ends):
    asks = call("ask_human", inquire="Which PIN?")
    script = shop_script(
        *(OPEN, asks, ends, OPEN, done("no way", "failure"), OPEN, done("order 7")),
        task=LONG,
        other=[phases("Log in", "Pay"), phases("Pay by phone")],
    )
    shop, book = Shop(), MemoryLedger()
    async with open_team(tmp_path, script, shop, book) as (team, go):
        (question,) = await go(BEGIN)
        assert await go(Command(resume={question.id: "4711"})) == []
        first, again, *_ = asked_for_phases(team)
        shown = team.prompts("browser")
    assert "4711" not in first
    assert "Which PIN?" in again and "The user answered: 4711" in again
    assert any("The user answered: 4711" in one for one in shown[3:]), "a phase after the answer"
