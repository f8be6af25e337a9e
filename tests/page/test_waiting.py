"""What a person sees of the work while it lasts, and what the service lacks, in the language of the page."""

import json
import re

from playwright.sync_api import Browser, Page, Route, expect

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
    page.locator(".plan li summary").first.click()
    expect(page.locator(".outcome .notes")).to_have_text(re.compile(r"^用时 [\d.]+ 秒$"))
    page.context.close()
