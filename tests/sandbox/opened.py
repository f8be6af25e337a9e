"""A sandbox of a test's own, with its own settings and rule for making room.

No more sessions exist than calls may run, unless a test wants more.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import Sandbox, open_sandbox
from maniple.sandbox.sessions import EvictionPolicy

_HASTY = EvictionPolicy(rest_seconds=0)


@asynccontextmanager
async def opened_sandbox(tenure: EvictionPolicy = _HASTY, **values: float) -> AsyncIterator[Sandbox]:
    places = {"resident": values.get("concurrent", 8)}
    settings = SandboxSettings.model_validate({"timeout_seconds": 20, **places, **values})
    async with open_sandbox(settings) as opened:
        sandbox = Sandbox(opened._backend, settings, tenure)
        try:
            yield sandbox
        finally:
            await sandbox.close()
