"""The proxy that the environment names for an address: HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit
from urllib.request import getproxies

from maniple.text import format_host

NETWORK_VARIABLES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
)
"""The variables by which programs reach the network of a company."""
_PORTS = {"http": 80, "https": 443}
_SCHEMES = tuple(_PORTS)
_SEPARATORS = re.compile(r"[,;\s]+")
"""Between the hosts of NO_PROXY; programs take different ones."""
_SCHEMES_OF_SOCKS = {"socks": "socks5h", "socks5": "socks5h"}
"""Desktops write the first one."""


@dataclass(frozen=True, slots=True)
class EnvironmentProxies:
    """The proxies by scheme, and the hosts that are reached without one."""

    by_scheme: Mapping[str, str]
    exceptions: tuple[str, ...]
    variables: Mapping[str, str]
    """By scheme, the variable that names its proxy."""

    @classmethod
    def read(cls) -> "EnvironmentProxies":
        """Read the environment, and on macOS and Windows the system's settings. Blocks."""
        found = getproxies()
        default = found.get("all", "")
        named = {scheme: (found.get(scheme) or default).strip() for scheme in _SCHEMES}
        addresses = {scheme: _with_scheme(address) for scheme, address in named.items() if address}
        exceptions = _SEPARATORS.split(found.get("no", "").casefold())
        variables = {one: f"{one}_proxy".upper() if found.get(one) else "ALL_PROXY" for one in addresses}
        return cls(addresses, tuple(filter(None, exceptions)), variables)

    @classmethod
    def only(cls, address: str, setting: str) -> "EnvironmentProxies":
        """Return one proxy for every address; `setting` names it."""
        return cls({one: _with_scheme(address) for one in _SCHEMES}, (), dict.fromkeys(_SCHEMES, setting))

    def find(self, scheme: str, host: str, port: int | None) -> str | None:
        """Return the address of the proxy for a URL, whose port may be that of its scheme; None for none."""
        host = host.casefold().strip("[]").removesuffix(".")
        return None if self._is_exception(host, port or _PORTS.get(scheme)) else self.by_scheme.get(scheme)

    def describe_for(self, url: str) -> str:
        """Return what `describe` does for the proxy of a URL; "" for a direct connection, or no URL."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return ""
        return self.describe(parts.scheme) if host and self.find(parts.scheme, host, port) else ""

    def describe(self, scheme: str) -> str:
        """Return the variable and the host of a scheme's proxy, without the name and the password in it."""
        variable = self.variables.get(scheme, "ALL_PROXY")
        try:
            parts = urlsplit(self.by_scheme.get(scheme, ""))
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = "", None
        if not host or not host.isprintable():
            return variable
        shown = format_host(host)
        return f"{variable} ({shown}:{port})" if port else f"{variable} ({shown})"

    def _is_exception(self, host: str, port: int | None) -> bool:
        """As in curl: `*`, a name with its subdomains, one with a port, an address, or a network (CIDR)."""
        return any(_matches(name, host, port) for name in self.exceptions)


DIRECT = EnvironmentProxies({}, (), {})
"""No proxy."""


def program_environment() -> dict[str, str]:
    """Return the environment of a program of ours that downloads, such as pip: its proxies resolve names.

    Blocks. The variables have lower case, which precedes upper case everywhere.
    """
    proxies = EnvironmentProxies.read().by_scheme
    return {**os.environ, **{f"{scheme}_proxy": proxies[scheme] for scheme in proxies}}  # noqa: TID251


def _matches(name: str, host: str, port: int | None) -> bool:
    if name == "*":
        return True
    name = name.rpartition("://")[2].removeprefix("*")
    bare, colon, number = name.rpartition(":")
    if colon and number.isdecimal() and (":" not in bare or bare.endswith("]")):
        if port is None or int(number) != port:
            return False
        name = bare
    name = name.strip("[]").removeprefix(".").removesuffix(".")
    if not name:
        return False
    return host == name or host.endswith(f".{name}") or _is_in_network(host, name)


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False


def _with_scheme(address: str) -> str:
    """Return an address with its scheme; SOCKS proxies resolve names, as most clients let them."""
    scheme, separator, rest = address.rpartition("://")
    return f"{_SCHEMES_OF_SOCKS.get(scheme.casefold(), scheme)}://{rest}" if separator else f"http://{rest}"
