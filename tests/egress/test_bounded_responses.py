"""What a hostile peer sends is bounded in the transport: model endpoints, search engines, MCP servers."""

import asyncio
import gzip
import resource
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass

import httpx
import httpx2
import pytest

from maniple.agents.team_models import ModelUse
from maniple.cli.doctor.model_checks import EndpointSetting, check_endpoint
from maniple.config import ModelSettings
from maniple.egress.bounded_responses import ACCEPT_ENCODING, ResponseBounds, ResponseRefused, response_hook
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.errors import ModelError
from maniple.llms import open_chat_models
from maniple.llms.embedded.discovery import find_local_server
from maniple.search.provider import HttpEndpoint, ProviderFailure
from maniple.service.readiness import ModelReach
from tests.llms.test_chat import QUESTION, settings

pytestmark = pytest.mark.anyio
MEGABYTE = 1_000_000
BOUNDS = ResponseBounds(
    max_bytes=MEGABYTE,
    seconds=0.5,
    max_stream_bytes=2 * MEGABYTE,
    stream_seconds=0.5,
    max_error_bytes=10_000,
    error_seconds=0.5,
)
Body = Callable[[], AsyncGenerator[bytes]]


@dataclass
class Peer:
    """A server that sends a head and an endless or hostile body."""

    head: str
    body: Body
    sent: int = 0
    requests: int = 0
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            writer.write(f"HTTP/1.1 {self.head}\r\nConnection: close\r\n\r\n".encode())
            async for piece in self.body():
                writer.write(piece)
                await writer.drain()
                self.sent += len(piece)


@asynccontextmanager
async def open_peer(head: str, body: Body) -> AsyncIterator[Peer]:
    peer, tasks = Peer(head, body), set[asyncio.Task[None]]()

    def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(peer.serve(reader, writer)))

    server = await asyncio.start_server(connect, "127.0.0.1", 0)
    peer.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield peer
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def endless() -> AsyncGenerator[bytes]:
    for _ in range(2_000):  # 128 MB at most
        yield b"x" * 65_536


async def drip() -> AsyncGenerator[bytes]:
    for _ in range(2_000):
        yield b" "
        await asyncio.sleep(0.02)


def packed(size: int, pack: Callable[[bytes], bytes]) -> Body:
    async def body() -> AsyncGenerator[bytes]:
        yield await asyncio.to_thread(lambda: pack(bytes(size)))

    return body


async def zstd_bomb() -> AsyncGenerator[bytes]:
    # A frame with run-length blocks of 128 kB each: 4 bytes become 131,072.
    yield b"\x28\xb5\x2f\xfd\x00\x58" + (b"\x02\x00\x10\x00" * 5_000) + b"\x03\x00\x10\x00"


BOMB = 200 * MEGABYTE


def gzipped(data: bytes) -> bytes:
    return gzip.compress(data, 1)


JSON = "200 OK\r\nContent-Type: application/json"
EVENTS = "200 OK\r\nContent-Type: text/event-stream"
REFUSED = [
    ("endless body", JSON, endless),
    ("endless line of a stream", EVENTS, endless),
    ("gzip bomb", f"{JSON}\r\nContent-Encoding: gzip", packed(BOMB, gzipped)),
    (
        "deflate bomb",
        f"{JSON}\r\nContent-Encoding: deflate",
        packed(BOMB, zlib.compress),
    ),
    (
        "bomb in a stream",
        f"{EVENTS}\r\nContent-Encoding: gzip",
        packed(BOMB, gzipped),
    ),
    ("zstd that was not asked for", f"{JSON}\r\nContent-Encoding: zstd", zstd_bomb),
    ("two codings", f"{JSON}\r\nContent-Encoding: gzip, gzip", packed(1_000, gzip.compress)),
    ("damaged gzip", f"{JSON}\r\nContent-Encoding: gzip", packed(1_000, lambda data: b"\x1f\x8b no gzip")),
    ("dripping body", JSON, drip),
    ("dripping stream", EVENTS, drip),
]
CUT = [
    ("endless error", "500 Broken", endless),
    ("gzip bomb of an error", "500 Broken\r\nContent-Encoding: gzip", packed(BOMB, gzipped)),
    ("zstd bomb of an error", "500 Broken\r\nContent-Encoding: zstd", zstd_bomb),
    ("dripping error", "429 Slow", drip),
    ("error that streams", "500 Broken\r\nContent-Type: text/event-stream", endless),
    ("redirect that streams", "307 Here\r\nLocation: /b\r\nContent-Type: text/event-stream", endless),
    ("redirect with a body", "302 Here\r\nLocation: /b\r\nContent-Type: text/plain", endless),
]


