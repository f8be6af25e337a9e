"""Connecting through the proxy that the settings name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import which

import pytest
from pydantic import SecretStr

from maniple.browser import open_browser
from maniple.browser.drivers.chromium import proxies_for
from maniple.config import BrowserSettings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AddressGuard, EgressRoute, open_socks_proxy
from maniple.errors import ConfigError, FetchError
from maniple.sandbox import find_chromium_isolation
from tests.crawler.web import Reply, open_site
from tests.egress.proxy_servers import PROXY_SCHEMES, ProxyScheme, TestAuthority, open_proxy_server
from tests.egress.test_socks import NAME, ask, connected

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]


@asynccontextmanager
async def http_proxy(answer: bytes) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A proxy that grants or refuses as configured and records its requests."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_proxy_of_the_operator_is_used_with_the_checked_address(guard: AddressGuard) -> None:
    async with http_proxy(b"HTTP/1.1 200 OK\r\n\r\nhello") as (url, asked):
        settings = BrowserSettings(proxy_server=url, proxy_username="u", proxy_password=SecretStr("p"))
        async with (
            open_socks_proxy(EgressRoute(guard.resolve, proxies=proxies_for(settings))) as port,
            connected(port) as streams,
        ):
            assert await ask(streams, NAME, b"\x09127.0.0.2", 8080) == 0
            assert await streams[0].read() == b"hello"
    head = (
        b"CONNECT 127.0.0.2:8080 HTTP/1.1\r\nHost: 127.0.0.2:8080\r\nProxy-Authorization: Basic dTpw\r\n\r\n"
    )
    assert asked == [head]


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 Who are you\r\n\r\n", b"HTTP/1.1 200", b"", b"\r\n\r\n"])
async def test_a_proxy_that_refuses_is_no_way(answer: bytes, guard: AddressGuard) -> None:
    async with http_proxy(answer) as (url, _):
        settings = BrowserSettings(proxy_server=url)
        async with (
            open_socks_proxy(EgressRoute(guard.resolve, proxies=proxies_for(settings))) as port,
            connected(port) as streams,
        ):
            assert await ask(streams, NAME, b"\x09127.0.0.2", 8080) == 4


@pytest.mark.parametrize("server", ["socks4://127.0.0.1:1", "ftp://127.0.0.1:3128", "http://", "http://h:x"])
def test_what_is_no_proxy_is_a_mistake_in_the_settings(server: str) -> None:
    with pytest.raises(ConfigError, match=r"browser\.proxy_server"):
        proxies_for(BrowserSettings(proxy_server=server))


@pytest.mark.skipif(which("certutil") is None, reason="certutil is not installed (libnss3-tools)")
@pytest.mark.parametrize(
    "scheme", [pytest.param(one, marks=[] if one == "http" else pytest.mark.slow) for one in PROXY_SCHEMES]
)
@pytest.mark.parametrize("is_isolated", [True, False])
async def test_pages_come_through_the_proxy_of_the_environment(
    scheme: ProxyScheme, is_isolated: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = TestAuthority.create(tmp_path)  # a company's, which Chromium is to trust
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    login = ("user@corp", "pass:w/rd")
    isolation = find_chromium_isolation(SandboxSettings()) if is_isolated else None
    pages = {"/": Reply('<p>Through it.</p><img src="/a.png"><script src="http://intranet/a.js"></script>')}
    async with open_site(pages) as site, open_site(pages, tls=authority.context) as secret:
        hosts = {"site.example": site.port, "secret.example": secret.port, "intranet": site.port}
        async with open_proxy_server(scheme, hosts, login=login, authority=authority) as proxy:
            monkeypatch.setenv("ALL_PROXY", proxy.url)
            async with open_browser(BrowserSettings(timeout_seconds=30), isolation=isolation) as browser:
                assert "Through it." in (await browser.read("http://site.example/", thread="t")).text
                assert "Through it." in (await browser.read("https://secret.example/", thread="t")).text
                for url in ("http://intranet/", "http://127.0.0.1/"):
                    with pytest.raises(FetchError):
                        await browser.read(url, thread="t")
    assert set(proxy.passed) == {"site.example:80", "secret.example:443"}
    assert {path for _, path, _ in site.requests} == {"/", "/a.png"}
