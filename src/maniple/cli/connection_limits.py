"""Deadlines and limits for the connections of the HTTP service, which uvicorn does not have.

A client that sends half a request, or nothing, or reads nothing of its answer, would otherwise keep its
connection, and with it a descriptor, for as long as it likes (docs/decisions/0020-http-server.md).
"""

import asyncio
import logging
import resource
from collections import Counter
from collections.abc import Container
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Literal

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from maniple.config import ServerSettings

BODY_BYTES_PER_SECOND = 10_000
"""A body that arrives faster than this may take longer than `server.body_seconds`."""
UNREAD_SECONDS = 60.0
"""A client that reads nothing of its answer for so long, at most twice as long, loses its connection."""
SOCKET_PING_SECONDS = 10.0
"""The longest silence of a WebSocket."""
SLOW_SECONDS = 2.0
"""A client that has had unread bytes for so long loses its place before one that waits for a request."""
KEYLESS_SHARE = 8
"""One of so many places is for connections whose last request had no key."""
MAX_PIPELINED = 8
"""A connection whose requests never wait for an answer is closed after so many."""
_WANTED_DESCRIPTORS = 65_536
_IPV6_CUSTOMER_BITS = 64
"""The part of an IPv6 address that one customer usually has alone."""
_TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
_REFUSED = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 5\r\ncontent-length: 0\r\n\r\n"
)
_LOG = logging.getLogger(__name__)

