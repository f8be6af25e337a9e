"""The work of a run as it is shown: each tool's own view, a plan under way, a run of 5,000 events."""

import io
import itertools
import json
import zipfile
from pathlib import Path

import pytest
from anyio.from_thread import start_blocking_portal
from PIL import Image
from playwright.sync_api import Locator, Page, expect

from tests.openai_server import SIMPLE, OpenAIServer, reply
from tests.page.stories import Story, keep, long_story
from tests.page.test_page import ask, show_work, standing

LONG = long_story()
_FOUND = [
    {"title": "Common swift", "url": "https://birds.test/swift", "content": "Ten months aloft.", "cite": 3},
    {"title": "Not a page", "url": "javascript:alert(1)", "content": ""},
]
_FAILED = """[stderr]
Traceback (most recent call last):
NameError: name 'boom' is not defined
[exit code 1]"""
# How many calls came into the page in each frame.
_COUNT = """() => {
    window.counts = [];
    const look = () => {
        window.counts.push(document.querySelectorAll(".call").length);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""


def _worked() -> Story:
    story = Story("All kinds of tools")
    story.open()
    story.begin("coder")
    story.call("tavily_search", json.dumps(_FOUND), query="swifts")
    story.call(
        "crawl_tool",
        "# Swifts\n\nSource [3]: https://birds.test/swift\n\nThey **glide**.",
        url="https://birds.test",
    )
    story.call("python_repl_tool", _FAILED, code="boom")
    story.call("python_repl_tool", "drawn\n[figures drawn: plots/bars.png]", seconds=75, code="plot()")
    story.call("bash_tool", "\x1b[32mok\x1b[0m\n[stderr]\nno such file\n[exit code 2]", cmd="ls nowhere")
    story.call("weather", '{"days": [21, 22]}', city="Rome")
    story.say("All **done**.")
    picture = io.BytesIO()
    Image.new("RGB", (40, 30), "green").save(picture, "PNG")
    story.files["bars.png"] = ("image/png", picture.getvalue())
    story.begin("reporter")
    story.say("# Report")
    story.close()
    return story


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    with start_blocking_portal() as portal:  # Playwright has a loop in this thread
        portal.call(keep, home, WORKED, LONG, FAILING)
    return home


WORKED = _worked()


def _failing() -> Story:
    story = Story("A plan that ends with the coder")

    def plan(first: str, second: str, reporter: str) -> None:
        steps = [("Find", "researcher", first), ("Compute", "coder", second), ("All", "reporter", reporter)]
        views = [
            {"id": number, "agent_name": name, "title": title, "description": "", "status": status}
            for number, (title, name, status) in enumerate(steps, start=1)
        ]
        story.tell("plan", title="Tea", steps=[*views[:2], views[2] | {"repeats": True}])

    story.open()
    plan("in_progress", "not_started", "not_started")
    story.begin("researcher")
    story.say("STEP FAILED: no data")
    story.end()
    plan("failed", "not_started", "not_started")
    failed = {"step_id": 1, "title": "Find", "decision": "retry"}
    story.tell("lead_decision", **failed, agent_name=None, hint="Take last year's.")
    plan("in_progress", "not_started", "not_started")
    story.begin("researcher")
    story.say("It costs 3.")
    story.end()
    plan("completed", "in_progress", "not_started")
    story.begin("coder")
    story.say("It is 4.")
    story.end()
    plan("completed", "completed", "in_progress")
    story.begin("reporter")
    story.say("It is 4.")
    story.end()
    plan("completed", "completed", "completed")
    story.close()
    return story


FAILING = _failing()


def opened(page: Page, story: Story) -> Locator:
    """Open the work of a prepared run; return its calls."""
    page.goto(f"/#{story.name}")
    show_work(page)
    page.get_by_text("Work", exact=True).click()
    return page.locator(".call")


def test_each_tools_work_is_shown_as_what_it_is(page: Page):
    calls = opened(page, WORKED)
    expect(calls).to_have_count(6)
    for number in range(6):
        calls.nth(number).locator("> summary").click()
    search, read, failed, drew, bash, weather = (calls.nth(number) for number in range(6))
    expect(search.get_by_role("listitem")).to_have_text(["[3] Common swift birds.test" + "Ten months aloft."])
    expect(search.get_by_role("link")).to_have_attribute("href", "https://birds.test/swift")
    read.get_by_text("What it says").click()
    expect(read.locator("strong")).to_have_text("glide")
    expect(failed.get_by_text("NameError: name 'boom' is not defined")).to_have_count(1)
    expect(drew.get_by_role("img", name="bars.png")).to_be_visible()
    expect(drew.locator("> summary")).to_contain_text("1:15")
    expect(bash.get_by_label("Result")).to_have_text("ok")
    expect(bash.locator(".ansi-green")).to_have_text("ok")
    expect(bash.get_by_label("Errors")).to_have_text("no such file")
    expect(bash.get_by_text("exit code 2")).to_be_visible()
    expect(weather.get_by_role("row", name="city Rome")).to_be_visible()
    expect(page.locator(".totals").first).to_contain_text("1:18")
    expect(page.locator(".turn strong").last).to_have_text("done")


@pytest.mark.slow
def test_all_files_of_a_conversation_are_saved_with_one_button(page: Page):
    opened(page, WORKED)
    files = page.get_by_role("region", name="Files", exact=True)
    with page.expect_download() as saving:
        files.get_by_role("button", name="All files of this conversation").click()
    assert saving.value.suggested_filename == f"{WORKED.title}.zip"
    with zipfile.ZipFile(saving.value.path()) as archive:
        assert {one: archive.read(one) for one in archive.namelist()} == {
            "bars.png": WORKED.files["bars.png"][1]
        }


def test_a_repeated_report_is_no_step_and_the_leads_decision_is_under_the_step_that_failed(page: Page):
    page.goto(f"/#{FAILING.name}")
    show_work(page)
    expect(page.locator(".plan li")).to_have_count(2)
    expect(page.locator(".plan")).not_to_contain_text("reporter")
    expect(page.locator(".plan h2")).to_contain_text("2/2")
    page.get_by_text("Work", exact=True).click()
    turns = page.locator(".turn")
    expect(turns).to_have_count(3)
    expect(turns.first.locator(".decided")).to_contain_text("Take last year's.")
    expect(page.locator(".decided")).to_have_count(1)


@pytest.mark.slow
def test_five_thousand_events_come_in_slices_and_all_of_them_are_there(page: Page):
    assert len(LONG.events) > 4_900
    page.evaluate(_COUNT)
    calls = opened(page, LONG)
    expect(calls).to_have_count(600)
    counts = page.evaluate("window.counts")
    steps = [later - before for before, later in itertools.pairwise(counts)]
    assert 0 < max(steps) <= 24
    assert page.evaluate("document.querySelectorAll('*').length") < 12 * 600
    calls.last.locator("summary").press("Enter")
    expect(calls.last.get_by_label("Arguments")).to_be_in_viewport()
    calls.first.locator("summary").press("Enter")
    expect(calls.first.get_by_role("listitem")).to_have_count(5)


@pytest.mark.slow
def test_a_plan_under_way_is_changed_by_keyboard(page: Page, model: OpenAIServer):
    # A step whose words are changed begins again: its second call is held, too.
    held = [reply("Word by word, " * 22, hang_after=3), reply("4", hang=True)]
    model.reset({**SIMPLE, "coder": [*held, reply("It is.")]})
    ask(page)
    expect(page.locator(".plan li.in_progress")).to_contain_text("Compute")
    expect(page).to_have_title("● 1+3=? · maniple")
    button = page.get_by_role("button", name="Change this step: Compute")
    button.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Skip")).to_be_focused()
    page.keyboard.press("Escape")
    expect(button).to_be_focused()
    button.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Edit")).to_be_focused()
    page.keyboard.press("Enter")
    title = page.get_by_label("Title of the step")
    expect(title).to_be_focused()
    page.get_by_label("Assigned to").select_option("reporter")
    title.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The reporter must have")
    page.get_by_label("Assigned to").select_option("coder")
    title.fill("Compute it anew")
    title.press("Enter")
    # Between the request and the changed plan a note is shown, at times for less than a frame.
    expect(page.locator(".plan li.in_progress")).to_contain_text("Compute it anew")
    expect(button).to_be_focused()
    button.press("Enter")
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(title).to_be_focused()
    page.keyboard.type("Look again")
    page.get_by_label("What to do").fill("Is it 4?")
    with page.expect_response("**/plan"):
        title.press("Enter")
    model.release()
    standing(page, "Done")
    show_work(page)
    steps = page.get_by_role("region", name="Plan").locator("li.completed summary")
    expect(steps).to_contain_text(["Compute it anew", "Look again", "Report"])
    expect(page.get_by_role("button", name="Change this step")).to_have_count(0)
    assert model.stats["by_role"]["coder"] == 3


@pytest.mark.slow
def test_the_focus_goes_with_the_step_that_is_moved(page: Page):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    page.get_by_role("button", name="Edit the plan").click()
    expect(page).to_have_title("? 1+3=? · maniple")
    page.get_by_role("button", name="Add a step").press("Enter")
    added = page.get_by_label("Title of the step").nth(1)
    expect(added).to_be_focused()
    page.keyboard.type("Look it up")
    page.get_by_role("button", name="Earlier").nth(1).press("Enter")
    first = page.locator(".steps li").first
    expect(first.get_by_label("Title of the step")).to_have_value("Look it up")
    expect(first.get_by_role("button", name="Later")).to_be_focused()
    expect(page.get_by_text("“Look it up” is step 1 of 3 now.")).to_be_attached()
    first.get_by_role("button", name="Remove").press("Enter")
    expect(page.get_by_label("Title of the step").first).to_be_focused()
