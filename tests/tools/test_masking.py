"""The events of an action before it is performed."""

from typing import Any

import pytest

from maniple.browser import BrowserState, Element, ScrollInfo
from maniple.browser.actions import MASK
from maniple.tools.browser import mask_secrets


def page(*roles: str) -> BrowserState:
    elements = tuple(Element(at, role, "x") for at, role in enumerate(roles))
    return BrowserState("1", "https://a.test/", "A", (), "", elements, ScrollInfo(0, 0), 800)


LOGIN = page("input text", "input password")


@pytest.mark.parametrize("index", [1, "1", " [1] ", "*[1]", 1.0, None, "first"])
def test_text_for_a_password_field_is_masked_however_its_index_is_written(index: Any) -> None:
    assert mask_secrets({"action": "input_text", "index": index, "text": "hunter2"}, LOGIN)["text"] == MASK


@pytest.mark.parametrize("keys", ["hunter2", "h", "hunter2 Enter", " Tab"])
def test_keys_that_are_a_text_are_masked_where_a_password_field_may_have_the_focus(keys: str) -> None:
    given = {"action": "send_keys", "keys": keys}
    assert mask_secrets(given, LOGIN) == mask_secrets(given, None) == {"action": "send_keys", "keys": MASK}
    assert mask_secrets(given, page("input text")) == given


@pytest.mark.parametrize(
    "given",
    [
        {"action": "input_text", "index": 0, "text": "bob"},
        {"action": "send_keys", "keys": "Tab Tab Enter"},
        {"action": "scroll_to_text", "text": "Log in"},
        {"action": "select_dropdown_option", "index": 0, "text": "red"},
    ],
)
def test_all_else_is_reported_as_it_is(given: dict[str, Any]) -> None:
    assert mask_secrets(given, LOGIN) == given


def test_an_index_is_reported_as_a_number() -> None:
    assert mask_secrets({"action": "click_element", "index": "[7]"}, LOGIN)["index"] == 7
