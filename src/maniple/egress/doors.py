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
from maniple.egress.relay import Limits, Relay
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


@asynccontextmanager
async def open_gateway(
    allowed: AllowedHosts, way_out: Exit, limits: Limits | None = None
) -> AsyncIterator[Path]:
    """Serve an HTTP proxy to the hosts that are `allowed`; gives the path of its unix socket.

    Only this user, and whom the socket is shown to, can connect. Leaving ends every connection. Raises
    `OSError` where the temporary folder cannot be written or its path is too long for a socket.
    """
    limits = limits or Limits()
    relay = Relay(HttpProxy(way_out, allowed, limits), limits)
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-"))  # for its owner alone
    try:
        server = await asyncio.start_unix_server(relay.accept, folder / "egress")
        try:
            # A sandbox that shows the socket to another user id of its own.
            await asyncio.to_thread((folder / "egress").chmod, 0o666)
            yield folder / "egress"
        finally:
            server.close()
            await relay.aclose()
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
