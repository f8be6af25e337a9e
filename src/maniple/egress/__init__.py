"""Checked network access for untrusted clients: Chromium, and code that a model wrote."""

from maniple.egress.connections import (
    ConnectionLimits,
    Streams,
    send_data,
)
from maniple.egress.environment_proxies import DIRECT, EnvironmentProxies
from maniple.egress.guard import AddressGuard, PermanentFetchError, translate_fetch_error
from maniple.egress.proxies import (
    AllowedHosts,
    EgressGateway,
    GatewaySocket,
    open_gateway,
    open_socks_proxy,
    open_socks_socket,
)
from maniple.egress.route import EgressDialer, EgressResolver, EgressRoute
from maniple.egress.upstream import UpstreamError, UpstreamProxy

__all__ = [
    "DIRECT",
    "AddressGuard",
    "AllowedHosts",
    "ConnectionLimits",
    "EgressDialer",
    "EgressGateway",
    "EgressResolver",
    "EgressRoute",
    "EnvironmentProxies",
    "GatewaySocket",
    "PermanentFetchError",
    "Streams",
    "UpstreamError",
    "UpstreamProxy",
    "open_gateway",
    "open_socks_proxy",
    "open_socks_socket",
    "send_data",
    "translate_fetch_error",
]
