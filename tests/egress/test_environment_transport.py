"""Clients behind proxies: which way a request takes, and what an error says."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

import httpx
import httpx2
import pytest

from maniple.egress.certificates import tls_context
from maniple.egress.environment_transport import EnvironmentTransport, ProxyFailed, proxy_of
from maniple.errors import ConfigError
from tests.crawler.web import Reply, open_site
from tests.egress.proxy_servers import (
    PROXY_SCHEMES,
    ProxyScheme,
    ProxyVariables,
    TestAuthority,
    open_proxy_server,
)

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("library", [httpx, httpx2]),
    # httpcore does not close a connection whose handshake with SOCKS, or with TLS in a tunnel, fails.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
LOGIN = ("user@corp", "pass:w/rd")
DEAD = "http://name:s3cret@127.0.0.1:9"


@pytest.fixture(autouse=True)
def _trusts(
    authority: TestAuthority, monkeypatch: pytest.MonkeyPatch, proxy_variables: ProxyVariables
) -> Iterator[None]:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    yield
    gc.collect()


async def get(library: ModuleType, url: str) -> str:
    async with library.AsyncClient(transport=EnvironmentTransport(library), timeout=60) as client:
        return (await client.get(url)).text


async def failure(library: ModuleType, url: str) -> Any:
    with pytest.raises(library.ConnectError) as caught:
        await get(library, url)
    return caught.value


@pytest.mark.parametrize("login", [None, LOGIN])
@pytest.mark.parametrize("scheme", [*PROXY_SCHEMES, "socks5h"])
async def test_a_proxy_carries_plain_requests_and_tls(
    library: ModuleType,
    scheme: ProxyScheme,
    login: tuple[str, str] | None,
    authority: TestAuthority,
    proxy_variables: ProxyVariables,
) -> None:
    pages = {"/": Reply("found")}
    async with open_site(pages) as plain, open_site(pages, tls=authority.context) as secret:
        hosts = {"site.example": plain.port, "secret.example": secret.port}
        async with open_proxy_server(scheme, hosts, login=login, authority=authority) as proxy:
            proxy_variables.set(ALL_PROXY=proxy.url)
            assert await get(library, "http://site.example/") == "found"
            assert await get(library, "https://secret.example/") == "found"
    assert proxy.passed == ["site.example:80", "secret.example:443"]


EXCEPTIONS = ("*", "127.0.0.1", "127.0.0.0/8", "example.org, 127.0.0.1", "::1 127.0.0.1;a.example")


@pytest.mark.parametrize("exception", EXCEPTIONS)
async def test_hosts_of_no_proxy_are_reached_directly(
    library: ModuleType, exception: str, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(ALL_PROXY=DEAD, NO_PROXY=exception)
    async with open_site({"/": Reply("found")}) as site:
        assert await get(library, site.url) == "found"


@pytest.mark.parametrize("address", [DEAD, "socks5://name:s3cret@127.0.0.1:9", "socks://127.0.0.1:9"])
async def test_a_dead_proxy_is_named_without_its_password(
    library: ModuleType, address: str, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(HTTPS_PROXY=address)
    error = await failure(library, "https://site.example/")
    assert isinstance(error, ProxyFailed)
    assert error.proxy == "HTTPS_PROXY (127.0.0.1:9)"
    assert error.proxy in str(error) and "s3cret" not in str(error)


@pytest.mark.parametrize("scheme", PROXY_SCHEMES)
async def test_a_refused_password_and_an_unknown_host_are_the_proxy_s(
    library: ModuleType, scheme: ProxyScheme, authority: TestAuthority, proxy_variables: ProxyVariables
) -> None:
    async with open_proxy_server(scheme, {}, login=LOGIN, authority=authority) as proxy:
        proxy_variables.set(ALL_PROXY=proxy.url)
        assert isinstance(await failure(library, "https://site.example/"), ProxyFailed)
        proxy_variables.set(ALL_PROXY=proxy.url.replace("pass", "word"))
        assert isinstance(await failure(library, "https://site.example/"), ProxyFailed)
    assert proxy.refused == ["site.example:443", "login"]


@asynccontextmanager
async def odd_proxy(sent: bytes, *, closes: bool) -> AsyncIterator[int]:
    """Serve what takes a connection, answers each request with `sent`, and then is silent or gone."""
    done = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(sent)
        if not closes:
            await done.wait()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        done.set()
        server.close()


@pytest.mark.parametrize("sent", [b"", b"HTTP/1.1 200 OK\r\n"])
@pytest.mark.parametrize("closes", [True, False])
@pytest.mark.parametrize("url", ["http://site.example/", "https://site.example/"])
async def test_a_proxy_through_which_nothing_comes_back_is_named(
    library: ModuleType, url: str, closes: bool, sent: bytes, proxy_variables: ProxyVariables
) -> None:
    async with odd_proxy(sent, closes=closes) as port:
        proxy_variables.set(ALL_PROXY=f"http://127.0.0.1:{port}")
        transport = EnvironmentTransport(library)
        async with library.AsyncClient(transport=transport, timeout=5 if closes else 0.2) as client:
            with pytest.raises(library.TransportError) as caught:
                await client.get(url)
    assert isinstance(caught.value, ProxyFailed) and caught.value.is_connected
    assert isinstance(caught.value, library.ReadTimeout) != closes
    assert proxy_of(caught.value) == caught.value.proxy == f"ALL_PROXY (127.0.0.1:{port})"


async def test_an_answer_that_a_proxy_breaks_off_tells_of_it(
    library: ModuleType, proxy_variables: ProxyVariables
) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nHi"
    async with odd_proxy(head, closes=True) as port:
        proxy_variables.set(ALL_PROXY=f"http://127.0.0.1:{port}")
        with pytest.raises(library.RemoteProtocolError) as caught:
            await get(library, "http://site.example/")
        proxy_variables.set(ALL_PROXY=DEAD, NO_PROXY="127.0.0.1")
        with pytest.raises(library.RemoteProtocolError) as direct:
            await get(library, f"http://127.0.0.1:{port}/")
    assert proxy_of(caught.value) == f"ALL_PROXY (127.0.0.1:{port})"
    assert proxy_of(direct.value) == ""


async def test_an_address_that_cannot_be_used_names_its_variable(
    library: ModuleType, proxy_variables: ProxyVariables
) -> None:
    proxy_variables.set(HTTP_PROXY="gopher://name:s3cret@127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"^HTTP_PROXY ") as caught:
        EnvironmentTransport(library)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("scheme", [None, "http", "https"])
async def test_an_unknown_authority_is_answered_with_what_to_do(
    library: ModuleType,
    scheme: ProxyScheme | None,
    authority: TestAuthority,
    proxy_variables: ProxyVariables,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    async with open_site({}, tls=authority.context) as site:
        url = f"https://127.0.0.1:{site.port}"
        if scheme is None:
            assert "SSL_CERT_FILE" in str(await failure(library, url))
            return
        async with open_proxy_server(scheme, {"127.0.0.1": site.port}, authority=authority) as proxy:
            proxy_variables.set(ALL_PROXY=proxy.url)
            assert "SSL_CERT_FILE" in str(await failure(library, url))


async def test_a_certificate_of_another_host_is_no_matter_of_authorities(
    library: ModuleType, authority: TestAuthority, proxy_variables: ProxyVariables
) -> None:
    async with open_site({}, tls=authority.context) as site:
        async with open_proxy_server("http", {"other.example": site.port}) as proxy:
            proxy_variables.set(ALL_PROXY=proxy.url)
            error = await failure(library, "https://other.example/")
    assert "other.example" in str(error) and "SSL_CERT_FILE" not in str(error)


async def test_a_context_is_used_for_the_proxy_as_well(
    library: ModuleType,
    authority: TestAuthority,
    proxy_variables: ProxyVariables,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    context = tls_context()
    monkeypatch.delenv("SSL_CERT_FILE")
    async with open_site({"/": Reply("found")}) as site:
        async with open_proxy_server("https", {"site.example": site.port}, authority=authority) as proxy:
            proxy_variables.set(HTTP_PROXY=proxy.url)
            async with library.AsyncClient(transport=EnvironmentTransport(library, context)) as client:
                assert (await client.get("http://site.example/")).text == "found"
