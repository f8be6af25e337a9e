"""Proxies for untrusted clients: SOCKS5 for Chromium, an HTTP proxy with an allowlist for sandboxed code.

h11 parses a plain HTTP request and the proxy serializes it again. The server therefore receives one
well-formed request to the checked host, regardless of what the client put into it or sent after it (RFC
9112, sections 3.2.2 and 11.2).
"""

import asyncio
import logging
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from struct import unpack
from urllib.parse import urlsplit

import h11

from maniple.egress.connections import (
    ClientHandler,
    ConnectionLimits,
    ConnectionServer,
    Streams,
    send_data,
    tunnel,
)
from maniple.egress.route import EgressRoute
from maniple.egress.upstream import UpstreamError, UpstreamProxy
from maniple.errors import FetchError
from maniple.outgoing import SecretRefused
from maniple.text import format_host

_MAX_REASON_BYTES = 200
_MAX_HEAD_BYTES = 64 * 1024
_MAX_LOGGED = 200
_MAX_CHECKED_BYTES = 200_000
"""The part of a body that is searched for secrets; the search takes longer than sending."""
_HTTPS_PORT, _HTTP_PORT = 443, 80
_HOST = re.compile(r"[a-z0-9]([a-z0-9_.-]*[a-z0-9])?\.?", re.ASCII | re.IGNORECASE)
# Headers of one connection, not of the message (RFC 9110, 7.6.1), and those that the proxy sets itself.
_CONNECTION_HEADERS = frozenset(
    b"connection keep-alive proxy-connection proxy-authenticate proxy-authorization te trailer upgrade "
    b"http2-settings host expect".split()
)
# Reply codes of SOCKS5 (RFC 1928, section 6).
_GRANTED, _FORBIDDEN, _UNREACHABLE, _UNKNOWN_COMMAND, _UNKNOWN_ADDRESS = 0, 2, 4, 7, 8

_Headers = Iterable[tuple[bytes, bytes]]
_log = logging.getLogger(__name__)


