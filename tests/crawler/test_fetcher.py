"""What happens on the way to a page: redirects of every kind, frames, cookies, waiting, changes."""

from collections.abc import AsyncIterator

import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.crawler.fetcher import Fetcher
from maniple.egress import AddressGuard
from maniple.errors import FetchError
from tests.crawler.web import Reply, Site, open_site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2"])]
SETTINGS = FetchSettings(allow_private=("127.0.0.0/8",), timeout_seconds=10, probe_sites=False)


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": Reply("<p>Some text.")}) as site:
        yield site


@pytest.fixture
def crawler() -> Crawler:
    return Crawler(SETTINGS)


class Patience:
    """Waits no time, and remembers for how long."""

    def __init__(self) -> None:
        self.waited: list[float] = []
        self.fetcher = Fetcher(SETTINGS, AddressGuard(SETTINGS), self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.waited.append(seconds)


def paths(site: Site) -> list[str]:
    return [path for _, path, _ in site.requests]


def refresh(content: str, rest: str = "") -> Reply:
    return Reply(f'<html><head><meta http-equiv="Refresh" content="{content}"></head>{rest}')


@pytest.mark.parametrize(
    "content", ["0; url=/", "0;URL='/'", "5, url=/", "0 /", "0.5; url = /", "; url=/", "0; url=/#part"]
)
async def test_a_page_that_sends_its_readers_on_is_followed(
    content: str, site: Site, crawler: Crawler
) -> None:
    site.pages["/old"] = refresh(content)
    article = await crawler.crawl(f"{site.url}/old")
    assert (article.url.partition("#")[0], article.markdown) == (f"{site.url}/", "Some text.")


@pytest.mark.parametrize(
    "reply",
    [
        refresh("60; url=/", "<p>News of now."),
        refresh("0; url=/stay", "<p>News of now."),
        refresh("0", "<p>News of now."),
        refresh("soon; url=/", "<p>News of now."),
        Reply("<!-- <meta http-equiv=refresh content='0;url=/'> --><p>News of now."),
        Reply("<noscript><meta http-equiv=refresh content='0;url=/'></noscript><p>News of now."),
    ],
)
async def test_a_page_that_only_renews_itself_is_read(reply: Reply, site: Site, crawler: Crawler) -> None:
    site.pages["/stay"] = reply
    assert (await crawler.crawl(f"{site.url}/stay")).markdown == "News of now."
    assert paths(site) == ["/stay"]


@pytest.mark.parametrize("target", ["http://[bad", "https://x y/", "http://\x7f/"])
async def test_a_redirect_to_no_address_names_its_page(site: Site, crawler: Crawler, target: str) -> None:
    site.pages |= {"/a": redirect("/b"), "/b": Reply(status=302, headers=(("Location", target),))}
    with pytest.raises(FetchError, match=f"^{site.url}/b redirects to an invalid"):
        await crawler.crawl(f"{site.url}/a")


async def test_redirects_of_both_kinds_are_counted_together(site: Site, crawler: Crawler) -> None:
    site.pages |= {"/a": redirect("/b"), "/b": refresh("0; url=/a")}
    with pytest.raises(FetchError, match="redirects too often"):
        await crawler.crawl(f"{site.url}/a")
    assert paths(site) == ["/a", "/b"] * 3


async def test_the_frames_of_a_page_are_read_under_its_title(site: Site, crawler: Crawler) -> None:
    site.pages |= {
        "/set": Reply(
            "<title>Two & more</title><frameset cols='1,2'><frame src='f/menu'><frameset><frame src=/f/gone>"
            "<frame src='f/old'></frameset></frameset><noframes>Get a browser.</noframes>"
        ),
        "/f/menu": Reply("<p>First: <a href='one'>one</a>."),
        "/f/old": redirect("text"),
        "/f/text": Reply('<meta charset="gbk"><p>汉字'.encode("gbk"), "text/html"),
    }
    article = await crawler.crawl(f"{site.url}/set")
    assert (article.title, article.url) == ("Two & more", f"{site.url}/set")
    assert article.markdown == f"First: [one]({site.url}/f/one).\n\n汉字"


async def test_a_page_whose_frames_cannot_be_had_is_refused(site: Site, crawler: Crawler) -> None:
    site.pages["/set"] = Reply("<frameset><frame src=/f/gone></frameset>")
    with pytest.raises(FetchError, match=r"/f/gone answered 404"):
        await crawler.crawl(f"{site.url}/set")


async def test_frames_are_bounded_in_number_and_size_and_not_followed_further(site: Site) -> None:
    frames = "".join(f"<frame src=/{number}>" for number in range(1_000))
    site.pages["/set"] = Reply(f"<frameset>{frames}</frameset>")
    site.pages |= {f"/{number}": Reply(f"<frameset>{frames}</frameset><p>Deep.") for number in range(1_000)}
    await Fetcher(SETTINGS, AddressGuard(SETTINGS)).fetch(f"{site.url}/set")
    assert len(site.requests) == 7

    site.pages |= {f"/{number}": Reply("<p>" + "wide " * 10_000) for number in range(1_000)}
    small = SETTINGS.model_copy(update={"max_bytes": 120_000})
    document = await Fetcher(small, AddressGuard(small)).fetch(f"{site.url}/set")
    assert len(document.frames) == 2


@pytest.mark.parametrize(
    ("path", "media_type", "is_fetched"),
    [
        ("/a", "application/pdf", True),
        ("/a.pdf?x", "application/octet-stream", True),
        ("/a.pdf", "text/html", False),
        ("/a", "text/csv", False),
    ],
)
async def test_a_document_may_be_larger_than_a_page(
    site: Site, path: str, media_type: str, is_fetched: bool
) -> None:
    site.pages[path] = Reply(b"%PDF-1.7" + b"x" * 3_000, media_type)
    small = SETTINGS.model_copy(update={"max_bytes": 2_000, "max_document_bytes": 4_000})
    fetching = Fetcher(small, AddressGuard(small)).fetch(f"{site.url}{path}")
    if is_fetched:
        assert len((await fetching).body) == 3_008
        return
    with pytest.raises(FetchError, match="larger than 2,000"):
        await fetching


async def test_cookies_live_as_long_as_the_way_to_one_page(site: Site, crawler: Crawler) -> None:
    site.pages |= {
        "/gate": Reply(status=302, headers=(("Location", "/in"), ("Set-Cookie", "seen=yes; Path=/"))),
        "/in": refresh("0; url=/"),
    }
    await crawler.crawl(f"{site.url}/gate")
    await crawler.crawl(f"{site.url}/gate")
    told = [(path, "seen=yes" in head) for _, path, head in site.requests]
    assert told == [("/gate", False), ("/in", True), ("/", True)] * 2


async def test_cookies_are_sent_to_no_other_site(site: Site, crawler: Crawler) -> None:
    async with open_site({"/": Reply("<p>Elsewhere.")}, "127.0.0.2") as other:
        headers = (("Location", other.url), ("Set-Cookie", "seen=yes"), ("Set-Cookie", "all=1; Domain=0.0.2"))
        site.pages["/gate"] = Reply(status=302, headers=headers)
        assert (await crawler.crawl(f"{site.url}/gate")).markdown == "Elsewhere."
        assert "cookie" not in other.requests[0][2].lower()


@pytest.mark.parametrize("status", [429, 503])
async def test_a_short_retry_after_is_waited_for_once(status: int, site: Site) -> None:
    site.pages["/"] = Reply("slow down", status=status, headers=(("Retry-After", "7"),))
    patience = Patience()
    with pytest.raises(FetchError, match=rf"answered {status} .* again in 7 s"):
        await patience.fetcher.fetch(site.url)
    assert (patience.waited, paths(site)) == ([7.0], ["/", "/"])


async def test_a_page_that_comes_after_the_moment_is_read(site: Site) -> None:
    busy = Reply("slow down", status=429, headers=(("Retry-After", "1"),))
    later, site.pages["/"] = site.pages["/"], busy

    async def sleep(_: float) -> None:
        site.pages["/"] = later

    fetcher = Fetcher(SETTINGS, AddressGuard(SETTINGS), sleep)
    assert (await fetcher.fetch(site.url)).body == b"<p>Some text."


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((("Retry-After", "11"),), "again in 11 s"),
        ((("Retry-After", "99999999999999999999"),), "not to be asked again today"),
        ((("Retry-After", "soon"),), "limits requests"),
        ((("Retry-After", "-5"),), "limits requests"),
        (
            (("Retry-After", "Wed, 21 Oct 2015 07:30:00 GMT"), ("Date", "Wed, 21 Oct 2015 07:28:00 GMT")),
            "again in 120 s",
        ),
    ],
)
async def test_a_longer_time_is_reported_and_not_waited(
    headers: tuple[tuple[str, str], ...], said: str, site: Site
) -> None:
    site.pages["/"] = Reply("slow down", status=429, headers=headers)
    patience = Patience()
    with pytest.raises(FetchError, match=said):
        await patience.fetcher.fetch(site.url)
    assert (patience.waited, len(site.requests)) == ([], 1)


async def test_the_user_agent_names_the_program_and_a_contact(site: Site) -> None:
    await Crawler(SETTINGS).crawl(site.url)
    await Crawler(SETTINGS.model_copy(update={"contact": "https://a.test/us"})).crawl(site.url)
    names = [head.partition("user-agent: ")[2].partition("\r\n")[0] for _, _, head in site.requests]
    assert names[0].startswith("Mozilla/5.0 (compatible; maniple/") and names[0].endswith(")")
    assert names[1] == f"{names[0][:-1]}; +https://a.test/us)"
