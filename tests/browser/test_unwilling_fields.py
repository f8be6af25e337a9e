"""Fields that change the typed text: the result reports it."""

from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser
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
        ("<input aria-label=Zip maxlength=3>", "abcdef", " - the field holds 'abc' now"),
        (
            "<input aria-label=Zip oninput='value = value.replace(/[^0-9]/g, \"\")'>",
            "abc",
            " - the field holds '' now",
        ),
        ("<input aria-label=Zip type=range max=50>", "100", " - the field holds '50' now"),
        ("<input aria-label=Zip>", "abc", ""),
    ],
)
async def test_what_a_field_makes_of_a_text_is_reported(
    driver: Driver, site: Site, field: str, text: str, told: str
) -> None:
    site.pages["/field"] = Reply(field)
    await driver.act("go_to_url", url=f"{site.url}/field")
    result = await driver.on("input_text", "Zip", text=text)
    assert result.text == f"Input '{text}' into element at index 0{told}"


async def test_the_last_character_does_not_go_into_the_next_field(driver: Driver, site: Site) -> None:
    site.pages["/next"] = Reply("<input aria-label=Code oninput=next.focus()><input id=next aria-label=Next>")
    await driver.act("go_to_url", url=f"{site.url}/next")
    await driver.on("input_text", "Code", text="12")
    shown = await driver.look()
    assert 'value="12"' in shown
    assert 'value="2"' not in shown
