"""What models write for an action, and what is made of it."""

from typing import Any

import pytest

from maniple.browser.actions import parse_action
from maniple.errors import BrowserError


@pytest.mark.parametrize(
    "given",
    [
        {
            "action": "go_to_url",
            "url": "https://a.example/",
            "index": -1,
            "scroll_amount": "",
            "seconds": 3,
        },
        {"action": "scroll_down", "scroll_amount": "", "index": "", "tab_id": "none", "seconds": None},
        {"action": "wait", "seconds": "", "index": "n/a"},
        {"action": "click_element", "index": "[3]", "url": "null", "keys": [], "amount": None, "note": ""},
    ],
)
def test_values_that_mean_nothing_are_ignored(given: dict[str, Any]) -> None:
    assert parse_action(given).action == given["action"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"action": "click_element", "index": -1}, "'click_element' failed: index"),
        ({"action": "click_element", "index": ""}, "Index is required for 'click_element' action"),
        ({"action": "wait", "seconds": -1}, "'wait' failed: seconds"),
    ],
)
def test_what_it_does_use_has_to_be_right(given: dict[str, Any], why: str) -> None:
    with pytest.raises(BrowserError, match=why):
        parse_action(given)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (
            {"action": "scroll_down", "step": 300},
            "Browser action 'scroll_down' failed: it has no parameter 'step'; it takes scroll_amount, index",
        ),
        (
            {"action": "scroll_up", "direction": "", "amount": 0},
            "Browser action 'scroll_up' failed: it has no parameter 'amount'; it takes scroll_amount, index",
        ),
        (
            {"action": "click_element", "index": 3, "text": "Save", "times": 2},
            "Browser action 'click_element' failed: it has no parameter 'text', 'times'; it takes index",
        ),
        (
            {"action": "go_back", "url": "https://a.example/"},
            "Browser action 'go_back' failed: it has no parameter 'url'; it takes no parameters",
        ),
    ],
)
def test_parameters_that_an_action_does_not_have_are_refused_by_name(
    given: dict[str, Any], text: str
) -> None:
    with pytest.raises(BrowserError) as caught:
        parse_action(given)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("told", "meant"),
    [
        ("shop.example", "https://shop.example"),
        (" shop.example:8443/hats?q=blue#2 ", "http://shop.example:8443/hats?q=blue#2"),
        ("shop.example:443/hats", "https://shop.example:443/hats"),
        ("münchen.example/straße", "https://münchen.example/straße"),
        ("localhost:8000/a", "http://localhost:8000/a"),
        ("127.0.0.2?x", "http://127.0.0.2?x"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("http://shop.example", "http://shop.example"),
        ("javascript:1", "javascript:1"),
        ("about:blank", "about:blank"),
        ("user@shop.example", "user@shop.example"),
        ("view-source:https://shop.example", "view-source:https://shop.example"),
        ("the shop.example", "the shop.example"),
    ],
)
def test_an_address_without_a_scheme_is_what_people_mean_by_it(told: str, meant: str) -> None:
    assert parse_action({"action": "go_to_url", "url": told}).url == meant
