"""The ways by which a page or a model may try to reach what is not public: none of them does."""

import itertools
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from maniple.config.settings import FetchSettings
from maniple.crawler import Crawler
from maniple.egress import AddressGuard
from maniple.errors import FetchError
from tests.crawler.web import Canary, Reply, Site, open_canary, open_site, redirect

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

# The site of the redirects; the canary listens on 127.0.0.1 and ::1.
ALLOWED = "127.0.0.2"
PUBLIC = "93.184.216.34"
NAMES = {
    "localhost": ["::1", "127.0.0.1"],
    "localhost.": ["::1", "127.0.0.1"],
    "inside.test": ["127.0.0.1"],
    "inside6.test": ["::1"],
    "mixed.test": [PUBLIC, "127.0.0.1"],
    "mixed6.test": [PUBLIC, "::1"],
    "mapped.test": ["::ffff:127.0.0.1"],
    "scoped.test": ["fe80::1%1"],
    "metadata.test": ["169.254.169.254"],
    "azure.test": ["168.63.129.16"],
    "router.test": ["192.168.1.1"],
}

HOSTS = (
    "127.0.0.1 127.1 127.0.1 127.0.0.1. 127.255.255.254 127.000.000.001 0.0.0.0 0 00 2130706433 "
    "017700000001 0x7f000001 0x7F000001 0x7f.0.0.1 0x7f.1 0177.0.0.1 0177.0.0.01 0177.1 localhost "
    "LOCALHOST localhost. LocalHost. inside.test inside6.test mixed.test mixed6.test mapped.test "
    "scoped.test metadata.test azure.test router.test 169.254.169.254 2852039166 0xA9FEA9FE "
    "169.254.170.2 168.63.129.16 100.64.0.1 100.100.100.200 10.0.0.1 172.16.0.1 172.31.255.255 "
    "192.168.0.1 192.0.0.192 192.0.2.1 192.88.99.1 198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 "
    "240.0.0.1 255.255.255.255 [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::] [::1%25lo] "
    "[::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:0:127.0.0.1] [::127.0.0.1] [64:ff9b::127.0.0.1] "
    "[64:ff9b::7f00:1] [64:ff9b:1::7f00:1] [2002:7f00:1::] [2002:7f00:0001::1] [2001:0:7f00:1::] "
    "[2001:db8::1] [3fff::1] [fe80::1] [fe80::1%25lo] [fe80::1%lo] [fc00::1] [fd00:ec2::254] "
    "[fec0::1] [ff02::1] [100::1] [5f00::1] [::ffff:169.254.169.254] ①②⑦.⓪.⓪.① 127。0。0。1 127．0．0．1 "
    "127｡0｡0｡1 １２７.０.０.１ ⓛⓞⓒⓐⓛⓗⓞⓢⓣ ｌｏｃａｌｈｏｓｔ %31%32%37.0.0.1 127%2e0%2e0%2e1 "
    "example.test@127.0.0.1 example.test:80@127.0.0.1 a:b@localhost "
)

ADDRESSES = [
    "http://127.0.0.1:{port}\\@public.test/",
    "http://public.test\\@127.0.0.1:{port}/",
    "http://public.test:80\\@@127.0.0.1:{port}/",
    "http://public.test&@127.0.0.1:{port}#@public.test/",
    "http:\\\\127.0.0.1:{port}\\",
    "http:127.0.0.1:{port}/",
    "http:/127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "127.0.0.1:{port}",
    " http://127.0.0.1:{port}/",
    "\thttp://127.0.0.1:{port}/",
    "ht\ntp://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/ HTTP/1.1\r\nX: y",
    "http://127.0.0.1\x00.public.test:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "https://127.0.0.1:{port}/",
    "http://[::1:{port}/",
    "http://127.0.0.1:99999/",
    "http://127.0.0.1:22/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "FILE:///etc/passwd",
    "gopher://127.0.0.1:{port}/_GET",
    "dict://127.0.0.1:{port}/info",
    "ftp://127.0.0.1:{port}/",
    "ldap://127.0.0.1:{port}/",
    "ws://127.0.0.1:{port}/",
    "data:text/html,hello",
    "javascript:fetch('http://127.0.0.1:{port}')",
    "jar:http://127.0.0.1:{port}/!/",
    "view-source:http://127.0.0.1:{port}/",
    "",
    "http://",
]

