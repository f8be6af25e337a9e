"""What every backend and driver does alike."""

import re

import pytest

from maniple.browser import Browser, BrowserState, FoundPage, Page, PagePicture, PageServices
from maniple.errors import BrowserError, FetchError, FileError
from tests.crawler.web import Site

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]


async def _search(query: str) -> list[FoundPage]:
    return SEARCHES[query]


async def _extract(goal: str, text: str) -> str:
    return f"{goal}: {'You went on.' in text}"


THREAD = "a thread"
SEARCHES: dict[str, list[FoundPage]] = {"nothing": []}
AIDS = PageServices(search=_search, extract=_extract)


@pytest.fixture
async def page(browser: Browser) -> Page:
    return await browser.page(THREAD, AIDS)


@pytest.fixture
async def form(page: Page, site: Site) -> BrowserState:
    await page.act({"action": "go_to_url", "url": f"{site.url}/form"})
    return await page.observe()


def index_of(state: BrowserState, words: str) -> int:
    """The index of the line in what a model is shown that holds `words`."""
    line = next(
        line for line in re.findall(r"\[\d+\]<[^>]*>[^\[]*", state.interactive_elements) if words in line
    )
    return int(line[1 : line.index("]")])


async def test_an_address_is_opened_and_the_page_is_seen(page: Page, site: Site) -> None:
    result = await page.act({"action": "go_to_url", "url": f"{site.url}/form"})
    state = await page.observe()
    assert result.text == f"Navigated to {site.url}/form"
    assert (state.url, state.title) == (f"{site.url}/form", "A form")
    assert re.search(r"\[\d+\]<button>Send it</button>", state.interactive_elements)
    assert (state.scroll_info.pixels_above, state.scroll_info.pixels_below > 1_000) == (0, True)
    assert state.viewport_height > 100
    assert [(tab.url, tab.is_current) for tab in state.tabs][-1] == (state.url, True)
    assert state.screenshot is not None
    assert state.screenshot.startswith(b"\xff\xd8\xff")


async def test_no_picture_is_taken_unless_requested(page: Page, form: BrowserState) -> None:
    assert (await page.observe(screenshot=False)).screenshot is None


async def test_a_screenshot_that_is_asked_for_is_stored_without_marks(browser: Browser, site: Site) -> None:
    stored: list[PagePicture] = []

    async def save(picture: PagePicture) -> str:
        stored.append(picture)
        return "pictures/form.jpeg"

    page = await browser.page(THREAD, PageServices(save_picture=save))
    await page.act({"action": "go_to_url", "url": f"{site.url}/form"})
    seen = await page.observe()
    result = await page.act({"action": "take_screenshot"})
    assert (result.text.split()[-1], result.changed) == ("pictures/form.jpeg", False)
    (picture,) = stored
    assert (picture.url, picture.title) == (seen.url, seen.title)
    assert picture.content.startswith(b"\xff\xd8\xff")


async def test_a_screenshot_that_cannot_be_stored_fails_with_the_reason(
    browser: Browser, page: Page, site: Site
) -> None:
    await page.act({"action": "go_to_url", "url": f"{site.url}/form"})
    with pytest.raises(BrowserError, match=r"'take_screenshot' failed: .*workspace"):
        await page.act({"action": "take_screenshot"})

    async def refuse(picture: PagePicture) -> str:
        raise FileError("The workspace is full.")

    full = await browser.page(THREAD, PageServices(save_picture=refuse))
    with pytest.raises(BrowserError, match="The workspace is full"):
        await full.act({"action": "take_screenshot"})


async def test_a_click_runs_the_pages_handler(page: Page, form: BrowserState) -> None:
    index = index_of(form, "Send it")
    result = await page.act({"action": "click_element", "index": index})
    assert result.text == f"Clicked element at index {index}"
    assert (await page.observe()).title == "clicked"


async def test_a_click_on_a_link_goes_there(page: Page, form: BrowserState, site: Site) -> None:
    await page.act({"action": "click_element", "index": index_of(form, "The next page")})
    state = await page.observe()
    assert (state.url, state.title) == (f"{site.url}/next", "Next")


async def test_a_text_takes_the_place_of_what_is_there(page: Page, form: BrowserState) -> None:
    field, send = index_of(form, "Your name"), index_of(form, "Send it")
    first = await page.act({"action": "input_text", "index": field, "text": "Kim"})
    await page.act({"action": "input_text", "index": field, "text": "Ann 李"})
    await page.act({"action": "click_element", "index": send})
    assert first.text == f"Input 'Kim' into element at index {field}"
    assert "Ann 李|" in (await page.read()).text


