import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.config.settings import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import ConfigError, FetchError
from tests.crawler.web import Reply, Send, Site, open_site, redirect

pytestmark = pytest.mark.anyio

LOOPBACK = ("127.0.0.0/8",)


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({}) as site:
        yield site


@pytest.fixture
def crawler() -> Crawler:
    return Crawler(FetchSettings(allow_private=LOOPBACK, timeout_seconds=10))


async def endless(send: Send) -> None:
    for _ in range(10_000):
        await send(b"<p>" + b"and on " * 10_000)


async def silent(send: Send) -> None:
    await send(b"<p>one drop")
    await asyncio.Event().wait()


async def test_a_page_becomes_an_article(site: Site, crawler: Crawler) -> None:
    site.pages["/"] = Reply(
        "<title> A\n title </title><nav>Menu</nav><main><h1>Head</h1><p>Some <b>text</b>.</main>"
    )
    article = await crawler.crawl(site.url)
    assert (article.title, article.markdown) == ("A title", "# Head\n\nSome **text**.")
    assert "maniple" in site.requests[0][2]


async def test_redirects_are_followed_and_links_belong_to_the_last_address(
    site: Site, crawler: Crawler
) -> None:
    site.pages |= {
        "/old": redirect("/a/b/new", 301),
        "/a/b/new": Reply("<p>See <a href='../c'>this</a> and <a href='javascript:x()'>that</a>."),
    }
    article = await crawler.crawl(f"{site.url}/old")
    assert article.url == f"{site.url}/a/b/new"
    assert article.markdown == f"See [this]({site.url}/a/c) and that."


async def test_the_sixth_redirect_is_not_followed(site: Site, crawler: Crawler) -> None:
    site.pages["/loop"] = redirect("/loop")
    with pytest.raises(FetchError, match="redirects too often"):
        await crawler.crawl(f"{site.url}/loop")
    assert len(site.requests) == 6


async def test_cookies_are_not_stored_between_two_fetches(site: Site, crawler: Crawler) -> None:
    site.pages["/"] = Reply("<p>Hello.", headers=(("Set-Cookie", "who=you; Path=/"),))
    for _ in range(2):
        await crawler.crawl(site.url)
    assert not any("who=you" in head for _, _, head in site.requests)


async def test_a_proxy_of_the_environment_is_ignored(
    site: Site, crawler: Crawler, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.pages["/"] = Reply("<p>Direct.")
    async with open_site({}) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert (await crawler.crawl(site.url)).markdown == "Direct."
        assert proxy.requests == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply("gone", status=404), r"404 \(Not Found\)"),
        (Reply("slow down", status=429), "limits requests"),
        (Reply("slow down", status=429, headers=(("Retry-After", "3600"),)), "again in 3,600 s"),
        (Reply("keep out", status=403), "keeps programs out"),
        (Reply("login", status=401), "needs a login"),
        (Reply(status=204), "204"),
        (Reply("odd", status=799), "799"),
        (Reply(b"\x89PNG", content_type="image/png"), "image/png"),
        (Reply("<svg/>", content_type="image/svg+xml"), "image/svg"),
        (Reply(b"\x00\x01\x02", content_type=""), "binary data"),
        (Reply("<div id=root></div><script>render()</script>"), "may need a browser"),
        (Reply(""), "no readable text"),
        (Reply("   ", content_type="text/plain"), "no text"),
        (Reply(stream=endless), "larger than 5,000,000 bytes"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
async def test_an_unreadable_page_is_reported(reply: Reply, said: str, site: Site, crawler: Crawler) -> None:
    site.pages["/"] = reply
    with pytest.raises(FetchError, match=said):
        await crawler.crawl(site.url)


async def test_a_server_that_never_ends_is_left(site: Site) -> None:
    site.pages["/"] = Reply(stream=silent)
    crawler = Crawler(FetchSettings(allow_private=LOOPBACK, timeout_seconds=0.3))
    with pytest.raises(FetchError, match="took too long"):
        await crawler.crawl(site.url)


async def test_an_unreachable_server_is_reported(crawler: Crawler) -> None:
    async with open_site({}) as site:
        pass
    with pytest.raises(FetchError, match="not be connected to"):
        await crawler.crawl(site.url)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("<p>汉字和文章".encode("gbk"), "text/html; charset=gb2312"),
        ('<meta charset="gbk"><p>汉字和文章'.encode("gbk"), "text/html"),
        ("<p>汉字和文章".encode(), "text/html"),
        ("<p>汉字和文章".encode("utf-8-sig"), "text/html; charset=latin-1"),
        ("<p>汉字和文章".encode("utf-16"), "text/html"),
        ("<p>汉字和文章".encode(), "text/html; charset=no-such"),
        ("<p>汉字和文章".encode(), "text/html; charset=punycode"),
    ],
)
async def test_encodings_are_found_out(body: bytes, content_type: str, site: Site, crawler: Crawler) -> None:
    site.pages["/"] = Reply(body, content_type)
    assert (await crawler.crawl(site.url)).markdown == "汉字和文章"


