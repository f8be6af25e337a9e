"""The team's MCP server at an address, in this process."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from maniple.mcp_server import create_mcp_app
from maniple.service import Service, open_service
from maniple.store import KeyLimits
from tests.api.in_process import settings_of
from tests.mcp.open_servers import until
from tests.mcp_server.hosts import Host, Person, team_server


@dataclass
class Site:
    """A server at `url`."""

    url: str
    service: Service

    async def key(self, name: str) -> tuple[str, str]:
        """Make a key; return its id and its secret."""
        key, secret = await self.service.store.keys.add(name, KeyLimits())
        return key.key_id, secret

    @asynccontextmanager
    async def host(
        self, secret: str = "", *, mode: Any = "auto", person: Person | None = None
    ) -> AsyncIterator[Host]:
        """Connect a host, which shows this key."""
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, elicitation_callback=person) as client:
                yield Host(client, self.service)


@asynccontextmanager
async def site(base_url: str, home: Path, **sections: Any) -> AsyncIterator[Site]:
    """Serve until the end of the context; `sections` are settings."""
    async with open_service(settings_of(base_url, home, **sections), alone=False) as service:
        server = team_server(service)
        app = create_mcp_app(service, server)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            config = uvicorn.Config(app, lifespan="off", log_config=None, ws="none")
            config.timeout_graceful_shutdown = 1
            serving = uvicorn.Server(config)
            async with app.router.lifespan_context(app):
                # `serve` would take the signals of this process.
                task = asyncio.create_task(serving._serve(sockets=[listener]))
                await until(lambda: serving.started)
                try:
                    yield Site(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", service)
                finally:
                    serving.should_exit = True
                    await task
