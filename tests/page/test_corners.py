"""The page where something is missing, gone, refused, or written from right to left."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
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
_DROP_SIZES = """sizes => {
    const data = new DataTransfer();
    for (const [name, size] of Object.entries(sizes)) data.items.add(new File([new Uint8Array(size)], name));
    const event = new DragEvent("drop", { dataTransfer: data, bubbles: true });
    document.querySelector("#question").dispatchEvent(event);
}"""
HIDE = """isHidden => {
    Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
    document.dispatchEvent(new Event("visibilitychange"));
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


@pytest.mark.slow
@pytest.mark.parametrize("address", ["#no-such-conversation", "#no%2Fsuch"])
def test_a_missing_conversation_is_reported_and_left(tab: Page, address: str):
    tab.goto(f"/{address}")
    tab.get_by_role("link", name="New conversation").last.click()
    expect(tab.get_by_role("heading", name="What should the team work on?")).to_be_visible()


@pytest.mark.parametrize("address", ["#%", "#%E0%A4%A"])
def test_what_is_no_address_is_a_new_conversation(tab: Page, address: str):
    tab.goto(f"/{address}")
    expect(tab.get_by_role("heading", name="What should the team work on?")).to_be_visible()


@pytest.mark.slow
def test_a_conversation_that_is_deleted_in_another_tab_is_gone_here_too(context: BrowserContext, tab: Page):
    other = context.new_page()
    for one in (tab, other):
        one.goto("/#old-20")
        expect(one.locator("li.open")).to_be_visible()
    other.once("dialog", lambda dialog: dialog.accept())
    other.locator("li.open").hover()
    other.locator("li.open").get_by_role("button", name="Delete").click()
    expect(tab.get_by_role("heading", name="Conversation not found.")).to_be_visible()


@pytest.mark.slow
def test_back_and_forward_go_through_conversations_and_drafts_stay_with_theirs(tab: Page):
    tab.goto("/#report")
    field = tab.get_by_label("Your question")
    expect(tab.locator(".answer .markdown table")).to_be_visible()
    field.fill("How old do")
    tab.locator(".threads a[href='#failed']").click()
    expect(tab.locator(".notice.bad")).to_be_visible()
    expect(field).to_have_value("")
    tab.go_back()
    expect(tab.locator(".answer .markdown table")).to_be_visible()
    expect(field).to_have_value("How old do")
    tab.reload()
    expect(field).to_have_value("How old do")
    tab.go_forward()
    expect(tab.locator(".notice.bad")).to_be_visible()
    expect(field).to_have_value("")


def test_a_revoked_key_is_requested_again_and_the_draft_stays(tab: Page):
    tab.goto("/#report")
    tab.get_by_label("Your question").fill("And the swallows?")
    tab.route("**/api/**", refused(401, "key_unknown", "This key is not known here."))
    tab.keyboard.press("Enter")
    tab.get_by_label("API key").fill("another")
    tab.unroute_all()
    tab.keyboard.press("Enter")
    expect(tab.locator(".answer .markdown table")).to_be_visible()
    expect(tab.get_by_label("Your question")).to_have_value("And the swallows?")


@pytest.mark.slow
def test_a_refused_upload_shows_the_reason_and_loses_no_input(tab: Page):
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


@pytest.mark.slow
def test_a_file_that_is_too_large_is_refused_when_it_is_chosen_and_the_others_stay(tab: Page):
    with tab.expect_response("**/healthz"):
        tab.goto("/#report")
    sent = []
    tab.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    tab.evaluate(_DROP_SIZES, {"small.csv": 10, "huge.csv": 30_000_000, "part.csv": 20_000_000})
    for words in ("huge.csv", "30.0 MB", "25.0 MB", "server.max_upload_bytes"):
        expect(tab.get_by_role("alert")).to_contain_text(words)
    expect(tab.locator(".chosen li")).to_contain_text(["small.csv", "part.csv"])
    tab.evaluate(_DROP_SIZES, {"more.csv": 6_000_000})
    for words in ("more.csv", "6.0 MB", "26.0 MB", "25.0 MB", "server.max_upload_bytes"):
        expect(tab.get_by_role("alert")).to_contain_text(words)
    expect(tab.locator(".chosen li")).to_have_count(2)
    tab.evaluate(_DROP_SIZES, {f"{number}.txt": 1 for number in range(99)})
    expect(tab.get_by_role("alert")).to_contain_text("98.txt")
    expect(tab.locator(".chosen li")).to_have_count(100)
    assert sent == []


def test_a_browser_that_keeps_nothing_shows_the_page_all_the_same(tab: Page):
    tab.add_init_script(_NO_STORAGE)
    tab.goto("/#report")
    expect(tab.locator(".answer .markdown table")).to_be_visible()


def test_without_a_model_the_page_shows_what_to_set(tab: Page):
    why = "The endpoint of planner is unreachable. See `maniple doctor`."
    absent = {"ready": False, "why": why}
    told = {"ready": False, "store": {"ready": True, "why": ""}, "model": absent, "search": absent, "mcp": {}}
    tab.route("**/readyz", lambda route: route.fulfill(status=503, json=told))
    tab.goto("/")
    expect(tab.get_by_role("alert")).to_contain_text(why)
    tab.get_by_text("Unavailable features").click()
    expect(tab.locator(".absent li")).to_have_count(1)


@pytest.mark.slow
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


@pytest.mark.slow
def test_two_questions_at_once_begin_one_conversation(page: Page):
    ask(page, "Which is the first?")
    ask(page, "Which is the second?")
    expect(page.locator(".question")).to_have_text(["Which is the first?", "Which is the second?"])
    standing(page, "Done")
    expect(page.get_by_role("navigation").get_by_role("listitem")).to_have_count(1)


@pytest.mark.slow
def test_seven_questions_leave_room_to_stop_and_to_take_one_back(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    ask(page, "Which is the first?")
    standing(page, "Running")
    path = f"/api/threads/{page.url.rpartition('#')[2]}/runs"
    for number in range(6):  # another program queues what the page would send to the team at work
        page.request.post(path, data={"input": f"Which is number {number}?"})
    page.reload()
    expect(page.locator(".standing.queued")).to_have_count(6)
    asked = page.locator(".conversation .question")
    expect(asked).to_have_text(["Which is the first?", *(f"Which is number {one}?" for one in range(6))])
    page.locator(".standing").last.get_by_role("button", name="Cancel").click()
    standing(page, "Cancelled")
    page.locator(".composer").get_by_role("button", name="Cancel").click()
    expect(page.locator(".standing").first.get_by_role("status")).to_have_text("Cancelled")
    expect(page.locator(".standing").nth(1).get_by_role("status")).to_have_text("Running")
    for at in (5, 4, 3, 2):
        page.locator(".standing").nth(at).get_by_role("button", name="Cancel").click()
        expect(page.locator(".standing.cancelled")).to_have_count(8 - at)
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".standing.cancelled")).to_have_count(7)
    expect(page.locator(".foot .notice")).to_be_hidden()


