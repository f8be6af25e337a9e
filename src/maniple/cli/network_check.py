"""The check of the hosts that sandboxed code may reach: does each name lead to an address that is allowed?"""

import asyncio
from collections.abc import Sequence

from maniple.cli.findings import Finding
from maniple.config import Settings
from maniple.egress import AddressGuard
from maniple.errors import FetchError

_NAME = "sandbox network"
_HTTPS_PORT = 443
_SECONDS = 5.0


async def check_network(settings: Settings) -> Sequence[Finding]:
    """Resolve the hosts of the allowlist and connect to none; nothing to say when all may be reached."""
    sandbox = settings.sandbox
    if sandbox.network != "allowlist" or sandbox.backend != "bubblewrap":
        return []
    guard = AddressGuard(settings.fetch)
    named = [host for host in sandbox.allow_hosts if not host.startswith("*.")]
    reasons = await asyncio.gather(*(_why_not(guard, host) for host in named))
    return [
        Finding(_NAME, "warning", reason, "Correct sandbox.allow_hosts, or look at fetch.allow_private.")
        for reason in reasons
        if reason
    ]


async def _why_not(guard: AddressGuard, named: str) -> str:
    """Why this host cannot be reached, or ""."""
    host, _, port = named.partition(":")
    try:
        async with asyncio.timeout(_SECONDS):
            await guard.resolve(host, int(port or _HTTPS_PORT))
    except FetchError as error:
        return str(error)
    except TimeoutError:
        return f"{named} was not looked up in time."
    return ""
