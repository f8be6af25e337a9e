from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import Sandbox, open_sandbox
from maniple.workspace import Workspace, Workspaces
from tests.sandbox.thread import Thread


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces").open("thread")


@pytest.fixture
async def sandbox(anyio_backend: str) -> AsyncIterator[Sandbox]:
    """The real one, with short limits; these tests mean nothing without it."""
    settings = SandboxSettings(timeout_seconds=20, disk_mb=1, output_bytes=4096)
    async with open_sandbox(settings) as sandbox:
        yield sandbox


@pytest.fixture
async def hasty_sandbox(anyio_backend: str) -> AsyncIterator[Sandbox]:
    """Gives every call two seconds."""
    async with open_sandbox(SandboxSettings(timeout_seconds=2)) as sandbox:
        yield sandbox


@pytest.fixture
def thread(sandbox: Sandbox, workspace: Workspace) -> Thread:
    """Calls of a thread in that sandbox."""
    return Thread(sandbox, workspace)


@pytest.fixture
def hasty(hasty_sandbox: Sandbox, workspace: Workspace) -> Thread:
    """Calls of a thread that have two seconds."""
    return Thread(hasty_sandbox, workspace)
