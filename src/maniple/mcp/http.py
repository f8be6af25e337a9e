"""The HTTP transports, streamable and SSE: the SDK's, with bounds on what a server may send."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
from mcp.client._transport import TransportStreams
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from maniple.config.mcp_settings import McpServerSettings, plain
from maniple.mcp.login import Login

MOST_BYTES = 8_000_000
"""Of one message. Of the older SSE transport the SDK takes 1 MiB."""
_CONNECT_SECONDS = 15.0
_FAREWELL_SECONDS = 2.0
_SILENCE_SECONDS = 3_600.0  # a stream may stay quiet; calls have timeouts of their own
_LOG = logging.getLogger(__name__)


@asynccontextmanager
async def http_transport(
    server: McpServerSettings, login: Login | None = None
) -> AsyncIterator[TransportStreams]:
    """Speak with a server at its address, with its headers or by OAuth, also as a person who has a `login`.

    Raises `httpx2.HTTPError`.
    """
    url = plain(server.url)
    own = login or _own_login(server, url)
    if server.transport == "sse":

        def factory(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return _client(server, own)

        async with sse_client(url, httpx_client_factory=factory) as streams:
            yield streams
        return
    async with _client(server, own) as client:
        session = _Session(client, url)
        try:
            # Without its own farewell, which waits for as long as a stream may be quiet.
            async with streamable_http_client(
                url, http_client=client, max_sse_event_size=MOST_BYTES, terminate_on_close=False
            ) as streams:
                yield streams
        finally:
            await session.end()


class _Session:
    """What the server knows a connection by, as the SDK sends it with each request."""

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client, self._url = client, url
        self._headers: dict[str, str] = {}
        client.event_hooks["request"] = [self._note]

    async def _note(self, request: httpx2.Request) -> None:
        known = ("mcp-session-id", "mcp-protocol-version")
        self._headers |= {name: request.headers[name] for name in known if name in request.headers}

    async def end(self) -> None:
        """Tell the server that nobody comes back, and wait a moment at most for its answer."""
        if "mcp-session-id" not in self._headers:
            return
        with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
            try:
                await self._client.delete(self._url, headers=self._headers)
            except Exception as error:  # noqa: BLE001 - it is over, whatever the server or a login say to it
                _LOG.debug("An MCP server did not take the end of its session: %s", error)


def _client(server: McpServerSettings, auth: httpx2.Auth | None) -> httpx2.AsyncClient:
    # Nothing compressed: a few bytes could stand for any number, and no bound would hold.
    headers = {"accept-encoding": "identity", **{name: plain(one) for name, one in server.headers.items()}}
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
        event_hooks={"response": [_bound]},
    )


async def _bound(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").casefold() != "identity":
        raise httpx2.DecodingError("The server sent what is compressed, which was not asked for.")
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        response.stream = _Bounded(response.stream)


def _own_login(server: McpServerSettings, url: str) -> httpx2.Auth | None:
    if server.oauth is None:
        return None
    return ClientCredentialsOAuthProvider(
        url,
        _Tokens(),
        server.oauth.client_id,
        server.oauth.client_secret.get_secret_value(),
        server.oauth.token_endpoint_auth_method,
        server.oauth.scope,
        server.oauth.issuer,
    )


class _Tokens:
    """The tokens of one connection, as the SDK wants to keep them: they are had anew with the next one."""

    def __init__(self) -> None:
        self._tokens: OAuthToken | None = None
        self._client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info


class _Bounded(httpx2.AsyncByteStream):
    """A response's body of at most `MOST_BYTES`."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for piece in self._stream:
            left -= len(piece)
            if left < 0:
                raise httpx2.StreamError(f"The server sent a message of more than {MOST_BYTES} bytes.")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
