"""The tabs of the panel: what the team does, its browser, files, sources and report."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, ViewportSize, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing

WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=375, height=800)
_NAMES = ("Now", "Browser", "Files", "Sources", "Report")
_AFTER_SOME_FRAMES = """one => new Promise((done) => {
    let left = 6;
    const next = () =>
        left-- > 0 ? requestAnimationFrame(next) : done(Math.round(one.getBoundingClientRect().top));
    next();
})"""
_WRITES = call("python_repl_tool", code="open('sums.csv', 'w').write('a,b')")


def tab(page: Page, name: str) -> Locator:
    return page.get_by_role("tablist").get_by_role("tab", name=name, exact=True)


def places(page: Page) -> list[Any]:
    """Return where each tab and the question stand."""
    fixed = (*(tab(page, name) for name in _NAMES), page.locator(".question"))
    return [dict(box) if (box := one.bounding_box()) else None for one in fixed]


def test_the_report_is_in_the_panel_at_the_end_and_no_tab_moves(page: Page, model: OpenAIServer):
    page.set_viewport_size(WIDE)
    model.reset({**SIMPLE, "coder": [reply("It is", hang_after=1), reply("4")]})
    ask(page)
    expect(tab(page, "Now")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Now")).to_contain_text("Compute")
    before = places(page)
    model.release()
    standing(page, "Done")
    expect(tab(page, "Report")).to_have_attribute("aria-selected", "true")
    report = page.get_by_role("tabpanel", name="Report")
    expect(report.locator(".markdown strong")).to_have_text("4")
    assert places(page) == before
    report.get_by_role("button", name="Over the whole page").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("The answer is 4.")
    page.keyboard.press("Escape")
    expect(report.get_by_role("button", name="Over the whole page")).to_be_focused()
    report.locator(".offers > summary").click()
    with page.expect_download() as saved:
        report.get_by_role("button", name="Markdown", exact=True).click()
    assert "**4**" in saved.value.path().read_text(encoding="utf-8")
    page.reload()
    expect(report.locator(".markdown strong")).to_have_text("4")


def _long_answer(page: Page, model: OpenAIServer) -> Locator:
    """Let the team report at length; return the answer in the conversation."""
    text = "# Long\n\n" + "A paragraph [of it](#end).\n\n" * 60 + "The end."
    model.reset({**SIMPLE, "reporter": [reply(text)]})
    ask(page)
    standing(page, "Done")
    answer = page.get_by_role("log").locator(".answer")
    expect(answer).to_contain_text("The end.")
    return answer


def test_a_long_report_beside_the_conversation_is_clipped_in_it_until_it_is_wanted(
    page: Page, model: OpenAIServer
):
    page.set_viewport_size(WIDE)
    answer = _long_answer(page, model)
    whole = page.get_by_role("button", name="Show the whole answer")
    expect(whole).to_be_visible()
    expect(answer).to_have_class("answer clipped")
    expect(answer.get_by_role("heading", name="Long")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Read the report")).to_be_in_viewport()
    last = answer.locator("p").last
    last.evaluate("one => { one.tabIndex = -1; one.focus(); }")
    expect(whole).to_have_count(0)
    expect(last).to_be_in_viewport()
    page.reload()
    whole.press("Enter")
    expect(answer).not_to_have_class("answer clipped")
    page.set_viewport_size(PHONE)
    page.reload()
    expect(answer).to_contain_text("The end.")
    expect(whole).to_be_hidden()
    height, shown = answer.evaluate("one => [one.scrollHeight, one.clientHeight]")
    assert height == shown


def test_unfolding_a_report_leaves_what_is_read_where_it_is(page: Page, model: OpenAIServer):
    page.set_viewport_size(WIDE)
    answer = _long_answer(page, model)
    whole = page.get_by_role("button", name="Show the whole answer")
    heading, last = answer.get_by_role("heading", name="Long"), answer.locator("p").last
    page.get_by_role("log").evaluate("one => one.scrollTo(0, one.scrollHeight)")
    before = _settled_top(heading)
    whole.click()
    expect(answer).not_to_have_class("answer clipped")
    assert _settled_top(heading) == before
    expect(answer).to_be_focused()
    page.reload()
    expect(whole).to_be_visible()
    # As a search does, and what the browser itself finds.
    last.evaluate("one => one.scrollIntoView({ block: 'center' })")
    expect(answer).not_to_have_class("answer clipped")
    _settled_top(heading)
    expect(last).to_be_in_viewport()


def _settled_top(one: Locator) -> int:
    """Return where an element stands once some frames have passed, with what follows a change in them."""
    return one.evaluate(_AFTER_SOME_FRAMES)


def test_a_tab_that_a_person_chose_stays_and_shows_what_comes(page: Page, model: OpenAIServer):
    page.set_viewport_size(WIDE)
    model.reset({**SIMPLE, "coder": [{**_WRITES, "hang": True}, reply("4")]})
    ask(page)
    tab(page, "Files").click()
    files = page.get_by_role("tabpanel", name="Files")
    expect(files).to_contain_text("There are no files")
    model.release()
    standing(page, "Done")
    expect(tab(page, "Files")).to_have_attribute("aria-selected", "true")
    with page.expect_download() as saved:
        files.get_by_role("button", name="sums.csv").click()
    assert saved.value.path().read_text() == "a,b"


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
def test_tabs_are_gone_through_by_keyboard_and_say_what_is_not_there(page: Page, size: ViewportSize):
    page.set_viewport_size(size)
    ask(page)
    standing(page, "Done")
    handle = page.locator(".handle")
    if handle.is_visible():
        handle.press("Enter")
        page.keyboard.press("Tab")
    else:
        tab(page, "Report").focus()
    for key, name, text in (
        ("Home", "Now", "Compute"),
        ("ArrowRight", "Browser", "has not used the browser"),
        ("ArrowRight", "Files", "There are no files"),
        ("ArrowRight", "Sources", "has read no page"),
        ("End", "Report", "The answer is 4."),
        ("ArrowRight", "Now", "Compute"),
        ("ArrowLeft", "Report", "The answer is 4."),
    ):
        page.keyboard.press(key)
        expect(tab(page, name)).to_be_focused()
        expect(tab(page, name)).to_have_attribute("aria-selected", "true")
        panel = page.get_by_role("tabpanel")
        expect(panel).to_have_count(1)
        expect(panel).to_contain_text(text)
    page.keyboard.press("Tab")
    expect(page.get_by_role("tabpanel", name="Report")).to_be_focused()


def test_who_is_in_the_work_at_the_end_stays_there(page: Page, model: OpenAIServer):
    page.set_viewport_size(WIDE)
    model.reset({**SIMPLE, "coder": [reply("It is", hang_after=1), reply("4")]})
    ask(page)
    page.get_by_role("group", name="Work").focus()
    model.release()
    standing(page, "Done")
    expect(page.get_by_role("group", name="Work")).to_be_focused()
    expect(tab(page, "Now")).to_have_attribute("aria-selected", "true")
