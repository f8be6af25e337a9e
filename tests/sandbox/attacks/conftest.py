from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import Sandbox, open_sandbox


@asynccontextmanager
async def _narrow(timeout_seconds: float) -> AsyncIterator[Sandbox]:
    settings = SandboxSettings(timeout_seconds=timeout_seconds, memory_mb=192, disk_mb=20, processes=32)
    async with open_sandbox(settings) as sandbox:
        yield sandbox


@pytest.fixture
async def narrow(anyio_backend: str) -> AsyncIterator[Sandbox]:
    """The real sandbox with limits that a bomb meets within a second or two."""
    async with _narrow(30) as sandbox:
        yield sandbox


@pytest.fixture
async def hurried(anyio_backend: str) -> AsyncIterator[Sandbox]:
    """The same with little time, for what no other limit ends."""
    async with _narrow(2) as sandbox:
        yield sandbox
