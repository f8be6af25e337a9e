"""Pages that were read before: their sites are asked for changes, and nothing is given out unasked."""

from collections.abc import AsyncIterator

import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from tests.crawler.web import Reply, Site, open_site, redirect

pytestmark = pytest.mark.anyio
UNCHANGED = Reply(status=304, content_type="")
TAGGED = Reply("<p>First words.", headers=(("ETag", '"1"'),))


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": TAGGED}) as site:
        yield site


def crawler(**settings: object) -> Crawler:
    return Crawler(
        FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10, probe_sites=False, **settings)
    )


def asked(site: Site) -> list[list[str]]:
    """The headers of each request that ask for changes."""
    return [[line for line in head.split("\r\n") if line.startswith("If-")] for _, _, head in site.requests]


@pytest.mark.parametrize(
    ("headers", "questions"),
    [
        ((("ETag", '"1"'),), ['If-None-Match: "1"']),
        (
            (("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT"),),
            ["If-Modified-Since: Wed, 21 Oct 2015 07:28:00 GMT"],
        ),
    ],
)
async def test_an_unchanged_page_is_not_loaded_again(
    headers: tuple[tuple[str, str], ...], questions: list[str], site: Site
) -> None:
    reading = crawler()
    site.pages["/"] = Reply("<p>First words.", headers=headers)
    first = await reading.crawl(f"{site.url}/#part")
    site.pages["/"] = UNCHANGED
    assert (await reading.crawl(f"{site.url}/")).markdown == first.markdown == "First words."
    assert asked(site) == [[], questions]


async def test_a_changed_page_is_loaded(site: Site) -> None:
    reading = crawler()
    await reading.crawl(site.url)
    site.pages["/"] = Reply("<p>Second words.", headers=(("ETag", '"2"'),))
    assert (await reading.crawl(site.url)).markdown == "Second words."
    site.pages["/"] = UNCHANGED
    assert (await reading.crawl(site.url)).markdown == "Second words."
    assert asked(site)[2] == ['If-None-Match: "2"']


async def test_a_page_that_is_gone_is_gone(site: Site) -> None:
    reading = crawler()
    await reading.crawl(site.url)
    site.pages["/"] = Reply("no", status=404)
    with pytest.raises(FetchError, match="404"):
        await reading.crawl(site.url)


async def test_the_etag_of_a_page_is_not_sent_to_its_redirect(site: Site) -> None:
    reading = crawler()
    await reading.crawl(site.url)
    site.pages |= {"/": redirect("/new"), "/new": Reply("<p>New words.")}
    assert (await reading.crawl(site.url)).markdown == "New words."
    assert asked(site) == [[], ['If-None-Match: "1"'], []]


@pytest.mark.parametrize(
    "headers",
    [
        (),
        (("ETag", '"1"'), ("Cache-Control", "private, No-Store")),
        (("ETag", '"1"'), ("Vary", "*")),
    ],
)
async def test_pages_that_may_not_be_stored_are_not_cached(
    headers: tuple[tuple[str, str], ...], site: Site
) -> None:
    reading = crawler()
    site.pages["/"] = Reply("<p>Words.", headers=headers)
    await reading.crawl(site.url)
    await reading.crawl(site.url)
    assert asked(site) == [[], []]


async def test_a_page_that_may_depend_on_a_cookie_is_neither_cached_nor_served(site: Site) -> None:
    reading = crawler()
    site.pages["/gate"] = Reply(status=302, headers=(("Location", "/"), ("Set-Cookie", "who=you; Path=/")))
    await reading.crawl(f"{site.url}/gate")
    await reading.crawl(site.url)
    await reading.crawl(f"{site.url}/gate")
    assert asked(site) == [[]] * 5


async def test_an_unsolicited_not_modified_is_refused(site: Site) -> None:
    site.pages["/"] = UNCHANGED
    with pytest.raises(FetchError, match="304"):
        await crawler().crawl(site.url)


async def test_the_cache_holds_the_most_recent_pages_up_to_its_size(site: Site) -> None:
    pages = {f"/{n}": Reply("<p>" + str(n) * 3_000, headers=(("ETag", f'"{n}"'),)) for n in range(3)}
    site.pages |= pages
    for room, kept in ((0, set()), (9_000, {1, 2}), (100_000, {0, 1, 2})):
        reading = crawler(cache_bytes=room)
        for n in (0, 1, 2):
            await reading.crawl(f"{site.url}/{n}")
        site.requests.clear()
        for n in (2, 1, 0):
            await reading.crawl(f"{site.url}/{n}")
        assert {n for n, questions in zip((2, 1, 0), asked(site), strict=True) if questions} == kept
