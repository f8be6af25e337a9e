"""What scrolls is scrolled by what is visible of it, so that nothing is passed over."""

import re
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


async def shown(driver: Driver, site: Site, html: str) -> str:
    site.pages["/"] = Reply(f"<!doctype html><title>Page</title>{html}")
    await driver.act("go_to_url", url=site.url)
    return await driver.look()


# Rows exist only while they are in view, as in any virtual list; `#{id}` is {height} pixels high.
LIST = """<div id={id} style="width:400px;height:{height}px;overflow:auto"></div><script>
{{ const box = document.getElementById("{id}");
const inner = document.createElement("div"); box.append(inner);
inner.style.cssText = "height:{total}px;position:relative";
const draw = () => {{ const first = Math.floor(box.scrollTop / 30); inner.replaceChildren();
for (let at = first; at < Math.min({rows}, first + Math.ceil({height} / 30)); at++) {{
const row = document.createElement("button"); row.textContent = "{name} " + at;
row.style.cssText = "position:absolute;width:300px;height:30px;top:" + at * 30 + "px";
row.onclick = () => document.title = "Opened {name} " + at; inner.append(row); }} }};
box.onscroll = draw; draw(); }}</script>"""
FIXED = "<style>html,body{margin:0;height:100%;overflow:hidden}</style>"


def virtual_list(name: str, *, height: int = 310, rows: int = 100) -> str:
    return LIST.format(id=name.lower(), name=name, height=height, rows=rows, total=rows * 30)


async def seen_rows(driver: Driver, name: str, **parameters: int) -> set[int]:
    """The rows that are seen until the end is reached."""
    seen: set[int] = set()
    for _ in range(60):
        seen |= {int(row) for row in re.findall(rf">{name} (\d+)<", await driver.look())}
        if "the end is reached" in (await driver.act("scroll_down", **parameters)).text:
            break
    return seen | {int(row) for row in re.findall(rf">{name} (\d+)<", await driver.look())}


@pytest.mark.parametrize("height", [150, 310, 640])
async def test_every_row_of_a_virtual_list_is_seen(height: int, driver: Driver, site: Site) -> None:
    await shown(driver, site, FIXED + virtual_list("Letter", height=height))
    assert await seen_rows(driver, "Letter") == set(range(100))


async def test_a_row_far_down_is_found_and_opened(driver: Driver, site: Site) -> None:
    listed = await shown(driver, site, FIXED + "<h1>Inbox</h1>" + virtual_list("Letter"))
    assert "0 pixels above, 2690 below" in listed
    for _ in range(20):
        if ">Letter 77<" in await driver.look():
            break
        down = await driver.act("scroll_down")
        assert down.text.startswith("Scrolled down by 310 pixels")
    await driver.on("click_element", ">Letter 77<")
    await driver.look()
    assert driver.state is not None
    assert driver.state.title == "Opened Letter 77"


async def test_of_a_list_that_stands_out_of_the_window_only_the_visible_height_is_scrolled(
    driver: Driver, site: Site
) -> None:
    await shown(driver, site, f"{FIXED}<div style='height:600px'></div>{virtual_list('Letter', height=400)}")
    assert (await driver.act("scroll_down")).text.startswith("Scrolled down by 200 pixels")


async def test_the_part_with_a_given_index_scrolls(driver: Driver, site: Site) -> None:
    await shown(
        driver, site, virtual_list("Mail") + virtual_list("Task", height=200) + "<p style=height:3000px>"
    )
    index = await driver.index("Task 0")
    assert (await driver.act("scroll_down", index=index)).text.startswith("Scrolled down by 200 pixels")
    listed = await driver.look()
    assert ">Task 9<" in listed
    assert ">Mail 0<" in listed
    assert driver.state is not None
    assert driver.state.scroll_info.pixels_above == 0


async def test_of_several_parts_the_one_used_last_scrolls(driver: Driver, site: Site) -> None:
    await shown(driver, site, virtual_list("Mail") + virtual_list("Task", rows=30))
    await driver.on("click_element", ">Task 1<")
    assert await seen_rows(driver, "Task") == set(range(30))
    assert ">Mail 0<" in await driver.look()
    await driver.on("click_element", ">Mail 0<")
    await driver.act("scroll_down")
    assert ">Mail 0<" not in await driver.look()


