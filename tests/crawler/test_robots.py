import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.crawler.fetcher import Fetcher
from maniple.crawler.pace import CrawlPace
from maniple.crawler.robots import RobotsRules
from maniple.egress import AddressGuard
from maniple.errors import FetchError
from tests.crawler.web import Reply, Site, open_site, redirect

pytestmark = pytest.mark.anyio
PAGE = Reply("<p>Some text.")


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site(
        {"/": PAGE, "/open": PAGE, "/shut/a": PAGE, "/to-shut": redirect("/shut/a")}
    ) as site:
        yield site


def crawler(**settings: object) -> Crawler:
    return Crawler(FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10, **settings))


def rules(*lines: str) -> Reply:
    return Reply("\n".join(lines), "text/plain")


async def is_closed(site: Site, path: str, **settings: object) -> bool:
    try:
        await crawler(**settings).crawl(f"{site.url}{path}")
    except FetchError as error:
        assert "closed to robots" in str(error)
        assert path not in [asked for _, asked, _ in site.requests]
        return True
    return False


@pytest.mark.parametrize(
    ("lines", "closed"),
    [
        (("User-agent: *", "Disallow: /shut"), True),
        (("User-agent: maniple", "Disallow: /"), True),
        (("User-agent: Maniple/2.0", "Disallow: /"), True),
        (("User-agent: someone", "User-agent: maniple", "Disallow: /"), True),
        (("User-agent: *", "Disallow: /*/a$"), True),
        (("USER-AGENT:*", "disallow:/shut # not now"), True),
        (("User-agent: *", "Disallow: /", "User-agent: maniple", "Allow: /"), False),
        (("User-agent: *", "Disallow: /shut", "Allow: /shut/a"), False),
        (("User-agent: someone", "Disallow: /"), False),
        (("User-agent: man", "Disallow: /"), False),
        (("User-agent: *", "Disallow:"), False),
        (("<!doctype html>", "<p>No such page.</p>"), False),
        ((), False),
    ],
)
async def test_pages_that_robots_txt_disallows_are_not_requested(
    lines: tuple[str, ...], closed: bool, site: Site
) -> None:
    site.pages["/robots.txt"] = rules(*lines)
    assert await is_closed(site, "/shut/a") is closed


async def test_a_redirect_into_what_is_closed_is_not_followed(site: Site) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /shut")
    with pytest.raises(FetchError, match=r"/shut/a is closed"):
        await crawler().crawl(f"{site.url}/to-shut")
    assert [path for _, path, _ in site.requests] == ["/robots.txt", "/to-shut"]


async def test_the_setting_turns_it_off(site: Site) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Disallow: /")
    assert not await is_closed(site, "/", robots=False)
    assert [path for _, path, _ in site.requests] == ["/"]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_a_site_without_rules_is_open(status: int, site: Site) -> None:
    site.pages["/robots.txt"] = Reply("User-agent: *\nDisallow: /", "text/plain", status)
    assert not await is_closed(site, "/")


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_a_site_whose_rules_cannot_be_had_is_left_for_now(status: int, site: Site) -> None:
    site.pages["/robots.txt"] = Reply("later", "text/plain", status)
    reading = crawler()
    with pytest.raises(FetchError, match=rf"robots\.txt answered {status}"):
        await reading.crawl(site.url)
    site.pages["/robots.txt"] = rules()
    assert (await reading.crawl(site.url)).markdown == "Some text."


async def test_rules_behind_redirects_count_and_a_loop_of_them_is_none(site: Site) -> None:
    site.pages |= {"/robots.txt": redirect("/rules"), "/rules": rules("User-agent: *", "Disallow: /")}
    assert await is_closed(site, "/")
    site.pages["/rules"] = redirect("/robots.txt")
    assert not await is_closed(site, "/")


async def test_robots_txt_is_requested_once_for_many_concurrent_pages(site: Site) -> None:
    reading = crawler()
    await asyncio.gather(*(reading.crawl(f"{site.url}/open?{number}") for number in range(8)))
    assert site.robots_asked == 1


async def test_rules_are_requested_again_after_an_hour(site: Site) -> None:
    now = [0.0]
    robots = RobotsRules(httpx.AsyncClient, lambda: now[0])
    for seconds in (0.0, 3_599.0, 3_601.0):
        now[0] = seconds
        await robots.require_allowed(httpx.URL(f"{site.url}/open"))
    assert site.robots_asked == 2


