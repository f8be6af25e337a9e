"""Fields that change the typed text: a format is reported, another text is an error that quotes it."""

import re
from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser
from maniple.errors import BrowserError
from tests.browser.driving import Driver
from tests.crawler.web import Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


@pytest.fixture
async def driver(browser: Browser) -> AsyncIterator[Driver]:
    page = await browser.page("unwilling")
    yield Driver(page)
    await page.aclose()


@pytest.mark.parametrize(
    ("field", "text", "told"),
    [
        (
            "<input aria-label=Zip oninput='value = value.replace(/^([0-9]{3})([0-9])/, \"$1-$2\")'>",
            "12345",
            " - the field holds '123-45' now",
        ),
        ("<input aria-label=Zip>", "abc", ""),
    ],
)
async def test_the_format_that_a_field_gives_a_text_is_reported(
    driver: Driver, site: Site, field: str, text: str, told: str
) -> None:
    site.pages["/field"] = Reply(field)
    await driver.act("go_to_url", url=f"{site.url}/field")
    result = await driver.on("input_text", "Zip", text=text)
    assert result.text == f"Input '{text}' into element at index 0{told}"


@pytest.mark.parametrize(
    ("field", "text", "held"),
    [
        ("<input aria-label=Zip maxlength=3>", "abcdef", "'abc'"),
        ("<input aria-label=Zip oninput='value = value.replace(/[^0-9]/g, \"\")'>", "abc", "''"),
        ("<input aria-label=Zip type=range max=50>", "100", "'50'"),
        ("<input aria-label=Zip>", "one\ntwo", "'one two'"),
        (
            "<textarea aria-label=Zip oninput='value = value.replace(/\\n/g, \"\")'></textarea>",
            "a\nb",
            "'ab'",
        ),
        (
            "<div contenteditable aria-label=Zip onbeforeinput='event.preventDefault()'>old</div>",
            "a",
            "'old'",
        ),
    ],
)
async def test_a_field_that_holds_another_text_is_an_error_that_quotes_it(
    driver: Driver, site: Site, field: str, text: str, held: str
) -> None:
    site.pages["/field"] = Reply(field)
    await driver.act("go_to_url", url=f"{site.url}/field")
    with pytest.raises(BrowserError, match=re.escape(held)):
        await driver.on("input_text", "Zip", text=text)


async def test_a_refused_password_is_not_quoted(driver: Driver, site: Site) -> None:
    site.pages["/field"] = Reply("<input type=password aria-label=Code maxlength=4>")
    await driver.act("go_to_url", url=f"{site.url}/field")
    with pytest.raises(BrowserError) as caught:
        await driver.on("input_text", "Code", text="hunter2")
    assert "hunt" not in str(caught.value)


async def test_the_last_character_does_not_go_into_the_next_field(driver: Driver, site: Site) -> None:
    site.pages["/next"] = Reply("<input aria-label=Code oninput=next.focus()><input id=next aria-label=Next>")
    await driver.act("go_to_url", url=f"{site.url}/next")
    await driver.on("input_text", "Code", text="12")
    shown = await driver.look()
    assert 'value="12"' in shown
    assert 'value="2"' not in shown
