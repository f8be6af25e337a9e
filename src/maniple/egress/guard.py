"""The check of addresses that may be connected to, and its errors as a model reads them."""

import asyncio
import re
import socket
from ipaddress import ip_address, ip_network
from pathlib import Path

import drawbridge
import httpx

# The check alone: drawbridge's client passes the host name to TLS as bytes, which anyio refuses (so no https
# page could be read), and the browser needs the address, not the page.
from drawbridge._validator import resolve_and_validate

from maniple.config.web_settings import FetchSettings
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.egress.upstream import UpstreamProxy
from maniple.errors import ConfigError, FetchError
from maniple.text import format_host

# Ranges that drawbridge does not block: the metadata address of Azure, 6to4 relays, the second range for
# documentation, and every IPv6 range outside 2000::/3, which holds the public addresses (RFC 4291).
_BLOCKED = frozenset(
    map(
        ip_network,
        ("168.63.129.16/32", "192.88.99.0/24", "3fff::/20", "::/3", "4000::/2", "8000::/1"),
    )
)

# Browsers refuse these ports, so no web server listens there: https://fetch.spec.whatwg.org/#port-blocking.
_NO_WEB_PORTS = frozenset(
    {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, *range(6665, 6670), 6697, 10080}
)


class _WebPorts(frozenset[int]):
    """80, 443, and those from 1024 on that browsers open; as members they would take 4 MB."""

    def __contains__(self, port: object) -> bool:
        if not isinstance(port, int):
            return False
        return port in (80, 443) or (1024 <= port <= 65_535 and port not in _NO_WEB_PORTS)


class PermanentFetchError(FetchError):
    """The page must not be read or is not a page; another reader must not try it again."""


_PERMANENT: tuple[tuple[type[Exception], str], ...] = (
    (
        drawbridge.BlockedAddressError,
        "{url} has an address that is not public, so it was not fetched; use a public page. "
        "(The operator can open a network with fetch.allow_private.)",
    ),
    (
        drawbridge.UnsafePortError,
        "{url} names a port that is not allowed, so nothing was tried. Allowed are 80, 443 and those "
        "from 1024 on that browsers open.",
    ),
    (httpx.InvalidURL, "{url} is not a valid address: {error}."),
    (UnicodeError, "{url} is not a valid address: its host name cannot be encoded."),
)
_TRANSIENT: tuple[tuple[type[Exception], str], ...] = (
    (httpx.UnsupportedProtocol, "{url} leads to something other than http or https; use a web address."),
    (drawbridge.DrawbridgeDNSError, "{url} was not found: its host name has no address. Check the spelling."),
    (TimeoutError, "{url} took too long to answer; try another source."),
    (httpx.TimeoutException, "{url} took too long to answer; try another source."),
    (httpx.ConnectError, "{url} could not be connected to: {error}. Try another source."),
    (
        httpx.TransportError,
        "{url} closed the connection while answering: {error}. Try again or use another source.",
    ),
)


_NONLOCAL_BIND = {
    socket.AF_INET: Path("/proc/sys/net/ipv4/ip_nonlocal_bind"),
    socket.AF_INET6: Path("/proc/sys/net/ipv6/ip_nonlocal_bind"),
}


