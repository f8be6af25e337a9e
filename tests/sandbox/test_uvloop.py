"""The sandbox on uvloop, on which the service runs."""

import asyncio
from pathlib import Path

import pytest

from maniple.config import SandboxSettings
from maniple.sandbox import open_sandbox
from maniple.sandbox.processes import open_pipes
from maniple.workspace import Workspaces

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


async def test_code_runs_and_a_timeout_ends_it(tmp_path: Path) -> None:
    async with open_sandbox(SandboxSettings(timeout_seconds=2)) as sandbox:
        workspace = Workspaces(tmp_path).open("t")
        assert (await sandbox.run_python("print(1+3)", key="t", workspace=workspace)).stdout == "4\n"
        assert (await sandbox.run_bash("sleep 60", key="t", workspace=workspace)).timed_out


async def test_a_limit_that_ends_a_program_which_has_ended_already_is_no_error() -> None:
    program = await open_pipes(["/bin/sh", "-c", "exit"], environment={}, line_bytes=1000)
    async with asyncio.timeout(60):
        await program.ended
        await program.reader.read()
    program.stop_for_limit("Too much.")
    await program.stop()
    assert program.reason == "Too much."