async def test_an_empty_text_clears_a_field(page: Page, form: BrowserState) -> None:
    field, send = index_of(form, "Your name"), index_of(form, "Send it")
    await page.act({"action": "input_text", "index": field, "text": "Kim"})
    await page.act({"action": "input_text", "index": field, "text": ""})
    await page.act({"action": "click_element", "index": send})
    text = (await page.read()).text
    assert "|s" in text
    assert "Kim" not in text


async def test_text_typed_into_a_password_field_is_not_shown(page: Page, form: BrowserState) -> None:
    field = index_of(form, "Secret")
    result = await page.act({"action": "input_text", "index": field, "text": "hunter2"})
    state = await page.observe()
    assert "hunter2" not in result.text + state.interactive_elements
    assert result.text == f"Input '********' into element at index {field}"


async def test_a_dropdown_reports_its_options_and_takes_one(page: Page, form: BrowserState) -> None:
    size, send = index_of(form, "<select"), index_of(form, "Send it")
    options = await page.act({"action": "get_dropdown_options", "index": size})
    chosen = await page.act({"action": "select_dropdown_option", "index": size, "text": "Large"})
    await page.act({"action": "click_element", "index": send})
    assert options.text.startswith("Dropdown options: [")
    assert all(word in options.text for word in ('"text": "Small"', '"value": "l"', '"index": 1'))
    assert chosen.text == f"Selected option 'Large' from dropdown at index {size}"
    assert "|l" in (await page.read()).text


async def test_an_option_that_is_not_there_is_refused(page: Page, form: BrowserState) -> None:
    wanted = {"action": "select_dropdown_option", "index": index_of(form, "<select"), "text": "Huge"}
    with pytest.raises(BrowserError, match="Browser action 'select_dropdown_option' failed: "):
        await page.act(wanted)


async def test_the_page_is_scrolled_by_the_given_amount_or_a_window(page: Page, form: BrowserState) -> None:
    down = await page.act({"action": "scroll_down", "scroll_amount": 300})
    at_300 = (await page.observe()).scroll_info.pixels_above
    up = await page.act({"action": "scroll_up", "scroll_amount": 100})
    at_200 = (await page.observe()).scroll_info.pixels_above
    window = await page.act({"action": "scroll_down"})
    after = (await page.observe()).scroll_info.pixels_above
    assert (down.text, up.text) == ("Scrolled down by 300 pixels", "Scrolled up by 100 pixels")
    assert (at_300, at_200, after) == (300, 200, 200 + form.viewport_height)
    assert window.text == f"Scrolled down by {form.viewport_height} pixels"


async def test_a_negative_amount_is_an_error(page: Page, form: BrowserState) -> None:
    with pytest.raises(BrowserError, match="Browser action 'scroll_down' failed: "):
        await page.act({"action": "scroll_down", "scroll_amount": -5})


async def test_a_text_is_scrolled_to_or_reported_missing(page: Page, form: BrowserState) -> None:
    result = await page.act({"action": "scroll_to_text", "text": "Far below"})
    assert result.text == "Scrolled to text: 'Far below'"
    assert (await page.observe()).scroll_info.pixels_above > 1_000
    with pytest.raises(BrowserError, match="Failed to scroll to text: "):
        await page.act({"action": "scroll_to_text", "text": "nowhere on it"})


async def test_keys_go_to_what_has_the_focus(page: Page, form: BrowserState) -> None:
    await page.act({"action": "input_text", "index": index_of(form, "Your name"), "text": "Kim"})
    result = await page.act({"action": "send_keys", "keys": "Enter"})
    assert result.text == "Sent keys: Enter"
    assert (await page.observe()).title == "entered"


async def test_tabs_are_opened_switched_and_closed_by_numbers_that_stay(
    page: Page, form: BrowserState, site: Site
) -> None:
    first = next(tab.tab_id for tab in form.tabs if tab.is_current)
    opened = await page.act({"action": "open_tab", "url": f"{site.url}/next"})
    second = next(tab.tab_id for tab in (await page.observe()).tabs if tab.is_current)
    switched = await page.act({"action": "switch_tab", "tab_id": first})
    back = await page.observe()
    await page.act({"action": "switch_tab", "tab_id": second})
    closed = await page.act({"action": "close_tab"})
    last = await page.observe()
    assert opened.text == f"Opened new tab with {site.url}/next"
    assert (switched.text, closed.text) == (f"Switched to tab {first}", "Closed current tab")
    assert (back.title, last.title) == ("A form", "A form")
    assert {tab.tab_id: tab.url for tab in back.tabs}[second] == f"{site.url}/next"
    assert second not in {tab.tab_id for tab in last.tabs}


