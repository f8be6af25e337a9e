"""The page where something is missing, gone, refused, or written from right to left."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.page.test_page import ask, standing
from tests.page.views import refused
from tests.serving import ServerProcess

_NO_STORAGE = """Object.defineProperty(window, "sessionStorage", {
    get() { throw new DOMException("no", "SecurityError"); },
})"""
_GIVE = """kind => {
    const data = new DataTransfer();
    data.items.add(new File(["x"], kind === "paste" ? "image.png" : "sums.csv", { type: "image/png" }));
    const event = kind === "paste"
        ? new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
        : new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true });
    document.querySelector("#question").dispatchEvent(event);
}"""
_RIGHTMOST = """one => {
    const range = document.createRange();
    range.selectNodeContents(one);
    const text = range.getBoundingClientRect(), box = one.getBoundingClientRect();
    return [text.left - box.left, box.right - text.right];
}"""


@pytest.fixture
def context(browser: Browser, seeded: ServerProcess) -> Iterator[BrowserContext]:
    context = browser.new_context(base_url=seeded.url, locale="en-GB")
    context.set_default_timeout(30_000)
    wrong: list[str] = []
    context.on("weberror", lambda error: wrong.append(str(error.error)))
    yield context
    context.close()
    assert wrong == []


@pytest.fixture
def tab(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.mark.parametrize("address", ["#no-such-conversation", "#no%2Fsuch"])
def test_a_conversation_that_is_not_there_is_said_so_and_left(tab: Page, address: str):
    tab.goto(f"/{address}")
    tab.get_by_role("link", name="New conversation").last.click()
    expect(tab.get_by_role("heading", name="What should the team work on?")).to_be_visible()


@pytest.mark.parametrize("address", ["#%", "#%E0%A4%A"])
def test_what_is_no_address_is_a_new_conversation(tab: Page, address: str):
    tab.goto(f"/{address}")
    expect(tab.get_by_role("heading", name="What should the team work on?")).to_be_visible()


def test_a_conversation_that_is_deleted_in_another_tab_is_gone_here_too(context: BrowserContext, tab: Page):
    other = context.new_page()
    for one in (tab, other):
        one.goto("/#old-20")
        expect(one.locator("li.open")).to_be_visible()
    other.once("dialog", lambda dialog: dialog.accept())
    other.locator("li.open").hover()
    other.locator("li.open").get_by_role("button", name="Delete").click()
    expect(tab.get_by_role("heading", name="This conversation is not here.")).to_be_visible()


def test_back_and_forward_go_through_conversations_and_drafts_stay_with_theirs(tab: Page):
    tab.goto("/#report")
    field = tab.get_by_label("Your question")
    expect(tab.locator(".markdown table")).to_be_visible()
    field.fill("How old do")
    tab.locator(".threads a[href='#failed']").click()
    expect(tab.locator(".notice.bad")).to_be_visible()
    expect(field).to_have_value("")
    tab.go_back()
    expect(tab.locator(".markdown table")).to_be_visible()
    expect(field).to_have_value("How old do")
    tab.reload()
    expect(field).to_have_value("How old do")
    tab.go_forward()
    expect(tab.locator(".notice.bad")).to_be_visible()
    expect(field).to_have_value("")


def test_a_key_that_ends_in_the_middle_is_asked_for_and_the_draft_is_still_there(tab: Page):
    tab.goto("/#report")
    tab.get_by_label("Your question").fill("And the swallows?")
    tab.route("**/api/**", refused(401, "key_unknown", "This key is not known here."))
    tab.keyboard.press("Enter")
    tab.get_by_label("API key").fill("another")
    tab.unroute_all()
    tab.keyboard.press("Enter")
    expect(tab.locator(".markdown table")).to_be_visible()
    expect(tab.get_by_label("Your question")).to_have_value("And the swallows?")


def test_a_refused_upload_says_why_and_nothing_that_was_given_is_lost(tab: Page):
    tab.goto("/#report")
    tab.route("**/files", refused(413, "too_large", "The files are larger than 25 MB together."))
    for kind in ("paste", "drop"):
        tab.evaluate(_GIVE, kind)
    expect(tab.locator(".chosen li")).to_contain_text(["pasted", "sums.csv"])
    ask(tab, "What is in them?")
    expect(tab.get_by_role("alert")).to_have_text("The files are larger than 25 MB together.")
    expect(tab.locator(".chosen li")).to_have_count(2)
    expect(tab.get_by_label("Your question")).to_have_value("What is in them?")
    tab.get_by_role("link", name="New conversation").click()
    expect(tab.get_by_role("alert")).to_be_hidden()


def test_a_browser_that_keeps_nothing_shows_the_page_all_the_same(tab: Page):
    tab.add_init_script(_NO_STORAGE)
    tab.goto("/#report")
    expect(tab.locator(".markdown table")).to_be_visible()


def test_who_comes_to_a_service_without_a_model_is_told_what_to_do(tab: Page):
    why = "The endpoint of planner is unreachable. See `maniple doctor`."
    absent = {"ready": False, "why": why}
    told = {"ready": False, "store": {"ready": True, "why": ""}, "model": absent, "search": absent, "mcp": {}}
    tab.route("**/readyz", lambda route: route.fulfill(status=503, json=told))
    tab.goto("/")
    expect(tab.get_by_role("alert")).to_contain_text(why)
    tab.get_by_text("What this service does without").click()
    expect(tab.locator(".absent li")).to_have_count(1)


def test_each_text_runs_in_the_direction_of_its_letters(tab: Page):
    tab.goto("/#report")
    question = tab.locator(".question")
    expect(question).to_be_visible()
    question.evaluate("one => { one.style.width = '400px'; one.style.padding = 0 }")
    left, _ = question.evaluate(_RIGHTMOST)
    question.evaluate("one => { one.textContent = 'كيف تنام طيور السمامة؟' }")
    moved, right = question.evaluate(_RIGHTMOST)
    assert left < 1 < moved
    assert right < 1


def test_two_questions_at_once_begin_one_conversation(page: Page):
    ask(page, "Which is the first?")
    ask(page, "Which is the second?")
    expect(page.locator(".question")).to_have_text(["Which is the first?", "Which is the second?"])
    standing(page, "Done")
    expect(page.get_by_role("navigation").get_by_role("listitem")).to_have_count(1)


def test_a_long_question_is_folded(page: Page):
    ask(page, "word " * 1_000)
    standing(page, "Done")
    question = page.locator(".question")
    assert len(question.inner_text()) < 2_000
    question.get_by_role("button", name="Show all").click()
    assert len(question.inner_text()) >= 4_999
