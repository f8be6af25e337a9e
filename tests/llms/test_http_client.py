"""The HTTP client of model endpoints: what it takes from the environment, and how connections end."""

import asyncio
import gzip
import itertools
import re
import shlex
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from langchain_openai.chat_models import _client_utils

from maniple.egress import EgressRoute, open_socks_proxy
from maniple.errors import ConfigError, ModelError
from maniple.llms import open_chat_models
from maniple.llms.http_client import open_http_client
from tests.crawler.web import Reply, Send, Site, open_site, redirect
from tests.llms.provider_streams import STREAMS
from tests.llms.test_chat import QUESTION, settings
from tests.llms.test_provider_streams import body_of
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
ANSWER = Reply(body_of(STREAMS["OpenAI"]), "text/event-stream")
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def _no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def answered(url: str, **options: Any) -> str:
    """Return the text that the model at `url` streams."""
    async with open_chat_models(settings(url, **options)) as models:
        return "".join([chunk.text async for chunk in models.get("basic").astream(QUESTION)])


async def failure(url: str, **options: Any) -> str:
    """Return the code of the error with which the model at `url` fails."""
    with pytest.raises(ModelError) as caught:
        await answered(url, **options)
    return caught.value.code


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_of_the_environment_is_used_without_a_warning(monkeypatch, caplog, variable):
    monkeypatch.setattr(_client_utils, "_proxy_env_warning_emitted", False)  # once in a process
    async with open_site({"http://model.test/v1/chat/completions": ANSWER}) as proxy:
        if variable == "HTTP_PROXY":
            monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv(variable, proxy.url)
        assert await answered("http://model.test/v1") == "Hi there"
    assert [request[:2] for request in proxy.requests] == [("POST", "http://model.test/v1/chat/completions")]
    assert caplog.records == []


async def test_a_name_and_a_password_in_the_address_are_sent_as_a_header():
    async with open_site({"/v1/chat/completions": ANSWER}) as site:
        address = site.url.replace("http://", "http://user:word@")
        assert await answered(f"{address}/v1") == "Hi there"
    [(_, _, head)] = site.requests
    assert "authorization: basic dxnlcjp3b3jk" in head.lower()


async def test_an_address_with_tls_is_reached_through_a_tunnel(monkeypatch):
    async with open_site({}) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        assert await failure("https://model.test/v1") == "model_unreachable"
    assert [request[:2] for request in proxy.requests] == [("CONNECT", "model.test:443")]


