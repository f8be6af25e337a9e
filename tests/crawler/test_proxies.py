"""Pages through the proxies of the environment."""

import gc
from collections.abc import AsyncIterator

import httpx
import pytest

from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import ConfigError, FetchError
from tests.crawler.web import Reply, Site, open_site, redirect
from tests.egress.proxy_servers import (
    PROXY_SCHEMES,
    ProxyScheme,
    TestAuthority,
    authority,
    open_proxy_server,
    trusted_authority,
)

__all__ = ["authority", "trusted_authority"]

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "::1"])]
SETTINGS = FetchSettings(timeout_seconds=20)
LOGIN = ("user@corp", "pass:w/rd")
PAGES = {
    "/": Reply("<p>Some text."),
    "/on": redirect("https://secret.example/"),
    "/in": redirect("http://intranet/"),
}


@pytest.fixture
async def plain(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site(dict(PAGES)) as site:
        yield site


@pytest.fixture
async def secret(anyio_backend: str, trusted_authority: TestAuthority) -> AsyncIterator[Site]:
    async with open_site(dict(PAGES), tls=trusted_authority.context) as site:
        yield site


@pytest.mark.parametrize("login", [None, LOGIN])
@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_pages_and_redirects_come_through_the_proxy(
    scheme: ProxyScheme,
    login: tuple[str, str] | None,
    trusted_authority: TestAuthority,
    plain: Site,
    secret: Site,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hosts = {"site.example": plain.port, "secret.example": secret.port, "intranet": plain.port}
    async with open_proxy_server(scheme, hosts, login=login, authority=trusted_authority) as proxy:
        monkeypatch.setenv("ALL_PROXY", proxy.url)
        crawler = Crawler(SETTINGS)
        for url in ("http://site.example/", "https://secret.example/", "http://site.example/on"):
            assert (await crawler.crawl(url)).markdown == "Some text."
        with pytest.raises(FetchError):
            await crawler.crawl("http://site.example/in")
    assert set(proxy.passed) == {"site.example:80", "secret.example:443"}
    assert "proxy-auth" not in plain.requests[0][2].lower()


async def test_a_host_in_no_proxy_is_reached_directly(plain: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_proxy_server("http", {"127.0.0.1": plain.port}) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("NO_PROXY", "127.0.0.0/8")
        open_here = SETTINGS.model_copy(update={"allow_private": ("127.0.0.0/8",)})
        assert (await Crawler(open_here).crawl(f"{plain.url}/")).markdown == "Some text."
        with pytest.raises(FetchError):
            await Crawler(SETTINGS).crawl(f"{plain.url}/")
    assert proxy.passed == []


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_a_proxy_that_fails_is_named_without_its_password(
    scheme: ProxyScheme, trusted_authority: TestAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_proxy_server(scheme, {}, login=LOGIN, authority=trusted_authority) as proxy:
        dead = f"{scheme}://user:w%2Frd@127.0.0.1:9"
        for address in (proxy.url.replace("pass", "word"), dead):
            monkeypatch.setenv("ALL_PROXY", address)
            for url in ("http://site.example/", "https://site.example/"):
                with pytest.raises(FetchError, match=r"ALL_PROXY \(127\.0\.0\.1:") as failed:
                    await Crawler(SETTINGS).crawl(url)
                assert "w%2Frd" not in str(failed.value)
            gc.collect()  # would report a connection that was left open


def test_an_address_that_is_no_proxy_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:9")
    with pytest.raises(ConfigError, match="ALL_PROXY"):
        Crawler(SETTINGS)


@pytest.mark.parametrize(
    "variable, url", [("HTTP_PROXY", "https://a.example/"), ("HTTPS_PROXY", "http://a.example/")]
)
async def test_a_name_left_to_the_proxy_of_one_scheme_is_not_connected_to_for_the_other(
    variable: str, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    connected: list[str] = []
    monkeypatch.setattr(
        httpx.AsyncHTTPTransport,
        "handle_async_request",
        lambda _, request: connected.append(request.url.host),
    )
    with pytest.raises(FetchError):
        await Crawler(SETTINGS.model_copy(update={"robots": False, "jina": "never"})).crawl(url)
    assert connected == []
