"""Code that takes what it can get, while a neighbour works and the server stays as it is.

Each limit has its small case in `test_watchdog.py`. `make test` runs one bomb of a kind.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.sandbox import ExecutionResult, Sandbox
from maniple.workspace import Workspace, Workspaces
from tests.sizes import rest_is_slow

pytestmark = pytest.mark.anyio

MAX_GROWTH_MB = 40
MAX_SECONDS_OF_A_NEIGHBOUR = 20


def resident_mb() -> float:
    """Of this process, which is the server here."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1024**2


@asynccontextmanager
async def undisturbed(sandbox: Sandbox, workspaces: Workspaces) -> AsyncIterator[None]:
    """A neighbour works until the end of the context, its variables stay, and the server does not grow."""
    workspace = workspaces.open("neighbour")
    calls, slowest = 0, 0.0
    over = asyncio.Event()
    await sandbox.run_python("n = -1", key="neighbour", workspace=workspace)
    before = resident_mb()

    async def work() -> None:
        nonlocal calls, slowest
        while not over.is_set():  # as long as the bomb is given time
            began = time.monotonic()
            completed = await sandbox.run_python("n += 1\nn", key="neighbour", workspace=workspace)
            assert completed.value == str(calls), completed.text()
            slowest = max(slowest, time.monotonic() - began)
            calls += 1

    neighbour = asyncio.create_task(work())
    try:
        yield
    finally:
        over.set()
        await neighbour
    assert calls
    assert slowest < MAX_SECONDS_OF_A_NEIGHBOUR
    assert resident_mb() - before < MAX_GROWTH_MB


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces")


@pytest.fixture
def workspace(workspaces: Workspaces) -> Workspace:
    return workspaces.open("bomber")


async def exploded(sandbox: Sandbox, workspaces: Workspaces, code: str) -> ExecutionResult:
    workspace = workspaces.open("bomber")
    async with undisturbed(sandbox, workspaces):
        completed = await sandbox.run_python(code, key="bomber", workspace=workspace)
    # Whatever is left of it, the thread can go on.
    again = await sandbox.run_python("1 + 1", key="bomber", workspace=workspace)
    assert again.value == "2", again.text()
    return completed


@pytest.mark.slow
async def test_a_fork_bomb(hurried: Sandbox, workspaces: Workspaces) -> None:
    code = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert (await exploded(hurried, workspaces, code)).timed_out


@pytest.mark.slow
async def test_a_fork_bomb_of_bash_in_the_background(
    hurried: Sandbox, workspaces: Workspaces, workspace: Workspace
) -> None:
    async with undisturbed(hurried, workspaces):
        await hurried.run_bash("b() { b | b & }; b", key="bomber", workspace=workspace)
        again = await hurried.run_python("1 + 1", key="bomber", workspace=workspace)
    assert again.value == "2", again.text()


async def test_a_thread_bomb(narrow: Sandbox, workspaces: Workspaces) -> None:
    code = """
import threading
end = threading.Event()
while True:
    threading.Thread(target=end.wait, daemon=True).start()
"""
    completed = await exploded(narrow, workspaces, code)
    assert "can't start new thread" in completed.stderr or completed.lost


async def test_ten_gigabytes_in_one_process(narrow: Sandbox, workspaces: Workspaces) -> None:
    completed = await exploded(narrow, workspaces, "x = bytearray(10 * 1024 ** 3)")
    assert "MemoryError" in completed.stderr
    assert not completed.lost


@pytest.mark.slow
async def test_ten_gigabytes_over_many_processes(narrow: Sandbox, workspaces: Workspaces) -> None:
    code = """
import os
for _ in range(5):
    os.fork()
x = bytearray(b"1") * (100 << 20)
while True:
    pass
"""
    completed = await exploded(narrow, workspaces, code)
    assert "more than 192 MB of memory" in completed.lost