async def test_a_proxy_for_other_addresses_leaves_the_rest_to_the_fast_transport(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    async with open_http_client() as http:
        direct, proxied = (
            type(http._transport.routes.route(httpx2.URL(f"{scheme}://model.test/v1"))).__name__
            for scheme in ("http", "https")
        )
    assert (direct, proxied) == ("AiohttpTransport", "AsyncHTTPTransport")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"])
async def test_a_proxy_that_does_not_answer_is_named_and_not_the_base_url(monkeypatch, variable):
    monkeypatch.setenv(variable, "http://name:word@127.0.0.1:9")
    scheme = "https" if variable == "HTTPS_PROXY" else "http"
    with pytest.raises(ModelError) as caught:
        await answered(f"{scheme}://model.test/v1")
    assert caught.value.code == "model_unreachable"
    assert f"{variable} (127.0.0.1:9)" in str(caught.value)
    assert "BASIC_BASE_URL" not in str(caught.value)
    assert "word" not in str(caught.value)


async def test_a_tunnel_that_a_proxy_refuses_is_the_proxy_s_and_a_direct_failure_is_not(monkeypatch):
    async with open_site({}) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(ModelError, match="HTTPS_PROXY"):
            await answered("https://model.test/v1")
        with pytest.raises(ModelError, match="BASIC_BASE_URL") as caught:
            await answered("http://127.0.0.1:9/v1")
    assert "PROXY" not in str(caught.value)


BEGUN = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 9999\r\n\r\n"
ODD_PROXIES: dict[str, tuple[bytes, bool, str]] = {
    "silent": (b"", False, "model_timeout"),
    "gone": (b"", True, "model_unreachable"),
    "no HTTP": (b"SSH-2.0\r\n\r\n", True, "model_unreachable"),
    "gone in the middle": (HEAD + BEGUN, True, "model_stream_cut"),
    "a refused login": (b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", True, "model_unreachable"),
    "a failed gateway": (b"HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n", True, "model_overloaded"),
}


@pytest.mark.parametrize("kind", ODD_PROXIES)
async def test_a_proxy_that_answers_in_an_odd_way_is_named(monkeypatch, kind):
    sent, closes, code = ODD_PROXIES[kind]
    done = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(sent)
        if not closes:
            await done.wait()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{port}")
        with pytest.raises(ModelError) as caught:
            await answered("http://model.test/v1", max_retries=0, timeout_seconds=20 if closes else 0.2)
        done.set()
    assert caught.value.code == code
    assert f"ALL_PROXY (127.0.0.1:{port})" in str(caught.value)
    assert "BASE_URL" not in str(caught.value) and "faster" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
async def test_a_socks_proxy_carries_calls_and_is_left_out_where_no_proxy_says_so(monkeypatch, scheme):
    asked: list[str] = []

    async def resolve(host: str, port: int) -> str:
        asked.append(host)
        return "127.0.0.1"

    async with open_site({"/v1/chat/completions": ANSWER}) as site:
        port = urlsplit(site.url).port
        async with open_socks_proxy(EgressRoute(resolve)) as proxy:
            monkeypatch.setenv("ALL_PROXY", f"{scheme}://127.0.0.1:{proxy}")
            assert await answered(f"http://model.test:{port}/v1") == "Hi there"
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            assert await answered(f"{site.url}/v1") == "Hi there"
    assert asked == ["model.test"]


@pytest.mark.parametrize("address", ["gopher://127.0.0.1:9", "http://[::1", "http://127.0.0.1:x"])
async def test_a_proxy_address_that_cannot_be_used_names_the_variables(monkeypatch, address):
    monkeypatch.setenv("HTTPS_PROXY", address)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"^HTTPS_PROXY "):
        open_http_client()


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_certificates_that_cannot_be_read_name_the_variable(monkeypatch, tmp_path, content):
    file = tmp_path / "authorities.pem"
    if content is not None:
        file.write_text(content, encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(ConfigError, match="SSL_CERT_FILE"):
        open_http_client()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, ssl.SSLContext]:
    """Return a file with a certificate for 127.0.0.1, and a server's context with its key."""
    command = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=model.test"
        " -addext subjectAltName=IP:127.0.0.1 -keyout key -out certificate"
    )
    subprocess.run(shlex.split(command), cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    return tmp_path / "certificate", context


async def test_a_certificate_of_the_environment_is_trusted_and_no_other(monkeypatch, certificate):
    path, context = certificate
    async with open_site({"/chat/completions": ANSWER}, tls=context) as site:
        url = site.url.replace("http://", "https://")
        assert await failure(url) == "model_unreachable"
        monkeypatch.setenv("SSL_CERT_FILE", str(path))
        assert await answered(url) == "Hi there"


async def test_a_model_uses_its_connection_again():
    with serving({"other": [reply("one two three")]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            model: Any = models.get("basic")
            for _ in range(3):
                assert [chunk async for chunk in model.astream(QUESTION)]
            transport = model.http_async_client._transport.routes.route(httpx2.URL(server.base_url))
            assert [len(pool) for pool in transport._session.connector._conns.values()] == [1]


@asynccontextmanager
async def answering(send: Any, **options: Any) -> AsyncIterator[Site]:
    """Serve what `send` streams as the answer of a model."""
    async with open_site(
        {"/chat/completions": Reply("", "text/event-stream", stream=send, **options)}
    ) as site:
        yield site


async def test_an_answer_that_is_cut_is_distinguished_from_none():
    first = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n'

    async def cut(send: Send) -> None:
        await send(b"%x\r\n%b\r\n" % (len(first), first))

    async with answering(cut, headers=(("Transfer-Encoding", "chunked"),)) as site:
        assert await failure(site.url) == "model_stream_cut"
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await failure(f"http://127.0.0.1:{port}") == "model_unreachable"


async def test_a_silent_endpoint_is_a_timeout():
    silent = asyncio.Event()

    async def wait(send: Send) -> None:
        await silent.wait()

    async with answering(wait) as site:
        assert await failure(site.url, timeout_seconds=0.1) == "model_timeout"
        silent.set()


async def test_a_closed_port_is_unreachable():
    assert await failure("http://127.0.0.1:9/v1") == "model_unreachable"


async def test_what_is_no_http_is_an_error_of_the_endpoint():
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-model\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await failure(f"http://127.0.0.1:{port}") == "model_unreachable"


async def test_the_reason_of_an_answer_that_cannot_be_parsed_is_in_the_error():
    odd = Reply(ANSWER.body, "text/event-stream", headers=(("X A", "1"),))
    async with open_site({"/v1/chat/completions": odd}) as site:
        with pytest.raises(ModelError, match="header"):
            await answered(f"{site.url}/v1", max_retries=0)


async def test_a_host_name_that_cannot_be_encoded_is_unreachable():
    assert await failure("http://a..b/v1", max_retries=0) == "model_unreachable"


@pytest.mark.parametrize(("encoding", "bits"), [("gzip", 31), ("deflate", 15), ("deflate", -15)])
async def test_each_frame_of_a_compressed_stream_is_shown_when_it_has_come(encoding, bits):
    packer = zlib.compressobj(wbits=bits)
    read = asyncio.Queue[None]()
    events = [one + b"\n\n" for one in body_of(STREAMS["OpenAI"]).split(b"\n\n") if one]

    async def write(send: Send) -> None:
        for one in events:
            await send(packer.compress(one) + packer.flush(zlib.Z_SYNC_FLUSH))
            await read.get()
        await send(packer.flush())

    async with answering(write, headers=(("Content-Encoding", encoding),)) as site:
        url = f"{site.url}/chat/completions"
        async with open_http_client() as http, http.stream("POST", url) as response:
            pieces = []
            async for piece in response.aiter_bytes():
                pieces.append(piece)
                read.put_nowait(None)
    assert pieces == events


async def test_redirects_compression_and_long_headers_work():
    packed = Reply(
        gzip.compress(body_of(STREAMS["OpenAI"])),
        "text/event-stream",
        headers=(("Content-Encoding", "gzip"), ("X-Policy", "x" * 30_000), *[("X-Trace", "y")] * 200),
    )
    moved = Reply(status=307, headers=(("Location", "/new/chat/completions"),))
    async with open_site({"/chat/completions": moved, "/new/chat/completions": packed}) as site:
        assert await answered(site.url) == "Hi there"
        assert [path for _, path, _ in site.requests] == ["/chat/completions", "/new/chat/completions"]
        # A key is for one host, and this is the same one.
        assert all(
            "authorization: Bearer" in head.replace("Authorization", "authorization")
            for *_, head in site.requests
        )


async def test_a_request_of_several_megabytes_arrives_whole():
    async with open_site({"/chat/completions": ANSWER}) as site:
        async with open_chat_models(settings(site.url)) as models:
            await models.get("basic").ainvoke("x" * 3_000_000, stream=True)
        assert [len(body) > 3_000_000 for body in site.bodies] == [True]
        assert [head.lower().count("content-length") for *_, head in site.requests] == [1]


@asynccontextmanager
async def socks_proxy(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """Serve a proxy to this machine, which the environment names."""

    async def resolve(host: str, port: int) -> str:
        return host

    async with open_socks_proxy(EgressRoute(resolve)) as port:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{port}")
        yield


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_after_its_first_piece_a_stream_is_read_in_few_pieces_up_to_its_end(monkeypatch, is_proxied):
    read = asyncio.Event()
    first, *rest = [one + b"\n\n" for one in body_of(STREAMS["OpenAI"]).split(b"\n\n")]

    async def write(send: Send) -> None:
        await send(first)
        await read.wait()
        for one in rest:
            await send(one)
            await asyncio.sleep(0)

    async with answering(write) as site, socks_proxy(monkeypatch) if is_proxied else nullcontext():
        # A pause of a quarter of an hour, which ends with the stream.
        async with (
            open_http_client(stream_rate=1 / 900) as http,
            http.stream("POST", f"{site.url}/chat/completions") as response,
        ):
            pieces = []
            async for piece in response.aiter_bytes():
                pieces.append(piece)
                read.set()
    assert b"".join(pieces) == first + b"".join(rest)
    assert len(pieces) == 2


@pytest.mark.parametrize("is_proxied", [False, True])
async def test_without_a_rate_each_piece_is_read_as_soon_as_it_has_arrived(monkeypatch, is_proxied):
    read = asyncio.Queue[None]()
    events = [one + b"\n\n" for one in body_of(STREAMS["OpenAI"]).split(b"\n\n")]

    async def write(send: Send) -> None:
        for one in events:
            await send(one)
            await read.get()

    async with answering(write) as site, socks_proxy(monkeypatch) if is_proxied else nullcontext():
        url = f"{site.url}/chat/completions"
        async with open_http_client() as http, http.stream("POST", url) as response:
            pieces = []
            async for piece in response.aiter_bytes():
                pieces.append(piece)
                read.put_nowait(None)
    assert pieces == events


async def test_a_reader_that_leaves_a_stream_behind_a_proxy_closes_the_connection(monkeypatch):
    left = asyncio.Event()

    async def write(send: Send) -> None:
        try:
            while True:
                await send(b": keep-alive\n\n")
                await asyncio.sleep(0)
        finally:
            left.set()

    async with answering(write) as site, socks_proxy(monkeypatch):
        async with open_http_client(stream_rate=50) as http:
            async with http.stream("POST", f"{site.url}/chat/completions") as response:
                async for _ in response.aiter_bytes():
                    break
            async with asyncio.timeout(20):
                await left.wait()


async def test_a_reader_that_is_slow_gets_all_of_it_in_few_pieces():
    # More than the transport stores: the endpoint waits until it is read.
    count = 20_000
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"0123456789"}}]}\n\n'
    end = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

    async def write(send: Send) -> None:
        for _ in range(count):
            await send(chunk)
        await send(end)

    async with answering(write) as site, open_chat_models(settings(site.url)) as models:
        texts: list[str] = []
        async for piece in models.get("basic").astream(QUESTION):
            texts.append(piece.text)
            for _ in range(20):
                await asyncio.sleep(0)
    assert "".join(texts) == "0123456789" * count
    assert len(texts) < count / 10


