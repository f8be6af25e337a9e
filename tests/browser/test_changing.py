"""Pages that change while an action waits for them: what was shown is acted on, or nothing."""

import re
from collections.abc import AsyncIterator

import pytest

from maniple.browser import Browser
from maniple.errors import BrowserError
from tests.browser.driving import Driver
from tests.crawler.web import Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

NAMES = ["Ada", "Bob", "Cleo", "Dan"]
ROWS = "".join(f"<li><b>{name}</b> <button>Delete</button></li>" for name in NAMES)
VEILED = """
    <ul id=list>ROWS</ul><button onclick=arm()>Arm</button><p id=out></p>
    <div id=veil style='position: fixed; inset: 0' hidden></div>
    <script>
        const rows = () => [...list.querySelectorAll('li')];
        const words = (at) => rows()[at].querySelector('b');
        const button = (at) => rows()[at].querySelector('button');
        list.onclick = ({target}) => {
            if (target.localName === 'button') out.textContent +=
                `${target.textContent} ${target.closest('li').querySelector('b').textContent}. `;
        };
        const arm = () => {
            veil.hidden = false;
            setTimeout(() => { CHANGE; veil.hidden = true; }, 400);
        };
    </script>
""".replace("ROWS", ROWS)
CHANGES = [
    "1",
    "rows()[1].remove()",
    "rows()[2].before(rows()[1])",
    "button(1).replaceWith(button(1).cloneNode(true))",
    "[words(1).innerText, words(2).innerText] = [words(2).innerText, words(1).innerText]",
    "rows()[2].append(button(1)), rows()[1].append(button(2))",
    "button(1).innerText = 'Keep'",
    "list.innerHTML = list.innerHTML.replace('Ada', 'Zoe')",
]
LIST = """
    <div id=box style='height: 300px; overflow: auto'><div id=all style='position: relative'></div></div>
    <p id=out></p>
    <script>
        const HEIGHT = 40, slots = Array.from({length: 14}, () => document.createElement('button'));
        all.style.height = HEIGHT * 200 + 'px';
        for (const slot of slots) {
            slot.style.cssText = 'position: absolute; height: 38px';
            slot.onclick = () => { out.textContent = 'bought ' + slot.textContent; };
        }
        all.append(...slots);
        const draw = () => {
            const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - 2);
            slots.forEach((slot, at) => {
                slot.style.top = (first + at) * HEIGHT + 'px';
                slot.textContent = `Item ${first + at}`;
            });
        };
        box.onscroll = draw;
        draw();
    </script>
"""


@pytest.fixture
async def driver(browser: Browser) -> AsyncIterator[Driver]:
    page = await browser.page("changing")
    yield Driver(page)
    await page.aclose()


async def shown(driver: Driver, site: Site, page: str) -> None:
    site.pages["/changing"] = Reply(page)
    await driver.act("go_to_url", url=f"{site.url}/changing")


async def clicked(driver: Driver, index: int) -> str:
    """Click; what the page says of it then."""
    try:
        await driver.act("click_element", index=index)
    except BrowserError as error:
        assert re.search(f"^Element with index {index} not found|it is no longer on the page", str(error))
    return await driver.look()


@pytest.mark.parametrize("change", CHANGES)
async def test_what_became_another_while_the_click_waited_for_it_is_not_clicked(
    driver: Driver, site: Site, change: str
) -> None:
    await shown(driver, site, VEILED.replace("CHANGE", change))
    index = await driver.index("Delete") + 1
    await driver.on("click_element", "Arm")
    said = await clicked(driver, index)
    assert "Keep Bob" not in said
    assert all(f"Delete {name}." not in said for name in ("Ada", "Cleo", "Dan", "Zoe"))
    assert ("Delete Bob." in said) == (change in ("1", CHANGES[2]))


@pytest.mark.parametrize("item", [4, 7, 10])
async def test_an_item_of_a_list_that_gives_its_rows_to_others_is_not_taken_for_another(
    driver: Driver, site: Site, item: int
) -> None:
    await shown(driver, site, LIST)
    said = await clicked(driver, await driver.index(f"Item {item}<"))
    assert "bought" not in said or f"bought Item {item}\n" in f"{said}\n"


async def test_a_row_that_holds_another_item_now_is_gone_whatever_prevents_a_click_on_that(
    driver: Driver, site: Site
) -> None:
    sold_out = "slot.disabled = first + at > 10; slot.textContent"
    await shown(driver, site, LIST.replace("slot.textContent = `", f"{sold_out} = `"))
    index = await driver.index("Item 10<")
    with pytest.raises(BrowserError, match=f"^Element with index {index} not found"):
        await driver.act("click_element", index=index)


async def test_a_disabled_button_is_not_clicked_however_often_the_page_alerts(
    driver: Driver, site: Site
) -> None:
    alerts = "<script>setInterval(() => alert('Hi'), 700)</script>"
    await shown(driver, site, f"<button disabled>Pay</button>{alerts}")
    with pytest.raises(BrowserError, match=r"'click_element' failed: .*disabled"):
        await driver.on("click_element", "Pay")
