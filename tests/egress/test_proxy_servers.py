"""The proxies that other tests use: curl, which has nothing in common with them, comes through each."""

import asyncio
from shutil import which

import pytest

from tests.crawler.web import Reply, open_site
from tests.egress.proxy_servers import (
    PROXY_SCHEMES,
    ProxyScheme,
    ProxyServer,
    TestAuthority,
    open_proxy_server,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(which("curl") is None, reason="curl is not installed"),
]
LOGIN = ("user@corp", "pass:w/rd")


async def curl(proxy: ProxyServer, url: str, authority: TestAuthority, address: str = "") -> str:
    trust = ("--cacert", str(authority.file), "--proxy-cacert", str(authority.file))
    name = (address or proxy.url).replace("socks5:", "socks5h:")
    process = await asyncio.create_subprocess_exec(
        *("curl", "-sS", "-m", "60", "--noproxy", "", "-x", name, *trust, url),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return output.decode()


@pytest.mark.parametrize("login", [None, LOGIN])
@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_invented_names_are_reached_plain_and_with_tls(
    scheme: ProxyScheme, login: tuple[str, str] | None, authority: TestAuthority
) -> None:
    pages = {"/a": Reply("found")}
    async with open_site(pages) as plain, open_site(pages, tls=authority.context) as secret:
        hosts = {"site.example": plain.port, "secret.example": secret.port}
        async with open_proxy_server(scheme, hosts, login=login, authority=authority) as proxy:
            assert await curl(proxy, "http://site.example/a", authority) == "found"
            assert await curl(proxy, "https://secret.example/a", authority) == "found"
    assert proxy.passed == ["site.example:80", "secret.example:443"]
    assert "proxy" not in plain.requests[0][2].lower()


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_wrong_passwords_and_other_places_are_refused(
    scheme: ProxyScheme, authority: TestAuthority
) -> None:
    async with open_site({"/": Reply("found")}) as site:
        hosts = {"site.example": site.port}
        async with open_proxy_server(scheme, hosts, login=LOGIN, authority=authority) as proxy:
            wrong = proxy.url.replace("pass", "word")
            assert "found" not in await curl(proxy, "http://site.example/", authority, wrong)
            assert "found" not in await curl(proxy, f"http://127.0.0.1:{site.port}/", authority)
    assert (proxy.passed, site.requests) == ([], [])
    assert proxy.refused == ["login", f"127.0.0.1:{site.port}"]


async def test_closing_it_ends_its_connections(authority: TestAuthority) -> None:
    async with open_site({}) as site, open_proxy_server("http", {"site.example": site.port}) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"CONNECT site.example:1 HTTP/1.1\r\n\r\n")
        assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