async def test_a_reader_that_leaves_in_the_middle_of_a_joined_chunk_closes_the_connection():
    left = asyncio.Event()
    body = body_of(STREAMS["Zhipu"]).split(b"data: [DONE]")[0]

    async def write(send: Send) -> None:
        try:
            await send(body)
            while True:
                await send(b": keep-alive\n\n")
                await asyncio.sleep(0)
        finally:
            left.set()

    async with answering(write) as site, open_chat_models(settings(site.url)) as models:
        stream = models.get("basic").astream(QUESTION)
        assert (await anext(stream)).additional_kwargs["reasoning_content"] == "\nSearch."
        await stream.aclose()  # type: ignore[attr-defined]
        async with asyncio.timeout(60):
            await left.wait()


@asynccontextmanager
async def closing_at(dropped: set[tuple[int, int]]) -> AsyncIterator[tuple[str, list[tuple[int, int]]]]:
    """Serve answers over connections that stay open; yield the URL and the requests that came.

    A request is the numbers of its connection and of the request on it; those of `dropped` are not answered.
    """
    requests: list[tuple[int, int]] = []
    connections = itertools.count(1)
    body = body_of(STREAMS["OpenAI"])
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = next(connections)
        with suppress(OSError, EOFError):
            for number in itertools.count(1):
                received = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                length = re.search(r"content-length: (\d+)", received, re.IGNORECASE)
                await reader.readexactly(int(length[1]) if length else 0)
                requests.append((connection, number))
                if (connection, number) in dropped:
                    break
                writer.write(head.encode() + body)
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", requests


