"""Serves a fake service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from aiohttp import web

from tests.sandbox.backends.machines import Machine


class Service(Protocol):
    """An application with machines behind it."""

    url: str
    machines: dict[str, Machine]

    def app(self) -> web.Application: ...


S = TypeVar("S", bound=Service)


@asynccontextmanager
async def running(service: S) -> AsyncIterator[S]:
    """Serve on a free port of loopback; every machine has ended when the context is left."""
    runner = web.AppRunner(service.app(), handler_cancellation=True, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        service.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield service
        finally:
            for machine in service.machines.values():
                await machine.close()
    finally:
        await runner.cleanup()