@asynccontextmanager
async def open_socks_proxy(route: EgressRoute, limits: ConnectionLimits | None = None) -> AsyncIterator[int]:
    """Serve SOCKS5 on 127.0.0.1 and yield the port; leaving the context ends every connection."""
    limits = limits or ConnectionLimits()
    connections = ConnectionServer(SocksProxy(route, limits), limits)
    server = await asyncio.start_server(connections.accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await connections.aclose()


@asynccontextmanager
async def open_socks_socket(
    path: Path, route: EgressRoute, limits: ConnectionLimits | None = None
) -> AsyncIterator[None]:
    """Serve SOCKS5 on a unix socket that every user can connect to who reaches `path`; else as above."""
    limits = limits or ConnectionLimits()
    connections = ConnectionServer(SocksProxy(route, limits), limits)
    server = await asyncio.start_unix_server(connections.accept, path)
    try:
        await asyncio.to_thread(path.chmod, 0o666)
        yield
    finally:
        server.close()
        await connections.aclose()


class GatewaySocket:
    """The unix socket of one client of a gateway, with connection limits of its own."""

    def __init__(self, path: Path, connections: ConnectionServer, server: asyncio.Server) -> None:
        self.path = path
        self._connections = connections
        self._server = server

    @property
    def is_open(self) -> bool:
        """Whether the socket accepts connections or still has one."""
        return self._server.is_serving() or self._connections.has_connections

    def close(self) -> None:
        """Accept no more connections and cancel the open ones; a second call does nothing."""
        self._server.close()
        self._connections.cancel()
        self.path.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Close the socket and wait until every connection has ended."""
        self.close()
        await self._connections.aclose()


class EgressGateway:
    """An HTTP proxy with one socket per client, so that no client uses up another's limits."""

    def __init__(self, folder: Path, handler: ClientHandler, limits: ConnectionLimits) -> None:
        self._folder = folder
        self._handler = handler
        self._limits = limits
        self._opened = 0
        self._sockets: set[GatewaySocket] = set()

    async def open_socket(self) -> GatewaySocket:
        """Open another socket; raises `OSError` where the path is too long for one."""
        self._opened += 1
        path = self._folder / f"{self._opened}"
        connections = ConnectionServer(self._handler, self._limits)
        server = await asyncio.start_unix_server(connections.accept, path)
        self._sockets = {socket for socket in self._sockets if socket.is_open}
        self._sockets.add(socket := GatewaySocket(path, connections, server))
        # A sandbox connects to the socket as another user id.
        path.chmod(0o666)
        return socket

    async def aclose(self) -> None:
        """Close every socket."""
        await asyncio.gather(*(socket.aclose() for socket in self._sockets))


@asynccontextmanager
async def open_gateway(
    allowed: "AllowedHosts", route: EgressRoute, limits: ConnectionLimits | None = None
) -> AsyncIterator[EgressGateway]:
    """Serve an HTTP proxy to the `allowed` hosts; `limits` hold for each socket.

    Only this user, and a sandbox into which a socket is mounted, can connect. Leaving the context ends every
    connection. Raises `OSError` where the temporary folder cannot be written.
    """
    limits = limits or ConnectionLimits()
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-"))  # with mode 0700
    gateway = EgressGateway(folder, HttpProxy(route, allowed, limits), limits)
    try:
        yield gateway
    finally:
        await gateway.aclose()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


class AllowedHosts:
    """The allowlist of hosts: `pypi.org`, `*.yahoo.com` (subdomains only), `example.org:8443`.

    A name without a port allows the default port of the scheme: 443 for https, 80 for http.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name.casefold() for name in names)

    def allows(self, host: str, port: int, default_port: int) -> bool:
        """Return whether the allowlist has `host`, in any case, at this `port`."""
        labels = host.casefold().removesuffix(".").split(".")
        spellings = {".".join(labels), *(f"*.{'.'.join(labels[at:])}" for at in range(1, len(labels)))}
        if port == default_port and not self._names.isdisjoint(spellings):
            return True
        return not self._names.isdisjoint(f"{spelling}:{port}" for spelling in spellings)


class HttpPeer:
    """One side of an HTTP/1.1 connection; raises `EOFError` when it sends more than `limit_bytes`."""

    def __init__(self, role: type[h11.CLIENT] | type[h11.SERVER], streams: Streams, limit_bytes: int) -> None:
        self.streams = streams
        self.state = h11.Connection(role, max_incomplete_event_size=_MAX_HEAD_BYTES)
        self._left_bytes = limit_bytes

    async def next_event(self) -> object:
        """Wait for the next event; raises `h11.RemoteProtocolError` for anything but HTTP."""
        while (event := self.state.next_event()) is h11.NEED_DATA:
            data = await self.streams[0].read(65_536)
            self._left_bytes -= len(data)
            if self._left_bytes < 0:
                raise EOFError
            self.state.receive_data(data)
        return event

    async def send(self, event: h11.Event) -> None:
        """Write an event."""
        await send_data(self.streams[1], self.state.send(event) or b"")


@dataclass(frozen=True, slots=True)
class _ProxyTarget:
    host: str
    port: int
    default_port: int
    path: str = ""

    @property
    def address(self) -> str:
        return f"{format_host(self.host)}:{self.port}"

    @property
    def authority(self) -> str:
        host = format_host(self.host)
        return host if self.port == self.default_port else f"{host}:{self.port}"


class _HttpRefusalError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status

    @property
    def reason(self) -> bytes:
        """The message in the status line; programs show nothing else of a response to CONNECT."""
        return " ".join(str(self).split()).encode("ascii", "replace")[:_MAX_REASON_BYTES]


class _News:
    """Tells whether a text is new, up to a limit: clients may repeat what is logged for each of them."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def __call__(self, text: str) -> bool:
        if text in self._seen or len(self._seen) >= _MAX_LOGGED:
            return False
        self._seen.add(text)
        return True


class HttpProxy:
    """Serves one request per connection: CONNECT, or a plain request to an allowed host."""

    def __init__(self, route: EgressRoute, allowed: AllowedHosts, limits: ConnectionLimits) -> None:
        self._route = route
        self._allowed = allowed
        self._limits = limits
        self._is_news = _News()

    async def __call__(self, client: Streams) -> None:
        """Serve the request, or answer with the reason of the refusal."""
        peer = HttpPeer(h11.SERVER, client, self._limits.bytes_each_way)
        try:
            async with asyncio.timeout(self._limits.opening_seconds):
                request = await peer.next_event()
            if isinstance(request, h11.Request):
                await self._serve(peer, request)
        except _HttpRefusalError as refusal:
            await _send_refusal(peer, refusal)
        except h11.RemoteProtocolError as error:
            await _send_refusal(peer, _HttpRefusalError(400, f"This is not a request to a proxy: {error}."))

    async def _serve(self, client: HttpPeer, request: h11.Request) -> None:
        connect = request.method == b"CONNECT"
        target = _parse_connect_target(request.target) if connect else _parse_url_target(request.target)
        self._require_allowed(target)
        await self._check_secrets(target, target.host)
        if not connect:
            await self._check_secrets(
                target, target.path, *(value.decode("latin-1") for _, value in request.headers)
            )
        opened = False
        forwarder = None if connect else self._route.forwarder(target.host, target.port)
        try:
            async with self._route.open(
                target.host, target.port, self._limits.opening_seconds, forwarder
            ) as server:
                opened = True
                if connect:
                    await self._tunnel(client, server)
                else:
                    upstream = HttpPeer(h11.CLIENT, server, self._limits.bytes_each_way)
                    check = partial(self._check_secrets, target)
                    await _forward(client, upstream, request, _Forwarding(target, forwarder, check))
        except FetchError as error:
            self._log_refusal(target, f"the connection is not permitted: {error}")
            raise _HttpRefusalError(403, str(error)) from error
        except OSError as error:
            if opened:
                raise
            message = f"{target.address} cannot be reached: {error or 'no answer in time'}."
            raise _HttpRefusalError(502, message) from error

    async def _tunnel(self, client: HttpPeer, server: Streams) -> None:
        await client.send(h11.Response(status_code=200, reason=b"Connection established", headers=[]))
        early, _ = client.state.trailing_data
        await send_data(server[1], early)
        await tunnel(client.streams, server, self._limits.bytes_each_way)

    def _require_allowed(self, target: _ProxyTarget) -> None:
        if self._allowed.allows(target.host, target.port, target.default_port):
            return
        self._log_refusal(target, "sandbox.allow_hosts does not name it")
        raise _HttpRefusalError(
            403,
            f"sandbox.allow_hosts in conf.yaml does not name {target.address}, "
            "so the sandbox cannot reach it.",
        )

    async def _check_secrets(self, target: _ProxyTarget, *texts: str) -> None:
        site = ".".join(target.host.split(".")[-2:])
        try:
            await asyncio.to_thread(self._route.guard.check, [*texts], by="sandboxed code", to=site)
        except SecretRefused as error:
            raise _HttpRefusalError(403, str(error)) from error

    def _log_refusal(self, target: _ProxyTarget, why: str) -> None:
        if self._is_news(target.address):
            _log.warning("Sandboxed code was refused a connection to %s: %s", target.address, why)


def _parse_connect_target(target: bytes) -> _ProxyTarget:
    """Parse the target of CONNECT: `host:port`."""
    host, _, port = target.decode("latin-1").rpartition(":")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port[:6]) < 65_536:
        raise h11.RemoteProtocolError("CONNECT takes host:port")
    return _ProxyTarget(_check_host(host), int(port), _HTTPS_PORT)