@pytest.mark.slow
def test_a_hidden_tab_lets_its_stream_go_and_goes_on_when_it_is_shown(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    page.clock.install()
    page.reload()
    ask(page)
    expect(page.get_by_text("Working: coder")).to_be_visible()
    with page.expect_event("requestfailed", lambda request: "/events" in request.url):
        page.evaluate(HIDE, True)
        page.clock.fast_forward(6_000)
    page.request.post(f"/api/runs/{_only_run(page)}/cancel", data={})
    page.clock.fast_forward(11_000)
    expect(page).to_have_title(re.compile("^[^●]"))
    page.evaluate(HIDE, False)
    standing(page, "Cancelled")
    expect(page.locator(".foot .notice")).to_be_hidden()


def _only_run(page: Page) -> str:
    thread = page.request.get(f"/api/threads/{page.url.rpartition('#')[2]}").json()
    return thread["runs"][0]["run_id"]


@pytest.mark.slow
def test_who_goes_elsewhere_while_a_conversation_is_made_stays_there(page: Page):
    ask(page, "What was here before?")
    standing(page, "Done")
    before = page.url
    page.get_by_role("link", name="New conversation").first.click()
    held: list[Route] = []
    page.route("**/api/threads", lambda route: held.append(route))
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/threads")):
        ask(page, "Which is new?")
    page.go_back()
    page.get_by_label("Your question").fill("And what")
    expect(page.locator(".question")).to_have_text("What was here before?")
    with page.expect_response("**/runs"):
        held[0].continue_()
    assert page.url == before
    expect(page.get_by_label("Your question")).to_have_value("And what")
    expect(page.locator(".question")).to_have_text("What was here before?")


@pytest.mark.slow
def test_several_clicks_ask_a_question_again_once(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "planner": [{"status": 400, "error": "broken"}]})
    ask(page)
    standing(page, "Failed")
    model.reset(SIMPLE)
    page.get_by_role("button", name="Ask again").dblclick()
    standing(page, "Done")
    expect(page.locator(".question")).to_have_count(2)


@pytest.mark.slow
def test_a_plan_accepted_in_another_tab_is_reported_and_its_form_closes(page: Page, model: OpenAIServer):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    standing(page, "Waiting for you")
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    page.request.post(f"/api/runs/{_only_run(page)}/resume", data={"answer": "accept"})
    page.get_by_role("button", name="Accept the plan").dblclick()
    expect(page.locator(".foot").get_by_role("alert")).to_have_text("It was answered elsewhere.")
    expect(page.get_by_role("button", name="Accept the plan")).to_be_hidden()
    page.locator(".composer").get_by_role("button", name="Cancel").click()
    standing(page, "Cancelled")


@pytest.mark.slow
def test_a_call_is_rejected_with_a_reason_that_is_never_an_approval(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo done"), reply("Then not.")]})
    ask(page)
    page.get_by_role("button", name="Reject with a reason").click()
    page.keyboard.type("approve")
    page.keyboard.press("Enter")
    standing(page, "Done")
    assert any("The user rejected this call: approve" in str(one) for one in model.requests)


@pytest.mark.slow
def test_a_long_question_is_folded(page: Page):
    ask(page, "word " * 1_000)
    standing(page, "Done")
    question = page.locator(".question")
    assert len(question.inner_text()) < 2_000
    question.get_by_role("button", name="Show all").click()
    assert len(question.inner_text()) >= 4_999