async def test_a_tab_that_is_not_there_is_refused(page: Page, form: BrowserState) -> None:
    with pytest.raises(BrowserError, match=r"Browser action 'switch_tab' failed: .*99"):
        await page.act({"action": "switch_tab", "tab_id": 99})


async def test_one_goes_back_as_far_as_one_came(page: Page, form: BrowserState, site: Site) -> None:
    await page.act({"action": "go_to_url", "url": f"{site.url}/next"})
    result = await page.act({"action": "go_back"})
    assert result.text == "Navigated back"
    assert (await page.observe()).title == "A form"


async def test_a_page_is_loaded_again(page: Page, form: BrowserState) -> None:
    await page.act({"action": "click_element", "index": index_of(form, "Send it")})
    result = await page.act({"action": "refresh"})
    assert result.text == "Refreshed current page"
    assert (await page.observe()).title == "A form"


async def test_what_is_on_the_page_is_extracted_by_goal(page: Page, site: Site) -> None:
    await page.act({"action": "go_to_url", "url": f"{site.url}/next"})
    result = await page.act({"action": "extract_content", "goal": "did I go on"})
    assert result.text == "Extracted from page:\ndid I go on: True\n"


async def test_a_search_opens_its_first_result(page: Page, site: Site) -> None:
    SEARCHES["something"] = [
        FoundPage("Next", f"{site.url}/next", "about it"),
        FoundPage("Form", f"{site.url}/form"),
    ]
    result = await page.act({"action": "web_search", "query": "something"})
    assert "about it" in result.text
    assert (await page.observe()).title == "Next"


async def test_a_search_without_results_is_reported(page: Page, form: BrowserState) -> None:
    result = await page.act({"action": "web_search", "query": "nothing"})
    assert "nothing" in result.text
    assert (await page.observe()).title == "A form"


async def test_a_wait_has_an_end(page: Page, form: BrowserState) -> None:
    result = await page.act({"action": "wait", "seconds": 3_600})
    assert result.text.startswith("Waited for 0.2 seconds")


async def test_an_index_that_was_not_shown_is_not_found(page: Page, form: BrowserState) -> None:
    with pytest.raises(BrowserError, match=r"^Element with index 9999 not found"):
        await page.act({"action": "click_element", "index": 9999})


async def test_an_element_that_became_another_is_not_clicked(page: Page, form: BrowserState) -> None:
    send = index_of(form, "Send it")
    await page.act({"action": "click_element", "index": index_of(form, "Change")})
    with pytest.raises(BrowserError, match=f"^Element with index {send} not found: "):
        await page.act({"action": "click_element", "index": send})
    assert (await page.observe()).title == "A form"


async def test_an_index_of_another_page_is_not_clicked(page: Page, form: BrowserState, site: Site) -> None:
    await page.act({"action": "go_to_url", "url": f"{site.url}/next"})
    with pytest.raises(BrowserError, match=r"^Element with index "):
        await page.act({"action": "click_element", "index": index_of(form, "Send it")})


@pytest.mark.parametrize("action", ["go_to_url", "open_tab"])
@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:9/", "file:///etc/passwd", "chrome://version", "http://[::1]/"]
)
async def test_an_address_that_is_not_public_is_not_opened(page: Page, action: str, url: str) -> None:
    with pytest.raises(BrowserError, match=f"Browser action '{action}' failed: "):
        await page.act({"action": action, "url": url})


async def test_an_invalid_action_is_reported_with_the_contracts_message(page: Page) -> None:
    with pytest.raises(BrowserError, match=r"^Index and text are required for 'input_text' action$"):
        await page.act({"action": "input_text", "index": 3})
    with pytest.raises(BrowserError, match=r"^Unknown action: dance$"):
        await page.act({"action": "dance"})


async def test_a_page_is_read_without_a_look_at_it(browser: Browser, site: Site) -> None:
    text = await browser.read(f"{site.url}/next", thread=THREAD)
    assert (text.url, text.title) == (f"{site.url}/next", "Next")
    assert "You went on." in text.text


async def test_an_address_that_is_not_public_is_not_read(browser: Browser) -> None:
    with pytest.raises(FetchError):
        await browser.read("http://127.0.0.1:9/", thread=THREAD)


async def test_a_page_that_was_closed_leaves_nothing_behind(browser: Browser, form: BrowserState) -> None:
    await (await browser.page(THREAD)).aclose()
    state = await (await browser.page(THREAD, AIDS)).observe()
    assert (state.url, len(state.tabs)) == ("about:blank", 1)
