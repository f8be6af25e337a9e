"""The only way out: a host is checked, and reached directly or through the proxy that is set for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from maniple.egress.connections import Streams
from maniple.egress.environment_proxies import DIRECT, EnvironmentProxies
from maniple.egress.guard import require_resolved
from maniple.egress.upstream import UpstreamProxy
from maniple.outgoing import OutgoingGuard

_PLAIN_PORT = 80


class EgressResolver(Protocol):
    """Decides which host may be connected to."""

    async def __call__(self, host: str, port: int, /) -> str:
        """Return the IP address to connect to for `host`; raise `FetchError` when it is not permitted.

        Of a name that has no address here, and which a proxy will resolve, it is the name.
        """
        ...


class EgressDialer(Protocol):
    """Opens a connection to an IP address; raises `OSError` when that fails."""

    async def __call__(self, address: str, port: int, /) -> Streams: ...


@dataclass(frozen=True, slots=True)
class EgressRoute:
    """The way to checked hosts.

    Without a proxy a name is resolved once, and the address that passed the check is dialled. A proxy gets
    the name and resolves it again: the answer of this machine's name servers has been checked, its own not.
    """

    resolve: EgressResolver
    dial: EgressDialer = asyncio.open_connection
    guard: OutgoingGuard = field(default_factory=OutgoingGuard)
    """What may not leave in requests of programs that a model wrote."""
    proxies: EnvironmentProxies = DIRECT

    def trusting(self) -> "EgressRoute":
        """Return the same route for programs of the operator, which may send their own secrets."""
        return replace(self, guard=OutgoingGuard())

    def forwarder(self, host: str, port: int) -> UpstreamProxy | None:
        """Return the proxy that takes plain requests to `host` with their whole address, if one does."""
        proxy = self._proxy("http", host, port)
        return proxy if proxy is not None and proxy.forwards else None

    @asynccontextmanager
    async def open(
        self, host: str, port: int, timeout_seconds: float, forwarder: UpstreamProxy | None = None
    ) -> AsyncIterator[Streams]:
        """Yield a connection and close it with the context; the timeout holds for each of the two steps.

        It leads to `host`, or with `forwarder` to that proxy, for one plain request.

        Raises:
            FetchError: connections to the host are not permitted.
            OSError: the connection failed or took too long.
        """
        async with asyncio.timeout(timeout_seconds):
            address = await self.resolve(host, port)
        async with asyncio.timeout(timeout_seconds):
            if forwarder is not None:
                reader, writer = await forwarder.open()
            elif (proxy := self._proxy("http" if port == _PLAIN_PORT else "https", host, port)) is not None:
                reader, writer = await proxy.connect(host, port)
            else:
                reader, writer = await self.dial(require_resolved(host, address), port)
        try:
            yield reader, writer
        finally:
            writer.close()

    def _proxy(self, scheme: str, host: str, port: int) -> UpstreamProxy | None:
        address = self.proxies.find(scheme, host, port)
        return None if address is None else UpstreamProxy.parse(address, self.proxies.describe(scheme))
