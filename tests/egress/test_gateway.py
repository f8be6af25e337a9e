"""The gateway, spoken to in raw bytes as hostile code would: what is named is reached, and nothing else."""

import asyncio
import logging
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.egress import AddressGuard, AllowedHosts, ConnectionLimits, EgressRoute, open_gateway
from maniple.outgoing import OutgoingGuard
from tests.crawler.web import Canary, Reply, Send, Site, redirect
from tests.egress.conftest import ALLOWED

pytestmark = [pytest.mark.anyio, pytest.mark.allow_hosts(["127.0.0.1", "127.0.0.2", "::1"])]

DNS = {"site.test": ALLOWED, "inner.test": "127.0.0.1"}


@asynccontextmanager
async def gateway(guard: AddressGuard, *names: str, **limits: float) -> AsyncIterator[Path]:
    async def resolve(host: str, port: int, /) -> str:
        return await guard.resolve(DNS.get(host, host), port)

    bounds = ConnectionLimits(**limits)  # type: ignore[arg-type]
    async with open_gateway(AllowedHosts(names), EgressRoute(resolve, asyncio.open_connection), bounds) as it:
        yield (await it.open_socket()).path


async def say(path: Path, *pieces: bytes) -> bytes:
    """Everything that is answered to the pieces, until the gateway closes."""
    reader, writer = await asyncio.open_unix_connection(path)
    try:
        async with asyncio.timeout(60):
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
            return await reader.read()
    finally:
        writer.close()


