"""An HTTP proxy for hosts that are named: CONNECT, and plain requests, each on a connection of its own.

A plain request is read by h11 and written anew, so what reaches the server is one well-formed request to the
host that was checked, whatever its sender packed into it or behind it (RFC 9112, sections 3.2.2 and 11.2).
"""

import asyncio
import logging
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

import h11

from maniple.egress.allowlist import AllowedHosts
from maniple.egress.connection import Exit, Streams
from maniple.egress.exchange import Peer, forward
from maniple.egress.relay import Limits, tunnel
from maniple.errors import FetchError

_REASON_BYTES = 200
_LOGGED_REFUSALS = 200
_HTTPS_PORT, _HTTP_PORT = 443, 80
_HOST = re.compile(r"[a-z0-9]([a-z0-9_.-]*[a-z0-9])?\.?", re.ASCII | re.IGNORECASE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Target:
    host: str
    port: int
    usual_port: int
    path: str = ""

    @property
    def place(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        return self.host if self.port == self.usual_port else self.place


class _RefusedError(Exception):
    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status

    @property
    def reason(self) -> bytes:
        """The words in the status line, which is all that programs show of an answer to CONNECT."""
        return " ".join(str(self).split()).encode("ascii", "replace")[:_REASON_BYTES]


class HttpProxy:
    """One conversation after the other, each with one request."""

    def __init__(self, way_out: Exit, allowed: AllowedHosts, limits: Limits) -> None:
        self._exit = way_out
        self._allowed = allowed
        self._limits = limits
        self._told: set[str] = set()

    async def __call__(self, client: Streams) -> None:
        """Serve one request, or say why not."""
        peer = Peer(h11.SERVER, client, self._limits.bytes_each_way)
        try:
            async with asyncio.timeout(self._limits.opening_seconds):
                request = await peer.next_event()
            if isinstance(request, h11.Request):
                await self._serve(peer, request)
        except _RefusedError as error:
            await _refuse(peer, error)
        except h11.RemoteProtocolError as error:
            await _refuse(peer, _RefusedError(400, f"This is no request to a proxy: {error}."))

    async def _serve(self, client: Peer, request: h11.Request) -> None:
        connect = request.method == b"CONNECT"
        target = _named(request.target) if connect else _absolute(request.target)
        self._require_allowed(target)
        opened = False
        try:
            async with self._exit.open(target.host, target.port, self._limits.opening_seconds) as server:
                opened = True
                if connect:
                    await self._tunnel(client, server)
                else:
                    upstream = Peer(h11.CLIENT, server, self._limits.bytes_each_way)
                    await forward(client, upstream, request, target.path, target.authority)
        except FetchError as error:
            self._note(target, f"which may not be connected to: {error}")
            raise _RefusedError(403, str(error)) from error
        except OSError as error:
            if opened:
                raise
            words = f"{target.place} cannot be reached: {error or 'no answer in time'}."
            raise _RefusedError(502, words) from error

    async def _tunnel(self, client: Peer, server: Streams) -> None:
        await client.send(h11.Response(status_code=200, reason=b"Connection established", headers=[]))
        early, _ = client.state.trailing_data
        server[1].write(early)
        await tunnel(client.streams, server, self._limits.bytes_each_way)

    def _require_allowed(self, target: _Target) -> None:
        if self._allowed.name(target.host, target.port, target.usual_port):
            return
        self._note(target, "which sandbox.allow_hosts does not name")
        words = (
            f"sandbox.allow_hosts in conf.yaml does not name {target.place}, so the sandbox cannot reach it."
        )
        raise _RefusedError(403, words)

    def _note(self, target: _Target, why: str) -> None:
        """Log a refusal, once for each place and a limited number of them: whoever asks may ask often."""
        if target.place not in self._told and len(self._told) < _LOGGED_REFUSALS:
            self._told.add(target.place)
            _log.warning("sandboxed code was refused %s, %s", target.place, why)


def _named(target: bytes) -> _Target:
    """The target of CONNECT: `host:port`."""
    host, _, port = target.decode("latin-1").rpartition(":")
    if not port.isascii() or not port.isdecimal() or not 0 < int(port[:6]) < 65_536:
        raise h11.RemoteProtocolError("CONNECT takes host:port")
    return _Target(_host(host), int(port), _HTTPS_PORT)


def _absolute(target: bytes) -> _Target:
    """The target of any other method: `http://host:port/path`."""
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
    return _Target(_host(parts.hostname or ""), port or _HTTP_PORT, _HTTP_PORT, path + query)


def _host(host: str) -> str:
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise h11.RemoteProtocolError("the host is no name")
    return host.casefold()


async def _refuse(client: Peer, error: _RefusedError) -> None:
    body = f"{error}\n".encode()
    headers = [
        ("content-type", "text/plain; charset=utf-8"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    if client.state.our_state in (h11.IDLE, h11.SEND_RESPONSE):
        await client.send(h11.Response(status_code=error.status, reason=error.reason, headers=headers))
        if client.state.our_state is h11.SEND_BODY:  # HEAD has none
            await client.send(h11.Data(data=body))
        await client.send(h11.EndOfMessage())
