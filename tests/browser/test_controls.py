"""What is special about an action: each with the page that it takes, in a real Chromium."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from maniple.browser import Browser, FoundPage, PageServices, open_browser
from maniple.config import BrowserSettings
from maniple.errors import BrowserError, FileError, WorkspaceFull
from tests.browser.driving import Driver
from tests.crawler.web import Reply, Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

SETTINGS = BrowserSettings(
    allow_private=("127.0.0.2/32",), timeout_seconds=20, max_download_bytes=100_000, max_wait_seconds=0.1
)


@pytest.fixture(scope="module")
async def browser(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(SETTINGS) as browser:
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


def notices(driver: Driver) -> str:
    assert driver.state is not None
    return "\n".join(driver.state.notices)


# Tabs and windows


async def test_a_new_tab_is_followed_and_named(driver: Driver, site: Site) -> None:
    site.pages["/new"] = Reply(
        "<title>New</title><p>in the new tab<button onclick=window.close()>Leave</button>"
    )
    await shown(driver, site, "<a href=/new target=_blank>Open</a>")
    opened = await driver.on("click_element", "Open")
    assert opened.text == f"Clicked element at index 0 - Opened new tab 2 with {site.url}/new"
    assert "in the new tab" in await driver.look()
    closed = await driver.on("click_element", "Leave")
    assert closed.text.endswith(" - The tab was closed")
    assert "Open" in await driver.look()


async def test_a_popup_window_is_a_tab_and_an_index_of_the_other_is_refused(
    driver: Driver, site: Site
) -> None:
    site.pages["/pop"] = Reply("<title>Pop</title><button>Inside</button>")
    await shown(driver, site, "<button onclick=\"open('/pop', '', 'width=300,height=200')\">Pop up</button>")
    index = await driver.index("Pop up")
    assert "Opened new tab 2" in (await driver.act("click_element", index=index)).text
    with pytest.raises(BrowserError, match=f"^Element with index {index} not found: another tab"):
        await driver.act("click_element", index=index)
    assert "Inside" in await driver.look()


async def test_a_page_cannot_open_tabs_without_end(driver: Driver, site: Site) -> None:
    await shown(
        driver, site, "<button onclick=\"for (let i = 0; i < 60; i++) open('/', '_blank')\">More</button>"
    )
    await driver.on("click_element", "More")
    await driver.look()
    assert driver.state is not None
    assert len(driver.state.tabs) <= 20


async def test_numbers_of_tabs_stay_when_others_are_closed(driver: Driver, site: Site) -> None:
    await shown(driver, site, "<p>tab")
    for _ in range(2):
        await driver.act("open_tab", url=site.url)
    await driver.act("switch_tab", tab_id=2)
    await driver.act("close_tab")
    await driver.look()
    assert driver.state is not None
    assert [tab.tab_id for tab in driver.state.tabs] == [1, 3]
    with pytest.raises(BrowserError, match="no tab 2; open are: 1, 3"):
        await driver.act("switch_tab", tab_id=2)


# Dialogs


async def test_dialogs_of_a_page_are_answered_and_reported(driver: Driver, site: Site) -> None:
    await shown(
        driver,
        site,
        "<button onclick=\"alert('Hi'); out.value = confirm('Delete all?')\">Ask</button><output id=out>",
    )
    await driver.on("click_element", "Ask")
    assert "false" in await driver.look()
    assert 'The page said: "Hi"' in notices(driver)
    assert re.search(r'"Delete all\?".*Cancel\.', notices(driver))


@pytest.mark.slow
async def test_questions_are_accepted_when_that_is_set(site: Site) -> None:
    async with open_browser(SETTINGS.model_copy(update={"dialogs": "accept"})) as browser:
        driver = Driver(await browser.page("yes"))
        html = "<button onclick=\"out.value = confirm('Sure?')\">Ask</button><output id=out></output>"
        await shown(driver, site, html + "<script>onbeforeunload = event => event.preventDefault()</script>")
        await driver.on("click_element", "Ask")
        assert "true" in await driver.look()
        assert (await driver.act("refresh")).text == "Refreshed current page"


@pytest.mark.parametrize(
    ("keys", "result"), [("Ada", "Ada"), ("Enter", "somebody"), ("Escape", "null"), ("", None)]
)
async def test_a_prompt_waits_for_the_model(
    keys: str, result: str | None, driver: Driver, site: Site
) -> None:
    html = "<button onclick=\"out.value = 'name: ' + prompt('Who?', 'somebody')\">Ask</button><output id=out>"
    await shown(driver, site, html)
    asked = await driver.on("click_element", "Ask")
    assert asked.text == "Clicked element at index 0 - The page asks: \"Who?\" (as it stands: 'somebody')"
    assert '"Who?"' in await driver.look()
    if result is None:
        await driver.act("wait", seconds=0)
        assert "name: null" in await driver.look()
        assert "answered with Cancel" in notices(driver)
        return
    assert (await driver.act("send_keys", keys=keys)).text == f"Sent keys: {keys}"
    assert f"name: {result}" in await driver.look()


async def test_a_beforeunload_dialog_is_reported_and_the_page_stays(driver: Driver, site: Site) -> None:
    await shown(
        driver,
        site,
        "<button>Begin</button><script>onbeforeunload = event => event.preventDefault()</script>",
    )
    await driver.on("click_element", "Begin")
    with pytest.raises(BrowserError, match=r"'go_to_url' failed: .*not to be left"):
        await driver.act("go_to_url", url=f"{site.url}/other")
    assert "Begin" in await driver.look()
    assert (await driver.act("close_tab")).text == "Closed current tab"


@pytest.mark.slow
async def test_alerts_without_end_do_not_hold_anything_up(driver: Driver, site: Site) -> None:
    await shown(driver, site, "<button onclick=\"while (true) alert('again')\">Loop</button><p>There")
    await driver.on("click_element", "Loop")
    assert "There" in await driver.look()
    assert "kept from opening more" in notices(driver)


# Files


DOWNLOADS = {
    "by its server": Reply(
        b"content", "text/plain", headers=(("Content-Disposition", 'attachment; filename="a/../b.txt"'),)
    ),
    "PDF": Reply(b"%PDF-1.4 content", "application/pdf"),
}


@pytest.mark.parametrize("reply", DOWNLOADS.values(), ids=DOWNLOADS.keys())
async def test_a_download_is_reported_and_stored(
    reply: Reply, browser: Browser, driver: Driver, site: Site
) -> None:
    kept: list[tuple[str, bytes]] = []

    async def keep(name: str, file: Path) -> str:
        kept.append((name, await asyncio.to_thread(file.read_bytes)))
        return f"downloads/{name}"

    site.pages["/file"] = reply
    driver = Driver(await browser.page("thread", PageServices(save_file=keep)))
    await shown(driver, site, "<a href=/file>Get</a>")
    clicked = await driver.on("click_element", "Get")
    assert clicked.text == f"Clicked element at index 0 - Downloaded file to downloads/{kept[0][0]}"
    assert [content.rpartition(b"content")[1] for _, content in kept] == [b"content"]
    assert "/" not in kept[0][0]
    gone = await driver.act("go_to_url", url=f"{site.url}/file")
    assert gone.text == f"Navigated to {site.url}/file - Downloaded file to downloads/{kept[0][0]}"
    assert len(kept) == 2


async def test_a_file_that_a_script_makes_is_downloaded_into_the_folder(
    driver: Driver, browser: Browser, site: Site
) -> None:
    await shown(
        driver,
        site,
        "<button onclick=\"const a = document.createElement('a'); a.download = 'made.txt';"
        "a.href = window.URL.createObjectURL(new Blob(['made here'])); a.click()\">Make</button>",
    )
    # No request tells that it comes: it is part of the result, or of a later look.
    told = (await driver.on("click_element", "Make")).text
    for _ in range(100):
        if "Downloaded file to" in told:
            break
        await driver.look()
        told = notices(driver)
    path = Path(told.partition("Downloaded file to ")[2].rstrip("."))
    assert (path.name, await asyncio.to_thread(path.read_text)) == ("made.txt", "made here")


async def test_a_download_that_cannot_be_stored_is_reported(browser: Browser, site: Site) -> None:
    async def full(name: str, file: Path) -> str:
        raise WorkspaceFull("There is no room for it.")

    attachment = (("Content-Disposition", "attachment"),)
    site.pages["/large"] = Reply(b"x" * 200_000, "application/zip", headers=attachment)
    site.pages["/small"] = Reply(b"x", "application/zip", headers=attachment)
    driver = Driver(await browser.page("full", PageServices(save_file=full)))
    large = await driver.act("go_to_url", url=f"{site.url}/large")
    assert large.text.endswith("more than 100000 bytes")
    small = await driver.act("go_to_url", url=f"{site.url}/small")
    assert "not kept" in small.text and "no room" in small.text
    await driver.page.aclose()


UPLOADS = {
    "field": "<input type=file aria-label=Choose onchange='out.value = this.files[0].name'>",
    "button": "<button onclick='f.click()'>Choose</button>"
    "<input id=f type=file hidden onchange='out.value = f.files[0].name'>",
}


@pytest.mark.parametrize("html", UPLOADS.values(), ids=UPLOADS.keys())
async def test_a_file_is_uploaded_by_its_path(
    html: str, browser: Browser, site: Site, tmp_path: Path
) -> None:
    async def find(path: str) -> Path:
        if path != "data/notes.txt":
            raise FileError(f"There is no file '{path}' in the workspace.")
        file = tmp_path / "notes.txt"
        file.write_text("notes")
        return file

    driver = Driver(await browser.page("upload", PageServices(open_file=find)))
    await shown(driver, site, f"{html}<output id=out></output>")
    index = await driver.index("Choose")
    if "button" in html:
        await driver.act("click_element", index=index)
        await driver.look()
        assert "asks for a file" in notices(driver)
        index = await driver.index("Choose")
    with pytest.raises(BrowserError, match=r"'input_text' failed: .*no file 'x'"):
        await driver.act("input_text", index=index, text="x")
    given = await driver.act("input_text", index=index, text="data/notes.txt")
    assert given.text == f"Input 'data/notes.txt' into element at index {index}"
    assert "notes.txt" in await driver.look()
    await driver.page.aclose()


# Fields


FIELDS = {
    "contenteditable": (
        "<div contenteditable aria-label=F oninput='out.value = F.innerText' id=F>old</div>",
        "new 文",
    ),
    "text area": ("<textarea aria-label=F oninput='out.value = this.value'>old</textarea>", "two\nlines"),
    "date": ("<input type=date aria-label=F onchange='out.value = this.value'>", "2026-11-22"),
    "colour": ("<input type=color aria-label=F oninput='out.value = this.value'>", "#1e90ff"),
    "range": ("<input type=range aria-label=F oninput='out.value = this.value'>", "70"),
    "number": ("<input type=number aria-label=F oninput='out.value = this.value'>", "12.5"),
    "by keys alone": ("<input aria-label=F onkeyup='out.value = this.value'>", "searched"),
    "combobox of a wrapper": (
        "<div role=combobox aria-label=F tabindex=0><input oninput='out.value = this.value'></div>",
        "inner",
    ),
}


@pytest.mark.parametrize(("html", "text"), FIELDS.values(), ids=FIELDS.keys())
async def test_a_field_takes_a_text(html: str, text: str, driver: Driver, site: Site) -> None:
    await shown(driver, site, f"{html}<output id=out></output>")
    index = next(element.index for element in (driver.state.elements if driver.state else ()))
    told = await driver.act("input_text", index=index, text=text)
    assert told.text == f"Input '{text}' into element at index {index}"
    site.pages["/"] = Reply("")
    read = (await driver.page.read()).text
    assert text.split("\n")[-1] in read
    assert "old" not in read


async def test_an_empty_text_clears_a_field_and_a_password_is_not_shown(driver: Driver, site: Site) -> None:
    await shown(driver, site, "<input aria-label=Name value=old><input type=password aria-label=Secret>")
    index = await driver.index("Name")
    assert (
        await driver.act("input_text", index=index, text="")
    ).text == f"Input '' into element at index {index}"
    assert "old" not in await driver.look()
    index = await driver.index("Secret")
    told = await driver.act("input_text", index=index, text="hunter2")
    assert told.text == f"Input '********' into element at index {index}"
    assert (await driver.act("send_keys", keys="hunter2")).text == "Sent keys: ********"
    assert "hunter2" not in await driver.look()


@pytest.mark.parametrize(
    ("html", "text", "why"),
    [
        ("<input type=date aria-label=F>", "22.11.2026", "write it as 2026-11-22"),
        ("<input type=color aria-label=F>", "bleu", "write it as #1e90ff"),
        ("<input type=number aria-label=F>", "many", "write it as a number"),
        ("<input type=checkbox aria-label=F>", "yes", "it is a checkbox; use click_element"),
        ("<select aria-label=F><option>a</select>", "a", "use select_dropdown_option"),
        ("<button>F</button>", "x", "it is no field"),
        ("<input readonly aria-label=F>", "x", "it is read-only"),
        ("<input type=file aria-label=F>", "x", "no file can be given"),
    ],
)
async def test_a_rejected_text_is_reported_with_the_reason(
    html: str, text: str, why: str, driver: Driver, site: Site
) -> None:
    await shown(driver, site, html)
    with pytest.raises(BrowserError, match=f"^Browser action 'input_text' failed: .*{why}"):
        await driver.act("input_text", index=0, text=text)


# Dropdowns

PORTAL = """<div role=combobox aria-label=Fruit tabindex=0 aria-expanded=false aria-haspopup=listbox id=box>
None</div>
<script>box.onclick = () => setTimeout(() => {
  const list = document.body.appendChild(document.createElement("div"));
  list.role = "listbox";
  for (const name of ["Apple", "Pear", "Plum"]) {
    const option = list.appendChild(document.createElement("div"));
    const take = () => { box.textContent = "Took " + name; list.remove() };
    Object.assign(option, {role: "option", textContent: name, onclick: take});
    option.setAttribute("data-value", name.slice(0, 2));
  }
  box.setAttribute("aria-expanded", "true");
}, 50)</script>"""
FILTERED = """<input role=combobox aria-label=City aria-controls=cities id=city>
<ul role=listbox id=cities></ul><output id=out></output>
<script>const all = ["Amsterdam", "Bergen", "Berlin", "Bern"];
const fitting = () => all.filter(name => city.value && name.startsWith(city.value));
city.oninput = () => { cities.replaceChildren(...fitting().map(name => {
  const item = document.createElement("li"); item.role = "option"; item.textContent = name;
  item.onclick = () => { out.value = "Went to " + name }; return item })) }</script>"""
LISTBOX = """<ul role=listbox aria-label=Sizes tabindex=0>
<li role=option onclick="out.value = 'Size S'">S
<li role=option aria-disabled=true>M<li role=option onclick="out.value = 'Size L'">L</ul><output id=out>"""
MULTIPLE = """<select multiple aria-label=Tags
 onchange="out.value = [...this.selectedOptions].map(o => o.text)">