def _parse_url_target(target: bytes) -> _ProxyTarget:
    """Parse the target of any other method: `http://host:port/path`."""
    url = target.decode("latin-1")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise h11.RemoteProtocolError(str(error)) from error
    if parts.scheme != "http" or parts.username is not None or port == 0 or "\\" in url:
        raise h11.RemoteProtocolError("a request names http://host/path, and https goes through CONNECT")
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return _ProxyTarget(_check_host(parts.hostname or ""), port or _HTTP_PORT, _HTTP_PORT, path + query)


def _check_host(host: str) -> str:
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise h11.RemoteProtocolError("the host is not a valid name")
    return host.casefold()


async def _send_refusal(client: HttpPeer, refusal: _HttpRefusalError) -> None:
    body = f"{refusal}\n".encode()
    headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    if client.state.our_state in (h11.IDLE, h11.SEND_RESPONSE):
        await client.send(h11.Response(status_code=refusal.status, reason=refusal.reason, headers=headers))
        if client.state.our_state is h11.SEND_BODY:  # a response to HEAD has none
            await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())


@dataclass(frozen=True, slots=True)
class _Forwarding:
    """Where a plain request goes: to the target itself, or to a proxy with the whole address."""

    target: _ProxyTarget
    proxy: UpstreamProxy | None
    check: Callable[[str], Awaitable[None]] | None = None
    """Raises for what may not leave in the body."""

    def head(self, request: h11.Request) -> h11.Request:
        authority, path = self.target.authority, self.target.path
        headers = [
            (b"host", authority.encode()),
            *_message_headers(request.headers),
            (b"connection", b"close"),
        ]
        if self.proxy is not None:
            path, headers = f"http://{authority}{path}", [*headers, *self.proxy.headers]
        return h11.Request(method=request.method, target=path, headers=headers)


async def _forward(client: HttpPeer, server: HttpPeer, request: h11.Request, to: _Forwarding) -> None:
    """Send the client's request on, and the response back."""
    await server.send(to.head(request))
    if client.state.they_are_waiting_for_100_continue:
        await client.send(h11.InformationalResponse(status_code=100, headers=[]))
    await _forward_body(client, server, to.check)
    try:
        response = await server.next_event()
        while isinstance(response, h11.InformationalResponse):
            response = await server.next_event()
        if not isinstance(response, h11.Response):
            raise EOFError("no response")  # noqa: TRY004 - it is about the connection
        headers = [*_message_headers(response.headers), (b"connection", b"close")]
        reply = h11.Response(status_code=response.status_code, reason=response.reason, headers=headers)
        await client.send(reply)
        await _forward_body(server, client)
    except h11.ProtocolError as error:  # the server's, not the client's
        raise EOFError from error


