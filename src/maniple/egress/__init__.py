"""The checked way out of this machine for what is not trusted: Chromium, and code that a model wrote."""

from maniple.egress.allowlist import AllowedHosts
from maniple.egress.connection import Dial, Exit, Resolve, Streams
from maniple.egress.doors import Door, Gateway, open_gateway, open_socks_proxy
from maniple.egress.failures import FinalError, fetch_error
from maniple.egress.guard import AddressGuard
from maniple.egress.relay import Limits

__all__ = [
    "AddressGuard",
    "AllowedHosts",
    "Dial",
    "Door",
    "Exit",
    "FinalError",
    "Gateway",
    "Limits",
    "Resolve",
    "Streams",
    "fetch_error",
    "open_gateway",
    "open_socks_proxy",
]
