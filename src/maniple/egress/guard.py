"""Which addresses may be connected to."""

from ipaddress import ip_network

from drawbridge import DrawbridgeError, Policy

# The check by itself: drawbridge's client cannot be used, for it hands the host name to TLS as bytes,
# which anyio refuses (so no https page could be read), and the browser needs the address, not the page.
from drawbridge._validator import resolve_and_validate

from maniple.config.fetch_settings import FetchSettings
from maniple.egress.failures import fetch_error
from maniple.errors import ConfigError

# What drawbridge's own list leaves open: the metadata address of Azure, 6to4 relays, the second range
# for documentation, and every IPv6 range outside 2000::/3, where the public ones are (RFC 4291).
_BLOCKED = frozenset(
    map(
        ip_network,
        ("168.63.129.16/32", "192.88.99.0/24", "3fff::/20", "::/3", "4000::/2", "8000::/1"),
    )
)

# Browsers refuse these: what listens there is no web server (https://fetch.spec.whatwg.org/#port-blocking).
_NO_WEB_PORTS = {1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6697, 10080} | set(
    range(6665, 6670)
)
_PORTS = frozenset({80, 443} | (set(range(1024, 65536)) - _NO_WEB_PORTS))


class AddressGuard:
    """Turns a host into the one address that may be connected to.

    The name is resolved once and every address it has must pass; connecting to the returned address
    leaves DNS rebinding no second answer to give.

    Raises:
        ConfigError: an entry of `fetch.allow_private` is not a network.
    """

    def __init__(self, settings: FetchSettings) -> None:
        try:
            allowed = frozenset(ip_network(cidr) for cidr in settings.allow_private)
        except ValueError as error:
            raise ConfigError(f"fetch.allow_private: {error}; write networks as 10.1.0.0/16.") from error
        self._policy = Policy(allow_ports=_PORTS, ip_allowlist=allowed, ip_blocklist=_BLOCKED)

    async def resolve(self, host: str, port: int) -> str:
        """The checked address of `host` (a name or an IP address, an IPv6 one without brackets).

        Raises:
            FetchError: the host has no address, one that is not public, or the port is no web server's.
        """
        try:
            return await resolve_and_validate(host, port, self._policy)
        except (DrawbridgeError, UnicodeError) as error:
            raise fetch_error(host, error) from error