async def _forward_body(
    source: HttpPeer, sink: HttpPeer, check: Callable[[str], Awaitable[None]] | None = None
) -> None:
    unchecked = _MAX_CHECKED_BYTES
    while isinstance(part := await source.next_event(), h11.Data):
        if check is not None and unchecked > 0:
            unchecked -= len(part.data)
            await check(bytes(part.data).decode("latin-1"))
        await sink.send(h11.Data(data=bytes(part.data)))
    if not isinstance(part, h11.EndOfMessage):
        raise EOFError("an incomplete message")  # noqa: TRY004 - it is about the connection
    await sink.send(h11.EndOfMessage())


def _message_headers(headers: _Headers) -> list[tuple[bytes, bytes]]:
    """Return the end-to-end headers; of two that state the message's length, only the one that counts."""
    headers = list(headers)
    named = [value for name, value in headers if name == b"connection"]
    dropped = _CONNECTION_HEADERS | {one.strip().lower() for value in named for one in value.split(b",")}
    if any(name == b"transfer-encoding" for name, _ in headers):
        dropped |= {b"content-length"}
    return [(name, value) for name, value in headers if name not in dropped]


class _SocksRefusalError(Exception):
    def __init__(self, reply: int) -> None:
        super().__init__(reply)
        self.reply = reply


class SocksProxy:
    """Serves SOCKS5 (RFC 1928), which Chromium speaks: a client names a host and gets a connection to it."""

    def __init__(self, route: EgressRoute, limits: ConnectionLimits) -> None:
        self._route = route
        self._limits = limits
        self._is_news = _News()

    async def __call__(self, client: Streams) -> None:
        """Connect the client to a permitted host; refuse every other request."""
        try:
            await self._connect(client)
        except _SocksRefusalError as refusal:
            reply = refusal.reply
        except FetchError:
            reply = _FORBIDDEN
        else:
            return
        await send_data(client[1], _socks_reply(reply))

    async def _connect(self, client: Streams) -> None:
        async with asyncio.timeout(self._limits.opening_seconds):
            host, port = await _read_socks_request(*client)
        granted = False
        forwarder = self._route.forwarder(host, port) if port == _HTTP_PORT else None
        try:
            async with self._route.open(host, port, self._limits.opening_seconds, forwarder) as server:
                granted = True
                await send_data(client[1], _socks_reply(_GRANTED))
                if forwarder is None:
                    await tunnel(client, server, self._limits.bytes_each_way)
                else:
                    await self._forward(client, server, _ProxyTarget(host, port, _HTTP_PORT), forwarder)
        except OSError as error:
            if granted:
                raise
            self._log_failure(error)
            raise _SocksRefusalError(_UNREACHABLE) from error

    def _log_failure(self, error: OSError) -> None:
        """Log what a proxy says: Chromium tells its pages only that there is no connection."""
        if isinstance(error, UpstreamError) and self._is_news(str(error)):
            _log.warning("The browser was not connected: %s", error)

    async def _forward(
        self, client: Streams, server: Streams, target: _ProxyTarget, proxy: UpstreamProxy
    ) -> None:
        """Leave one plain request to a proxy, since many refuse to connect to port 80."""
        limit = self._limits.bytes_each_way
        peer, upstream = HttpPeer(h11.SERVER, client, limit), HttpPeer(h11.CLIENT, server, limit)
        try:
            if isinstance(request := await peer.next_event(), h11.Request):
                target = replace(target, path=request.target.decode("latin-1"))
                await _forward(peer, upstream, request, _Forwarding(target, proxy))
        except h11.ProtocolError as error:
            raise EOFError from error


async def _read_socks_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, int]:
    version, methods = await reader.readexactly(2)
    await reader.readexactly(methods)
    if version != 5:
        raise EOFError
    await send_data(writer, b"\x05\x00")
    _, command, _, kind = await reader.readexactly(4)
    if command != 1:
        raise _SocksRefusalError(_UNKNOWN_COMMAND)
    if kind == 3:
        host = (await reader.readexactly((await reader.readexactly(1))[0])).decode("ascii", "replace")
    elif kind in (1, 4):
        host = str(ip_address(await reader.readexactly(4 if kind == 1 else 16)))
    else:
        raise _SocksRefusalError(_UNKNOWN_ADDRESS)
    (port,) = unpack("!H", await reader.readexactly(2))
    return host, port


def _socks_reply(reply: int) -> bytes:
    return bytes((5, reply, 0, 1)) + bytes(6)
