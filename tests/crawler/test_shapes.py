"""The shapes that pages of the web have, each with the text or the error that it comes to."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import brotli
import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler, FetchedDocument
from maniple.errors import FetchError
from tests.crawler.web import Reply, Send, Site, open_site, redirect
from tests.reading.files import docx, paragraph, pdf

pytestmark = pytest.mark.anyio
FEED = """<rss version="2.0"><channel><title>News</title><item><title>Opened</title>
<link>http://a.test/1</link><description>The bridge.</description></item></channel></rss>"""
HELLO = b"<title>Hello</title><main><p>Hello, reader.</p></main>"


async def endless(send: Send) -> None:
    for _ in range(10_000):
        await send(b"<p>" + b"and on " * 10_000)


async def dripping(send: Send) -> None:
    for _ in range(10_000):
        await send(b"<p>drop")
        await asyncio.sleep(0.05)


def encoded(encoding: str, body: bytes) -> Reply:
    return Reply(body, headers=(("Content-Encoding", encoding),))


WEB = {
    "/redirect": redirect("/hello", 301),
    "/chain": redirect("/redirect", 307),
    "/hello": Reply(HELLO),
    "/gzip": encoded("gzip", gzip.compress(HELLO)),
    "/deflate": encoded("deflate", zlib.compress(HELLO)),
    "/brotli": encoded("br", brotli.compress(HELLO)),
    "/gbk": Reply("<meta charset=gb2312><p>汉字和文章".encode("gbk"), "text/html"),
    "/shift-jis": Reply("<p>日本語の文章①".encode("cp932"), "text/html; charset=Shift_JIS"),
    "/untyped": Reply(b"<!doctype html>" + HELLO, content_type=""),
    "/5mb": Reply(HELLO.replace(b"</main>", b"<p>more%s</p>" % (b" and more" * 60) * 9_000 + b"</main>")),
    "/cookies": Reply(status=302, headers=(("Location", "/hello"), ("Set-Cookie", "a=b"))),
    "/refresh": Reply('<meta http-equiv="refresh" content="0;url=hello"><p>This page has moved.'),
    "/frameset": Reply("<title>Frames</title><frameset><frame src=hello></frameset>"),
    "/script-only": Reply("<title>App</title><div id=app></div><script>render()</script>"),
    "/broken": Reply("<p>Hello, <b>reader<p>.</i></div></table><td>&bogus; &amp <a href=//[>x</a>"),
    "/plain": Reply("Hello, reader.", "text/plain"),
    "/json": Reply('{"hello": "reader"}', "application/json"),
    "/pdf": Reply(pdf("Hello, reader."), "application/octet-stream"),
    "/docx": Reply(docx(paragraph("Hello, reader.")), "application/zip"),
    "/not-pdf": Reply(b"%PDF-1.7 broken", "application/pdf"),
    "/feed": Reply(FEED, "application/xml"),
    "/403": Reply("no", status=403),
    "/429": Reply("later", status=429, headers=(("Retry-After", "600"),)),
    "/451": Reply("no", status=451),
    "/500": Reply("broken", status=500),
    "/loop": redirect("/loop"),
    "/too-large": Reply(b" " * 5_000_001),
    "/bomb": encoded("gzip", gzip.compress(bytes(50_000_000), 1)),
    "/endless": Reply(stream=endless),
    "/drip": Reply(stream=dripping),
    "/picture": Reply(b"\x89PNG", "image/png"),
    "/nothing": Reply(""),
    "/robots.txt": Reply("User-agent: *\nDisallow: /private", "text/plain"),
    "/private": Reply(HELLO),
}
TEXTS = {
    **dict.fromkeys(("/redirect", "/chain", "/hello", "/gzip", "/deflate", "/brotli"), "Hello, reader."),
    **dict.fromkeys(("/untyped", "/cookies", "/refresh", "/frameset", "/plain"), "Hello, reader."),
    "/gbk": "汉字和文章",
    "/shift-jis": "日本語の文章①",
    "/script-only": "What the script wrote.",
    "/docx": "Hello, reader.",
}
BEGINNINGS = {
    "/5mb": "Hello, reader.\n\nmore and more",
    "/broken": "Hello, **reader",
    "/json": "{",
    "/feed": "## [Opened](http://a.test/1)",
}
ERRORS = {
    "/not-pdf": "is a damaged PDF",
    "/403": "answered 403",
    "/429": r"answered 429 .* again in 600 s",
    "/451": "answered 451",
    "/500": "answered 500",
    "/loop": "redirects too often",
    "/too-large": "larger than 5,000,000 bytes",
    "/bomb": "larger than 5,000,000 bytes",
    "/endless": "larger than 5,000,000 bytes",
    "/drip": "took too long",
    "/picture": "is image/png, which cannot be read",
    "/nothing": "no readable text",
    "/private": r"closed to robots by its site's robots\.txt",
    "/absent": "answered 404",
}


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site(WEB) as site:
        yield site


def crawler(timeout_seconds: float = 20) -> Crawler:
    async def render(url: str, /) -> FetchedDocument:
        return FetchedDocument(url, "text/html", "utf-8", b"<p>What the script wrote.")

    return Crawler(FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=timeout_seconds), render)


@pytest.mark.parametrize("path", TEXTS)
async def test_a_page_comes_to_its_text(path: str, site: Site) -> None:
    assert (await crawler().crawl(f"{site.url}{path}")).markdown == TEXTS[path]


@pytest.mark.parametrize("path", BEGINNINGS)
async def test_a_long_or_odd_page_comes_to_a_text_that_begins_right(path: str, site: Site) -> None:
    assert (await crawler().crawl(f"{site.url}{path}")).markdown.startswith(BEGINNINGS[path])


@pytest.mark.parametrize("path", ERRORS)
async def test_what_cannot_be_read_comes_to_a_sentence(path: str, site: Site) -> None:
    reading = crawler(timeout_seconds=1 if path == "/drip" else 20)
    with pytest.raises(FetchError, match=ERRORS[path]):
        await reading.crawl(f"{site.url}{path}")


async def test_all_of_them_at_once_do_not_disturb_each_other(site: Site) -> None:
    reading = crawler()
    paths = [path for path in (*TEXTS, *ERRORS) if path != "/drip"]
    found = await asyncio.gather(
        *(reading.crawl(f"{site.url}{path}") for path in paths), return_exceptions=True
    )
    for path, one in zip(paths, found, strict=True):
        if isinstance(one, BaseException):
            assert isinstance(one, FetchError) and path in ERRORS, (path, one)
        else:
            assert one.markdown == TEXTS.get(path), path