def is_own_address(address: str) -> bool:
    """Return whether `address` is one of this machine's interfaces now, as the kernel answers; sends nothing.

    Services of this machine that trust it, or listen on all interfaces behind a firewall, are there too.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            if not _binds_foreign_addresses(family):
                probe.bind((address, 0))
                return True
            # Of a local address, the kernel chooses the address itself as the source.
            probe.connect((address, 9))
            return probe.getsockname()[0] == address
    except OSError:
        return False


def _binds_foreign_addresses(family: socket.AddressFamily) -> bool:
    """Return whether sockets may be bound to addresses of other machines, as load balancers set it."""
    try:
        return _NONLOCAL_BIND[family].read_text().strip() != "0"
    except OSError:
        return False


# Names of private networks, which have no public address: RFC 6761, 6762 (with its appendix G) and 8375.
_PRIVATE_NAMES = (
    *("localhost", "local", "internal", "intranet", "private", "corp", "home", "lan", "localdomain"),
    "home.arpa",
)
# How long the own name servers may take, where a proxy resolves names as well.
_LOCAL_ANSWER_SECONDS = 3.0


class AddressGuard:
    """Resolves a host to the one address that may be connected to.

    The name is resolved once and each of its addresses must pass. The caller connects to the returned
    address, so a second DNS answer (DNS rebinding) has no effect. Public addresses of this machine itself are
    refused like private ones.

    Where `proxies` (those of the environment by default) name one for the host, the proxy resolves the name
    again. What the own name servers answer is checked all the same; a name that they do not know is left to
    the proxy, unless it is one of a private network.

    Raises:
        ConfigError: an entry of `fetch.allow_private` is not a network, or a proxy has no valid address.
    """

    def __init__(self, settings: FetchSettings, proxies: EnvironmentProxies | None = None) -> None:
        self.proxies = EnvironmentProxies.read() if proxies is None else proxies
        for scheme, address in self.proxies.by_scheme.items():
            UpstreamProxy.parse(address, self.proxies.describe(scheme))
        try:
            allowed = frozenset(ip_network(cidr) for cidr in settings.allow_private)
        except ValueError as error:
            raise ConfigError(f"fetch.allow_private: {error}; write networks as 10.1.0.0/16.") from error
        self._allowed = allowed
        self._policy = drawbridge.Policy(allow_ports=_WebPorts(), ip_allowlist=allowed, ip_blocklist=_BLOCKED)

    async def resolve(self, host: str, port: int) -> str:
        """Return the checked address of `host` (a name or an IP address, IPv6 without brackets).

        It is the name itself if that has no address here and a proxy will resolve it.

        Raises:
            FetchError: the host has no address or one that is not public, or web servers never use the port.
        """
        is_proxied = any(self.proxies.find(scheme, host, port) for scheme in ("http", "https"))
        try:
            async with asyncio.timeout(_LOCAL_ANSWER_SECONDS if is_proxied else None):
                address = await resolve_and_validate(host, port, self._policy)
            self._refuse_own(host, address)
        except (drawbridge.DrawbridgeError, UnicodeError, TimeoutError) as error:
            is_unknown = isinstance(error, (drawbridge.DrawbridgeDNSError, TimeoutError))
            if is_proxied and is_unknown and _is_public_name(host):
                return host
            is_port = isinstance(error, drawbridge.UnsafePortError)
            raise translate_fetch_error(f"{format_host(host)}:{port}" if is_port else host, error) from error
        return address

    def _refuse_own(self, host: str, address: str) -> None:
        ip = ip_address(address)
        if not any(ip in network for network in self._allowed) and is_own_address(address):
            raise drawbridge.BlockedAddressError(host, ip, "an address of this machine")


def require_resolved(host: str, address: str) -> str:
    """Return `address`, to connect to it directly; raise `FetchError` for a name, which nobody has checked.

    `AddressGuard.resolve` leaves a name to the proxy of either scheme, and this connection has none.
    """
    try:
        return str(ip_address(address))
    except ValueError as error:
        raise translate_fetch_error(host, drawbridge.DrawbridgeDNSError(host, None)) from error


def _is_public_name(host: str) -> bool:
    """Return whether `host` may be one of the public DNS: not of a private network, and no odd IP address."""
    name = host.casefold().removesuffix(".")
    last = name.rpartition(".")[2]
    # A last label of digits, or of hexadecimal digits after 0x, is that of an address (WHATWG URL, 3.5).
    is_number = last.isdigit() or re.fullmatch(r"0x[0-9a-f]*", last) is not None
    is_private = any(f".{name}".endswith(f".{one}") for one in _PRIVATE_NAMES)
    return "." in name and ":" not in name and not is_number and not is_private


def translate_fetch_error(url: str, error: Exception) -> FetchError:
    """Return the error to raise instead of `error`, with a message that a model can act on.

    `url` is the requested address.
    """
    text = str(error) or type(error).__name__
    for table, raised in ((_PERMANENT, PermanentFetchError), (_TRANSIENT, FetchError)):
        for kind, sentence in table:
            if isinstance(error, kind):
                return raised(sentence.format(url=url, error=text))
    return FetchError(f"{url} could not be fetched: {text}.")
