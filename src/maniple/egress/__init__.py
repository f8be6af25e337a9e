"""Checked network access for untrusted clients: Chromium, and code that a model wrote."""

from maniple.egress.connections import (
    ConnectionLimits,
    EgressDialer,
    EgressResolver,
    EgressRoute,
    Streams,
    send_data,
)
from maniple.egress.guard import AddressGuard, PermanentFetchError, translate_fetch_error
from maniple.egress.proxies import (
    AllowedHosts,
    EgressGateway,
    GatewaySocket,
    open_gateway,
    open_socks_proxy,
    open_socks_socket,
)

__all__ = [
    "AddressGuard",
    "AllowedHosts",
    "ConnectionLimits",
    "EgressDialer",
    "EgressGateway",
    "EgressResolver",
    "EgressRoute",
    "GatewaySocket",
    "PermanentFetchError",
    "Streams",
    "open_gateway",
    "open_socks_proxy",
    "open_socks_socket",
    "send_data",
    "translate_fetch_error",
]
