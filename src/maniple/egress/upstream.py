"""Connections through a proxy that stands between this machine and the network.

The proxy resolves the name. HTTP proxies are asked with CONNECT (RFC 9110, 9.3.6), `https` ones over TLS,
and SOCKS5 ones (RFC 1928 and 1929) with the name as well. python-socks 3.2 does this too, but takes the first
part of an answer to CONNECT for the whole, so that its rest would become part of the connection.
"""

import asyncio
import re
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import quote, unquote, urlsplit

import h11
from socksio import ProtocolError, SOCKSError, socks5

from maniple.egress.certificates import tls_context
from maniple.egress.connections import Streams, send_data
from maniple.errors import ConfigError
from maniple.text import format_host

_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_SCRIPTS = (".pac", ".dat")
_HOST = re.compile(r"[\w.-]+|[\da-f:.]+(?:%[\w.-]+)?", re.A | re.I)
_ADVICE = (
    "Write it as http://host:port, https://host:port or socks5://host:port, with special characters of a "
    "password as %XX, or unset it."
)
_SOCKS = frozenset({"socks5", "socks5h"})
_NO_ANSWER = (
    *(OSError, EOFError, UnicodeError, asyncio.LimitOverrunError),
    *(h11.ProtocolError, SOCKSError),
)


class UpstreamError(ConnectionError):
    """The proxy cannot be reached, or does not connect to the host; the text names it, without a password."""


@dataclass(frozen=True, slots=True)
class UpstreamProxy:
    """An HTTP, HTTPS or SOCKS5 proxy; `name` is how people are told of it."""

    scheme: str
    host: str
    port: int
    name: str
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, address: str, name: str) -> "UpstreamProxy":
        """Return the proxy at `address`, such as `http://user:password@proxy.example:3128`.

        Raises:
            ConfigError: it is none; the text does not have the address, which may contain a password.
        """
        try:
            parts = urlsplit(address)
            port = parts.port
        except ValueError:
            parts, port = urlsplit(""), None
        if parts.path.casefold().endswith(_SCRIPTS):
            raise ConfigError(f"{name} names a script that chooses proxies, which is not read. {_ADVICE}")
        host = parts.hostname or ""
        if parts.scheme not in _PORTS or not _HOST.fullmatch(host):
            raise ConfigError(f"{name} is not the address of a proxy. {_ADVICE}")
        username, password = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], name, username, password)

    @property
    def address(self) -> str:
        """The address with the user and the password."""
        user = f"{quote(self.username, safe='')}:{quote(self.password, safe='')}@" if self.username else ""
        return f"{self.scheme}://{user}{format_host(self.host)}:{self.port}"

    @property
    def forwards(self) -> bool:
        """Whether it takes plain requests with the whole address; some refuse CONNECT for them."""
        return self.scheme not in _SOCKS

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of each request that name the user to an HTTP proxy."""
        if not self.username:
            return []
        token = b64encode(f"{self.username}:{self.password}".encode())
        return [(b"Proxy-Authorization", b"Basic " + token)]

    async def open(self) -> Streams:
        """Connect to the proxy itself; raises `UpstreamError`."""
        context = await asyncio.to_thread(_proxy_context) if self.scheme == "https" else None
        try:
            return await asyncio.open_connection(self.host, self.port, ssl=context)
        except OSError as error:
            raise UpstreamError(f"{self.name} cannot be reached: {error.strerror or error}") from error

    async def connect(self, host: str, port: int) -> Streams:
        """Return a connection through the proxy to a name or an IP address; raises `UpstreamError`."""
        streams = await self.open()
        try:
            await (self._connect_socks if self.scheme in _SOCKS else self._connect_http)(streams, host, port)
        except BaseException as error:  # a cancelled opening leaves no connection
            streams[1].close()
            if isinstance(error, UpstreamError) or not isinstance(error, _NO_ANSWER):
                raise
            raise UpstreamError(f"{self.name} gave no answer: {error or type(error).__name__}") from error
        return streams

    async def _connect_http(self, streams: Streams, host: str, port: int) -> None:
        target = f"{format_host(host)}:{port}"
        connection = h11.Connection(h11.CLIENT)
        headers = [(b"Host", target.encode()), *self.headers]
        head = connection.send(h11.Request(method="CONNECT", target=target, headers=headers)) or b""
        await send_data(streams[1], head + (connection.send(h11.EndOfMessage()) or b""))
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                # Line by line, since what follows the head belongs to the host.
                connection.receive_data(await streams[0].readuntil(b"\n"))
            elif isinstance(event, h11.Response):
                if not 200 <= event.status_code < 300:
                    said = f"{event.status_code} {bytes(event.reason).decode('latin-1')}".strip()
                    raise UpstreamError(f"{self.name} did not connect to {target}: it answered {said[:200]}")
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise EOFError("it closed the connection")

    async def _connect_socks(self, streams: Streams, host: str, port: int) -> None:
        reader, writer = streams
        offered = [socks5.SOCKS5AuthMethod.NO_AUTH_REQUIRED]
        if self.username:
            offered.append(socks5.SOCKS5AuthMethod.USERNAME_PASSWORD)
        await send_data(writer, socks5.SOCKS5AuthMethodsRequest(offered).dumps())
        chosen = socks5.SOCKS5AuthReply.loads(await reader.readexactly(2)).method
        if chosen not in offered:
            raise UpstreamError(f"{self.name} wants a user name and a password")
        if chosen is socks5.SOCKS5AuthMethod.USERNAME_PASSWORD:
            login = socks5.SOCKS5UsernamePasswordRequest(self.username.encode(), self.password.encode())
            await send_data(writer, login.dumps())
            if not socks5.SOCKS5UsernamePasswordReply.loads(await reader.readexactly(2)).success:
                raise UpstreamError(f"{self.name} refuses the user name and the password")
        await send_data(writer, _connect_command(host, port).dumps())
        code = socks5.SOCKS5Reply.loads(await _read_reply(reader)).reply_code
        if code is not socks5.SOCKS5ReplyCode.SUCCEEDED:
            why = code.name.replace("_", " ").lower()
            raise UpstreamError(f"{self.name} did not connect to {format_host(host)}:{port}: {why}")


def _connect_command(host: str, port: int) -> socks5.SOCKS5CommandRequest:
    try:
        address = ip_address(host).packed
        kind = socks5.SOCKS5AType.IPV4_ADDRESS if len(address) == 4 else socks5.SOCKS5AType.IPV6_ADDRESS
    except ValueError:
        address, kind = host.encode("idna"), socks5.SOCKS5AType.DOMAIN_NAME
    return socks5.SOCKS5CommandRequest(socks5.SOCKS5Command.CONNECT, kind, address, port)


async def _read_reply(reader: asyncio.StreamReader) -> bytes:
    """Read exactly one reply: what follows belongs to the host."""
    head = await reader.readexactly(4)
    match head[3]:
        case 1:
            address = await reader.readexactly(4)
        case 3:
            length = await reader.readexactly(1)
            address = length + await reader.readexactly(length[0])
        case 4:
            address = await reader.readexactly(16)
        case _:
            raise ProtocolError("Malformed reply")
    return head + address + await reader.readexactly(2)


def _proxy_context() -> ssl.SSLContext:
    return _read_context(ssl.get_default_verify_paths())


@lru_cache(maxsize=1)
def _read_context(_where: ssl.DefaultVerifyPaths) -> ssl.SSLContext:
    """Read the authorities once, and again where a variable names others."""
    return tls_context()
