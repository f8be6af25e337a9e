"""Several actions on what one state showed: possible until other controls come or these go."""

from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser, open_browser
from maniple.config import BrowserSettings
from maniple.errors import BrowserError
from tests.browser.driving import Driver
from tests.crawler.web import Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings(allow_private=("127.0.0.2/32",), timeout_seconds=20)) as browser:
        yield browser


@pytest.fixture
async def driver(browser: Browser, site: Site) -> AsyncIterator[Driver]:
    page = await browser.page("thread")
    yield Driver(page)
    await page.aclose()


FORM = """<!doctype html><title>Form</title><input aria-label=Name><input type=password aria-label=Code>
<label><input type=checkbox>Terms</label><select aria-label=Size><option>S<option>L</select>
<textarea aria-label=Note oninput="this.rows = 9"></textarea><button id=send onclick="SENT">Send</button>
<output id=out></output><p style=height:2500px></p><input aria-label=Far><p style=height:2500px></p>
<button>Bottom</button>"""


async def opened(driver: Driver, site: Site, on_send: str = "out.value = 'Thanks'") -> dict[str, int]:
    """Open the form; the indexes of its controls by name."""
    site.pages["/"] = Reply(FORM.replace("SENT", on_send))
    site.pages["/inner"] = Reply("<button>Framed</button>")
    await driver.act("go_to_url", url=site.url)
    await driver.look()
    assert driver.state is not None
    return {element.name: element.index for element in driver.state.elements}


async def test_a_form_is_filled_in_and_sent_by_what_one_state_showed(driver: Driver, site: Site) -> None:
    at = await opened(driver, site)
    for action, name, parameters in (
        ("input_text", "Name", {"text": "Ada"}),
        ("input_text", "Code", {"text": "1815"}),
        ("click_element", "Terms", {}),
        ("select_dropdown_option", "Size", {"text": "L"}),
        ("input_text", "Note", {"text": "one\ntwo"}),
    ):
        await driver.act(action, index=at[name], **parameters)
        assert not await driver.page.has_changed(), name
    await driver.act("click_element", index=at["Send"])
    assert "Thanks" in await driver.look()


@pytest.mark.parametrize(
    "change",
    [
        "document.body.insertAdjacentHTML('beforeend', '<button style=position:fixed;top:0>New</button>')",
        "document.querySelector('textarea').remove()",
        "send.textContent = 'Sent'",
        "history.pushState({}, '', '/step-2')",
        "location.reload()",
        "open('/other')",
        "document.body.append(Object.assign(document.createElement('dialog'), {id: 'd'})); d.showModal()",
        "document.body.insertAdjacentHTML('afterbegin', '<iframe src=/inner></iframe>')",
    ],
)
async def test_another_page_or_other_controls_are_a_change(change: str, driver: Driver, site: Site) -> None:
    at = await opened(driver, site, change)
    await driver.act("click_element", index=at["Send"])
    assert await driver.page.has_changed()


async def test_a_row_that_another_took_the_place_of_is_not_acted_on(driver: Driver, site: Site) -> None:
    rows = "".join(
        f"<li>{name} <button onclick='out.value = `{name}`'>Delete</button>" for name in ("Ada", "Bob")
    )
    site.pages["/"] = Reply(
        f"<ul id=rows>{rows}</ul><output id=out></output><input aria-label=Sort oninput='"
        "if (this.done) return; this.done = 1; const [a, b] = rows.querySelectorAll(`button`);"
        "a.parentNode.append(b); rows.lastChild.append(a)'>"
    )
    await driver.act("go_to_url", url=site.url)
    await driver.look()
    await driver.act("input_text", index=2, text="x")
    assert not await driver.page.has_changed()
    with pytest.raises(BrowserError, match="index 0 not found"):
        await driver.act("click_element", index=0)


async def test_what_only_a_scroll_brings_near_is_no_change(driver: Driver, site: Site) -> None:
    await opened(driver, site)
    await driver.act("scroll_to_text", text="Bottom")
    await driver.act("scroll_up", scroll_amount=2_500)
    at = await driver.index("Far")
    await driver.act("scroll_up", scroll_amount=700)
    await driver.look()
    await driver.act("input_text", index=at, text="x")
    assert not await driver.page.has_changed()


async def test_new_elements_are_still_marked_after_the_comparison(driver: Driver, site: Site) -> None:
    at = await opened(driver, site, "send.insertAdjacentHTML('afterend', '<button>Undo</button>')")
    await driver.act("click_element", index=at["Send"])
    assert await driver.page.has_changed()
    assert "*[" in (await driver.look()).split(">Undo<")[0].splitlines()[-1].split("</button>")[-1]
