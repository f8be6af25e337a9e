"""What a person sees of the work while it lasts, and what the service lacks, in the language of the page."""

import json
import re

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.page.test_page import ask, standing
from tests.serving import ServerProcess
from tests.team import plan, step

_TWO = plan(step("coder", "Compute"), step("coder", "Compare"), step("reporter", "Report"))
_PRINTS = call("python_repl_tool", code="import time; time.sleep(1.1); print('four', 2 + 2)")


def test_a_step_that_is_done_shows_what_came_out_while_the_others_work(page: Page, model: OpenAIServer):
    coder = [_PRINTS, reply("It makes **four**."), {"hang": True}]
    model.reset({**SIMPLE, "by_history": True, "planner": [reply(json.dumps(_TWO))], "coder": coder})
    ask(page)
    done = page.get_by_role("region", name="Plan", exact=True).locator("li.completed")
    done.locator("summary").first.click()
    outcome = done.get_by_label("What came out")
    expect(outcome.get_by_label("Result")).to_contain_text("four 4")
    expect(outcome.locator(".markdown strong")).to_have_text("four")
    standing(page, "Running")


@pytest.mark.slow
def test_the_time_since_the_question_stays_in_view_from_member_to_member(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    ask(page)
    time = page.locator(".progress").get_by_title("Working time since the question")
    expect(time).to_have_text(re.compile(r"^\d"))
    expect(page.locator(".progress")).to_contain_text("Plan 0/")
    model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    expect(time).to_have_text(re.compile(r"^(?:[2-9]|\d\d|\d:)"))
    page.get_by_role("button", name="Cancel").click()
    standing(page, "Cancelled")
    expect(page.locator(".standing").get_by_title("Working time since the question")).to_be_visible()


def test_those_who_lead_the_team_are_introduced(page: Page):
    team = page.get_by_role("list", name="Team")
    for name in ("coordinator", "planner", "supervisor", "researcher"):
        expect(team.get_by_role("listitem").filter(has_text=name)).to_have_count(1)


@pytest.mark.slow
def test_a_chinese_page_says_in_chinese_what_the_service_lacks_and_how_long_code_took(
    browser: Browser, server: ServerProcess, model: OpenAIServer
):
    def lack(route: Route) -> None:
        found = route.fetch().json()
        found["search"] = {"ready": False, "why": "Set search.provider in conf.yaml."}
        found["mcp"] = {"notes": {"ready": False, "why": "It does not start."}}
        route.fulfill(json=found)

    model.reset({**SIMPLE, "coder": [_PRINTS, reply("4")]})
    page = browser.new_context(base_url=server.url, locale="zh-CN").new_page()
    page.route("**/readyz", lack)
    page.goto("/")
    page.locator(".absent > summary").click()
    expect(page.locator(".absent li").nth(0)).to_contain_text("网络搜索 无法搜索网络。")
    expect(page.locator(".absent li").last).to_contain_text("notes 的工具")
    expect(page.get_by_text("Set search.provider")).to_be_hidden()
    page.locator(".absent li summary").first.click()
    expect(page.get_by_text("Set search.provider")).to_be_visible()
    page.locator("#question").fill("1+3=?")
    page.locator("#question").press("Enter")
    expect(page.locator(".standing.completed")).to_be_visible()
    page.locator("#panel-tab-now").click()
    page.locator(".plan li summary").first.click()
    expect(page.locator(".outcome .notes")).to_have_text(re.compile(r"^用时 [\d.]+ 秒$"))
    page.context.close()


def test_a_refusal_can_be_closed_and_goes_by_itself(page: Page):
    page.clock.install()
    page.evaluate("Notification.requestPermission = () => Promise.resolve('denied')")
    page.get_by_role("button", name="Notify me").click()
    alert = page.get_by_role("alert").filter(has_text="notifications")
    expect(alert).to_be_visible()
    page.get_by_role("button", name="Close this message").click()
    expect(alert).to_have_count(0)
    page.get_by_role("button", name="Notify me").click()
    expect(alert).to_be_visible()
    page.clock.run_for(60_000)
    expect(alert).to_have_count(0)


def test_on_a_phone_the_options_are_opened_without_the_keyboard_and_the_handle_has_the_time(
    browser: Browser, server: ServerProcess, model: OpenAIServer
):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    phone = {"viewport": {"width": 375, "height": 812}, "has_touch": True, "is_mobile": True}
    page = browser.new_context(base_url=server.url, locale="en-GB", **phone).new_page()
    page.goto("/")
    options = page.get_by_role("button", name="Options of the question")
    expect(page.get_by_label("Depth")).to_be_hidden()
    options.tap()
    expect(page.get_by_label("Depth")).to_be_visible()
    expect(page.locator("#question")).not_to_be_focused()
    page.get_by_label("Depth").select_option("quick")
    ask(page)
    expect(page.locator(".handle").get_by_title("Working time since the question")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    standing(page, "Cancelled")
    page.context.close()


def test_on_a_phone_a_decision_and_the_end_give_the_field_no_focus(
    browser: Browser, server: ServerProcess, model: OpenAIServer
):
    model.reset(SIMPLE)
    phone = {"viewport": {"width": 375, "height": 812}, "has_touch": True, "is_mobile": True}
    page = browser.new_context(base_url=server.url, locale="en-GB", **phone).new_page()
    page.goto("/")
    page.locator("#question").focus()
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")
    expect(page.locator("#question")).not_to_be_focused()
    page.context.close()


@pytest.mark.slow
def test_files_asked_for_while_another_is_prepared_come_too_and_the_report_stays_in_its_place(
    page: Page, model: OpenAIServer
):
    model.reset({**SIMPLE, "reporter": [reply("# Long\n\n" + "A line.\n\n" * 200 + "The end.")]})
    ask(page)
    standing(page, "Done")
    page.get_by_role("button", name="Read the report").click()
    expect(page.locator(".reading .markdown")).to_contain_text("The end.")
    page.locator(".reading").evaluate("one => one.scrollTo(0, 900)")
    held: list[Route] = []
    page.route("**/report?form=html*", lambda route: held.append(route))

    def press(place: Locator) -> None:
        # By the mouse: Playwright itself scrolls to what it clicks.
        box = place.bounding_box()
        assert box is not None
        page.mouse.click(box["x"] + 5, box["y"] + 5)

    menu = page.locator(".reading .offers > summary")
    press(menu)
    press(page.get_by_role("button", name="HTML"))
    news = page.locator(".reading .news")
    expect(news).to_have_text("HTML: Preparing…")
    assert page.locator(".reading").evaluate("one => one.scrollTop") == 900
    menu.click()
    with page.expect_download() as second:
        page.get_by_role("button", name="Markdown", exact=True).click()
    assert second.value.suggested_filename.endswith(".md")
    expect(news).to_have_text("Markdown: downloaded. HTML: Preparing…")
    with page.expect_download() as first:
        held[0].continue_()
    assert first.value.suggested_filename.endswith(".html")
    expect(news).to_have_text("HTML: downloaded.")


@pytest.mark.slow
def test_a_step_that_a_person_skipped_is_named_so_and_is_not_counted(page: Page, model: OpenAIServer):
    coder = [{"hang": True}]
    model.reset({**SIMPLE, "planner": [reply(json.dumps(_TWO))], "coder": coder})
    ask(page)
    region = page.get_by_role("region", name="Plan", exact=True)
    expect(region.get_by_role("heading")).to_contain_text("0/3")
    region.get_by_role("button", name="Change this step: Compare").click()
    page.get_by_role("menuitem", name="Skip").click()
    expect(region.locator("li.skipped .change").last).to_have_text("You skipped it.")
    expect(region.locator("li.skipped .reason")).to_have_count(0)
    expect(region.get_by_role("heading")).to_contain_text("0/2")


@pytest.mark.slow
def test_a_conversation_is_named_before_it_is_deleted_and_the_next_one_begins_without_review(page: Page):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_role("button", name="Review the plan")).to_have_attribute("aria-pressed", "false")
    asked: list[str] = []
    page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.accept()))
    entry = page.locator(".threads li").first
    entry.hover()
    remove = entry.get_by_role("button", name="Delete")
    box = remove.bounding_box()
    assert box is not None and min(box["width"], box["height"]) >= 32
    remove.click()
    assert ["1+3=?" in one for one in asked] == [True]
