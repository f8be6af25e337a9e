"""Forward proxies on loopback, as companies run them: HTTP, HTTPS and SOCKS5, with a password or without.

A proxy resolves the names itself: those in `hosts` lead to ports of loopback, and all others to nowhere. So a
client reaches `site.example` through the proxy alone.
"""

import asyncio
import base64
import re
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote, urlsplit

import pytest

from tests.crawler.web import serve_connections

ProxyScheme = Literal["http", "https", "socks5", "socks5h"]
PROXY_SCHEMES: tuple[ProxyScheme, ...] = ("http", "https", "socks5")
VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")

CERTIFIED_NAMES = ("localhost", "site.example", "*.site.example", "secret.example")
_BLOCK_BYTES = 65_536
_HEADERS_OF_A_PROXY = re.compile(rb"(?im)^(?:proxy-[\w-]+|connection|keep-alive):.*\r\n")
_REFUSED = b"HTTP/1.1 %s\r\n%sContent-Length: 0\r\nConnection: close\r\n\r\n"
_UNAUTHORIZED = _REFUSED % (
    b"407 Proxy Authentication Required",
    b'Proxy-Authenticate: Basic realm="proxy"\r\n',
)
_UNREACHABLE = _REFUSED % (b"502 Bad Gateway", b"")

Reader, Writer = asyncio.StreamReader, asyncio.StreamWriter


@dataclass(frozen=True)
class TestAuthority:
    """The authority of a company, and a server's certificate from it."""

    __test__ = False

    file: Path
    """The authority's certificate, for `SSL_CERT_FILE`."""
    context: ssl.SSLContext
    """The server's side."""

    @classmethod
    def create(cls, folder: Path, *names: str) -> "TestAuthority":
        """Write an authority and a certificate for `CERTIFIED_NAMES` and `names` to `folder`. Blocks."""
        certified = ",".join([*(f"DNS:{name}" for name in (*CERTIFIED_NAMES, *names)), "IP:127.0.0.1"])
        new = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj"
        authority = "/CN=authority -addext keyUsage=critical,keyCertSign -keyout ca.key -out ca.pem"
        server = (
            f"/CN=server -CA ca.pem -CAkey ca.key -addext subjectAltName={certified} "
            "-addext basicConstraints=critical,CA:FALSE -keyout server.key -out server.pem"
        )
        for rest in (authority, server):
            subprocess.run(f"{new} {rest}".split(), cwd=folder, check=True, capture_output=True)
        return cls.load(folder / "ca.pem")

    @classmethod
    def load(cls, file: Path) -> "TestAuthority":
        """Return the authority that `create` has written to a file. Blocks."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file.with_name("server.pem"), file.with_name("server.key"))
        return cls(file, context)


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> TestAuthority:
    return TestAuthority.create(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def trusted_authority(authority: TestAuthority) -> Iterator[TestAuthority]:
    """The same, which the clients of this process trust."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(authority.file))
        yield authority