Phase = Literal["head", "body", "idle", "answer"]
"""What a connection waits for: the head or the body of a request, the next request, or its answer."""


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How long requests may take to arrive, and how many connections there may be."""

    header_seconds: float
    body_seconds: float
    max_connections: int
    max_per_address: int
    proxies: tuple[str, ...] = ()
    """Networks whose addresses may have any number of connections, besides loopback."""

    @classmethod
    def of(cls, settings: ServerSettings, descriptors: int) -> "ClientLimits":
        """Return the limits of the settings; half of the process's `descriptors` are reserved for runs."""
        return cls(
            settings.header_seconds,
            settings.body_seconds,
            max(1, min(settings.max_connections, descriptors // 2)),
            settings.max_connections_per_address,
            settings.proxies,
        )


def raise_descriptor_limit() -> int:
    """Let this process open as many descriptors as it may, up to 65,536; return their number."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _WANTED_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return _WANTED_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


class ConnectionTable:
    """The open connections of a server.

    A new connection beyond `max_connections` takes the place of another (see `_find_victim`); it is refused
    if all have a request and read their answers. Connections whose last request had no key have a share of
    the places, in which they take each other's.
    """

    def __init__(self, limits: ClientLimits) -> None:
        self.limits = limits
        self._unlimited = [ip_network(proxy, strict=False) for proxy in limits.proxies]
        self._by_address: Counter[str] = Counter()
        self._addresses: dict[LimitedConnection, str] = {}
        self._waiting: dict[LimitedConnection, None] = {}
        """Those that wait for their clients, longest first."""
        self._unread: dict[LimitedConnection, float] = {}
        """Those whose clients have not read what was sent, longest first, and since when."""
        self._keyless: set[LimitedConnection] = set()
        self._next_check: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._addresses)

    def admit(self, connection: "LimitedConnection", host: str | None) -> bool:
        """Add a new connection of a client, and return whether it may stay."""
        address = self._limited_address(host)
        if address and self._by_address[address] >= self.limits.max_per_address:
            _LOG.warning("%s has too many connections (server.max_connections_per_address).", address)
            return False
        if len(self._keyless) >= max(1, self.limits.max_connections // KEYLESS_SHARE):
            self._evict(self._keyless)
        if len(self) >= self.limits.max_connections and not self._evict(self._addresses):
            _LOG.warning("There are too many connections (server.max_connections).")
            return False
        self._addresses[connection] = address
        if address:
            self._by_address[address] += 1
        if self._next_check is None:
            self._check_later(connection.loop)
        return True

    def update(self, connection: "LimitedConnection", *, is_waiting: bool) -> None:
        """Note whether a connection waits for its client; if so, it begins to wait now."""
        self._waiting.pop(connection, None)
        if is_waiting and connection in self._addresses:
            self._waiting[connection] = None

    def note_unread(self, connection: "LimitedConnection", *, is_unread: bool) -> None:
        """Note whether more waits to be read by a client than its connection takes."""
        if not is_unread:
            self._unread.pop(connection, None)
        elif connection in self._addresses:
            self._unread.setdefault(connection, connection.loop.time())

    def note_key(self, connection: "LimitedConnection", *, has_key: bool) -> None:
        """Note whether the last request of a connection had a key, or needed none."""
        if has_key:
            self._keyless.discard(connection)
        elif connection in self._addresses:
            self._keyless.add(connection)

    def remove(self, connection: "LimitedConnection") -> None:
        """Forget a closed connection; one that was not admitted is ignored."""
        self._waiting.pop(connection, None)
        self._unread.pop(connection, None)
        self._keyless.discard(connection)
        address = self._addresses.pop(connection, None)
        if address:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def _check_later(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next_check = loop.call_later(UNREAD_SECONDS, self._abort_unread, loop)

    def _abort_unread(self, loop: asyncio.AbstractEventLoop) -> None:
        """Close the connections whose clients have read nothing since the last check.

        One check for all connections sees also those that the server has closed: they stay open until their
        clients have read what was sent.
        """
        self._next_check = None
        for connection in [*self._addresses]:
            if connection.has_read_nothing():
                _LOG.warning("A client read nothing for %g s; its connection was closed.", UNREAD_SECONDS)
                connection.transport.abort()
        if self._addresses:
            self._check_later(loop)

    def _evict(self, among: Container["LimitedConnection"]) -> bool:
        victim = self._find_victim(among)
        if victim is None:
            return False
        _LOG.warning("Connections whose clients send or read nothing were closed for new ones.")
        self.remove(victim)
        victim.transport.abort()
        return True

    def _find_victim(self, among: Container["LimitedConnection"]) -> "LimitedConnection | None":
        """Return the connection whose place is taken, None if all are in use.

        First who has not read for `SLOW_SECONDS`, then who has no request, then who has half of one, then who
        does not read at this moment; of each the one that has been so longest.
        """
        waiting = [one for one in self._waiting if one in among]
        unread = next(((one, since) for one, since in self._unread.items() if one in among), None)
        if unread is not None and unread[0].loop.time() - unread[1] >= SLOW_SECONDS:
            return unread[0]
        without_request = next((one for one in waiting if one.phase != "body"), None)
        return without_request or next(iter(waiting), None) or (unread[0] if unread else None)

    def _limited_address(self, host: str | None) -> str:
        """Return the address, or the IPv6 network, whose connections are counted; "" for none."""
        if host is None:
            return ""
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address):
            address = address.ipv4_mapped or address
        if address.is_loopback or any(address in network for network in self._unlimited):
            return ""
        if isinstance(address, IPv6Address):
            return str(IPv6Network((address, _IPV6_CUSTOMER_BITS), strict=False))
        return str(address)


class LimitedConnection(H11Protocol):
    """A connection whose requests must arrive within `header_seconds` and `body_seconds`."""

    def __init__(self, table: ConnectionTable, **given: Any) -> None:
        super().__init__(**given)
        self.phase: Phase = "head"
        self._table = table
        self._is_refused = False
        self._deadline: asyncio.TimerHandle | None = None
        self._phase_of: object = None
        self._body_began = 0.0
        self._body_bytes = 0
        self._unread_bytes = 0
        self._pipelined = 0
        self._is_websocket = False
        if self.ws_protocol_class is not None:
            self.ws_protocol_class = partial(LimitedWebSocket, self)  # pyright: ignore[reportAttributeAccessIssue] - is only called

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as uvicorn's
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        if not self._table.admit(self, self.client[0] if self.client else None):
            self._is_refused = True
            self._close(_REFUSED)
            return
        self._enter("head")

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._is_refused:
            return
        super().data_received(data)
        self._body_bytes += len(data)
        self._follow()

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """See `H11Protocol`: what arrives from now on goes to a `LimitedWebSocket`."""
        self._is_websocket = True
        super().handle_websocket_upgrade(event)

    def on_response_complete(self) -> None:
        """See `H11Protocol`: called after an answer, which may begin the next request."""
        self._note_key()
        self._pipelined = self._pipelined + 1 if self.conn.trailing_data[0] else 0
        if self._pipelined > MAX_PIPELINED:
            self._close(b"")
        super().on_response_complete()
        self._follow()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().pause_writing()
        self._note_key()
        self._table.note_unread(self, is_unread=True)

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().resume_writing()
        self._table.note_unread(self, is_unread=False)

    def has_read_nothing(self) -> bool:
        """Return whether the client has read nothing of what waited for it at the last call."""
        before, self._unread_bytes = self._unread_bytes, self.transport.get_write_buffer_size()
        return 0 < before <= self._unread_bytes

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._cancel_deadline()
        self._table.remove(self)
        super().connection_lost(exc)

    def _note_key(self) -> None:
        if self.cycle is not None:
            self._table.note_key(self, has_key=self.cycle.scope.get("state", {}).get("caller") is not None)

    def _follow(self) -> None:
        """Enter the phase that the connection has come to."""
        phase = self._current_phase()
        if phase != self.phase or (phase == "body" and self._phase_of is not self.cycle):
            self._enter(phase)

    def _current_phase(self) -> Phase:
        state = self.conn.their_state
        if self.transport.is_closing():
            return "idle"  # it only waits until its client has read the rest
        if self._is_websocket:
            return "answer"
        if state is h11.SEND_BODY:
            return "body"
        if state is not h11.IDLE:
            return "answer"
        has_begun = self.cycle is None or bool(self.conn.trailing_data[0])
        return "head" if has_begun else "idle"

    def _enter(self, phase: Phase) -> None:
        self._cancel_deadline()
        self.phase, self._phase_of = phase, self.cycle
        self._table.update(self, is_waiting=phase != "answer")
        limits = self._table.limits
        if phase == "head":
            self._deadline = self.loop.call_later(limits.header_seconds, self._expire)
        elif phase == "body":
            self._body_began, self._body_bytes = self.loop.time(), 0
            self._deadline = self.loop.call_later(limits.body_seconds, self._check_body)

    def _check_body(self) -> None:
        """Close the connection unless its body came fast enough, or the service itself does not read it."""
        if self.flow.read_paused:
            self._deadline = self.loop.call_later(self._table.limits.body_seconds, self._check_body)
            return
        allowed = self._table.limits.body_seconds + self._body_bytes / BODY_BYTES_PER_SECOND
        left = self._body_began + allowed - self.loop.time()
        if left > 0:
            self._deadline = self.loop.call_later(left, self._check_body)
        else:
            self._expire()

    def _expire(self) -> None:
        if self.phase == "head" and self.cycle is None and not self.conn.trailing_data[0]:
            self._close(b"")  # browsers open spare connections, of which many never get a request
            return
        _LOG.warning("A request did not arrive in time (server.header_seconds, server.body_seconds).")
        has_answer = self.phase == "body" and self.cycle.response_started
        self._close(b"" if has_answer else _TIMED_OUT)

    def _close(self, answer: bytes) -> None:
        self._cancel_deadline()
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.close()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class LimitedWebSocket(WebSocketsSansIOProtocol):
    """What a connection becomes with the handshake of a WebSocket; it keeps its place in the table."""

    def __init__(self, connection: LimitedConnection, **given: Any) -> None:
        super().__init__(**given)
        self._connection = connection

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().pause_writing()
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        super().resume_writing()
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        super().connection_lost(exc)
        self._connection.connection_lost(exc)


def limited_protocol(settings: ServerSettings, descriptors: int) -> Any:
    """Return uvicorn's `http` option for a server with the limits of the settings."""
    return partial(LimitedConnection, ConnectionTable(ClientLimits.of(settings, descriptors)))


def trusted_proxies(settings: ServerSettings) -> list[str] | None:
    """Return uvicorn's `forwarded_allow_ips`: whose `X-Forwarded-For` is believed; None for its default."""
    return ["127.0.0.1", "::1", *settings.proxies] if settings.proxies else None
