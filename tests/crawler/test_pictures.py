"""The pictures of pages: fetched with the same care, and shown when they are worth it."""

from collections.abc import AsyncIterator

import pytest

from maniple.config import FetchSettings
from maniple.crawler.crawler import MAX_PICTURE_BYTES, MAX_PIXELS, MIN_PIXELS, Crawler
from tests.crawler.web import Reply, Site, open_site
from tests.pictures import gif, jpeg, png, webp

pytestmark = pytest.mark.anyio
SETTINGS = FetchSettings(allow_private=("127.0.0.0/8",), robots=False)


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({}) as site:
        yield site


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(png(), "image/png"), (jpeg(), "image/jpeg"), (gif(), "image/gif"), (webp(), "image/webp")],
    ids=["png", "jpeg", "gif", "webp"],
)
async def test_a_picture_is_fetched_once_for_all_requests_of_a_model(
    body: bytes, media_type: str, site: Site
) -> None:
    site.pages["/a"] = Reply(body, media_type)
    crawler = Crawler(SETTINGS)
    assert [await crawler.picture(f"{site.url}/a") for _ in range(3)] == [body] * 3
    assert len(site.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply(png(MIN_PIXELS - 1, 900), "image/png"),
        Reply(png(900, MIN_PIXELS - 1), "image/png"),
        Reply(png(MAX_PIXELS + 1, 900), "image/png"),
        Reply(png() + bytes(MAX_PICTURE_BYTES), "image/png"),
        Reply(png()[:20], "image/png"),
        Reply("<svg/>", "image/svg+xml"),
        Reply("<p>Words."),
        Reply(status=404),
    ],
    ids=["narrow", "low", "wide", "large", "cut", "vectors", "page", "gone"],
)
async def test_a_picture_that_models_cannot_read_is_requested_only_once(reply: Reply, site: Site) -> None:
    site.pages["/a"] = reply
    crawler = Crawler(SETTINGS)
    assert [await crawler.picture(f"{site.url}/a") for _ in range(2)] == [b"", b""]
    assert len(site.requests) == 1


async def test_what_may_not_be_fetched_is_not_fetched_as_a_picture_either(site: Site) -> None:
    site.pages["/a"] = Reply(png(), "image/png")
    guarded = Crawler(SETTINGS.model_copy(update={"allow_private": ()}))
    by_others = Crawler(SETTINGS.model_copy(update={"jina": "always"}))
    assert [await one.picture(f"{site.url}/a") for one in (guarded, by_others)] == [b"", b""]
    assert site.requests == []
    site.pages["/robots.txt"] = Reply("User-agent: *\nDisallow: /a", "text/plain")
    assert await Crawler(SETTINGS.model_copy(update={"robots": True})).picture(f"{site.url}/a") == b""
    assert [path for _, path, _ in site.requests] == ["/robots.txt"]


async def test_a_crawled_picture_is_described_by_its_address_and_size(site: Site) -> None:
    site.pages["/span.png"] = Reply(png(), "image/png")
    article = await Crawler(SETTINGS).crawl(f"{site.url}/span.png")
    assert article.title == "span.png"
    assert article.markdown.startswith(f"![span.png]({site.url}/span.png)")
    assert "640 x 480" in article.markdown
