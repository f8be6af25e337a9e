"""The sandbox in a program that runs on uvloop, as many servers do."""

from pathlib import Path

import pytest

from maniple.config import SandboxSettings
from maniple.sandbox import Unavailable, Workspaces, open_sandbox

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def test_code_runs_and_a_timeout_ends_it(tmp_path: Path) -> None:
    async with open_sandbox(SandboxSettings(timeout_seconds=2)) as sandbox:
        assert not isinstance(sandbox, Unavailable), str(sandbox)
        workspace = Workspaces(tmp_path).open("t")
        assert (await sandbox.run_python("print(1+3)", key="t", workspace=workspace)).stdout == "4\n"
        assert (await sandbox.run_bash("sleep 60", key="t", workspace=workspace)).timed_out
