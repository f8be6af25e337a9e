"""The backend without protection: the limits that it still has, and its warnings."""

import asyncio
import logging
import os
import select
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.config import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox import open_sandbox
from maniple.sandbox.backends.local import WARNING, LocalBackend
from maniple.sandbox.worker_session import WorkerSession
from maniple.workspace.files import Workspace
from tests.sandbox.heaps import MANY_HEAPS

pytestmark = pytest.mark.anyio


@pytest.fixture
async def session(workspace: Workspace) -> AsyncIterator[WorkerSession]:
    session = await LocalBackend(SandboxSettings(backend="unsafe-local", timeout_seconds=20)).start(workspace)
    yield session
    await session.stop()


def running(*pids: str) -> list[str]:
    """Those of the processes that are there and no zombies."""
    found = [pid for pid in pids if Path(f"/proc/{pid}/stat").exists()]
    return [
        pid for pid in found if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    ]


async def test_python_keeps_variables_and_shares_its_files_with_bash(session, workspace):
    await session.run_python("x = 20\nopen('a', 'w').write('hello')")
    assert (await session.run_python("x + 1")).value == "21"
    assert (await session.run_bash("cat a; exit 3")).stdout == "hello"
    assert workspace.read("a", 9).content == b"hello"


async def test_code_does_not_get_the_servers_variables(session, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    assert "canary" not in (await session.run_bash("env")).stdout


async def test_one_process_can_take_no_more_memory_than_its_limit(session):
    assert "MemoryError" in (await session.run_python("x = bytearray(600_000_000)")).stderr


async def test_stopping_ends_everything_that_was_started_however_it_hides(session):
    command = (
        "for i in 1 2 3; do (setsid sh -c 'trap \"\" TERM HUP; echo $$; exec sleep 600' &) ; done; sleep .1"
    )
    pids = (await session.run_bash(command)).stdout.split()
    assert running(*pids) == pids
    assert len(pids) == 3
    await session.stop()
    assert running(*pids, str(session.pid)) == []


async def test_a_cancelled_call_leaves_no_process(session):
    begun = asyncio.Event()
    call = asyncio.create_task(session.run_bash("echo; sleep 600", on_output=lambda *_: begun.set()))
    async with asyncio.timeout(60):
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert not session.is_alive
    assert running(str(session.pid)) == []


SERVER = """
import asyncio, os, sys
from pathlib import Path
from maniple.config import SandboxSettings
from maniple.sandbox.backends.local import LocalBackend
from maniple.workspace.workspaces import Workspaces

async def main():
    workspace = Workspaces(Path(sys.argv[1])).open("thread")
    session = await LocalBackend(SandboxSettings(backend="unsafe-local")).start(workspace)
    told = await session.run_bash("setsid sleep 600 >/dev/null 2>&1 & echo $!")
    print(session.pid, told.stdout, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_the_end_of_the_server_is_the_end_of_what_it_started(tmp_path):
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    with server:
        assert server.stdout is not None
        keeper, sleeper = server.stdout.readline().split()
        ends = [os.pidfd_open(int(pid)) for pid in (keeper, sleeper)]
        server.kill()
    for end in ends:
        try:
            assert _ended(end, 10)
        finally:
            os.close(end)


def _ended(descriptor: int, timeout_seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], timeout_seconds)[0])


async def test_it_warns_once_when_it_is_opened_and_once_at_each_session(workspace, caplog):
    def warnings() -> int:
        return [record.getMessage() for record in caplog.records].count(WARNING)

    with caplog.at_level(logging.WARNING):
        async with open_sandbox(SandboxSettings(backend="unsafe-local")) as sandbox:
            assert warnings() == 1
            for _ in range(2):
                await sandbox.run_bash("true", key="thread", workspace=workspace)
            assert warnings() == 2


async def test_threads_share_the_heaps_that_the_limit_has_room_for(session):
    assert (await session.run_python(MANY_HEAPS)).stdout == "24\n"


async def test_a_python_that_is_none_is_reported(workspace):
    backend = LocalBackend(SandboxSettings(backend="unsafe-local", python=Path("/bin/false")))
    with pytest.raises(SandboxError, match=r"sandbox\.python"):
        await backend.start(workspace)


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": True})])
async def test_it_works_on_the_servers_own_event_loop(session, workspace):
    assert (await session.run_python("x = 2\nx")).value == "2"
    told = await session.run_bash("head -c 300000 /dev/zero | tr '\\0' x; echo x > file; echo last")
    assert told.stdout.endswith("xlast\n")
    assert workspace.files(9) == [("file", 2)]