HOSTILE = {
    "agents": "".join(f"user-agent: a{n}\n" for n in range(12_000))
    + "".join(f"disallow: /{n}\n" for n in range(15_000)),
    "sitemaps": "".join(f"user-agent: a{n}\nsitemap: /\n" for n in range(8_000))
    + "".join(f"disallow: /{n}\n" for n in range(12_000)),
    "stars": "user-agent: *\ndisallow: /" + "a*" * 240_000 + "b\n",
    "many stars": "user-agent: *\n" + "".join(f"disallow: /{'a*' * 20}b{n}\n" for n in range(8_000)),
    "endless": "user-agent: *\n" + "allow: /open\n" * 400_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
async def test_hostile_rules_cost_little(kind: str, site: Site) -> None:
    site.pages["/robots.txt"] = Reply(HOSTILE[kind], "text/plain")
    begun = time.process_time()
    await crawler().crawl(f"{site.url}/open?{'a' * 1_500}")
    assert time.process_time() - begun < 5


class Clock:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)
        self.seconds += seconds


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (("User-agent: *", "Crawl-delay: 2"), 2.0),
        (("User-agent: *", "Crawl-delay: 9", "User-agent: maniple", "Crawl-delay: 0.5"), 0.5),
        (("User-agent: maniple", "Crawl-delay: 4"), 4.0),
        (("User-agent: someone", "Crawl-delay: 9"), 0.0),
        (("User-agent: *", "Request-rate: 2/10"), 5.0),
        (("User-agent: *", "Crawl-delay: nan"), 0.0),
        (("User-agent: *", "Disallow: /shut"), 0.0),
    ],
)
async def test_the_delay_between_requests_is_that_of_this_agent(
    lines: tuple[str, ...], seconds: float, site: Site
) -> None:
    site.pages["/robots.txt"] = rules(*lines)
    robots = RobotsRules(httpx.AsyncClient)
    assert await robots.require_allowed(httpx.URL(f"{site.url}/open")) == seconds


async def test_pages_of_a_site_are_requested_with_its_delay_between_them() -> None:
    clock, starts = Clock(), list[float]()
    pace = CrawlPace(clock, clock.sleep)
    granted = list[float]()

    async def read(number: int) -> None:
        await pace.wait_turn(httpx.URL(f"http://a.test/{number}"), 3, granted.append)
        starts.append(clock())

    await asyncio.gather(*(read(number) for number in range(4)))
    assert starts == [0, 3, 6, 9]
    assert max(granted) == 9


async def test_sites_do_not_wait_for_each_other() -> None:
    clock = Clock()
    pace = CrawlPace(clock, clock.sleep)
    for host in ("a.test", "b.test", "a.test:8080"):
        assert await pace.wait_turn(httpx.URL(f"http://{host}/"), 10, lambda _: None) == 0


async def test_a_page_that_would_wait_for_long_is_refused_with_the_time() -> None:
    clock = Clock()
    pace = CrawlPace(clock, clock.sleep)
    address = httpx.URL("http://a.test/")
    await pace.wait_turn(address, 86_400, lambda _: None)
    with pytest.raises(FetchError, match="in 3600 s"):
        await pace.wait_turn(address, 86_400, lambda _: None)


async def test_a_reader_that_gives_up_leaves_the_queue() -> None:
    clock, blocked = Clock(), asyncio.Event()

    async def wait_forever(_: float) -> None:
        await blocked.wait()

    pace = CrawlPace(clock, wait_forever)
    address = httpx.URL("http://a.test/")
    await pace.wait_turn(address, 6, lambda _: None)
    waiting = [asyncio.ensure_future(pace.wait_turn(address, 6, lambda _: None)) for _ in range(2)]
    await asyncio.sleep(0)
    for one in waiting:
        one.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    clock.seconds = 6
    assert await pace.wait_turn(address, 6, lambda _: None) == 0


async def test_a_delayed_page_says_so(site: Site) -> None:
    site.pages["/robots.txt"] = rules("User-agent: *", "Crawl-delay: 4")
    slept = list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds))

    settings = FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10)
    fetcher = Fetcher(settings, AddressGuard(settings), sleep)
    notes = [(await fetcher.fetch(f"{site.url}/open?{number}")).note for number in range(2)]
    assert slept == [4]
    assert not notes[0]
    assert "4 s later" in notes[1]
