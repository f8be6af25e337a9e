"""The SDK's HTTP transports (streamable and SSE) with limits for messages, and OAuth logins."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Hashable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client import Client
from mcp.client._transport import TransportStreams
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from maniple.config.mcp_settings import McpServerSettings, prefix_of, reveal_text
from maniple.egress import send_data
from maniple.egress.bounded_responses import (
    ACCEPT_ENCODING,
    ResponseBounds,
    ResponseRefused,
    response_hook,
)
from maniple.egress.environment_transport import EnvironmentTransport
from maniple.errors import McpError
from maniple.locks import held_lock
from maniple.mcp.pins import store_errors
from maniple.mcp.stdio import describe_error
from maniple.redaction import Redactor
from maniple.shared_texts import SharedTexts

MAX_MESSAGE_BYTES = 8_000_000
"""The limit of one message. For the older SSE transport, the SDK's own limit is 1 MiB."""
_CONNECT_SECONDS = 15.0
_FAREWELL_SECONDS = 2.0
# The SDK limits each event of a stream, which may last as long as the session.
_BOUNDS = ResponseBounds(max_bytes=MAX_MESSAGE_BYTES, max_stream_bytes=None, stream_seconds=None)
_SILENCE_SECONDS = 3_600.0  # a stream may be idle for long; calls have their own timeouts
_LOGIN_TIMEOUT = httpx2.Timeout(_CONNECT_SECONDS)
"""For each request to an authorization server."""
_LOG = logging.getLogger(__name__)


class _RefusedMessage(ResponseRefused, httpx2.StreamError):
    """A response breaks a bound; for other errors than the library's, the SDK closes the session."""


@dataclass(frozen=True, slots=True)
class InteractiveUser:
    """A user who logs in now: `show` displays the address, `come_back` returns the redirect to `callback`."""

    callback: str
    show: Callable[[str], Awaitable[None]]
    come_back: Callable[[], Awaitable[AuthorizationCodeResult]]


class _StoredLogin(BaseModel):
    """The stored result of a login; it is valid only for the address `url`."""

    url: str
    tokens: OAuthToken
    expires_at: float | None
    client: OAuthClientInformationFull
    metadata: OAuthMetadata | None
    resource: ProtectedResourceMetadata | None


class OAuthLogin(OAuthClientProvider):
    """The OAuth login at one server: a new one with a `user`, else the one stored in `texts` under `name`.

    `is_needed` is set if the server rejects the stored login. Without a `user`, no login is then attempted:
    the login address comes from the server, so a user must see it first.

    Other processes use the same login. A refresh token may be valid only once, so whoever refreshes holds the
    lock of the login from before it reads the tokens until the new ones are stored.
    """

    def __init__(
        self, name: str, server: McpServerSettings, texts: SharedTexts, user: InteractiveUser | None = None
    ) -> None:
        url = reveal_text(server.url)
        metadata = OAuthClientMetadata(
            client_name="maniple",
            redirect_uris=[AnyUrl(user.callback if user else _NOWHERE)],
            token_endpoint_auth_method="none",
        )
        shows, comes = (user.show, user.come_back) if user else (None, None)
        document = server.client_id_document
        super().__init__(url, metadata, _Storage(self), shows, comes, client_metadata_url=document)
        self._name, self._url, self._texts, self._person = name, url, texts, user
        self._key = prefix_of(name)
        self._refreshing = AsyncExitStack()
        """Holds the lock during a refresh."""
        self.is_needed = False

    @property
    def login_hint(self) -> str:
        """What the user has to do if a login is needed."""
        return f"it requires a login. Run: maniple mcp login {self._name}"

    @property
    def redactor(self) -> Redactor:
        """The redactor of the login's tokens and secrets in the server's output."""
        tokens, client = self.context.current_tokens, self.context.client_info
        given = [tokens.access_token, tokens.refresh_token] if tokens else []
        given += [client.client_secret] if client else []
        return Redactor(filter(None, given))

    async def load(self) -> None:
        """Load the stored login; raises `McpError` if there is none."""
        stored = await asyncio.to_thread(self._read)
        if stored is None:
            self.is_needed = True
            raise McpError(self.login_hint)
        self._use(stored)

    def _use(self, stored: _StoredLogin) -> None:
        context = self.context
        context.current_tokens, context.client_info = stored.tokens, stored.client
        context.token_expiry_time = stored.expires_at
        context.oauth_metadata, context.protected_resource_metadata = stored.metadata, stored.resource

    async def save(self) -> None:
        """Store the login, if it is complete; raises `McpError` if it cannot be stored.

        Who refreshes has the lock already; a person's login waits for a refresh, to replace its tokens.
        """
        if self._person is None:
            await self._store()
            return
        async with self._lock():
            await self._store()

    async def _store(self) -> None:
        context = self.context
        if context.current_tokens is None or context.client_info is None:
            return
        stored = _StoredLogin(
            url=self._url,
            tokens=context.current_tokens,
            expires_at=context.token_expiry_time,
            client=context.client_info,
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
        )
        with store_errors():
            await asyncio.to_thread(self._texts.write, self._key, stored.model_dump_json())

    async def _initialize(self) -> None:
        """Load the login, and take its lock if this process has to refresh it.

        Called before each request, because `_initialized` is never set. One request at a time is here.
        """
        if self._person is not None:
            return
        if self.context.current_tokens is None:
            await self.load()
        if self._must_refresh():
            await self._refreshing.enter_async_context(self._lock())
            await self.load()
            if not self._must_refresh():  # another process has done it
                await self._refreshing.aclose()

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        try:
            return await super()._handle_refresh_response(response)
        finally:
            await self._refreshing.aclose()

    def _must_refresh(self) -> bool:
        return not self.context.is_token_valid() and self.context.can_refresh_token()

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        with store_errors():
            async with held_lock(self._texts.locked(self._key)):
                yield

    async def _auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        flow = super()._auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:  # about the login: nobody else may refresh it meanwhile
                    outgoing.extensions.setdefault("timeout", _LOGIN_TIMEOUT.as_dict())
                response = yield outgoing
                if self._person is None and outgoing is request and _is_refused(response):
                    if await self._load_newer():
                        self._add_auth_header(request)
                        response = yield request
                    if _is_refused(response):
                        self.is_needed = True
                        raise McpError(self.login_hint)
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()
            await self._refreshing.aclose()

    async def _load_newer(self) -> bool:
        """Load the stored login if another process, or a person, has replaced it; return whether so."""
        used = self.context.current_tokens
        stored = await asyncio.to_thread(self._read)
        if stored is None or (used is not None and stored.tokens == used):
            return False
        self._use(stored)
        return self.context.is_token_valid()

    def _read(self) -> _StoredLogin | None:
        with store_errors():
            text = self._texts.read(self._key)
        try:
            stored = _StoredLogin.model_validate_json(text) if text is not None else None
        except ValidationError:
            return None
        return stored if stored is not None and stored.url == self._url else None


