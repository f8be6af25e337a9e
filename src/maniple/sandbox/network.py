"""The network of a sandbox: none, or a way out to the hosts that settings name.

The network namespace stays empty either way. With `network: allowlist` a unix socket of the host's gateway,
one for each session, is shown inside, and `forwarder.py` makes of it a proxy on the sandbox's own loopback,
which programs find by the usual variables.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import resources

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AllowedHosts, Door, Exit, Gateway, Limits, open_gateway
from maniple.errors import SandboxError

INNER_SOCKET = "/run/maniple/egress"
INNER_FORWARDER = "/run/maniple/forwarder.py"
_PORT = 3128
_PROXY = f"http://127.0.0.1:{_PORT}"
_CONNECTIONS_EACH = 16
_BYTES_EACH_WAY = 200_000_000
_CONNECTION_SECONDS = 600.0
_OWN_HOSTS = "localhost,127.0.0.1,::1"

# What programs check certificates against; nothing secret, and of use only here.
CERTIFICATES = ("/etc/ssl/certs", "/etc/ca-certificates", "/etc/pki/tls/certs", "/etc/pki/ca-trust/extracted")


@dataclass(frozen=True, slots=True)
class WayOut:
    """The gateway on the host, and what code inside needs to find it."""

    gateway: Gateway

    async def open_door(self) -> Door:
        """A session's own; to be closed with it. Raises `OSError`."""
        return await self.gateway.open_door()

    def command(self, sh: str, python: str) -> list[str]:
        """What starts the forwarder inside and then becomes the program whose words follow."""
        script = f'{python} -I -S "$0" {_PORT} {INNER_SOCKET} && exec "$@"'
        return [sh, "-c", script, INNER_FORWARDER]

    def variables(self) -> dict[str, str]:
        """What programs inside find the proxy by; curl reads http_proxy in small letters only."""
        names = ("http_proxy", "https_proxy", "all_proxy")
        found = {spelled: _PROXY for name in names for spelled in (name, name.upper())}
        return {**found, "no_proxy": _OWN_HOSTS, "NO_PROXY": _OWN_HOSTS}


def forwarder_program() -> bytes:
    """The text of the program inside."""
    return resources.files("maniple.sandbox").joinpath("forwarder.py").read_bytes()


@asynccontextmanager
async def open_way_out(settings: SandboxSettings, leads: Exit | None) -> AsyncIterator[WayOut | None]:
    """Open what `settings.network` says, for all sessions; None when that is nothing, or another backend's.

    Raises `SandboxError` when there should be a way out and cannot be.
    """
    if settings.backend != "bubblewrap" or settings.network == "none" or leads is None:
        yield None
        return
    limits = Limits(_CONNECTIONS_EACH, _BYTES_EACH_WAY, seconds=_CONNECTION_SECONDS)
    async with AsyncExitStack() as stack:
        try:
            allowed = AllowedHosts(settings.allow_hosts)
            gateway = await stack.enter_async_context(open_gateway(allowed, leads, limits))
            # Whether a socket can be made there is better known now than at each session's start.
            (await gateway.open_door()).close()
        except OSError as error:
            words = f"The sandbox's way to the network cannot be opened: {error}. Look at TMPDIR."
            raise SandboxError(words) from error
        yield WayOut(gateway)