async def test_shift_jis_is_read(site: Site, crawler: Crawler) -> None:
    site.pages["/"] = Reply("<p>日本語の文章①".encode("cp932"), "text/html; charset=Shift_JIS")
    assert (await crawler.crawl(site.url)).markdown == "日本語の文章①"


async def test_json_and_plain_text_stay_as_they_are(site: Site, crawler: Crawler) -> None:
    site.pages["/data.json"] = Reply('{"a": [1, 2], "b": "<p>"}', "application/json")
    site.pages["/notes.txt"] = Reply("one_two\n\n  *three*\n", "text/plain; charset=utf-8")
    assert (await crawler.crawl(f"{site.url}/data.json")).markdown == '{"a": [1, 2], "b": "<p>"}'
    notes = await crawler.crawl(f"{site.url}/notes.txt")
    assert (notes.title, notes.markdown) == ("notes.txt", "one_two\n\n  *three*")


@pytest.fixture
async def secure_port(anyio_backend: str, tmp_path: Path) -> AsyncIterator[int]:
    """A site that speaks TLS with a certificate, `tmp_path / "certificate"`, for `secure.test` alone."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=secure.test -keyout key -out certificate"
    )
    command = [*command.split(), "-addext", "subjectAltName=DNS:secure.test"]
    await asyncio.to_thread(subprocess.run, command, cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    async with open_site({"/": Reply("<p>Private talk.")}, tls=context) as site:
        yield site.port


async def test_https_is_read_when_the_certificate_is_of_that_name(
    secure_port: int, tmp_path: Path, crawler: Crawler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate"))
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda _host, port, *rest, **more: real("127.0.0.1", port, *rest, **more)
    )
    assert (await crawler.crawl(f"https://secure.test:{secure_port}/")).markdown == "Private talk."
    with pytest.raises(FetchError, match="certificate"):
        await crawler.crawl(f"https://other.test:{secure_port}/")


async def test_an_untrusted_certificate_is_refused(secure_port: int, crawler: Crawler) -> None:
    with pytest.raises(FetchError, match="certificate"):
        await crawler.crawl(f"https://127.0.0.1:{secure_port}/")


async def test_a_cancelled_crawl_closes_its_connection(site: Site, crawler: Crawler) -> None:
    arrived, left = asyncio.Event(), asyncio.Event()

    async def hold(send: Send) -> None:
        arrived.set()
        try:
            for _ in range(100_000):
                await send(b" " * 10)
                await asyncio.sleep(0.001)
        finally:
            left.set()

    site.pages["/"] = Reply(stream=hold)
    crawl = asyncio.create_task(crawler.crawl(site.url))
    async with asyncio.timeout(60):
        await arrived.wait()
        crawl.cancel()
        with pytest.raises(asyncio.CancelledError):
            await crawl
        await left.wait()


def test_a_network_that_is_none_is_a_mistake_in_the_settings() -> None:
    with pytest.raises(ConfigError, match=r"fetch\.allow_private"):
        Crawler(FetchSettings(allow_private=("10.0.0.1/8",)))