def asking(url: str, *headers: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {url} HTTP/1.1", *(headers or ("Host: site.test",)), "", ""]).encode()


async def test_a_plain_request_to_a_named_host_is_answered(guard: AddressGuard, site: Site) -> None:
    site.pages["/a"] = Reply("through")
    async with gateway(guard, f"site.test:{site.port}") as path:
        answer = await say(path, asking(f"http://site.test:{site.port}/a?b=c"))
    assert answer.startswith(b"HTTP/1.1 200 Told\r\n")
    assert answer.endswith(b"through")
    head = site.requests[0][2]
    assert head.startswith(f"GET /a?b=c HTTP/1.1\r\nhost: site.test:{site.port}\r\n")
    assert "connection: close" in head.lower()


async def test_a_body_goes_along_and_is_measured_once(guard: AddressGuard) -> None:
    heard = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while not heard.endswith(b"0\r\n\r\n"):
            heard.extend(await reader.read(1024))
        writer.write(b"HTTP/1.1 204 Taken\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(listen, ALLOWED, 0) as server:
        port = server.sockets[0].getsockname()[1]
        head = asking(
            f"http://site.test:{port}/",
            "Host: x",
            "Content-Length: 3",
            "Transfer-Encoding: chunked",
            "Expect: 100-continue",
            method="POST",
        )
        async with gateway(guard, f"site.test:{port}") as path:
            answer = await say(path, head, b"5\r\nhello\r\n0\r\n\r\n")
    assert b"204 Taken" in answer
    assert b"hello" in heard
    assert b"content-length" not in heard.lower()


async def test_connect_to_a_named_host_gives_its_connection(guard: AddressGuard, site: Site) -> None:
    site.pages["/"] = Reply("through")
    early = b"GET / HTTP/1.1\r\n\r\n"  # sent before the answer, as some clients do
    async with gateway(guard, f"site.test:{site.port}") as path:
        answer = await say(path, asking(f"site.test:{site.port}", method="CONNECT") + early)
    assert answer.startswith(b"HTTP/1.1 200 Connection established\r\n")
    assert answer.endswith(b"through")


REFUSED = {
    "a host that is not named": "http://inner.test:{port}/",
    "an address that is not named": "http://127.0.0.1:{port}/",
    "another spelling of it": "http://2130706433:{port}/",
    "another port of a named host": "http://site.test:{port}/",
    "one whose name goes on": "http://site.test.inner.test:{port}/",
}


@pytest.mark.parametrize("url", REFUSED.values(), ids=REFUSED.keys())
@pytest.mark.parametrize("method", ["GET", "CONNECT"])
async def test_what_is_not_named_is_refused_in_words(
    url: str, method: str, guard: AddressGuard, site: Site, canary: Canary
) -> None:
    url = url.format(port=canary.port)
    target = url.removeprefix("http://").rstrip("/") if method == "CONNECT" else url
    async with gateway(guard, f"site.test:{site.port}", "site.test") as path:
        answer = await say(path, asking(target, method=method))
    assert answer.startswith(b"HTTP/1.1 403 sandbox.allow_hosts ")
    assert answer.endswith(b", so the sandbox cannot reach it.\n")
    assert canary.hits == []
    assert site.requests == []


@pytest.mark.parametrize("method", ["GET", "CONNECT"])
async def test_a_name_that_leads_inside_is_refused_although_it_is_named(
    method: str, guard: AddressGuard, canary: Canary
) -> None:
    place = f"inner.test:{canary.port}"
    async with gateway(guard, place) as path:
        answer = await say(path, asking(place if method == "CONNECT" else f"http://{place}/", method=method))
    assert answer.startswith(b"HTTP/1.1 403 127.0.0.1 has an address that is not public, ")
    assert canary.hits == []


@pytest.mark.parametrize("target", ["site.test:25", "site.test:80", "site.test:22", "site.test:53"])
async def test_connect_without_a_port_in_the_name_is_for_https_alone(
    target: str, guard: AddressGuard
) -> None:
    async with gateway(guard, "site.test") as path:
        assert b" 403 sandbox.allow_hosts" in await say(path, asking(target, method="CONNECT"))


async def test_mail_is_not_sent_even_when_its_port_is_named(guard: AddressGuard) -> None:
    async with gateway(guard, "site.test:25") as path:
        assert b" 403 " in await say(path, asking("site.test:25", method="CONNECT"))


MALFORMED = {
    "a path alone": b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "https without CONNECT": b"GET https://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "another scheme": b"GET ftp://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "a name before the host": b"GET http://site.test@inner.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "a backslash": b"GET http://site.test\\@inner.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "no host": b"GET http:///x HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "an IPv6 address": b"GET http://[::1]/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "half an IPv6 address": b"GET http://[::1/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "CONNECT without a port": b"CONNECT site.test HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "CONNECT to port 0": b"CONNECT site.test:0 HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "CONNECT to a port of many digits": b"CONNECT site.test:" + b"4" * 99 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    "CONNECT to an IPv6 address": b"CONNECT [::1]:443 HTTP/1.1\r\nHost: site.test\r\n\r\n",
    "two hosts": b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nHost: inner.test\r\n\r\n",
    "a folded header": b"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nX\n: y\r\n\r\n",
    "an endless head": b"GET http://site.test/ HTTP/1.1\r\n" + b"X: y\r\n" * 20_000,
    "SOCKS": b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED.keys())
async def test_what_is_no_request_to_a_proxy_is_refused(
    request_bytes: bytes, guard: AddressGuard, canary: Canary
) -> None:
    async with gateway(guard, "site.test", "inner.test") as path:
        answer = await say(path, request_bytes)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert canary.hits == []


async def test_the_host_header_is_always_the_checked_host(guard: AddressGuard, site: Site) -> None:
    async with gateway(guard, f"site.test:{site.port}") as path:
        await say(path, asking(f"http://site.test:{site.port}/", "Host: inner.test"))
    assert "inner.test" not in site.requests[0][2]


async def test_headers_of_the_connection_stay_here(guard: AddressGuard, site: Site) -> None:
    secret = (
        "Host: x",
        "Proxy-Authorization: Basic c2VjcmV0",
        "Upgrade: h2c",
        "Connection: X-Mine",
        "X-Mine: 1",
    )
    async with gateway(guard, f"site.test:{site.port}") as path:
        await say(path, asking(f"http://site.test:{site.port}/", *secret))
    head = site.requests[0][2].lower()
    assert "proxy-" not in head
    assert "upgrade" not in head
    assert "x-mine" not in head


async def test_a_second_request_behind_the_first_goes_nowhere(
    guard: AddressGuard, site: Site, canary: Canary
) -> None:
    first = asking(f"http://site.test:{site.port}/first", "Host: x", "Connection: keep-alive")
    second = asking(f"http://127.0.0.1:{canary.port}/second")
    smuggled = asking(f"http://site.test:{site.port}/third")
    async with gateway(guard, f"site.test:{site.port}") as path:
        answer = await say(path, first + second + smuggled)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert [path for _, path, _ in site.requests] == ["/first"]
    assert canary.hits == []


async def test_a_redirect_is_handed_back_and_not_followed(
    guard: AddressGuard, site: Site, canary: Canary
) -> None:
    site.pages["/go"] = redirect(f"http://127.0.0.1:{canary.port}/")
    async with gateway(guard, f"site.test:{site.port}") as path:
        assert b"HTTP/1.1 302" in await say(path, asking(f"http://site.test:{site.port}/go"))
    assert canary.hits == []


async def test_a_host_that_does_not_answer_is_reported(guard: AddressGuard) -> None:
    async with await asyncio.start_server(lambda *_: None, ALLOWED, 0) as server:
        port = server.sockets[0].getsockname()[1]
    async with gateway(guard, f"site.test:{port}") as path:
        answer = await say(path, asking(f"http://site.test:{port}/"))
    assert answer.startswith(f"HTTP/1.1 502 site.test:{port} cannot be reached: ".encode())
    assert f"site.test:{port} cannot be reached: ".encode() in answer


async def test_refused_hosts_are_logged_once_each(
    guard: AddressGuard, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway(guard, "site.test") as path:
        with caplog.at_level(logging.WARNING, "maniple.egress"):
            for place in ("a.test:443", "b.test:443", "a.test:443"):
                await say(path, asking(place, method="CONNECT"))
    places = [record.args[0] for record in caplog.records if isinstance(record.args, tuple)]
    assert places == ["a.test:443", "b.test:443"]
    assert "sandbox.allow_hosts" in caplog.text


async def endless(send: Send) -> None:
    while True:
        await send(b"x" * 65_536)


@pytest.mark.parametrize("method", ["GET", "CONNECT"])
async def test_more_bytes_than_allowed_end_the_connection(
    method: str, guard: AddressGuard, site: Site
) -> None:
    site.pages["/"] = Reply(stream=endless)
    place = f"site.test:{site.port}"
    request = asking(f"http://{place}/") if method == "GET" else asking(place, method="CONNECT")
    async with gateway(guard, place, bytes_each_way=1_000_000) as path:
        answer = await say(path, request, b"GET / HTTP/1.1\r\n\r\n" if method == "CONNECT" else b"")
    assert 500_000 < len(answer) < 1_200_000


async def test_a_connection_lasts_no_longer_than_allowed(guard: AddressGuard, site: Site) -> None:
    async with gateway(guard, f"site.test:{site.port}", seconds=0.3) as path:
        answer = await say(path, asking(f"site.test:{site.port}", method="CONNECT"))
    assert answer.startswith(b"HTTP/1.1 200 ")


async def test_a_silent_connection_is_closed(guard: AddressGuard) -> None:
    async with gateway(guard, opening_seconds=0.2) as path:
        assert await say(path) == b""


async def test_no_more_connections_than_allowed_are_served_at_once(guard: AddressGuard) -> None:
    async with gateway(guard, connections=1) as path:
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(b"GET")
        await writer.drain()
        assert await say(path) == b""
        writer.close()


async def test_each_door_has_a_share_of_its_own_and_is_closed_by_itself(guard: AddressGuard) -> None:
    leads = EgressRoute(guard.resolve, asyncio.open_connection)
    async with open_gateway(AllowedHosts(()), leads, ConnectionLimits(connections=1)) as it:
        first, second = await it.open_socket(), await it.open_socket()
        reader, writer = await asyncio.open_unix_connection(first.path)
        writer.write(b"GET")
        await writer.drain()
        assert await say(first.path) == b"", "its share is taken"
        assert b"403" in await say(second.path, asking("site.test:443", method="CONNECT"))
        first.close()
        async with asyncio.timeout(60):
            assert await reader.read() == b""
        writer.close()
        assert not first.path.exists()
        assert b"403" in await say(second.path, asking("site.test:443", method="CONNECT"))


async def test_closing_it_ends_the_connections_and_leaves_no_file(guard: AddressGuard, site: Site) -> None:
    async with gateway(guard, f"site.test:{site.port}") as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(asking(f"site.test:{site.port}", method="CONNECT"))
        await reader.readuntil(b"\r\n\r\n")
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()
    assert not path.parent.exists()


async def test_no_other_user_of_the_machine_can_enter_its_folder(guard: AddressGuard) -> None:
    async with gateway(guard) as path:
        assert stat.S_IMODE(os.stat(path.parent).st_mode) == 0o700  # noqa: PTH116


KEY = "sk-live-9Qm2XbV7cT4kZr81LwYd5NhGfJ3sPa6E"


@pytest.mark.parametrize(
    "request_of",
    [
        lambda port: asking(f"http://site.test:{port}/?k={KEY}"),
        lambda port: asking(f"http://site.test:{port}/", "Host: site.test", f"X-Key: {KEY[::-1]}"),
        lambda port: asking(f"http://{KEY.encode().hex()[:60]}.site.test:{port}/"),
        lambda port: asking(f"{KEY.encode().hex()[:60]}.site.test:{port}", method="CONNECT"),
        lambda port: (
            asking(
                f"http://site.test:{port}/", "Host: site.test", f"Content-Length: {len(KEY)}", method="POST"
            )
            + KEY.encode()
        ),
    ],
)
async def test_a_secret_of_the_settings_does_not_go_through(
    guard: AddressGuard, site: Site, caplog: pytest.LogCaptureFixture, request_of
) -> None:
    async def resolve(host: str, port: int, /) -> str:
        return await guard.resolve(ALLOWED, port)

    site.pages["/"] = Reply("through")
    route = EgressRoute(resolve, asyncio.open_connection, OutgoingGuard([KEY]))
    names = AllowedHosts([f"site.test:{site.port}", f"*.site.test:{site.port}"])
    async with open_gateway(names, route, ConnectionLimits()) as it:
        answer = await say((await it.open_socket()).path, request_of(site.port))
    assert answer.startswith(b"HTTP/1.1 403 ")
    sent = "".join(request[2] for request in site.requests)
    for spelled in (KEY, KEY[::-1], KEY.encode().hex()[:60]):
        assert spelled not in sent + answer.decode() + caplog.text


async def test_programs_of_the_operator_may_send_their_own_secrets(guard: AddressGuard, site: Site) -> None:
    async def resolve(host: str, port: int, /) -> str:
        return await guard.resolve(ALLOWED, port)

    site.pages["/"] = Reply("through")
    route = EgressRoute(resolve, asyncio.open_connection, OutgoingGuard([KEY])).trusting()
    async with open_gateway(AllowedHosts([f"site.test:{site.port}"]), route, ConnectionLimits()) as it:
        answer = await say(
            (await it.open_socket()).path, asking(f"http://site.test:{site.port}/", "Host: x", f"K: {KEY}")
        )
    assert answer.endswith(b"through")
