"""A question is edited or answered again on the page, and the old answers stay within reach."""

from playwright.sync_api import Browser, Page, expect

from tests.openai_server import OpenAIServer, reply
from tests.page.seeded import BRANCH_NOTE
from tests.page.test_page import ask, standing
from tests.serving import ServerProcess

_TEXTS = ("First answer.", "Second answer.", "Third answer.", "More.")
ANSWERS = {"coordinator": [reply(one) for one in _TEXTS]}


def test_an_edited_question_stands_beside_the_old_one_and_a_reload_keeps_the_choice(
    page: Page, model: OpenAIServer
):
    model.reset(ANSWERS)
    ask(page)
    standing(page, "Done")
    page.get_by_role("button", name="Edit the question").click()
    field = page.get_by_role("textbox", name="Edit the question")
    field.fill("1+4=?")
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("Second answer.")).to_be_visible()
    standing(page, "Done")
    versions = page.get_by_role("navigation", name="Versions of this question")
    expect(versions).to_contain_text("2 / 2")
    page.get_by_role("button", name="Answer again").click()
    expect(page.get_by_text("Third answer.")).to_be_visible()
    standing(page, "Done")
    expect(versions).to_contain_text("3 / 3")
    versions.get_by_role("link", name="Previous version").click()
    expect(page.get_by_text("Second answer.")).to_be_visible()
    page.reload()
    expect(versions).to_contain_text("2 / 3")
    expect(page.get_by_text("Second answer.")).to_be_visible()
    expect(page.get_by_role("navigation", name="Conversations").get_by_role("listitem")).to_have_count(1)
    ask(page, "And more?")
    expect(page.get_by_text("More.", exact=True)).to_be_visible()
    expect(page.get_by_text("Second answer.")).to_be_visible()
    versions.get_by_role("link", name="Previous version").click()
    expect(page.get_by_text("First answer.")).to_be_visible()
    expect(page.get_by_text("More.", exact=True)).to_have_count(0)


def test_a_branch_says_at_its_question_what_of_its_files_is_not_as_it_was(
    browser: Browser, seeded: ServerProcess
):
    page = browser.new_page(base_url=seeded.url, locale="en-GB")
    page.goto("/#branch")
    note = page.locator("#run-run-branch").get_by_role("note")
    expect(note).to_have_text(BRANCH_NOTE)
    before = page.locator("#run-run-branch .answer")
    expect(before).to_be_visible()
    assert note.evaluate("one => one.getBoundingClientRect().bottom") <= before.evaluate(
        "one => one.getBoundingClientRect().top"
    )
    page.get_by_role("link", name="Previous version").click()
    expect(page.locator("#run-run-browser")).to_be_visible()
    expect(page.get_by_role("note")).to_have_count(0)
    page.close()


def test_a_passage_deep_in_a_long_answer_is_scrolled_to_and_marked(page: Page, model: OpenAIServer):
    lines = [f"Line {number} is here.\n\n" for number in range(300)]
    lines[200] = "The **glide ratio** of a swift is $x^2$ high.\n\n"
    model.reset({"coordinator": [reply("".join(lines))], "by_history": True})
    ask(page)
    standing(page, "Done")
    page.get_by_role("link", name="New conversation").click()
    page.get_by_role("searchbox").fill("ratio swift")
    hits = page.get_by_role("region", name="In questions and answers")
    expect(hits.locator(".passage")).to_contain_text("The glide ratio of a swift is x^2 high.")
    hits.get_by_role("link").click()
    # The hit in the list has the words, too.
    expect(page.locator(".answer").get_by_text("glide ratio")).to_be_in_viewport()
    marked = "[...CSS.highlights.get('found') ?? []].map(String)"
    assert page.evaluate(marked) == ["ratio"]
    expect(page.get_by_role("searchbox")).to_have_value("")
    expect(page.locator(".threads li.open")).to_be_visible()
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_text("What should the team work on?")).to_be_visible()
    assert page.evaluate(marked) == []


def test_an_answer_is_found_by_its_words_and_opened_at_the_place(page: Page, model: OpenAIServer):
    model.reset({"coordinator": [reply("Photovoltaics grew by 24 percent.")], "by_history": True})
    ask(page)
    standing(page, "Done")
    page.get_by_role("link", name="New conversation").click()
    expect(page.get_by_text("What should the team work on?")).to_be_visible()
    page.get_by_role("searchbox").fill("percent photovolt")
    hits = page.get_by_role("region", name="In questions and answers")
    expect(hits.locator("mark")).to_have_text(["Photovolt", "percent"])
    hits.get_by_role("link").click()
    expect(page.locator(".answer").get_by_text("Photovoltaics grew")).to_be_visible()


def test_a_found_word_is_marked_where_it_is_one_and_what_is_not_shown_is_said(
    page: Page, model: OpenAIServer
):
    answer = "It reports a lot. The **port** is open, see [here](https://e.test/zebra)."
    model.reset({"coordinator": [reply(answer)], "by_history": True})
    ask(page, "Dear team. " * 200 + "Where is the quagga?")
    standing(page, "Done")
    marked = "[...CSS.highlights.get('found') ?? []].map((one) => one.startContainer.data + one.startOffset)"

    def find(word: str) -> None:
        page.get_by_role("link", name="New conversation").click()
        page.get_by_role("searchbox").fill(word)
        page.get_by_role("region", name="In questions and answers").get_by_role("link").click()

    find("port")
    page.wait_for_function(f"() => {marked}.length > 0")
    assert page.evaluate(marked) == ["port0"]
    find("quagga")
    expect(page.locator(".question")).to_contain_text("Where is the quagga?")
    find("zebra")
    expect(page.get_by_role("alert")).to_contain_text("zebra")
    assert page.evaluate(marked) == []
