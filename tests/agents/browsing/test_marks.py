"""The position of an action in the window, as clients receive it."""

from typing import Any

import pytest

from maniple.agents.browsing.recording import visible_mark
from tests.agents.browsing.shop import HOME, done, shop_script, shopping, use
from tests.team import data

pytestmark = pytest.mark.anyio
BASKET = {"x": 0.1, "y": 0.2, "width": 0.2, "height": 0.05}


def acting(frames: Any) -> list[dict[str, Any]]:
    return [one for one in data(frames, "browser_step") if one["state"] == "acting"]


async def test_the_element_that_is_acted_on_is_named_and_marked_from_acting_on():
    async with shopping(
        shop_script(use("go_to_url", url=HOME), use("click_element", index="[0]"), done())
    ) as (
        team,
        _,
    ):
        frames = await team.run()
    steps = [one for one in data(frames, "browser_step") if one["number"] == 2]
    assert [(one["state"], one["mark"]) for one in steps] == [
        ("thinking", None),
        ("acting", BASKET),
        ("observing", BASKET),
    ]
    assert steps[-1]["element"] == {"role": "link", "name": "Basket"}


async def test_an_action_without_an_element_has_no_mark_with_any_index():
    waits = use("wait", index=0, seconds=0)
    async with shopping(shop_script(use("go_to_url", url=HOME), waits, done())) as (team, _):
        frames = await team.run()
    assert [(one["mark"], one["element"]) for one in acting(frames)] == [(None, None)] * 3


async def test_an_element_whose_place_is_not_known_is_named_without_a_mark():
    ways = use("go_to_url", url=HOME), use("input_text", index=1, text="apples"), done()
    async with shopping(shop_script(*ways)) as (team, _):
        frames = await team.run()
    step = acting(frames)[1]
    assert (step["mark"], step["element"]) == (None, {"role": "input text", "name": "Search"})


async def test_the_second_action_of_an_answer_is_marked_where_the_answer_was_decided_on():
    two = [*use("wait", seconds=0)["tool_calls"], *use("click_element", index=0)["tool_calls"]]
    async with shopping(shop_script(use("go_to_url", url=HOME), {"tool_calls": two}, done())) as (team, _):
        frames = await team.run()
    assert [one["mark"] for one in acting(frames)[1:3]] == [None, BASKET]


@pytest.mark.parametrize(
    ("box", "mark"),
    [
        ((0.25, 0.5, 0.75, 1.0), (0.25, 0.5, 0.5, 0.5)),
        ((-0.5, 0.9, 0.5, 1.5), (0, 0.9, 0.5, 0.1)),
        ((0.3, 0.4, 0.3, 0.4), (0.3, 0.4, 0, 0)),
        ((0.1, 1.2, 0.3, 1.4), None),
        ((-0.4, 0.1, -0.1, 0.3), None),
    ],
    ids=["inside", "in part", "a point", "below", "beside"],
)
def test_a_mark_is_what_of_the_element_is_in_the_window(box, mark):
    assert visible_mark(box) == (mark and dict(zip(("x", "y", "width", "height"), mark, strict=True)))
