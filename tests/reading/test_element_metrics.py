"""What the names of elements tell of them."""

import pytest
from lxml import html

from maniple.reading.element_metrics import is_unlikely_name


def named(css_class: str = "", identity: str = "") -> html.HtmlElement:
    return html.Element("div", {"class": css_class, "id": identity})


@pytest.mark.parametrize("name", ["sidebar", "Site-Footer", "top-menu", "x pagination y", "cookie-consent"])
def test_menus_and_the_like_are_unlikely_by_class_or_id(name: str) -> None:
    assert is_unlikely_name(named(name))
    assert is_unlikely_name(named(identity=name))


@pytest.mark.parametrize("name", ["", "story", "article-sidebar", "main menu", "comment-body", "row"])
def test_what_may_be_an_article_is_not_unlikely(name: str) -> None:
    assert not is_unlikely_name(named(name))


def test_a_name_may_be_in_the_id_while_the_class_allows_an_article() -> None:
    assert not is_unlikely_name(named("content", "sidebar"))


@pytest.mark.parametrize(("before", "is_seen"), [(293, True), (294, False)])
def test_only_the_first_300_characters_of_a_name_count(before: int, is_seen: bool) -> None:
    assert is_unlikely_name(named("x" * before + "sidebar")) is is_seen
    assert is_unlikely_name(named(identity="x" * before + "sidebar")) is is_seen