async def _comes_true(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


async def test_memory_that_is_taken_after_a_quiet_time(
    narrow: Sandbox, workspaces: Workspaces, workspace: Workspace
) -> None:
    code = """
import os
os.mkfifo("go")
for _ in range(4):
    if os.fork() == 0:
        open("go").read()
        x = bytearray(b"1") * (100 << 20)
        while True:
            pass
"""
    await narrow.run_python(code, key="bomber", workspace=workspace)
    session = narrow._slots["bomber"].session
    assert session is not None
    assert session.background is not None
    await _comes_true(lambda: not session.background.is_busy())
    async with undisturbed(narrow, workspaces):
        await asyncio.to_thread((workspace.path / "go").write_text, "")
        await _comes_true(lambda: not session.is_alive)
    completed = await narrow.run_python("1", key="bomber", workspace=workspace)
    assert "of memory together" in completed.lost


@pytest.mark.parametrize("place", rest_is_slow(["/tmp", "/dev/shm"], 1))
async def test_a_full_file_system_in_memory(narrow: Sandbox, workspaces: Workspaces, place: str) -> None:
    code = f"""
for n in range(1000):
    with open("{place}/%d" % n, "wb") as file:
        file.write(bytes(1 << 20))
"""
    assert "No space left" in (await exploded(narrow, workspaces, code)).stderr


@pytest.mark.slow
async def test_a_million_empty_files_in_memory(narrow: Sandbox, workspaces: Workspaces) -> None:
    code = "for n in range(10 ** 7): open(f'/tmp/{n}', 'w').close()"
    assert "of memory together" in (await exploded(narrow, workspaces, code)).lost


async def test_a_file_that_fills_the_disk(
    narrow: Sandbox, workspaces: Workspaces, workspace: Workspace
) -> None:
    code = "with open('big', 'wb') as file:\n    while True: file.write(bytes(1 << 20))"
    assert "File too large" in (await exploded(narrow, workspaces, code)).stderr
    assert workspace.files(10) == [("big", 20 * 1024**2)]


async def test_many_files_that_fill_the_disk(
    narrow: Sandbox, workspaces: Workspaces, workspace: Workspace
) -> None:
    code = """
for n in range(10 ** 6):
    with open(str(n), "wb") as file:
        for _ in range(10):
            file.write(bytes(1 << 20))
"""
    completed = await exploded(narrow, workspaces, code)
    assert "workspace take more than 20 MB" in completed.lost
    assert "Among the largest: '" in completed.lost
    # What it has written until then is there, and less than it wanted.
    assert 20 * 1024**2 < sum(size for _, size in workspace.files(1000)) < 4 * 1024**3


async def test_removed_files_that_fill_the_disk(narrow: Sandbox, workspaces: Workspaces) -> None:
    code = """
import os
kept = []
while True:
    kept.append(open("x", "wb"))
    os.remove("x")
    kept[-1].write(bytes(10 << 20))
"""
    completed = await exploded(narrow, workspaces, code)
    assert "open or mapped take more than 20 MB" in completed.lost


@pytest.mark.slow
async def test_a_million_empty_files(narrow: Sandbox, workspaces: Workspaces) -> None:
    code = "for n in range(10 ** 7): open(str(n), 'w').close()"
    assert "more than 20000 files and folders" in (await exploded(narrow, workspaces, code)).lost


async def test_a_terabyte_that_is_a_hole(
    narrow: Sandbox, workspaces: Workspaces, workspace: Workspace
) -> None:
    code = "with open('sparse', 'wb') as file: file.truncate(10 ** 12)"
    assert "File too large" in (await exploded(narrow, workspaces, code)).stderr
    assert workspace.files(10) == [("sparse", 0)]


@pytest.mark.parametrize("stream", rest_is_slow(["1", "2"], 1))
async def test_endless_output(hurried: Sandbox, workspaces: Workspaces, stream: str) -> None:
    code = f"import os\npiece = b'x' * 65536\nwhile True: os.write({stream}, piece)"
    completed = await exploded(hurried, workspaces, code)
    assert completed.timed_out
    assert len(completed.stdout) + len(completed.stderr) < 100_000
    assert "bytes cut" in completed.text()


async def test_a_value_without_end(narrow: Sandbox, workspaces: Workspaces) -> None:
    completed = await exploded(narrow, workspaces, "'x' * (40 << 20)")
    assert len(completed.value) < 100_000


@pytest.mark.slow
async def test_many_daemons_that_ignore_signals(hurried: Sandbox, workspaces: Workspaces) -> None:
    code = """
import os, signal
for number in range(1, 32):
    if number not in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
while True:
    try:
        if os.fork() == 0:
            os.setsid()
            while True: pass
    except OSError:
        pass
"""
    assert (await exploded(hurried, workspaces, code)).timed_out
