"""A keyboard is enough, screen readers announce changes, and the page is in the browser's language."""

import json
import re

import pytest
from playwright.sync_api import Page, Request, Route, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.seeded import recorded
from tests.page.test_page import ask, standing

_NAME = """() => {
    const one = document.activeElement;
    return one === document.body ? "" : one.ariaLabel || one.innerText || one.tagName;
}"""
_HEAR = """() => {
    const region = document.querySelector("[aria-live=polite]");
    window.heard = [];
    new MutationObserver(() => window.heard.push(region.textContent))
        .observe(region, { subtree: true, childList: true, characterData: true });
}"""


def tab_to(page: Page, name: str, key: str = "Tab") -> None:
    """Press Tab until what has this name has the focus, and can be seen to have it."""
    reached = []
    for _ in range(60):
        page.keyboard.press(key)
        reached.append(page.evaluate(_NAME))
        if re.search(name, reached[-1]):
            ring = "one => getComputedStyle(one).outlineStyle !== 'none' || one.matches('.composer textarea')"
            assert page.evaluate_handle("document.activeElement").evaluate(ring), f"{name} shows no focus"
            return
    raise AssertionError(f"{name} is not among {reached}")


def test_a_keyboard_is_enough_to_ask_answer_and_look(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("4")]})
    tab_to(page, "^Skip to the question")
    page.keyboard.press("Enter")
    page.keyboard.type("1+3=?")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    tab_to(page, "^Approve", "Shift+Tab")
    page.keyboard.press("Enter")
    standing(page, "Done")
    assert page.evaluate(_NAME) == "Your question", "the focus is not lost with the form"
    tab_to(page, "^Report", "Shift+Tab")
    page.keyboard.press("Home")
    tab_to(page, "^Work")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".call")).to_be_visible()
    tab_to(page, "Run a shell command")
    page.keyboard.press("Enter")
    expect(page.locator(".call")).to_contain_text("echo 4")


@pytest.mark.slow
def test_a_keyboard_is_enough_to_rename_and_delete(page: Page):
    ask(page, "Which bird is blue?")
    standing(page, "Done")
    tab_to(page, "Rename: Which bird", "Shift+Tab")
    page.keyboard.press("Enter")
    page.keyboard.type("Birds")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Birds")).to_be_focused()
    tab_to(page, "Delete: Birds")
    page.once("dialog", lambda dialog: dialog.accept())
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Birds")).to_be_hidden()
    expect(page.locator(".threads a:focus")).to_have_count(1)