def client_of(library: str) -> httpx.AsyncClient | httpx2.AsyncClient:
    module = {"httpx": httpx, "httpx2": httpx2}[library]
    hook = response_hook(module.AsyncByteStream, BOUNDS)
    return module.AsyncClient(
        event_hooks={"response": [hook]}, headers={"accept-encoding": ACCEPT_ENCODING}, timeout=60
    )


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize(("head", "body"), [one[1:] for one in REFUSED], ids=[one[0] for one in REFUSED])
async def test_a_response_beyond_a_bound_is_refused(library: str, head: str, body: Body) -> None:
    async with open_peer(head, body) as peer, client_of(library) as client:
        received = 0
        with pytest.raises(ResponseRefused):
            async with asyncio.timeout(30), client.stream("GET", peer.url) as response:
                async for piece in response.aiter_bytes():
                    received += len(piece)
        assert received <= 2 * MEGABYTE
        assert peer.sent < 40 * MEGABYTE, "the rest was not read"


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize(("head", "body"), [one[1:] for one in CUT], ids=[one[0] for one in CUT])
async def test_the_body_of_an_error_is_cut(library: str, head: str, body: Body) -> None:
    async with open_peer(head, body) as peer, client_of(library) as client:
        async with asyncio.timeout(30):
            response = await client.get(peer.url)
        assert response.status_code >= 300
        assert len(response.content) <= 10_000
        assert peer.sent < 40 * MEGABYTE


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("encoding", ["identity", "gzip", "deflate"])
async def test_an_honest_body_arrives_whole(library: str, encoding: str) -> None:
    content = b"honest " * 10_000
    pack = {"identity": bytes, "gzip": gzip.compress, "deflate": zlib.compress}[encoding]

    async def body() -> AsyncGenerator[bytes]:
        whole = pack(content)
        for start in range(0, len(whole), 50):
            yield whole[start : start + 50]

    async with (
        open_peer(f"{JSON}\r\nContent-Encoding: {encoding}", body) as peer,
        client_of(library) as client,
    ):
        assert (await client.get(peer.url)).content == content


ATTACKS = [*REFUSED[:2], REFUSED[5], *CUT[:3]]


@pytest.mark.parametrize(("head", "body"), [one[1:] for one in ATTACKS], ids=[one[0] for one in ATTACKS])
async def test_a_hostile_model_endpoint_fails_the_call_alone(head: str, body: Body) -> None:
    async with open_peer(head, body) as peer:
        async with asyncio.timeout(60), open_chat_models(settings(peer.url, max_retries=0)) as models:
            with pytest.raises(ModelError) as caught:
                async for _ in models.get("basic").astream(QUESTION):
                    pass
        assert caught.value.code in ("model_bad_response", "model_overloaded")
        assert peer.sent < 80 * MEGABYTE


async def test_an_answer_that_drips_ends_after_its_time() -> None:
    async def words() -> AsyncGenerator[bytes]:
        for _ in range(2_000):
            yield b'data: {"choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
            await asyncio.sleep(0.02)

    async with open_peer(EVENTS, words) as peer:
        options = {"max_retries": 0, "answer_seconds": 0.3}
        async with asyncio.timeout(60), open_chat_models(settings(peer.url, **options)) as models:
            with pytest.raises(ModelError) as caught:
                async for _ in models.get("basic").astream(QUESTION):
                    pass
        assert caught.value.code == "model_timeout"
        assert peer.requests == 1


