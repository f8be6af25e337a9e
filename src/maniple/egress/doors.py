"""Where the untrusted side finds its way out: a port on loopback, or a socket in the file system."""

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from maniple.egress.allowlist import AllowedHosts
from maniple.egress.connection import Dial, Exit, Resolve
from maniple.egress.http import HttpProxy
from maniple.egress.relay import Converse, Limits, Relay
from maniple.egress.socks import Socks


@asynccontextmanager
async def open_socks_proxy(resolve: Resolve, dial: Dial, limits: Limits | None = None) -> AsyncIterator[int]:
    """Serve SOCKS5 while the context is open; gives the port on 127.0.0.1. Leaving ends every connection."""
    limits = limits or Limits()
    relay = Relay(Socks(Exit(resolve, dial), limits), limits)
    server = await asyncio.start_server(relay.accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await relay.aclose()


class Door:
    """One client's entrance to a gateway: a unix socket, whose connections are limited by themselves."""

    def __init__(self, path: Path, relay: Relay, server: asyncio.Server) -> None:
        self.path = path
        self._relay = relay
        self._server = server

    @property
    def is_open(self) -> bool:
        """Whether anybody can come in, or still is."""
        return self._server.is_serving() or self._relay.is_used

    def close(self) -> None:
        """Let nobody in any more and end every connection soon; a second time does nothing."""
        self._server.close()
        self._relay.cancel()
        self.path.unlink(missing_ok=True)

    async def aclose(self) -> None:
        """Close it, and wait until every connection has ended."""
        self.close()
        await self._relay.aclose()


class Gateway:
    """An HTTP proxy with a door for each of its clients, so that none can take another's share."""

    def __init__(self, folder: Path, converse: Converse, limits: Limits) -> None:
        self._folder = folder
        self._converse = converse
        self._limits = limits
        self._opened = 0
        self._doors: set[Door] = set()

    async def open_door(self) -> Door:
        """Open one more; raises `OSError` where the path is too long for a socket."""
        self._opened += 1
        path = self._folder / f"{self._opened}"
        relay = Relay(self._converse, self._limits)
        server = await asyncio.start_unix_server(relay.accept, path)
        self._doors = {door for door in self._doors if door.is_open}
        self._doors.add(door := Door(path, relay, server))
        # A sandbox that shows the socket to another user id of its own.
        path.chmod(0o666)
        return door

    async def aclose(self) -> None:
        """Close every door."""
        await asyncio.gather(*(door.aclose() for door in self._doors))


@asynccontextmanager
async def open_gateway(
    allowed: AllowedHosts, way_out: Exit, limits: Limits | None = None
) -> AsyncIterator[Gateway]:
    """Serve an HTTP proxy to the hosts that are `allowed`; `limits` are those of each door.

    Only this user, and whom a door is shown to, can connect. Leaving ends every connection. Raises `OSError`
    where the temporary folder cannot be written.
    """
    limits = limits or Limits()
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-"))  # for its owner alone
    gateway = Gateway(folder, HttpProxy(way_out, allowed, limits), limits)
    try:
        yield gateway
    finally:
        await gateway.aclose()
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