@dataclass(frozen=True, slots=True)
class LoginStore:
    """The logins at servers, each a text of its own."""

    texts: SharedTexts

    def of(self, name: str, server: McpServerSettings, user: InteractiveUser | None = None) -> OAuthLogin:
        """Return the login at a server."""
        return OAuthLogin(name, server, self.texts, user)

    def stamp(self, name: str) -> Hashable:
        """Return what changes whenever the login at a server does. Blocks. Raises `McpError`."""
        with store_errors():
            return self.texts.stamp(prefix_of(name))


@asynccontextmanager
async def http_transport(
    server: McpServerSettings, login: OAuthLogin | None = None
) -> AsyncIterator[TransportStreams]:
    """Connect to a server by HTTP, with the configured headers, OAuth client, or the `login` of a user.

    Raises `httpx2.HTTPError`, and `ConfigError` if the environment names a proxy or certificates that cannot
    be used.
    """
    url = reveal_text(server.url)
    own = login or _own_login(server, url)
    transport = await asyncio.to_thread(EnvironmentTransport, httpx2)
    if server.transport == "sse":

        def factory(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            return _client(server, own, transport)

        async with sse_client(url, httpx_client_factory=factory) as streams:
            yield streams
        return
    async with _client(server, own, transport) as client:
        session = _Session(client, url)
        try:
            # `terminate_on_close` would wait as long as a stream may be idle; `_Session.end` has a short
            # limit.
            async with streamable_http_client(
                url, http_client=client, max_sse_event_size=MAX_MESSAGE_BYTES, terminate_on_close=False
            ) as streams:
                yield streams
        finally:
            await session.end()


class _Session:
    """The session headers of a connection, as the SDK sends them with each request."""

    def __init__(self, client: httpx2.AsyncClient, url: str) -> None:
        self._client, self._url = client, url
        self._headers: dict[str, str] = {}
        client.event_hooks["request"] = [self._store_session_headers]

    async def _store_session_headers(self, request: httpx2.Request) -> None:
        known = ("mcp-session-id", "mcp-protocol-version")
        self._headers |= {name: request.headers[name] for name in known if name in request.headers}

    async def end(self) -> None:
        """Delete the session at the server; waits at most two seconds for its answer."""
        if "mcp-session-id" not in self._headers:
            return
        with anyio.move_on_after(_FAREWELL_SECONDS, shield=True):
            try:
                await self._client.delete(self._url, headers=self._headers)
            except Exception as error:  # noqa: BLE001 - the session ends in any case
                _LOG.debug("An MCP server did not take the end of its session: %s", error)


def _client(
    server: McpServerSettings, auth: httpx2.Auth | None, transport: EnvironmentTransport
) -> httpx2.AsyncClient:
    headers = {
        "accept-encoding": ACCEPT_ENCODING,
        **{name: reveal_text(one) for name, one in server.headers.items()},
    }
    return httpx2.AsyncClient(
        transport=transport,  # pyright: ignore[reportArgumentType] - it has its methods
        headers=headers,
        auth=auth,
        timeout=httpx2.Timeout(_CONNECT_SECONDS, read=_SILENCE_SECONDS),
        event_hooks={"response": [response_hook(httpx2.AsyncByteStream, _BOUNDS, _RefusedMessage)]},
    )


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
    """The SDK's token storage for one connection; the next connection requests new tokens."""

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


_NOWHERE = "http://127.0.0.1/callback"


class _Storage:
    """The SDK's token storage, which stores the whole login as soon as it has tokens."""

    def __init__(self, login: OAuthLogin) -> None:
        self._login = login

    async def get_tokens(self) -> OAuthToken | None:
        return self._login.context.current_tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await self._login.save()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._login.context.client_info

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass


def _is_refused(response: Any) -> bool:
    wants = response.headers.get("www-authenticate", "")
    return response.status_code == 401 or (response.status_code == 403 and "insufficient_scope" in wants)


LOGIN_TIMEOUT_SECONDS = 300.0
"""The time limit for a user's login."""
_PATH = "/callback"
_LINE_SECONDS = 10.0
_MAX_LINE_LENGTH = 8_192
_DONE = "This is done here. You can close the page and go back to the terminal."


@dataclass(frozen=True, slots=True)
class OAuthCallback:
    """The redirect of an OAuth login; the browser returns to `url`."""

    url: str
    _answer: asyncio.Future[AuthorizationCodeResult]

    @property
    def refusal(self) -> str:
        """Why the login failed; "" if it is not known here."""
        failed = self._answer.done() and not self._answer.cancelled() and self._answer.exception()
        return str(failed) if failed else ""

    async def result(self) -> AuthorizationCodeResult:
        """Wait for the browser; raises `McpError` if the login was refused or timed out."""
        try:
            return await asyncio.wait_for(self._answer, LOGIN_TIMEOUT_SECONDS)
        except TimeoutError:
            raise McpError(f"Nobody logged in within {LOGIN_TIMEOUT_SECONDS:.0f} seconds.") from None


@asynccontextmanager
async def open_callback() -> AsyncIterator[OAuthCallback]:
    """Listen on a free port of the loopback interface for one answer."""
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LINE_SECONDS):
                status = _parse_callback(await reader.readline(), answer)
                await send_data(writer, _page(status))
        except (TimeoutError, ValueError, OSError):
            pass  # not a browser, or it has closed the connection
        finally:
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=_MAX_LINE_LENGTH)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield OAuthCallback(f"http://127.0.0.1:{port}{_PATH}", answer)
    if answer.done() and not answer.cancelled():
        answer.exception()  # otherwise asyncio logs that the exception was never retrieved


