"""A conversation of many long runs opens at its newest question, and stays there while it is laid out."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.openai_server import OpenAIServer
from tests.page.stories import Story, keep, long_story
from tests.page.test_everybody import tab
from tests.page.views import settle
from tests.serving import ServerProcess, environment, server_process

_RUNS = 50
_CALLS = 60
_ANSWER = "# An answer\n\n" + "".join(
    f"## Part {part}\n\n{'It grew again, as the agency says. ' * 8}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
    for part in range(12)
)
_AT_REST = 5
"""How many looks in a row find a page at rest."""
_LOOKS = 400

_TOP = "one => one.getBoundingClientRect().top"


def question(number: int) -> str:
    """Return what the run of this number was asked."""
    return f"Question {number} of a long talk"


def _stories() -> Iterator[Story]:
    for number in range(1, _RUNS + 1):
        story = long_story(_CALLS, _CALLS, title=question(number), answer=_ANSWER)
        story.thread = "long"
        story.events[0][1]["thread_id"] = "long"
        yield story


@pytest.fixture(scope="module")
def talk(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with the conversation."""
    home = tmp_path_factory.mktemp("talk")
    # In a thread, because this one has the event loop of the browser.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, keep(home, *_stories())).result()
    with server_process(environment(model.base_url, home), home) as process:
        yield process


@pytest.mark.slow
@pytest.mark.parametrize(("locale", "width", "scheme"), [("en-GB", 1280, "light"), ("zh-CN", 375, "dark")])
def test_fifty_long_runs_open_at_the_newest_question(
    browser: Browser, talk: ServerProcess, locale: str, width: int, scheme: str
):
    page = tab(browser, width, 720, locale=locale, color_scheme=scheme)
    page.goto(f"{talk.url}/#long")
    newest = page.get_by_text(question(_RUNS), exact=True).last
    expect(page.locator(".run:last-child .answer h2").last).to_be_attached()
    _at_rest(page)
    expect(newest).to_be_in_viewport()
    top = page.locator(".conversation").evaluate(_TOP)
    assert 0 <= newest.evaluate(_TOP) - top < 80, "the question is the first that one reads"
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    # Up to the first question, which stays where it is while more come above.
    while (more := page.locator(".conversation > * > button").first).count():
        shown = page.locator(".run").count()
        more.click()
        page.wait_for_function("count => document.querySelectorAll('.run').length > count", arg=shown)
    expect(page.locator(".run")).to_have_count(_RUNS)
    page.locator(".conversation").evaluate("one => one.scrollTo(0, 0)")
    expect(page.get_by_text(question(1), exact=True).last).to_be_in_viewport()
    page.context.close()


def _at_rest(page: Page) -> None:
    """Wait until what is shown stays where it is."""
    seen, same = None, 0
    for _ in range(_LOOKS):
        settle(page)
        now = page.locator(".conversation").evaluate("one => [one.scrollTop, one.scrollHeight]")
        same = same + 1 if now == seen else 0
        seen = now
        if same == _AT_REST:
            return
    raise AssertionError("The page did not come to rest.")
