"""The way out through a proxy: what is still checked, what the proxy gets, and what is said when it fails."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from maniple.config import FetchSettings
from maniple.egress import (
    AddressGuard,
    AllowedHosts,
    EgressRoute,
    EnvironmentProxies,
    Streams,
    UpstreamError,
    UpstreamProxy,
    open_gateway,
    open_socks_proxy,
)
from maniple.egress.environment_proxies import NETWORK_VARIABLES
from maniple.egress.guard import PermanentFetchError
from maniple.errors import ConfigError, FetchError
from tests.crawler.web import Reply, Site, open_site
from tests.egress.conftest import ALLOWED
from tests.egress.proxy_servers import (
    PROXY_SCHEMES,
    ProxyScheme,
    TestAuthority,
    authority,
    open_proxy_server,
    trusted_authority,
)
from tests.egress.test_gateway import asking, say
from tests.egress.test_socks import NAME, ask, connected

__all__ = ["authority", "trusted_authority"]

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]
LOGIN = ("user@corp", "pass:w/rd")
HOST = "site.example"


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/a": Reply("through")}) as site:
        yield site


def route_through(address: str) -> EgressRoute:
    proxies = EnvironmentProxies.only(address, "HTTPS_PROXY")
    guard = AddressGuard(FetchSettings(allow_private=(f"{ALLOWED}/32",)), proxies)
    return EgressRoute(guard.resolve, proxies=proxies)


@pytest.mark.parametrize("login", [None, LOGIN])
@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_a_name_that_only_the_proxy_knows_is_reached(
    scheme: ProxyScheme, login: tuple[str, str] | None, trusted_authority: TestAuthority, site: Site
) -> None:
    async with open_proxy_server(
        scheme, {HOST: site.port, ALLOWED: site.port}, login=login, authority=trusted_authority
    ) as proxy:
        route = route_through(proxy.url)
        for host in (HOST, ALLOWED):
            async with route.open(host, 8443, 60) as (reader, writer):
                writer.write(b"GET /a HTTP/1.1\r\n\r\n")
                assert (await reader.read()).endswith(b"through")
        assert proxy.passed == [f"{HOST}:8443", f"{ALLOWED}:8443"]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "::1", "::ffff:7f00:1", "169.254.169.254", "127.0.0.1."]
)
async def test_addresses_that_are_not_public_are_refused_before_the_proxy_is_asked(host: str) -> None:
    async with open_proxy_server("http", {host: 9}) as proxy:
        with pytest.raises(FetchError):
            async with route_through(proxy.url).open(host, 443, 60):
                pass
    assert (proxy.passed, proxy.refused) == ([], [])


@pytest.mark.parametrize(
    "host",
    [
        *("intranet", "metadata.google.internal", "printer.local", "db.corp", "router.home.arpa", "a.lan"),
        *("x.localhost", "0x7f.1.0x1", "1.2.3.4.5", "a.b.0x7f", "METADATA.GOOGLE.INTERNAL."),
    ],
)
async def test_names_of_private_networks_are_not_left_to_a_proxy(host: str) -> None:
    async with open_proxy_server("http", {host: 9}) as proxy:
        with pytest.raises(FetchError):
            async with route_through(proxy.url).open(host, 443, 60):
                pass
    assert (proxy.passed, proxy.refused) == ([], [])


async def test_a_port_that_no_web_server_uses_is_refused() -> None:
    with pytest.raises(PermanentFetchError):
        async with route_through("http://127.0.0.1:9").open(HOST, 25, 60):
            pass


async def test_a_host_in_no_proxy_is_reached_directly(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "other.example,127.0.0.1")
    guard = AddressGuard(FetchSettings(allow_private=("127.0.0.1/32",)))
    route = EgressRoute(guard.resolve, proxies=guard.proxies)
    async with route.open("127.0.0.1", site.port, 60) as (reader, writer):
        writer.write(b"GET /a HTTP/1.1\r\n\r\n")
        assert (await reader.read()).endswith(b"through")
    with pytest.raises(UpstreamError):
        async with route.open("other.example.net", 443, 60):
            pass
    with pytest.raises(FetchError):  # no proxy, so its address must be found here
        async with route.open("other.example", 443, 60):
            pass


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_a_refusal_and_a_wrong_password_name_the_proxy_without_the_password(
    scheme: ProxyScheme, trusted_authority: TestAuthority
) -> None:
    async with open_proxy_server(scheme, {}, login=LOGIN, authority=trusted_authority) as proxy:
        for address in (proxy.url, proxy.url.replace("pass", "word"), f"{scheme}://127.0.0.1:{proxy.port}"):
            with pytest.raises(UpstreamError, match="HTTPS_PROXY") as failed:
                async with route_through(address).open(HOST, 443, 60):
                    pass
            assert "w/rd" not in str(failed.value)
            assert "w%2Frd" not in str(failed.value)
    assert proxy.refused == [f"{HOST}:443", "login", "login"]


@pytest.mark.parametrize(
    "answer",
    [b"", b"\r\n", b"HTTP/1.1 200", b"HTTP/1.1 407 Who\r\n\r\n", b"220 smtp.example\r\n", b"x" * 200_000],
)
@pytest.mark.parametrize("scheme", ["http", "socks5"])
async def test_what_is_no_proxy_is_no_way(scheme: str, answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(3)
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(UpstreamError, match="HTTPS_PROXY"):
            await UpstreamProxy.parse(f"{scheme}://127.0.0.1:{port}", "HTTPS_PROXY").connect(HOST, 443)


@pytest.mark.parametrize("split", range(1, 60, 7))
async def test_what_follows_the_answer_to_connect_belongs_to_the_host(split: int) -> None:
    said = b"HTTP/1.1 200 Connection established\r\nX-A: b\r\n\r\nhello"

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        for piece in (said[:split], said[split:]):
            writer.write(piece)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1") as server:
        port = server.sockets[0].getsockname()[1]
        reader, writer = await UpstreamProxy.parse(f"http://127.0.0.1:{port}", "A").connect(HOST, 443)
        assert await reader.read() == b"hello"
        writer.close()


NO_PROXIES = (
    *("", "http://", "socks4://a:1", "ftp://a", "http://a:b", "http://[::1"),
    *("http://wpad/proxy.pac", "PROXY a:1; DIRECT", "http://a b:1", "http://name:pa/ss@a:1"),
)


@pytest.mark.parametrize("address", NO_PROXIES)
def test_what_is_no_address_of_a_proxy_is_a_mistake_in_the_settings(address: str) -> None:
    with pytest.raises(ConfigError, match="ALL_PROXY"):
        UpstreamProxy.parse(address, "ALL_PROXY")


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_plain_requests_of_a_browser_are_left_to_the_proxy(
    scheme: ProxyScheme, trusted_authority: TestAuthority, site: Site
) -> None:
    async with open_proxy_server(
        scheme, {HOST: site.port}, login=LOGIN, authority=trusted_authority
    ) as proxy:
        async with open_socks_proxy(route_through(proxy.url)) as port, connected(port) as streams:
            assert await ask(streams, NAME, b"\x0csite.example", 80) == 0
            streams[1].write(b"GET /a?b HTTP/1.1\r\nHost: intranet\r\nConnection: close\r\n\r\n")
            async with asyncio.timeout(60):
                assert (await streams[0].read()).endswith(b"through")
    assert proxy.passed == [f"{HOST}:80"]
    # HTTP proxies got the whole address; the host is the one that was checked.
    if scheme != "socks5":
        assert "host: site.example" in site.requests[0][2].lower()
        assert "intranet" not in site.requests[0][2]


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_sandboxed_code_reaches_the_named_hosts_through_the_proxy(
    scheme: ProxyScheme, trusted_authority: TestAuthority, site: Site
) -> None:
    async with open_proxy_server(
        scheme, {HOST: site.port}, login=LOGIN, authority=trusted_authority
    ) as proxy:
        route = route_through(proxy.url)
        async with open_gateway(AllowedHosts([HOST, "dead.example"]), route) as gateway:
            path = (await gateway.open_socket()).path
            assert (await say(path, asking(f"http://{HOST}/a"))).endswith(b"through")
            tunnelled = await say(path, asking(f"{HOST}:443", method="CONNECT"), b"GET /a HTTP/1.1\r\n\r\n")
            assert tunnelled.endswith(b"through")
            assert b" 502 " in (await say(path, asking("dead.example:443", method="CONNECT")))[:20]
            assert b" 403 " in (await say(path, asking("other.example:443", method="CONNECT")))[:20]
    assert proxy.passed == [f"{HOST}:80", f"{HOST}:443"]
    assert proxy.refused == ["dead.example:443"]


async def test_what_a_proxy_refuses_a_browser_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with open_proxy_server("http", {}) as proxy, open_socks_proxy(route_through(proxy.url)) as port:
        for _ in range(2):
            async with connected(port) as streams:
                assert await ask(streams, NAME, b"\x0csite.example", 443) == 4
    assert [record.levelname for record in caplog.records if "HTTPS_PROXY" in record.message] == ["WARNING"]


@pytest.mark.parametrize(
    ("exception", "host"),
    [
        ("0:0:0:0:0:0:0:1", "::1"),
        ("site.example", "site.example."),
        (".site.example.", "a.site.example"),
        ("[::1]:443", "::1"),
    ],
)
def test_a_host_is_an_exception_in_each_of_its_forms(
    exception: str, host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in NETWORK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ALL_PROXY", " http://proxy.example:1 ")
    monkeypatch.setenv("NO_PROXY", exception)
    proxies = EnvironmentProxies.read()
    assert proxies.find("https", host, 443) is None
    assert proxies.find("https", host, None) is None
    assert proxies.find("https", "other.example", 443) == "http://proxy.example:1"


@pytest.mark.parametrize("variable, port", [("HTTP_PROXY", 443), ("HTTPS_PROXY", 80)])
async def test_a_name_left_to_the_proxy_of_one_scheme_is_not_dialled_for_the_other(
    variable: str, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    dialled: list[str] = []

    async def dial(address: str, port: int, /) -> Streams:
        dialled.append(address)
        raise OSError

    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    guard = AddressGuard(FetchSettings())
    assert await guard.resolve(HOST, port) == HOST
    with pytest.raises(FetchError):
        async with EgressRoute(guard.resolve, dial, proxies=guard.proxies).open(HOST, port, 60):
            pass
    assert dialled == []