async def test_a_request_on_a_connection_that_was_just_closed_is_sent_again():
    async with closing_at({(1, 2)}) as (url, requests):
        async with open_chat_models(settings(url, max_retries=0)) as models:
            for _ in range(2):
                chunks = [chunk.text async for chunk in models.get("basic").astream(QUESTION)]
                assert "".join(chunks) == "Hi there"
    assert requests == [(1, 1), (1, 2), (2, 1)]


async def test_a_request_on_a_new_connection_is_not_sent_again():
    async with closing_at({(1, 1)}) as (url, requests):
        assert await failure(url, max_retries=0) == "model_unreachable"
    assert requests == [(1, 1)]


async def test_an_answer_whose_compression_is_broken_is_a_bad_response():
    packed = gzip.compress(body_of(STREAMS["OpenAI"]))[:10] + b"not gzip" * 20
    broken = Reply(packed, "text/event-stream", headers=(("Content-Encoding", "gzip"),))
    async with open_site({"/chat/completions": broken}) as site:
        assert await failure(site.url, max_retries=0) == "model_bad_response"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_origin_is_refused(status):
    async with open_site({}) as other, open_site({}) as site:
        site.pages["/chat/completions"] = redirect(f"{other.url}/chat/completions", status)
        assert await failure(site.url, max_retries=0) == "model_bad_response"
        assert other.requests == []


@pytest.mark.parametrize(
    "excluded",
    ["127.0.0.1", "*", "localhost, 127.0.0.1", "127.0.0.0/8", " 127.0.0.1:{port} ", "http://127.0.0.1"],
)
async def test_a_host_without_a_proxy_is_reached_by_the_fast_transport(monkeypatch, excluded):
    async with open_site({"/chat/completions": ANSWER}) as site:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
        monkeypatch.setenv("NO_PROXY", excluded.format(port=site.port))
        assert await answered(site.url) == "Hi there"
        async with open_http_client() as http:
            assert type(http._transport.routes.route(httpx2.URL(site.url))).__name__ == "AiohttpTransport"


async def test_an_answer_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr("maniple.llms.answering_model.MAX_ANSWER_BYTES", 10_000)
    endless = reply("", chunks=["word " * 20] * 200, hang_after=200)
    with serving({"other": [endless]}) as server:
        assert await failure(server.base_url) == "model_bad_response"
        assert server.stats["calls"] == 1
