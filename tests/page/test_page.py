"""A person at the page: asks, watches, answers, stops, comes back."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.cli.processes import MANIPLE
from tests.forking import Forked
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.serving import environment, server_process
from tests.team import plan, step

HOSTILE = """# A report <script>window.evil = 1</script>

<img src=x onerror="window.evil = 2"> [click](javascript:window.evil=3) ![pixel](http://evil.test/p.png)
[data](data:text/html,<script>window.evil=4</script>) <iframe src="http://evil.test"></iframe>

$\\href{javascript:window.evil=5}{x}$ $\\includegraphics{http://evil.test/p.png}$ and $a_1 = 2$
"""


_WATCH = """() => {
    window.seen = [];
    const note = () => window.seen.push(document.querySelector(".answer .markdown")?.textContent ?? "");
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true });
}"""


def ask(page: Page, question: str = "1+3=?") -> None:
    field = page.get_by_label("Your question")
    field.fill(question)
    field.press("Enter")  # what else takes the focus meanwhile does not get the key


def standing(page: Page, words: str) -> None:
    expect(page.locator(".standing").last.get_by_role("status")).to_have_text(words)


def show_work(page: Page) -> None:
    """Select the tab of plan and work, which at the end gives way to that of the report."""
    page.locator("#panel-tab-now").click()


def test_a_question_is_answered_with_its_plan_work_and_report(page: Page):
    ask(page)
    standing(page, "Done")
    expect(page.get_by_role("log").get_by_role("heading", name="What is 1 + 3?")).to_be_visible()
    show_work(page)
    expect(page.get_by_role("region", name="Plan").locator("li.completed")).to_have_count(2)
    page.get_by_text("Work", exact=True).click()
    page.get_by_text("Run Python").click()
    expect(page.get_by_label("Arguments")).to_have_text("print(1+3)")
    expect(page.locator(".call .hljs-built_in")).to_have_text("print")
    expect(page.get_by_label("Result")).to_contain_text("4")


def test_an_example_is_put_into_the_field_which_has_the_focus_from_the_beginning(page: Page):
    field = page.get_by_label("Your question")
    expect(field).to_be_focused()
    page.get_by_role("list", name="Examples").get_by_role("button", name="Your documents").click()
    expect(field).to_be_focused()
    expect(field).to_have_value(re.compile("^Summarize the documents"))
    expect(page.locator(".run")).to_have_count(0)


@pytest.mark.slow
def test_the_model_is_named_before_a_question_and_under_its_answer(page: Page):
    model = page.evaluate("fetch('/healthz').then((answer) => answer.json())")["model"]
    assert model
    expect(page.locator(".hello").get_by_text(f"Model: {model}", exact=True)).to_be_visible()
    ask(page)
    standing(page, "Done")
    expect(page.locator(".standing").get_by_text(f"Model: {model}", exact=True)).to_be_visible()


@pytest.mark.slow
def test_the_answer_is_written_while_it_comes_and_its_thoughts_are_folded(page: Page, model: OpenAIServer):
    slow = reply("First words, " * 20 + "last words.", reasoning="How to say it?", delay_seconds=0.03)
    model.reset({**SIMPLE, "reporter": [slow]})
    page.evaluate(_WATCH)
    ask(page)
    standing(page, "Done")
    assert any("First" in text and "last" not in text for text in page.evaluate("window.seen"))
    expect(page.get_by_text("How to say it?")).to_be_hidden()
    expect(page.locator(".answer .markdown")).to_contain_text("last words.")


def test_a_plan_is_reviewed_in_words_and_accepted(page: Page):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    standing(page, "Waiting for you")
    expect(page.get_by_role("textbox")).to_have_count(1)
    page.get_by_role("button", name="Ask for changes").click()
    expect(page.get_by_label("Your question")).to_be_focused()
    page.keyboard.type("Ask nobody else.")
    with page.expect_request("**/resume") as sent:
        page.keyboard.press("Enter")
    assert sent.value.post_data_json["answer"] == "Ask nobody else."
    expect(page.locator(".replied .question")).to_have_text("Ask nobody else.")
    standing(page, "Waiting for you")
    page.get_by_role("button", name="Accept the plan").click()
    standing(page, "Done")


@pytest.mark.slow
def test_a_plan_is_edited_reordered_and_accepted(page: Page):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    page.get_by_role("button", name="Edit the plan").click()
    page.get_by_role("button", name="Add a step").click()
    expect(page.get_by_role("button", name="Approve edited plan")).to_be_disabled()
    page.get_by_label("Title of the step").nth(1).fill("Look it up")
    page.get_by_label("What to do").nth(1).fill("Search for the sum.")
    page.get_by_label("Assigned to").nth(1).select_option("coder")
    page.get_by_role("button", name="Earlier").nth(1).click()
    page.get_by_role("button", name="Remove").nth(1).click()
    page.get_by_role("button", name="Approve edited plan").click()
    standing(page, "Done")
    show_work(page)
    expect(page.get_by_role("region", name="Plan").locator("summary")).to_contain_text(
        ["Look it up", "Report"]
    )


def test_an_edit_of_a_plan_can_be_given_up_and_an_accepted_one_says_what_changed(page: Page):
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    edit = page.get_by_role("button", name="Edit the plan")
    edit.click()
    page.get_by_label("What to do").first.fill("Nothing of this stays.")
    page.get_by_role("button", name="Discard changes").click()
    edit.click()
    first = page.get_by_label("What to do").first
    expect(first).not_to_have_value("Nothing of this stays.")
    title = page.get_by_label("Title of the step").first.input_value()
    first.fill("Compute it. Also 4 %.")
    page.get_by_role("button", name="Add a step").click()
    page.get_by_label("Title of the step").nth(1).fill("Look it up")
    page.get_by_label("What to do").nth(1).fill("Search for the sum.")
    page.get_by_role("button", name="Approve edited plan").click()
    echo = page.locator(".replied .question")
    expect(echo).to_contain_text(
        f"1. {title}\n    What to do: Compute it. Also 4 %.\n2. Look it up\n    New (coder)"
    )
    standing(page, "Done")


def test_a_form_takes_no_click_that_was_meant_for_what_stood_there_before(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 4"), reply("4")]})
    # The page's own timers stand still until this test moves them.
    page.clock.install()
    ask(page)
    approve = page.get_by_role("button", name="Approve")
    expect(approve).to_be_disabled()
    page.clock.run_for(600)
    expect(approve).to_be_enabled()
    page.clock.resume()
    approve.click()
    standing(page, "Done")


@pytest.mark.slow
def test_notes_and_needs_of_steps_outlast_the_review_and_a_note_is_edited(page: Page, model: OpenAIServer):
    steps = [
        {**step("researcher", "Ask"), "needs": []},
        {**step("coder", "Compute"), "needs": [], "note": "Not by head."},
        step("reporter", "Report"),
    ]
    model.reset({**SIMPLE, "by_history": True, "planner": [reply(json.dumps(plan(*steps)))]})
    page.get_by_role("button", name="Review the plan").click()
    ask(page)
    page.get_by_role("region", name="Plan", exact=True).locator("summary").nth(1).click()
    expect(page.get_by_role("region", name="Plan", exact=True)).to_contain_text("Not by head.")
    expect(page.get_by_role("region", name="Plan", exact=True).get_by_text("together with")).to_have_count(2)
    page.get_by_role("button", name="Edit the plan").click()
    expect(page.get_by_label("Note").nth(1)).to_have_value("Not by head.")
    page.get_by_label("Note").nth(1).fill("By hand.")
    page.get_by_label("Note").nth(0).fill("Twice.")
    page.get_by_role("button", name="Earlier").nth(1).click()
    page.get_by_role("group", name="Waits for").get_by_label("1 Compute").check()
    with page.expect_request("**/resume") as sent:
        page.get_by_role("button", name="Approve edited plan").click()
    answered = sent.value.post_data_json["answer"]["steps"]
    assert [(one["title"], one.get("note"), one.get("needs")) for one in answered] == [
        ("Compute", "By hand.", []),
        ("Ask", "Twice.", [1]),
        ("Report", None, None),
    ]
    standing(page, "Done")
    prompts = [str(one["messages"]) for one in model.requests if "Your step: Compute" in str(one["messages"])]
    assert "Note: By hand." in prompts[0]


def test_a_tool_call_is_edited_and_approved(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="rm -rf /"), reply("Done.")]})
    ask(page)
    expect(page.locator(".interrupt .terminal")).to_contain_text("rm -rf /")
    page.get_by_role("button", name="Edit", exact=True).click()
    arguments = page.get_by_label("Arguments")
    expect(arguments).to_have_value(re.compile("rm -rf"))
    arguments.fill("no JSON")
    page.get_by_role("button", name="Approve as edited").click()
    expect(page.get_by_text("This is not a JSON object.")).to_be_visible()
    arguments.fill('{"cmd": "echo edited"}')
    page.get_by_role("button", name="Approve as edited").click()
    standing(page, "Done")
    show_work(page)
    page.get_by_text("Work", exact=True).click()
    page.locator(".call > summary").last.click()
    expect(page.get_by_label("Result").last).to_contain_text("edited")


@pytest.mark.slow
def test_actions_of_a_kind_are_allowed_for_the_rest_of_the_run(page: Page, model: OpenAIServer):
    commands = [call("bash_tool", cmd=f"echo part {number}") for number in (1, 2, 3)]
    model.reset({**SIMPLE, "coder": [*commands, reply("Done.")]})
    ask(page)
    expect(page.get_by_role("region", name="Allow this action?")).to_contain_text("echo part 1")
    page.get_by_role("button", name="Always allow here").click()
    standing(page, "Done")
    expect(page.locator(".replied")).to_have_count(1)
    expect(page.locator(".replied")).to_contain_text("echo part 1")
    expect(page.locator(".replied .question")).to_contain_text("later actions of this kind")
    assert "part 3" in str(model.requests[-2:])


@pytest.mark.slow
def test_a_stopped_run_is_not_requested_again(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    # An answer that comes after the stream has told the end.
    page.route("**/cancel", _late)
    ask(page)
    expect(page.get_by_text("Working: coder")).to_be_visible()
    followed: list[str] = []
    page.on("request", lambda request: followed.append(request.url) if "/events" in request.url else None)
    with page.expect_response("**/cancel"):
        page.locator(".composer").get_by_role("button", name="Cancel").click()
    standing(page, "Cancelled")
    expect(page.locator(".composer").get_by_role("button", name="Cancel")).to_be_hidden()
    page.evaluate("fetch('/api/threads').then(answer => answer.status)")
    expect(page.locator(".foot .notice")).to_be_hidden()
    assert followed == []


def _late(route: Route) -> None:
    answer = route.fetch()
    expect(route.request.frame.page.locator(".standing.cancelled")).to_be_attached()
    route.fulfill(response=answer)


def test_a_failure_shows_its_reason_and_can_be_retried(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "planner": [{"status": 400, "error": "broken"}]})
    ask(page)
    standing(page, "Failed")
    expect(page.get_by_role("alert").first).not_to_be_empty()
    model.reset(SIMPLE)
    page.get_by_role("button", name="Ask again").click()
    standing(page, "Done")


def test_a_reload_in_the_middle_of_a_run_goes_on_where_it_was_and_two_tabs_agree(
    page: Page, model: OpenAIServer
):
    held = reply("Word by word, " * 30 + "to the end.", hang_after=20)
    model.reset({**SIMPLE, "reporter": [held]})
    ask(page)
    expect(page.locator(".answer .markdown")).to_contain_text("Word by word")
    other = page.context.new_page()
    other.goto(page.url)
    page.reload()
    for tab in (page, other):
        expect(tab.locator(".answer .markdown")).to_contain_text("Word by word")
    model.release()
    for tab in (page, other):
        standing(tab, "Done")
        expect(tab.locator(".question")).to_have_text("1+3=?")
        assert (tab.locator(".answer .markdown").text_content() or "").count("to the end.") == 1
    model.reset(SIMPLE)
    ask(page, "And once more?")
    for tab in (page, other):
        expect(tab.locator(".question")).to_have_count(2)
        standing(tab, "Done")
    other.close()


@pytest.mark.slow
def test_conversations_are_searched_renamed_and_deleted(page: Page):
    ask(page, "Which bird is blue?")
    standing(page, "Done")
    listed = page.get_by_role("navigation", name="Conversations")
    listed.get_by_role("button", name="Rename: Which bird is blue?").click()
    listed.get_by_role("textbox", name="Rename").fill("Birds")
    page.keyboard.press("Enter")
    expect(listed.get_by_role("link", name="Birds")).to_be_visible()
    search = page.get_by_label("Search conversations")
    search.fill("no such words")
    expect(listed.get_by_role("link", name="Birds")).to_be_hidden()
    search.fill("bird")
    expect(listed.get_by_role("link", name="Birds")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    listed.get_by_role("button", name="Delete: Birds").click()
    expect(listed.get_by_role("listitem")).to_have_count(0)
    expect(page.get_by_role("heading", name="What should the team work on?")).to_be_visible()


@pytest.mark.slow
def test_a_file_goes_along_and_a_member_stays_behind(page: Page, model: OpenAIServer):
    page.locator("input[type=file]").set_input_files(
        {"name": "sales.csv", "mimeType": "text/csv", "buffer": b"month,sum\n1,4\n"}
    )
    page.locator("summary", has_text="Team").click()
    page.get_by_label("browser").uncheck()
    ask(page)
    standing(page, "Done")
    attached = page.get_by_role("region", name="Files with this question")
    expect(attached).to_contain_text("sales.csv")
    ask(page, "And once more?")
    expect(page.locator(".run")).to_have_count(2)
    standing(page, "Done")
    page.reload()
    expect(page.locator(".run").first.get_by_role("region", name="Files with this question")).to_be_visible()
    expect(attached).to_have_count(1)
    planning = next(str(one) for one in model.requests if "You are the planner" in str(one))
    assert "sales.csv" in planning
    assert "- browser" not in planning


@pytest.mark.slow
def test_files_that_were_moved_are_listed_by_folder_and_can_be_saved(page: Page, model: OpenAIServer):
    names = [f"{kind}-{number}.txt" for kind in ("bill", "letter") for number in range(11)]
    page.locator("input[type=file]").set_input_files(
        [{"name": name, "mimeType": "text/plain", "buffer": name.encode()} for name in names]
    )
    moves = [{"action": "move", "path": name, "destination": f"{name.partition('-')[0]}s/"} for name in names]
    filing = [call("file_operations", operations=moves), reply("Filed.")]
    planned = reply(json.dumps(plan(step("file_manager"), step("reporter"))))
    model.reset({**SIMPLE, "planner": [planned], "file_manager": filing})
    ask(page, "File them by kind")
    standing(page, "Done")
    listed = page.get_by_role("region", name="Your files, where they are now")
    expect(listed.locator("summary")).to_have_text(["bills/ 11 files", "letters/ 11 files"])
    listed.locator("summary").last.click()
    with page.expect_download() as saving:
        listed.get_by_role("button", name="letters/letter-10.txt").click()
    assert saving.value.path().read_text() == "letter-10.txt"


_BOTTOMS = "math => [...math.querySelector('msub').children].map((one) => one.getBoundingClientRect().bottom)"


def test_a_formula_brings_its_font_so_that_its_index_is_low(page: Page, model: OpenAIServer):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    model.reset({"coordinator": [reply("It is $K_n = 1000\\,(1+p)^n$.\n\n3. Third.")]})
    ask(page, "Which formula?")
    assert [url for url in asked if ".woff2" in url] == []
    standing(page, "Done")
    page.wait_for_function("() => [...document.fonts].some((font) => font.status === 'loaded')")
    assert len([url for url in asked if ".woff2" in url]) == 1
    assert page.locator(".answer .markdown mo[stretchy=false]").count() == 2
    expect(page.locator(".answer .markdown ol")).to_have_attribute("start", "3")
    base, index = page.locator(".answer .markdown math").evaluate(_BOTTOMS)
    assert index > base + 2


def test_a_hostile_report_is_inert(page: Page, model: OpenAIServer):
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    model.reset({**SIMPLE, "reporter": [{"chunks": [HOSTILE]}]})
    ask(page)
    standing(page, "Done")
    report = page.locator(".answer .markdown")
    expect(report.locator("math").first).to_be_attached()
    assert page.evaluate("window.evil") is None
    assert report.locator("script, img, iframe, [onerror], [style]").count() == 0
    links = report.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
    assert [link for link in links if not (link or "").startswith("http")] == [None] * links.count(None)
    assert not any("evil.test" in url for url in asked)


@pytest.mark.slow
def test_a_line_of_a_megabyte_is_shown_as_it_is(page: Page, model: OpenAIServer):
    model.reset({**SIMPLE, "reporter": [{"chunks": ["x" * 1_000_000]}]})
    ask(page)
    standing(page, "Done")
    assert page.locator(".answer .markdown pre").evaluate("pre => pre.textContent.length") == 1_000_000
    expect(page.get_by_label("Your question")).to_be_editable()


def test_a_key_is_requested_once_for_all_tabs_until_they_log_out(
    page: Page, model: OpenAIServer, tmp_path: Path
):
    env = environment(model.base_url, tmp_path)
    with server_process(env, tmp_path) as process:
        secret = _make_key(env, tmp_path)
        page.goto(process.url)
        page.get_by_label("API key").fill("wrong")
        page.keyboard.press("Enter")
        expect(page.get_by_text("not known here")).to_be_visible()
        page.get_by_label("API key").fill(secret)
        page.keyboard.press("Enter")
        expect(page.get_by_label("Your question")).to_be_visible()
        page.reload()
        ask(page)
        standing(page, "Done")
        assert page.evaluate("localStorage.length") == 0
        other = page.context.new_page()
        other.goto(process.url)
        expect(other.get_by_role("link", name="1+3=?")).to_be_visible()
        other.get_by_role("button", name="Log out").click()
        for tab in (other, page):
            expect(tab.get_by_label("API key")).to_be_visible()
            assert tab.evaluate("sessionStorage.getItem('maniple.key')") is None
        other.close()


def _make_key(env: dict[str, str], home: Path) -> str:
    command = [sys.executable, str(MANIPLE), "keys", "add", "me"]
    with Forked(command, env=env, cwd=home, stdout=subprocess.PIPE, text=True) as adding:
        output, _ = adding.communicate(timeout=60)
    found = re.search(r"mk_[A-Za-z0-9_-]+", output)
    assert found is not None, output
    return found[0]


def test_a_run_goes_on_after_the_server_was_killed(browser: Browser, tmp_path: Path):
    with serving({**SIMPLE, "reporter": [reply("Word by word, " * 400, delay_seconds=0.03)]}) as model:
        env = environment(model.base_url, tmp_path)
        context = browser.new_context(locale="en-GB")
        page = context.new_page()
        with server_process(env, tmp_path) as first:
            page.goto(first.url)
            ask(page)
            expect(page.locator(".answer .markdown")).to_contain_text("Word by word")
            first.process.send_signal(signal.SIGKILL)
            model.reset({**SIMPLE, "reporter": [reply("Word by word to the end.")]})
            expect(page.get_by_text("Connection lost.")).to_be_visible()
        with server_process(env, tmp_path, port=int(first.url.rpartition(":")[2])):
            standing(page, "Done")
            expect(page.locator(".answer .markdown")).to_contain_text("to the end.")
            expect(page.get_by_text("Connection lost.")).to_be_hidden()
        context.close()