# What an allowed site may answer with.
LOCATIONS = [
    "http://127.0.0.1:{port}/",
    "//127.0.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://[::1]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://0.0.0.0:{port}/",
    "http://localhost:{port}/",
    "http://inside.test:{port}/",
    "http://x@127.0.0.1:{port}/",
    "http://169.254.169.254/latest/meta-data/",
    "http:\\\\127.0.0.1:{port}",
    "https://127.0.0.1:{port}/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/",
    "ftp://127.0.0.1:{port}/",
    "http://[::1",
    "http://127.0.0.1:{port}:80/",
]


def resolver(answers: dict[str, Callable[[], list[str]]]) -> Callable[..., list[Any]]:
    real = socket.getaddrinfo

    def getaddrinfo(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        addresses = answers[host]() if host in answers else [host]
        return [
            entry
            for address in addresses
            for entry in real(address, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
        ]

    return getaddrinfo


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names answer from the table above, numbers as the C library reads them, nothing asks a server."""
    answers = {name: (lambda addresses=addresses: addresses) for name, addresses in NAMES.items()}
    monkeypatch.setattr(socket, "getaddrinfo", resolver(answers))


@pytest.fixture
async def canary(anyio_backend: str) -> AsyncIterator[Canary]:
    async with open_canary() as canary:
        yield canary


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": Reply("<p>A public page.</p>")}, ALLOWED) as site:
        yield site


@pytest.fixture
def crawler() -> Crawler:
    return Crawler(FetchSettings(allow_private=(f"{ALLOWED}/32",), timeout_seconds=5))


async def assert_no_leak(crawler: Crawler, url: str, canary: Canary) -> None:
    with pytest.raises(FetchError):
        await crawler.crawl(url)
    assert canary.hits == []


@pytest.mark.parametrize("host", HOSTS.split())
async def test_no_spelling_of_a_host_reaches_an_internal_address(
    host: str, canary: Canary, crawler: Crawler
) -> None:
    await assert_no_leak(crawler, f"http://{host}:{canary.port}/", canary)


@pytest.mark.parametrize("address", ADDRESSES)
async def test_no_odd_address_or_scheme_reaches_an_internal_address(
    address: str, canary: Canary, crawler: Crawler
) -> None:
    await assert_no_leak(crawler, address.format(port=canary.port), canary)


@pytest.mark.parametrize("location", LOCATIONS)
async def test_no_redirect_reaches_an_internal_address(
    location: str, canary: Canary, site: Site, crawler: Crawler
) -> None:
    site.pages["/go"] = redirect(location.format(port=canary.port))
    await assert_no_leak(crawler, f"{site.url}/go", canary)
    assert [path for _, path, _ in site.requests] == ["/go"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_kind_of_redirect_reaches_an_internal_address(
    status: int, canary: Canary, site: Site, crawler: Crawler
) -> None:
    site.pages["/go"] = redirect("/again", status)
    site.pages["/again"] = redirect(f"http://127.0.0.1:{canary.port}/", status)
    await assert_no_leak(crawler, f"{site.url}/go", canary)


async def test_a_name_is_resolved_only_once(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = itertools.chain([[ALLOWED]], itertools.repeat(["127.0.0.1"]))
    monkeypatch.setattr(socket, "getaddrinfo", resolver({"rebind.test": lambda: next(addresses)}))
    # Each request asks for itself: one for robots.txt would use up the first answer.
    crawler = Crawler(FetchSettings(allow_private=(f"{ALLOWED}/32",), timeout_seconds=5, robots=False))
    async with open_site({"/": Reply("<p>The first answer.</p>")}, ALLOWED) as site:
        article = await crawler.crawl(f"http://rebind.test:{site.port}/")
        assert article.markdown == "The first answer."
        await assert_no_leak(crawler, f"http://rebind.test:{canary.port}/", canary)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "inside.test", "mixed.test", "::1", "::ffff:7f00:1"]
)
async def test_the_guard_gives_no_internal_address_to_the_browser_either(host: str) -> None:
    with pytest.raises(FetchError, match="not public"):
        await AddressGuard(FetchSettings()).resolve(host, 80)


async def test_a_network_that_is_opened_on_purpose_can_be_read(canary: Canary) -> None:
    crawler = Crawler(FetchSettings(allow_private=("127.0.0.0/8",), robots=False))
    article = await crawler.crawl(f"http://127.0.0.1:{canary.port}/")
    assert article.markdown == "the canary sings"
    assert len(canary.hits) == 1
    with pytest.raises(FetchError, match="not public"):
        await crawler.crawl(f"http://[::1]:{canary.port}/")
    crawler = Crawler(FetchSettings(allow_private=("::1/128",), robots=False))
    assert (await crawler.crawl(f"http://[::1]:{canary.port}/")).markdown == "the canary sings"