def _parse_callback(line: bytes, answer: asyncio.Future[AuthorizationCodeResult]) -> str:
    """Parse the first line of a request; return the status of its response."""
    parts = line.decode("ascii", "replace").split()
    target = urlsplit(parts[1]) if len(parts) == 3 and parts[0] == "GET" else None
    if target is None or target.path != _PATH:
        return "404 Not Found"
    given = {name: values[0] for name, values in parse_qs(target.query).items()}
    if not answer.done() and "code" in given:
        result = AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
        answer.set_result(result)
    elif not answer.done() and "error" in given:
        why = f"{given['error']} {given.get('error_description', '')}".strip()[:500]
        answer.set_exception(McpError(f"The login was refused: {why}"))
    return "200 OK"


def _page(status: str) -> bytes:
    body = _DONE if status.startswith("200") else "There is nothing here."
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close"
    )
    return f"{head}\r\n\r\n{body}".encode()


async def log_in(
    name: str, server: McpServerSettings, logins: LoginStore, show: Callable[[str], Awaitable[None]]
) -> None:
    """Let a user log in at the shown address, and store the login in place of an older one.

    Raises `McpError` if the login was refused or timed out, or if the server needs no login.
    """
    async with open_callback() as callback:
        user = InteractiveUser(callback.url, show, callback.result)
        login = logins.of(name, server, user)
        try:
            async with Client(http_transport(server, login)) as client:
                await client.list_tools()
        except Exception as error:  # any failure is reported in one line
            why = callback.refusal or login.redactor.text(describe_error(error))
            raise McpError(f"The login at {name} failed: {why}") from error
    if login.context.current_tokens is None:
        raise McpError(f"{name} accepts requests without a login. Remove auth: oauth from its settings.")
