"""The HTTP client of model endpoints: httpx2 over aiohttp.

aiohttp parses HTTP in C, httpx2 in Python. Everything above the connection stays with httpx2: redirects
within an origin, cookies and proxies. All bodies are bounded (`egress.bounded_responses`), and read ahead
(`paced_streams`).
"""

import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from weakref import WeakSet

import aiohttp
import httpx2
from yarl import URL

from maniple.egress.bounded_responses import ACCEPT_ENCODING, ResponseBounds, response_hook
from maniple.egress.certificates import tls_context
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.llms.paced_streams import pace_response

MAX_CONNECTIONS = 200
KEEP_ALIVE_SECONDS = 4.0
"""How long idle connections are stored: less than uvicorn and Node.js do (5 s), so that they are open."""
MAX_HEADER_BYTES = 64 * 1024
"""The longest header of a response; aiohttp's default of 8,190 is less than what httpx2 accepts."""

MAX_HEADERS = 1_000

BOUNDS = ResponseBounds()
_AUTOMATIC_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")

# The first class that fits counts.
_ERRORS: tuple[tuple[type[Exception], type[httpx2.TransportError]], ...] = (
    (aiohttp.ConnectionTimeoutError, httpx2.ConnectTimeout),
    (TimeoutError, httpx2.ReadTimeout),
    (aiohttp.ClientConnectorError, httpx2.ConnectError),
    (aiohttp.InvalidURL, httpx2.UnsupportedProtocol),
    (aiohttp.ClientOSError, httpx2.ReadError),
    (aiohttp.ClientConnectionResetError, httpx2.ReadError),
    (aiohttp.ClientError, httpx2.RemoteProtocolError),
    (OSError, httpx2.ReadError),
    (UnicodeError, httpx2.ConnectError),  # a host name that cannot be encoded
)


def open_http_client(*, stream_rate: float = 0, **options: Any) -> httpx2.AsyncClient:
    """Return the client of model endpoints; close it. Blocks: it reads certificates from disk.

    After its first piece, a body is read in at most `stream_rate` pieces a second, which are larger; 0 is no
    limit. `options` are those of `httpx2.AsyncClient`. Raises `ConfigError` if the environment names
    certificates or a proxy that cannot be used.
    """
    context = tls_context()
    limits = httpx2.Limits(
        max_connections=MAX_CONNECTIONS, max_keepalive_connections=50, keepalive_expiry=KEEP_ALIVE_SECONDS
    )
    routes = EnvironmentTransport(httpx2, context, AiohttpTransport(context), limits=limits)
    client = httpx2.AsyncClient(
        transport=PacedTransport(routes, stream_rate), follow_redirects=True, **options
    )
    hooks = client.event_hooks
    bound = response_hook(httpx2.AsyncByteStream, BOUNDS)
    client.event_hooks = {
        "request": [_ask_for_known_encodings, *hooks["request"]],
        "response": [bound, *hooks["response"]],
    }
    return client


async def _ask_for_known_encodings(request: httpx2.Request) -> None:
    request.headers["accept-encoding"] = ACCEPT_ENCODING


class PacedTransport(httpx2.AsyncBaseTransport):
    """Reads the bodies of responses ahead; `routes` sends the requests."""

    def __init__(self, routes: EnvironmentTransport, stream_rate: float = 0) -> None:
        self.routes = routes
        self._stream_rate = stream_rate

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`; raises `httpx2.TransportError`, and `ProxyFailed` for the proxy."""
        return pace_response(await self.routes.handle_async_request(request), self._stream_rate)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.routes.aclose()


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends requests with aiohttp, without a proxy. For one event loop."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        self._session: aiohttp.ClientSession | None = None
        self._answers = WeakSet[aiohttp.ClientResponse]()
        """Those that somebody still holds; a run that was left may hold one whose body nobody reads."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send `request`; raises `httpx2.TransportError`."""
        body = await request.aread()
        timeouts: dict[str, float | None] = request.extensions.get("timeout", {})
        with _httpx_errors(request):
            answer = await self._send(
                body,
                request.method,
                # httpx2 has made a header of a name and a password in the address; aiohttp refuses both.
                URL(str(request.url.copy_with(userinfo=b"")), encoded=True),
                headers=[
                    (name.decode("latin-1"), value.decode("latin-1"))
                    for name, value in request.headers.raw
                    if name.lower() != b"content-length"
                ],
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    connect=timeouts.get("pool"),
                    sock_connect=timeouts.get("connect"),
                    sock_read=timeouts.get("read"),
                ),
                allow_redirects=False,
                skip_auto_headers=_AUTOMATIC_HEADERS,
                server_hostname=request.extensions.get("sni_hostname"),
            )
        self._answers.add(answer)
        reason = (answer.reason or "").encode("latin-1", "replace")
        return httpx2.Response(
            answer.status,
            headers=list(answer.raw_headers),
            stream=_ResponseStream(answer, request),
            extensions={"http_version": b"HTTP/1.1", "reason_phrase": reason},
        )

    async def _send(self, body: bytes, method: str, url: URL, **options: Any) -> aiohttp.ClientResponse:
        """Send a request, again if the server had closed a connection that was used again.

        As in browsers: a server may close an idle connection just as the next request is written. Each try
        uses up such a connection, and the last one opens a new connection.
        """
        while True:
            connection = _Connection()
            try:
                return await self._open_session().request(
                    method,
                    url,
                    # Not bytes: aiohttp warns of more than a megabyte of them.
                    data=BytesIO(body) if body else None,
                    trace_request_ctx=connection,
                    **options,
                )
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                # The message of a disconnected server is not text if a part of its answer had come.
                has_answered = not isinstance(getattr(error, "message", ""), str)
                if has_answered or not connection.is_reused:
                    raise

    async def aclose(self) -> None:
        """Close all connections."""
        for answer in tuple(self._answers):
            answer.close()
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        # At the first request, because a session belongs to the running event loop.
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=MAX_CONNECTIONS,
                keepalive_timeout=KEEP_ALIVE_SECONDS,
                ssl=self._context,
                # The system's, as with httpx2; aiohttp would prefer aiodns where it is installed.
                resolver=aiohttp.ThreadedResolver(),
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                max_line_size=MAX_HEADER_BYTES,
                max_field_size=MAX_HEADER_BYTES,
                max_headers=MAX_HEADERS,
                trace_configs=[_trace_reuse()],
            )
        return self._session


@dataclass(slots=True)
class _Connection:
    """The connection of a request; `is_reused` if an earlier request has used it."""

    is_reused: bool = False


def _trace_reuse() -> aiohttp.TraceConfig:
    async def note_reuse(_session: object, context: SimpleNamespace, _params: object) -> None:
        context.trace_request_ctx.is_reused = True

    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(note_reuse)
    return trace


class _ResponseStream(httpx2.AsyncByteStream):
    """The body of a response; each piece is all that has arrived."""

    def __init__(self, answer: aiohttp.ClientResponse, request: httpx2.Request) -> None:
        self._answer = answer
        self._request = request

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        with _httpx_errors(self._request):
            while piece := await self._answer.content.readany():
                yield piece

    async def aclose(self) -> None:
        if self._answer.content.at_eof():
            self._answer.release()
        else:
            self._answer.close()  # the rest is not read, so the connection cannot be used again


@contextmanager
def _httpx_errors(request: httpx2.Request) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, OSError, UnicodeError) as error:
        kind = next(ours for theirs, ours in _ERRORS if isinstance(error, theirs))
        raise kind(str(error) or type(error).__name__, request=request) from error