def test_menus_close_with_escape_and_give_the_focus_back(page: Page):
    tab_to(page, "^Team")
    page.keyboard.press("Enter")
    expect(page.get_by_label("researcher")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    expect(page.get_by_label("researcher")).to_be_hidden()
    assert str(page.evaluate(_NAME)).startswith("Team")
    page.set_viewport_size({"width": 375, "height": 700})
    menu = page.get_by_role("button", name="Show conversations")
    menu.click()
    expect(page.get_by_role("link", name="New conversation")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("navigation")).to_be_hidden()
    expect(menu).to_be_focused()


@pytest.mark.slow
def test_a_screen_reader_announces_begin_and_end_of_an_answer_and_not_its_text(
    page: Page, model: OpenAIServer
):
    model.reset({**SIMPLE, "reporter": [reply("Word by word, " * 30, delay_seconds=0.02)]})
    page.get_by_role("button", name="Review the plan").click()
    page.evaluate(_HEAR)
    ask(page)
    standing(page, "Waiting for you")
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")
    # A run is not always long enough at work, or in the queue, for that to be said.
    passing = ("", "Waiting for its turn", "Running")
    heard = [text for text in page.evaluate("window.heard") if text not in passing]
    assert heard == ["Waiting for you", "The answer is being written", "Done"]


def test_the_page_is_chinese_in_a_chinese_browser(page: Page):
    context = page.context.browser.new_context(base_url=page.url, locale="zh-CN")  # type: ignore[union-attr]
    tab = context.new_page()
    tab.goto("/")
    expect(tab.get_by_role("heading", name="团队要做什么？")).to_be_visible()
    assert tab.locator("html").get_attribute("lang") == "zh"
    context.close()


@pytest.mark.slow
def test_what_is_read_stays_in_its_place_when_questions_come_in_before_and_after_it(page: Page):
    asked = _hold_a_conversation(page, 12)
    done = page.locator(".standing.completed")
    expect(done).to_have_count(8)
    expect(page.get_by_text("Question 11", exact=True)).to_be_in_viewport()
    page.locator(".conversation").evaluate("one => one.scrollTo(0, 0)")
    read = page.get_by_text("Question 4", exact=True)
    expect(read).to_be_in_viewport()
    was = _top(page, "Question 4")
    page.get_by_role("button", name="Show earlier questions").click()
    expect(done).to_have_count(12)
    assert abs(_top(page, "Question 4") - was) < 40, "only the button above it is gone"
    asked.append("run-12")
    page.evaluate("new BroadcastChannel('maniple').postMessage('changed')")
    expect(done).to_have_count(13)
    expect(read).to_be_in_viewport()


@pytest.mark.slow
def test_a_new_name_is_saved_on_blur_and_dropped_with_escape(page: Page):
    ask(page, "Which bird is red?")
    standing(page, "Done")
    other = page.context.new_page()
    other.goto(page.url)
    for name, leave in (("Dropped", "Escape"), ("Robins", "Tab")):
        page.locator("li.open").hover()
        page.locator("li.open").get_by_role("button", name="Rename").click()
        page.keyboard.type(name)
        page.keyboard.press(leave)
    for tab in (page, other):
        expect(tab.get_by_role("link", name="Robins")).to_be_visible()
    expect(page.get_by_role("link", name="Dropped")).to_have_count(0)
    other.close()


@pytest.mark.slow
def test_an_empty_list_a_search_without_hits_and_a_failed_list_differ(page: Page):
    listed = page.get_by_role("navigation", name="Conversations")
    search = page.get_by_label("Search conversations")
    search.fill("no such words")
    expect(listed.get_by_text("No matches.")).to_be_visible()
    page.route("**/api/threads?**", lambda route: route.abort())
    # A page that opens reads the list twice; the button is gone as soon as one of these succeeds.
    failed: list[Request] = []
    with page.expect_event("requestfailed", lambda request: failed.append(request) or len(failed) == 2):
        page.reload()
    expect(listed.get_by_text("The conversations cannot be loaded right now.")).to_be_visible()
    expect(listed.get_by_text("Nothing here yet.")).to_have_count(0)
    page.route("**/api/threads?**", lambda route: route.fulfill(json={"threads": [], "next_before": None}))
    listed.get_by_role("button", name="Try again").click()
    expect(listed.get_by_text("Nothing here yet.")).to_be_visible()


@pytest.mark.slow
def test_choices_outlive_a_reload_and_the_field_fits_its_text_in_a_window_of_another_width(page: Page):
    for name in ("Deep thinking", "Review the plan"):
        page.get_by_role("button", name=name).click()
    page.locator("summary", has_text="Team").click()
    page.get_by_label("browser").uncheck()
    page.reload()
    pressed = page.locator(".composer [aria-pressed=true]")
    expect(pressed).to_have_text(["Deep thinking", "Review the plan"])
    page.locator("summary", has_text="Team").click()
    expect(page.get_by_label("browser")).not_to_be_checked()
    field = page.get_by_label("Your question")
    field.fill("word " * 60)
    page.set_viewport_size({"width": 375, "height": 900})
    assert field.evaluate("one => one.clientHeight === one.scrollHeight")


def _top(page: Page, words: str) -> float:
    return float(page.get_by_text(words, exact=True).evaluate("one => one.getBoundingClientRect().top"))


def _hold_a_conversation(page: Page, count: int) -> list[str]:
    """Open one of so many questions that a server need not answer; returns its runs, oldest first."""
    runs = [f"run-{number}" for number in range(count)]

    def list_runs(route: Route) -> None:
        listed = [{"run_id": one, "status": "completed"} for one in reversed(runs)]
        route.fulfill(json={"conversation_id": "long", "branch_points": [], "runs": listed})

    def tell(route: Route) -> None:
        question = "Question " + route.request.url.partition("run-")[2].partition("/")[0]
        stream = json.loads(json.dumps(recorded("small-talk")).replace("1+3=?", question))
        frames = [f"id: {one['id']}\nevent: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in stream]
        route.fulfill(body="".join(frames), content_type="text/event-stream")

    page.route("**/api/threads/long", list_runs)
    page.route("**/api/runs/*/events*", tell)
    page.set_viewport_size({"width": 1280, "height": 600})
    page.goto("/#long")
    return runs