class ProxyVariables:
    """The variables of the environment that name proxies."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self.set()

    def set(self, **values: str) -> None:
        """Set those that are given, and none of the others."""
        for name in VARIABLES:
            self._patch.delenv(name.lower(), raising=False)
            if name in values:
                self._patch.setenv(name, values[name])
            else:
                self._patch.delenv(name, raising=False)


@pytest.fixture
def proxy_variables(monkeypatch: pytest.MonkeyPatch) -> ProxyVariables:
    return ProxyVariables(monkeypatch)


@dataclass
class ProxyServer:
    """A running proxy. `passed` and `refused` are `host:port`, as clients named them."""

    scheme: ProxyScheme
    port: int
    hosts: Mapping[str, int]
    login: tuple[str, str] | None = None
    """The name and the password that it asks for."""
    passed: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    """Places that are not in `hosts`, and `login` for a wrong name or password."""

    @property
    def url(self) -> str:
        """The address for a variable of the environment, with the name and the password."""
        return f"{self.scheme}://{self._login_of_url}127.0.0.1:{self.port}"

    @property
    def _login_of_url(self) -> str:
        return "" if self.login is None else ":".join(quote(part, safe="") for part in self.login) + "@"

    async def answer(self, reader: Reader, writer: Writer) -> None:
        try:
            await (self._answer_socks if self.scheme.startswith("socks") else self._answer_http)(
                reader, writer
            )
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            pass  # The client has gone, or speaks something else.
        finally:
            writer.close()

    async def _answer_http(self, reader: Reader, writer: Writer) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        method, target, _ = line.decode("latin-1").split(" ")
        if not self._is_authorized(fields):
            self.refused.append("login")
            writer.write(_UNAUTHORIZED)
            return await writer.drain()
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        streams = await self._connect(parts.hostname or "", parts.port or 80)
        if streams is None:
            writer.write(_UNREACHABLE)
            return await writer.drain()
        if method == "CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            path = parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
            request = f"{method} {path} HTTP/1.1\r\nConnection: close\r\n".encode()
            streams[1].write(request + _HEADERS_OF_A_PROXY.sub(b"", fields))
        await _relay((reader, writer), streams)

    def _is_authorized(self, fields: bytes) -> bool:
        expected = base64.b64encode(":".join(self.login or ()).encode()).decode()
        found = re.search(rb"(?im)^proxy-authorization: basic (\S+)\r$", fields)
        return self.login is None or (found is not None and found[1].decode() == expected)

    async def _answer_socks(self, reader: Reader, writer: Writer) -> None:
        """RFC 1928, and RFC 1929 for the name and the password."""
        _, count = await reader.readexactly(2)
        offered = await reader.readexactly(count)
        method = 0 if self.login is None else 2
        if method not in offered:
            self.refused.append("login")
            writer.write(b"\x05\xff")
            return await writer.drain()
        writer.write(bytes((5, method)))
        if self.login is not None:
            await reader.readexactly(1)
            given = (await _read_counted(reader)).decode(), (await _read_counted(reader)).decode()
            writer.write(bytes((1, given != self.login)))
            if given != self.login:
                self.refused.append("login")
                return await writer.drain()
        kind = (await reader.readexactly(4))[3]
        if kind == 3:
            host = (await _read_counted(reader)).decode()
        else:
            address = await reader.readexactly(4 if kind == 1 else 16)
            host = ".".join(map(str, address)) if kind == 1 else f"[{address.hex(':', 2)}]"
        streams = await self._connect(host, int.from_bytes(await reader.readexactly(2)))
        writer.write(bytes((5, 4 if streams is None else 0, 0, 1)) + bytes(6))
        if streams is None:
            return await writer.drain()
        return await _relay((reader, writer), streams)

    async def _connect(self, host: str, port: int) -> tuple[Reader, Writer] | None:
        place = f"{host}:{port}"
        try:
            streams = await asyncio.open_connection("127.0.0.1", self.hosts[host])
        except (KeyError, OSError):
            self.refused.append(place)
            return None
        self.passed.append(place)
        return streams


async def _read_counted(reader: Reader) -> bytes:
    return await reader.readexactly((await reader.readexactly(1))[0])


async def _relay(client: tuple[Reader, Writer], server: tuple[Reader, Writer]) -> None:
    """Copy in both directions until the server ends, or the client has gone."""
    sending = asyncio.ensure_future(_copy(client[0], server[1]))
    try:
        await _copy(server[0], client[1])
    finally:
        server[1].close()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _copy(reader: Reader, writer: Writer) -> None:
    while block := await reader.read(_BLOCK_BYTES):
        writer.write(block)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


@asynccontextmanager
async def open_proxy_server(
    scheme: ProxyScheme,
    hosts: Mapping[str, int],
    *,
    login: tuple[str, str] | None = None,
    authority: TestAuthority | None = None,
) -> AsyncIterator[ProxyServer]:
    """Run a proxy that knows `hosts` (port on loopback by name); `https` needs an `authority`."""
    tls = authority.context if authority is not None and scheme == "https" else None
    answer: Callable[[Reader, Writer], Awaitable[None]]
    async with serve_connections(["127.0.0.1"], lambda: answer, tls) as port:
        server = ProxyServer(scheme, port, hosts, login)
        answer = server.answer
        yield server
