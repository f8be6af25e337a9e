"""What a person sets for the page and for the next run, and what the browser remembers of it."""

import re

import pytest
from playwright.sync_api import Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_corners import HIDE
from tests.page.test_page import ask, standing

_PAPER = "getComputedStyle(document.body).backgroundColor"
_DARK = "rgb(25, 25, 24)"
_LIGHT = "rgb(255, 255, 255)"
_NOTIFICATIONS = """
window.notes = [];
window.Notification = class {
    static permission = "granted";
    static requestPermission() { return Promise.resolve(this.permission); }
    constructor(title, { body }) { window.notes.push([title, body]); }
};
"""


def test_theme_and_language_are_chosen_and_remembered_by_the_browser(page: Page):
    other = page.context.new_page()
    other.goto(page.url)
    expect(other.get_by_label("Theme")).to_have_value("system")
    assert page.evaluate(_PAPER) == _LIGHT
    page.get_by_label("Theme").select_option("dark")
    assert page.evaluate(_PAPER) == _DARK
    expect(other.get_by_label("Theme")).to_have_value("dark")
    assert other.evaluate(_PAPER) == _DARK
    other.close()
    page.emulate_media(color_scheme="dark")
    page.get_by_label("Theme").select_option("light")
    assert page.evaluate(_PAPER) == _LIGHT
    page.get_by_label("Language").select_option("zh")
    expect(page.get_by_role("heading", name="团队要做什么？")).to_be_visible()
    page.reload()
    assert page.locator("html").get_attribute("lang") == "zh"
    assert page.evaluate(_PAPER) == _LIGHT
    page.get_by_label("主题").select_option("system")
    assert page.evaluate(_PAPER) == _DARK


def test_question_code_and_answer_are_copied_as_they_were_written(page: Page, model: OpenAIServer):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    code = "def half(x):\n    return x / 2  # <b>\n"
    answer = f"It is **4**.\n\n```python\n{code}```\n\n| a | b |\n|---|---|\n| 1 | 3 |"
    model.reset({"coordinator": [reply(answer)]})
    ask(page)
    standing(page, "Done")
    # The first rendering of the finished answer has its colours.
    expect(page.locator(".answer code[data-coloured]")).to_be_visible()
    for place, text in ((".question-acts", "1+3=?"), (".answer .block", code), (".answer-acts", answer)):
        button = page.locator(place).get_by_role("button").first
        button.click()
        expect(button).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").rstrip("\n") == text.rstrip("\n")
        expect(button).to_have_text("Copy")


def test_a_text_is_copied_without_the_clipboard_of_a_safe_page_and_the_focus_stays(page: Page):
    page.add_init_script("delete Navigator.prototype.clipboard")
    page.reload()
    ask(page)
    standing(page, "Done")
    page.evaluate("document.addEventListener('copy', () => (window.copied = getSelection().toString()))")
    copy = page.locator(".question-acts").get_by_role("button").first
    copy.press("Enter")
    expect(copy).to_have_text("Copied")
    expect(copy).to_be_focused()
    assert page.evaluate("window.copied") == "1+3=?"


def test_limits_go_with_the_question_as_its_budget(page: Page):
    page.locator("summary", has_text="Limits").click()
    page.get_by_label("minutes of work").fill("1.5")
    page.get_by_label("tokens").fill("5000")
    page.keyboard.press("Escape")
    expect(page.get_by_label("tokens")).to_be_hidden()
    with page.expect_request(lambda one: one.method == "POST" and one.url.endswith("/runs")) as sent:
        ask(page)
    body = sent.value.post_data_json
    assert body["budget"] == {"seconds": 90, "tokens": 5000, "cost": None}
    standing(page, "Done")


def test_a_hidden_tab_notifies_of_the_end_and_its_badge_stays_until_it_is_seen(
    page: Page, model: OpenAIServer
):
    page.add_init_script(_NOTIFICATIONS)
    page.reload()
    notify = page.get_by_role("button", name="Notify me")
    notify.click()
    expect(notify).to_have_attribute("aria-pressed", "true")
    icon = page.locator("link[rel=icon]")
    plain = icon.get_attribute("href")
    model.reset({**SIMPLE, "coder": [{**reply("It is 4."), "hang": True}]})
    ask(page)
    expect(page).to_have_title(re.compile("^● "))
    working = icon.get_attribute("href")
    page.evaluate(HIDE, True)
    model.release()
    expect(page).to_have_title(re.compile("^✓ "))
    assert page.evaluate("window.notes") == [["1+3=?", "Done"]]
    done = icon.get_attribute("href")
    assert len({plain, working, done}) == 3
    for one in (plain, working, done):
        shown = page.request.get(str(one))
        assert (shown.status, shown.headers["content-type"]) == (200, "image/svg+xml")
    page.evaluate(HIDE, False)
    expect(page).to_have_title("1+3=? · maniple")
    assert icon.get_attribute("href") == plain
    ask(page, "2+2=?")
    expect(page.locator(".run")).to_have_count(2)
    standing(page, "Done")
    assert len(page.evaluate("window.notes")) == 1, "a tab that is seen notifies of nothing"


def test_a_hidden_tab_notifies_of_what_waits_for_a_person(page: Page, model: OpenAIServer):
    page.add_init_script(_NOTIFICATIONS)
    page.reload()
    page.get_by_role("button", name="Notify me").click()
    model.reset({**SIMPLE, "coder": [{**call("bash_tool", cmd="echo 4"), "hang": True}, reply("4")]})
    ask(page)
    expect(page).to_have_title(re.compile("^● "))
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    page.evaluate(HIDE, True)
    model.release()
    expect(page).to_have_title(re.compile(r"^\? "))
    assert page.evaluate("window.notes") == [["1+3=?", "Waiting for you"]]
    page.evaluate(HIDE, False)
    page.get_by_role("button", name="Approve").click()
    standing(page, "Done")
    expect(page).to_have_title("1+3=? · maniple")


@pytest.mark.slow
def test_a_refused_permission_is_said_and_nothing_is_turned_on(page: Page):
    page.add_init_script(_NOTIFICATIONS.replace('"granted"', '"denied"'))
    page.reload()
    notify = page.get_by_role("button", name="Notify me")
    notify.click()
    expect(page.locator(".foot .notice.bad")).to_be_visible()
    expect(notify).to_have_attribute("aria-pressed", "false")