async def test_a_page_scrolls_where_the_element_used_last_is_in_no_part(driver: Driver, site: Site) -> None:
    await shown(driver, site, "<button>Top</button>" + virtual_list("Mail") + "<p style=height:3000px>")
    await driver.on("click_element", "Top")
    assert (await driver.act("scroll_down")).text == "Scrolled down by 800 pixels"


async def test_what_was_used_on_a_page_that_was_left_is_forgotten(driver: Driver, site: Site) -> None:
    await shown(driver, site, FIXED + virtual_list("Mail"))
    await driver.on("click_element", ">Mail 1<")
    await shown(driver, site, "<p style=height:3000px>")
    assert (await driver.act("scroll_down")).text == "Scrolled down by 800 pixels"


async def test_a_list_in_a_shadow_root_and_one_in_a_frame_scroll(driver: Driver, site: Site) -> None:
    rows = "".join(f"<button style='display:block;height:30px'>Row {n}</button>" for n in range(60))
    box = f"<div style='height:300px;overflow:auto'>{rows}</div>"
    site.pages["/inner"] = Reply(box)
    for html in (
        f"<x-list></x-list><script>document.querySelector('x-list').attachShadow({{mode:'open'}})"
        f".innerHTML = `{box}`</script>",
        "<iframe src=/inner width=600 height=400></iframe>",
        f"<x-list>{rows}</x-list><script>document.querySelector('x-list').attachShadow({{mode:'open'}})"
        ".innerHTML = `<div style='height:300px;overflow:auto'><slot></slot></div>`</script>",
    ):
        await shown(driver, site, html)
        index = await driver.index(">Row 3<")
        assert (await driver.act("scroll_down", index=index)).text.startswith("Scrolled down by 300 pixels")


async def test_the_scrollable_part_is_scrolled_and_its_end_reported(driver: Driver, site: Site) -> None:
    await shown(
        driver,
        site,
        "<body style='margin:0;overflow:hidden'><div style='height:100vh;overflow:auto'>"
        "<div style='height:2000px'>top</div><button>Bottom</button></div>",
    )
    assert (await driver.act("scroll_down", scroll_amount=1_000)).text == "Scrolled down by 1000 pixels"
    down = (await driver.act("scroll_down")).text
    assert down.startswith("Scrolled down by 800 pixels - Only ")
    assert down.endswith(": the end is reached")
    assert "Bottom" in await driver.look()
    assert (await driver.act("scroll_up", scroll_amount=5_000)).text.endswith("the beginning is reached")


async def test_a_frame_in_the_middle_is_scrolled(driver: Driver, site: Site) -> None:
    site.pages["/long"] = Reply("<p style='height: 3000px'>long<p>the end")
    await shown(
        driver, site, "<body style='margin:0'><iframe src=/long style='width:100vw;height:90vh'></iframe>"
    )
    assert (await driver.act("scroll_down", scroll_amount=900)).text == "Scrolled down by 900 pixels"


async def test_where_nothing_scrolls_the_wheel_is_turned(driver: Driver, site: Site) -> None:
    await shown(
        driver,
        site,
        "<canvas width=1200 height=700></canvas><output id=out></output>"
        "<script>onwheel = event => out.value = `wheel ${event.deltaY}`</script>",
    )
    assert "the wheel was turned" in (await driver.act("scroll_down", scroll_amount=120)).text
    assert "wheel 120" in (await driver.page.read()).text


async def test_a_negative_amount_is_an_error(driver: Driver) -> None:
    with pytest.raises(BrowserError, match=r"'scroll_down' failed: scroll_amount"):
        await driver.act("scroll_down", scroll_amount=-1)


async def test_the_first_of_several_texts_is_scrolled_to(driver: Driver, site: Site) -> None:
    gap = "<div style='height:3000px'></div>"
    await shown(
        driver, site, f"<p hidden>Chapter two</p>{gap}<p>Chapter two, first{gap}<p>Chapter two, second"
    )
    assert (
        await driver.act("scroll_to_text", text="chapter  two")
    ).text == "Scrolled to text: 'chapter  two'"
    await driver.look()
    assert driver.state is not None
    assert 2_000 < driver.state.scroll_info.pixels_above < 3_500
    with pytest.raises(BrowserError, match=r"'Chapter nine' is not on"):
        await driver.act("scroll_to_text", text="Chapter nine")
