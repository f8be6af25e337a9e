"""A thread's browser from its first call to its end: many at once, killed, cancelled, unused."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from maniple.browser import ACTIONS, ActionResult, Browser, FoundPage, PageServices, open_browser
from maniple.browser.drivers.observation import IndexerObserver
from maniple.config import BrowserSettings
from maniple.errors import BrowserError
from tests.browser.driving import Driver, required
from tests.browser.processes import children, chromium_processes, command_of, until
from tests.crawler.web import Reply, Send, Site
from tests.sizes import sizes

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

NETWORK = ("127.0.0.2/32",)
FORM = (
    "<title>{0}</title><input placeholder=Name><select aria-label=Size><option>S<option>M</select><p>page {0}"
)


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Browser]:
    async with open_browser(BrowserSettings(allow_private=NETWORK, timeout_seconds=20)) as browser:
        yield browser


@asynccontextmanager
async def driven(
    browser: Browser, thread: str, services: PageServices | None = None
) -> AsyncIterator[Driver]:
    page = await browser.page(thread, services)
    try:
        yield Driver(page)
    finally:
        await page.aclose()


def kill_chromium() -> None:
    for process in chromium_processes():
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("threads", sizes(10, 20))
async def test_threads_work_at_once_in_one_chromium(shared: Browser, site: Site, threads: int) -> None:
    site.pages |= {
        f"/{n}": Reply(FORM.format(n), headers=(("Set-Cookie", f"who={n}"),)) for n in range(threads)
    }
    # The browser that other modules of the package share, and this one's if a test before has started it.
    before = set(chromium_processes())

    async def work(number: int) -> None:
        async with driven(shared, f"thread {number}") as driver:
            await driver.act("go_to_url", url=f"{site.url}/{number}")
            await driver.on("input_text", "Name", text=f"name {number}")
            await driver.act("refresh")
            shown = await driver.look()
            assert f"page {number}" in shown
            assert driver.state is not None
            assert [tab.title for tab in driver.state.tabs] == [str(number)]

    async with asyncio.timeout(100):
        await asyncio.gather(*(work(number) for number in range(threads)))
    assert len(set(chromium_processes()) - before) <= 1
    # Nobody sent the cookie of another.
    sent = [(path, head) for _, path, head in site.requests if "who=" in head]
    assert sent
    assert [path for path, head in sent if f"who={path[1:]}" not in head] == []


async def test_the_same_thread_gets_its_tabs_again(shared: Browser, site: Site) -> None:
    site.pages["/"] = Reply(FORM.format("here"))
    async with driven(shared, "again") as driver:
        await driver.act("go_to_url", url=site.url)
        assert "page here" in await Driver(await shared.page("again")).look()


async def test_calls_of_one_thread_are_made_one_after_another(shared: Browser, site: Site) -> None:
    site.pages |= {f"/{n}": Reply(FORM.format(n)) for n in range(5)}
    async with driven(shared, "queue") as driver:
        going = [driver.act("go_to_url", url=f"{site.url}/{n}") for n in range(5)]
        assert [done.text[-1] for done in await asyncio.gather(*going)] == list("01234")
        assert "page 4" in await driver.look()


# It stands still, without work, as soon as it is told to: what asks it anything does not get to its end.
STILL = """<script>fetch("/when").then(answer => answer.text()).then(() => {
    const request = new XMLHttpRequest(); request.open("GET", "/hold", false); request.send() })</script>"""


_SOME = ["go_to_url", "click_element", "select_dropdown_option", "extract_content", "switch_tab"]


@pytest.mark.slow
@pytest.mark.parametrize("actions", sizes(_SOME, [*ACTIONS.names]))
async def test_a_browser_killed_during_any_action_is_reported_and_replaced(
    shared: Browser, site: Site, actions: Sequence[str]
) -> None:
    still, arrived = asyncio.Event(), asyncio.Semaphore(0)

    async def when(send: Send) -> None:
        await still.wait()

    async def hold(send: Send) -> None:
        arrived.release()
        await asyncio.Event().wait()

    async def search(query: str) -> list[FoundPage]:
        return [FoundPage("held", f"{site.url}/hold")]

    site.pages |= {
        "/": Reply(FORM.format("first") + STILL),
        "/when": Reply(stream=when),
        "/hold": Reply(stream=hold),
        "/other": Reply(FORM.format("other")),
    }
    asked = {"url": f"{site.url}/hold", "text": "M", "keys": "x", "goal": "x", "query": "x", "tab_id": 1}
    async with AsyncExitStack() as stack:
        drivers = {
            action: await stack.enter_async_context(driven(shared, action, PageServices(search=search)))
            for action in actions
        }
        bystander = await stack.enter_async_context(driven(shared, "bystander"))
        await bystander.act("go_to_url", url=f"{site.url}/other")
        indexes = {}
        await asyncio.gather(*(driver.act("go_to_url", url=site.url) for driver in drivers.values()))
        for action, driver in drivers.items():
            indexes[action] = await driver.index("Size" if "dropdown" in action else "Name")
        still.set()
        for _ in actions:
            await arrived.acquire()
        going = {
            action: asyncio.create_task(driver.act(action, **required(action, asked, index=indexes[action])))
            for action, driver in drivers.items()
        }
        for _ in range(100):
            await asyncio.sleep(0)
        kill_chromium()
        answers = {action: await words_of(task) for action, task in going.items()}
        said = {action for action, words in answers.items() if "ended. The next action starts a new" in words}
        # These need no answer of the page: there is no workspace for a screenshot.
        assert said | ({"switch_tab", "close_tab", "take_screenshot"} & {*actions}) == {*actions}, answers
        site.pages["/"] = Reply(FORM.format("first"))
        # The others are told of the end by their next action, unless they have noticed it already.
        late = [drivers[action].act("go_to_url", url=site.url) for action in {*actions} - said]
        await asyncio.gather(*late, return_exceptions=True)
        again = [driver.act("go_to_url", url=site.url) for driver in drivers.values()]
        assert {done.text for done in await asyncio.gather(*again)} == {f"Navigated to {site.url}"}
        for driver in drivers.values():
            assert "page first" in await driver.look()
        # It had nothing under way: its page is there again.
        assert "page other" in await bystander.look()
        assert bystander.state is not None
        assert "started again" in " ".join(bystander.state.notices)


async def words_of(acting: "asyncio.Task[ActionResult]") -> str:
    try:
        return (await acting).text
    except BrowserError as error:
        return str(error)


async def test_a_page_that_crashes_takes_nothing_with_it_but_its_tab(shared: Browser, site: Site) -> None:
    site.pages["/"] = Reply(FORM.format("here"))
    async with driven(shared, "crash") as driver:
        await driver.act("go_to_url", url=site.url)
        before = {process for process in children() if "--type=renderer" in command_of(process)}
        for process in before:
            os.kill(process, signal.SIGKILL)
        await until(lambda: not before & children())
        assert (await driver.act("go_to_url", url=site.url)).text == f"Navigated to {site.url}"
        assert "page here" in await driver.look()
        assert driver.state is not None
        assert [tab.tab_id for tab in driver.state.tabs] == [1]


async def test_a_hanging_page_is_reported_and_left(site: Site) -> None:
    site.pages |= {"/": Reply("<button onclick='while (true);'>Hang</button>"), "/b": Reply("<p>Out of it")}
    settings = BrowserSettings(allow_private=NETWORK, timeout_seconds=3, action_seconds=1)
    async with open_browser(settings) as browser, driven(browser, "hung") as driver:
        await driver.act("go_to_url", url=site.url)
        index = await driver.index("Hang")
        with pytest.raises(BrowserError, match=r"'click_element' failed: .*does not answer"):
            await driver.act("click_element", index=index)
        assert (await driver.act("go_to_url", url=f"{site.url}/b")).text == f"Navigated to {site.url}/b"
        assert "Out of it" in await driver.look()


async def test_a_page_that_takes_too_long_to_look_at_can_be_left(
    shared: Browser, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: object, **__: object) -> None:
        raise TimeoutError  # as after the seconds that a look has

    site.pages |= {"/": Reply("<p>Large"), "/b": Reply("<p>Small")}
    async with driven(shared, "large") as driver:
        await driver.act("go_to_url", url=site.url)
        with (
            monkeypatch.context() as patch,
            pytest.raises(BrowserError, match="very large or busy"),
        ):
            patch.setattr(IndexerObserver, "observe", slow)
            await driver.look()
        await driver.act("go_to_url", url=f"{site.url}/b")
        assert "Small" in await driver.look()


async def test_a_cancelled_call_lets_the_next_one_in(shared: Browser, site: Site) -> None:
    arrived = asyncio.Event()

    async def hold(send: Send) -> None:
        arrived.set()
        await asyncio.Event().wait()

    site.pages |= {"/": Reply(FORM.format("next")), "/hold": Reply(stream=hold)}
    async with driven(shared, "cancelled") as driver:
        going = asyncio.create_task(driver.act("go_to_url", url=f"{site.url}/hold"))
        await arrived.wait()
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await driver.act("go_to_url", url=site.url)
        assert "page next" in await driver.look()


@pytest.mark.slow
async def test_a_call_cancelled_while_its_window_opens_leaves_a_window_that_works(site: Site) -> None:
    site.pages["/"] = Reply(FORM.format("next"))
    before = children()
    async with open_browser(BrowserSettings(allow_private=NETWORK)) as browser:
        driver = Driver(await browser.page("early"))
        going = asyncio.create_task(driver.act("go_to_url", url=site.url))
        await until(lambda: bool(children() - before))
        going.cancel()
        with pytest.raises(asyncio.CancelledError):
            await going
        await driver.act("go_to_url", url=site.url)
        assert "page next" in await driver.look()
    await until(lambda: children() <= before)


@pytest.mark.slow
async def test_the_thread_unused_for_longest_makes_way_and_finds_its_tabs_again(site: Site) -> None:
    site.pages |= {f"/{n}": Reply(FORM.format(n)) for n in range(3)}
    settings = BrowserSettings(allow_private=NETWORK, max_contexts=2)
    async with open_browser(settings) as browser:
        drivers = [Driver(await browser.page(str(n))) for n in range(3)]
        for number, driver in enumerate(drivers):
            await driver.act("go_to_url", url=f"{site.url}/{number}")
        assert "page 0" in await drivers[0].look()
        assert drivers[0].state is not None
        assert "to make way for others" in " ".join(drivers[0].state.notices)
        assert [tab.tab_id for tab in drivers[0].state.tabs] == [1]


@pytest.mark.slow
async def test_more_threads_than_windows_wait_for_each_other(site: Site) -> None:
    site.pages |= {f"/{n}": Reply(FORM.format(n)) for n in range(6)}
    async with open_browser(BrowserSettings(allow_private=NETWORK, max_contexts=2)) as browser:
        pages = [await browser.page(str(n)) for n in range(6)]
        going = [page.act({"action": "go_to_url", "url": f"{site.url}/{n}"}) for n, page in enumerate(pages)]
        assert len(await asyncio.gather(*going)) == 6


@pytest.mark.slow
async def test_tabs_that_are_not_used_are_closed_and_opened_again(site: Site) -> None:
    site.pages["/"] = Reply(FORM.format("rested"))
    async with open_browser(BrowserSettings(allow_private=NETWORK, idle_seconds=0.01)) as browser:
        driver = Driver(await browser.page("idle"))
        await driver.act("go_to_url", url=site.url)
        await until(lambda: len(renderers()) == 0)
        assert "page rested" in await driver.look()
        assert driver.state is not None
        assert "a while without use" in " ".join(driver.state.notices)


def renderers() -> list[int]:
    """Processes of pages."""
    return [process for process in children() if "--type=renderer" in command_of(process)]


@pytest.mark.slow
async def test_a_process_for_each_thread_when_it_is_set(site: Site) -> None:
    site.pages["/"] = Reply(FORM.format("mine"))
    before = len(chromium_processes())
    async with open_browser(BrowserSettings(allow_private=NETWORK, process_per_thread=True)) as browser:
        first, second = [Driver(await browser.page(name)) for name in ("a", "b")]
        for driver in (first, second):
            await driver.act("go_to_url", url=site.url)
        assert len(chromium_processes()) == before + 2
        await first.page.aclose()
        await until(lambda: len(chromium_processes()) == before + 1)
        assert "page mine" in await second.look()


async def test_a_closed_browser_reports_that(site: Site) -> None:
    async with open_browser(BrowserSettings(allow_private=NETWORK)) as browser:
        page = await browser.page("late")
    with pytest.raises(BrowserError, match="has been closed"):
        await page.act({"action": "go_to_url", "url": site.url})