<option selected>one<option>two<option disabled>three</select><output id=out>"""
DATALIST = """<input list=l aria-label=Tool oninput="out.value = 'Tool ' + this.value">
<datalist id=l><option value=saw><option value=axe>
</datalist><output id=out>"""


@pytest.mark.parametrize(
    ("html", "options", "choice", "result"),
    [
        (PORTAL, ["Apple", "Pear", "Plum"], "pear", "Took Pear"),
        (PORTAL, ["Apple", "Pear", "Plum"], "Pl", "Took Plum"),
        (LISTBOX, ["S", "M", "L"], "L", "Size L"),
        (MULTIPLE, ["one", "two", "three"], "two", "one,two"),
        (DATALIST, ["saw", "axe"], "axe", "Tool axe"),
    ],
    ids=["portal", "by value", "listbox", "multiple", "datalist"],
)
async def test_an_option_is_listed_and_chosen(
    html: str, options: Sequence[str], choice: str, result: str, driver: Driver, site: Site
) -> None:
    await shown(driver, site, html)
    assert driver.state is not None
    index = driver.state.elements[0].index
    listed = (await driver.act("get_dropdown_options", index=index)).text
    found = json.loads(listed.removeprefix("Dropdown options: "))
    assert [option["text"] for option in found] == options
    assert [option["index"] for option in found] == list(range(len(options)))
    chosen = await driver.act("select_dropdown_option", index=index, text=choice)
    assert chosen.text == f"Selected option '{choice}' from dropdown at index {index}"
    assert result in (await driver.page.read()).text


LONG = """<select aria-label=Part onchange="out.value = 'Took ' + this.value"></select>
<output id=out></output><script>const named = (_, n) => new Option("Part " + n, "p" + n);
const parts = Array.from({length: 5000}, named);
document.querySelector("select").append(...parts)</script>"""


async def test_of_a_long_list_every_option_is_found_by_its_words(driver: Driver, site: Site) -> None:
    await shown(driver, site, LONG)
    listed = (await driver.act("get_dropdown_options", index=0)).text
    assert re.search(r'"index": 99\}\] \(the first 100 of 5000; `text`', listed)
    found = (await driver.act("get_dropdown_options", index=0, text="PART 499")).text
    assert re.search(r'"index": 4999\}\] \(of 5000, .*11 of 11 .*PART 499', found)
    await driver.act("select_dropdown_option", index=0, text="part 4999")
    assert "Took p4999" in (await driver.page.read()).text
    with pytest.raises(BrowserError, match=r"'Part 0', .*4980 more, which get_dropdown_options"):
        await driver.act("select_dropdown_option", index=0, text="Part 5000")


async def test_a_combobox_that_filters_is_typed_into(driver: Driver, site: Site) -> None:
    await shown(driver, site, FILTERED)
    index = await driver.index("City")
    await driver.act("select_dropdown_option", index=index, text="Berlin")
    assert "Went to Berlin" in (await driver.page.read()).text


@pytest.mark.parametrize(
    ("html", "choice", "why"),
    [
        (MULTIPLE, "four", "there is no option 'four'; there are: 'one', 'two', 'three'"),
        (MULTIPLE, "three", "the option 'three' is disabled"),
        ("<button>None</button>", "x", "it is no dropdown"),
        ("<select aria-label=E></select>", "x", "the dropdown has no options now"),
    ],
)
async def test_a_failed_choice_is_reported_with_the_reason(
    html: str, choice: str, why: str, driver: Driver, site: Site
) -> None:
    await shown(driver, site, html)
    with pytest.raises(BrowserError, match=f"^Browser action 'select_dropdown_option' failed: {why}"):
        await driver.act("select_dropdown_option", index=0, text=choice)


# Keys


async def test_keys_are_pressed_and_texts_typed(driver: Driver, site: Site) -> None:
    site.pages["/found"] = Reply("<p>Found it")
    await shown(driver, site, "<form action=/found><input name=q aria-label=Query autofocus></form>")
    await driver.on("click_element", "Query")
    for keys in ("some text", "Control+A", "other text", "Enter"):
        assert (await driver.act("send_keys", keys=keys)).text == f"Sent keys: {keys}"
    # A busy machine sends the form a moment after the key; a second look comes after that.
    assert "Found it" in await driver.look() or "Found it" in await driver.look()
    assert driver.state is not None
    assert driver.state.url.endswith("/found?q=other+text")


# Reading and searching


@pytest.mark.slow
async def test_what_is_seen_is_extracted_with_frames_and_shadow_roots(browser: Browser, site: Site) -> None:
    asked: list[tuple[str, str]] = []

    async def answer(goal: str, markdown: str) -> str:
        asked.append((goal, markdown))
        return "an answer"

    site.pages["/inner"] = Reply("<p>Seen in the frame.")
    driver = Driver(await browser.page("extract", PageServices(extract=answer)))
    await shown(
        driver,
        site,
        "<h1>Title</h1><p>Seen on the page.<p style='display:none'>Never seen<div id=s></div>"
        "<iframe src=/inner></iframe>"
        "<script>s.attachShadow({mode: 'open'}).innerHTML = '<p>Seen in the shadow.'</script>",
    )
    assert (await driver.act("extract_content", goal="all")).text == "Extracted from page:\nan answer\n"
    [(goal, markdown)] = asked
    assert goal == "all"
    for words in ("Seen on the page.", "Seen in the frame.", "Seen in the shadow."):
        assert words in markdown
    assert "Never seen" not in markdown
    await shown(driver, site, "")
    assert (await driver.act("extract_content", goal="all")).text.startswith("No content was extracted")
    await driver.page.aclose()


async def test_a_search_opens_the_first_result_that_can_be_opened(browser: Browser, site: Site) -> None:
    site.pages["/good"] = Reply("<p>Good one")
    results: list[FoundPage] = []

    async def search(query: str) -> Sequence[FoundPage]:
        return results

    driver = Driver(await browser.page("search", PageServices(search=search)))
    nothing = await driver.act("web_search", query="x")
    assert re.match("No results .*'x'", nothing.text)
    results += [FoundPage("Inner", "http://127.0.0.1:8000/"), FoundPage("Good", f"{site.url}/good", "a page")]
    found = await driver.act("web_search", query="x")
    assert "1. Inner" in found.text
    assert "Not opened: " in found.text
    assert found.text.endswith(f"Navigated to {site.url}/good")
    assert "Good one" in await driver.look()
    await driver.page.aclose()


async def test_a_wait_is_no_longer_than_is_set(driver: Driver) -> None:
    assert (await driver.act("wait", seconds=900)).text == "Waited for 0.1 seconds"


# What is in the way


async def test_what_covers_an_element_is_cleared_away_and_it_is_clicked_once(
    driver: Driver, site: Site
) -> None:
    await shown(
        driver,
        site,
        "<button onclick=\"out.value = 'Bought ' + (window.n = (window.n ?? 0) + 1)\">Buy</button>"
        "<output id=out></output><p>Shop</p>",
    )
    index = await driver.index("Buy")
    # It comes up after the look, before the click.
    html = (
        "<div role=dialog aria-modal=true id=cover style='position:fixed;inset:0;background:#fffd'>"
        "<h2>We value your privacy</h2><p>We use cookies.</p>"
        "<button onclick=cover.remove()>Reject all</button><button>Accept all</button></div>"
    )
    await inject(driver, html)
    clicked = await driver.act("click_element", index=index)
    assert clicked.text == f"Clicked element at index {index}"
    assert "Bought 1" in await driver.look()


async def inject(driver: Driver, html: str) -> None:
    """Put something on the page behind the driver's back."""
    session = driver.page._sessions._slots["thread"].session  # type: ignore[attr-defined]
    tab = await session._window.tabs.current()
    await tab.page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", html)


async def test_what_cannot_be_cleared_away_is_named(driver: Driver, site: Site) -> None:
    await shown(driver, site, "<button>Buy</button><p>Shop</p>")
    index = await driver.index("Buy")
    await inject(driver, "<section style='position:fixed;inset:0;background:#fffd'>A plain cover</section>")
    with pytest.raises(BrowserError, match=r"'click_element' failed: .*A plain cover"):
        await driver.act("click_element", index=index)