@pytest.mark.parametrize(("head", "body"), [one[1:] for one in [*REFUSED[2:6], CUT[0]]])
async def test_a_hostile_search_engine_is_a_failed_provider(head: str, body: Body) -> None:
    endpoint = HttpEndpoint("Engine", 30)
    async with open_peer(head, body) as peer:
        with pytest.raises(ProviderFailure):
            await endpoint.get(peer.url, {})
        await endpoint.aclose()
        assert peer.sent < 40 * MEGABYTE


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_only_redirects_within_an_origin_are_followed(library: str) -> None:
    async def nothing() -> AsyncGenerator[bytes]:
        yield b""

    away = "307 Elsewhere\r\nLocation: http://localhost:9/"
    async with open_peer(away, nothing) as peer, client_of(library) as client:
        with pytest.raises(ResponseRefused):
            await client.get(peer.url, follow_redirects=True)
    async with open_peer("307 Here\r\nLocation: /next", nothing) as peer, client_of(library) as client:
        assert (await client.get(peer.url)).status_code == 307


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("location", ["http://[::", "http://a:b:c/", "http://\x01/"])
async def test_a_redirect_to_an_invalid_address_is_refused(library: str, location: str) -> None:
    async with (
        open_peer(f"307 Elsewhere\r\nLocation: {location}", drip) as peer,
        client_of(library) as client,
    ):
        with pytest.raises((ResponseRefused, httpx.HTTPError, httpx2.HTTPError)):
            await client.get(peer.url, follow_redirects=True)


async def test_only_a_request_for_a_stream_is_answered_with_an_unbounded_one() -> None:
    bounds = ResponseBounds(max_bytes=MEGABYTE, max_stream_bytes=None, stream_seconds=None)
    hook = response_hook(httpx2.AsyncByteStream, bounds)
    async with (
        open_peer(EVENTS, endless) as peer,
        httpx2.AsyncClient(event_hooks={"response": [hook]}, timeout=60) as client,
    ):
        with pytest.raises(ResponseRefused):  # an OAuth server's metadata, for example
            await client.get(peer.url)
        assert peer.sent < 40 * MEGABYTE
        async with client.stream("GET", peer.url, headers={"accept": "text/event-stream"}) as response:
            received = 0
            async for piece in response.aiter_bytes():
                received += len(piece)
                if received > 3 * MEGABYTE:
                    break
        assert received > 3 * MEGABYTE


HOSTILE_LISTS = [
    ("endless list of models", JSON, endless),
    ("zstd bomb instead of a list", f"{JSON}\r\nContent-Encoding: zstd", zstd_bomb),
    ("gzip bomb instead of a list", f"{JSON}\r\nContent-Encoding: gzip", packed(BOMB, gzipped)),
    ("list of endless depth", JSON, packed(MEGABYTE, lambda data: b"[" * len(data))),
]


@pytest.mark.parametrize(
    ("head", "body"), [one[1:] for one in HOSTILE_LISTS], ids=[one[0] for one in HOSTILE_LISTS]
)
async def test_checks_read_little_of_a_hostile_endpoint(head: str, body: Body) -> None:
    async with open_peer(head, body) as peer:
        model = ModelSettings(model="m", base_url=peer.url)
        setting = EndpointSetting("models.basic", "BASIC")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = await check_endpoint(model, setting)
        assert found.status in ("ok", "problem", "warning")
        async with httpx.AsyncClient() as client:
            reach = ModelReach(client, [ModelUse("coordinator", (peer.url,), vital=True)])
            assert (await reach.reached()).suffices, "the endpoint answers"
        assert await find_local_server(5, [("Ollama", int(peer.url.rpartition(":")[2]))]) is None
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 150 * 1024, "in kilobytes"
        assert peer.sent < 40 * MEGABYTE


@pytest.mark.parametrize(
    ("exceptions", "address", "proxied"),
    [
        ("", ("http", "model.test", 80), True),
        ("*", ("http", "model.test", 80), False),
        ("model.test", ("http", "model.test", 8080), False),
        ("model.test:8080", ("http", "model.test", 8080), False),
        ("model.test:8080", ("http", "model.test", 80), True),
        (".model.test", ("http", "a.model.test", None), False),
        ("*.model.test", ("http", "a.model.test", None), False),
        ("model.test", ("http", "notmodel.test", None), True),
        ("10.0.0.0/8", ("http", "10.1.2.3", None), False),
        ("10.0.0.0/8", ("http", "11.1.2.3", None), True),
        ("::1", ("http", "::1", 80), False),
        ("[::1]:80", ("http", "::1", 80), False),
        ("other.test , LOCALHOST", ("http", "localhost", 80), False),
        ("", ("ftp", "model.test", 21), False),
    ],
)
def test_the_environment_says_which_hosts_have_no_proxy(monkeypatch, exceptions, address, proxied) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setenv("HTTP_PROXY", "proxy.test:3128")
    monkeypatch.setenv("NO_PROXY", exceptions)
    found = EnvironmentProxies.read().find(*address)
    assert found == ("http://proxy.test:3128" if proxied else None)
