"""Limits over processes together, on sandboxes that have no limits of their own."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from maniple.sandbox import watchdog as module
from maniple.sandbox.usage import SandboxInspector, find_inspector
from maniple.sandbox.watchdog import ResourceLimits, SandboxWatch, Watchdog
from maniple.workspace.safe_open import measure_disk_use
from tests.sandbox.cage import caged

pytestmark = pytest.mark.anyio

MEGABYTE = 1024**2
ROOMY = ResourceLimits(memory_mb=1000, processes=50, disk_mb=100)
TIGHT = ResourceLimits(memory_mb=20, processes=50, disk_mb=100)
ANY_SIZE = (10**12, 10**9)
_WAIT = "\nprint('ready')\ninput()\n"


@pytest.fixture
async def dog(anyio_backend: str) -> AsyncIterator[Watchdog]:
    watchdog = Watchdog()
    yield watchdog
    watchdog.close()


async def _told(
    dog: Watchdog, code: str, workspace: Path, limits: ResourceLimits, *, nested: bool = False
) -> str:
    """Yield what the watchdog reports of a sandbox that runs `code` and is stopped for it."""
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    allowed = limits.measure_allowance(workspace)
    with caged(code, workspace, nested=nested) as process:
        watch = dog.watch(process.pid, workspace, limits, allowed, told.set_result)
        async with asyncio.timeout(60):
            said = await told
        watch.stop()
    return said


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _inside(pid: int) -> SandboxInspector:
    inside = find_inspector(pid)
    assert inside is not None
    return inside


@pytest.mark.parametrize("nested", [False, True], ids=["ordinary", "as root"])
async def test_memory_of_many_processes_counts_together(dog: Watchdog, tmp_path: Path, nested: bool) -> None:
    code = "import os\nfor _ in range(3): os.fork()\nx = bytearray(b'1') * (20 << 20)\ninput()"
    said = await _told(dog, code, tmp_path, ResourceLimits(100, 50, 100), nested=nested)
    assert "100 MB of memory" in said


async def test_processes_that_left_their_parents_count(dog: Watchdog, tmp_path: Path) -> None:
    code = """
import os, signal
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.pause()
        os._exit(0)
    os.wait()
input()
"""
    said = await _told(dog, code, tmp_path, ResourceLimits(1000, 10, 100))
    assert "10 processes at once" in said


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
async def test_files_in_memory_count_as_memory(dog: Watchdog, tmp_path: Path, place: str) -> None:
    code = f"open('{place}/big', 'wb').write(bytes(50 << 20))\ninput()"
    assert "40 MB of memory" in await _told(dog, code, tmp_path, ResourceLimits(40, 50, 100))


async def test_empty_files_in_memory_count_as_memory(dog: Watchdog, tmp_path: Path) -> None:
    code = "for n in range(40_000): open(f'/tmp/{n}', 'w').close()\ninput()"
    assert "40 MB of memory" in await _told(dog, code, tmp_path, ResourceLimits(40, 50, 100))


async def test_what_sockets_could_hold_counts_as_memory(dog: Watchdog, tmp_path: Path) -> None:
    code = "import socket\nkept = [socket.socketpair() for _ in range(200)]\ninput()"
    assert "100 MB of memory" in await _told(dog, code, tmp_path, ResourceLimits(100, 50, 100))


@pytest.mark.skipif(os.geteuid() != 0, reason="what a mapping keeps, only root can see")
async def test_shared_memory_that_one_page_keeps_counts(
    dog: Watchdog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How long a sandbox in which nothing runs waits for its next measurement.
    monkeypatch.setattr(module, "_SETTLED_SECONDS", 0.1)
    code = """
import ctypes, mmap
kept = mmap.mmap(-1, 50 << 20)
kept.write(bytes(50 << 20))
libc = ctypes.CDLL(None)
start = ctypes.addressof(ctypes.c_char.from_buffer(kept))
libc.munmap(ctypes.c_void_p(start + 4096), ctypes.c_size_t((50 << 20) - 4096))
input()
"""
    assert "40 MB of memory" in await _told(dog, code, tmp_path, ResourceLimits(40, 50, 100))


async def test_memory_that_a_fork_shares_counts_once(tmp_path: Path) -> None:
    code = "import os\nx = bytearray(b'1') * (40 << 20)\nfor _ in range(2): os.fork()" + _WAIT
    with caged(code, tmp_path) as process:
        assert process.stdout is not None
        for _ in range(4):
            process.stdout.readline()
        inside = _inside(process.pid)
        assert inside.usage(1000 * MEGABYTE).memory_bytes > 160 * MEGABYTE
        exact = inside.usage(100 * MEGABYTE)
        inside.close()
    assert 40 * MEGABYTE < exact.memory_bytes < 80 * MEGABYTE
    assert exact.processes >= 4


async def test_an_ended_sandbox_takes_next_to_nothing(tmp_path: Path) -> None:
    with caged("print('ready')\ninput()", tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        inside = _inside(process.pid)
        process.kill()
        process.stdout.read()  # until nobody holds it
    assert inside.usage(0).memory_bytes < 10_000  # the empty folders
    assert inside.unlinked_bytes(tmp_path) == 0
    inside.close()


async def test_many_files_together_outgrow_the_disk_limit_and_stay(dog: Watchdog, tmp_path: Path) -> None:
    code = "for n in range(9): open(f'data {n}', 'wb').write(bytes((n + 1) << 20))\ninput()"
    said = await _told(dog, code, tmp_path, ResourceLimits(1000, 50, 20))
    assert "take more than 20 MB" in said
    assert "variables are gone" in said
    assert "'data " in said
    assert _names(tmp_path)


async def test_too_many_files_are_an_overrun(dog: Watchdog, tmp_path: Path) -> None:
    code = "for n in range(300): open(str(n), 'wb').close()\ninput()"
    said = await _told(dog, code, tmp_path, ResourceLimits(1000, 50, 20, files=200))
    assert "200 files and folders" in said


async def test_what_was_written_before_the_first_look_is_an_overrun_too(tmp_path: Path) -> None:
    limits = ResourceLimits(1000, 50, 20, files=200)
    code = f"for n in range(300): open(str(n), 'wb').close(){_WAIT}"
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    allowed = limits.measure_allowance(tmp_path)
    with caged(code, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watch = SandboxWatch(process.pid, tmp_path, limits, allowed, told.set_result)
        _look_until(lambda: watch.is_over, watch)
        async with asyncio.timeout(60):
            assert "200 files and folders" in await told
        watch.stop()


@pytest.mark.parametrize(
    "keeping",
    ["kept = file", "import mmap\nkept = mmap.mmap(file.fileno(), 4096)\nfile.close()"],
    ids=["open", "mapped"],
)
async def test_removed_files_that_are_still_held_count(dog: Watchdog, tmp_path: Path, keeping: str) -> None:
    code = "import os\nfile = open('x', 'w+b')\nos.remove('x')\nfile.write(bytes(30 << 20))\n"
    said = await _told(dog, f"{code}{keeping}\ninput()", tmp_path, ResourceLimits(1000, 50, 20))
    assert "still open or mapped" in said


_SEND_AWAY = """
import array, socket

def send(socket_, *descriptors):
    rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
    socket_.sendmsg([b"x"], [rights])

receiver, sender = socket.socketpair()
with open("x", "wb") as file:
    send(sender, file.fileno())
"""
_IN_ANOTHER = """
outer, last = socket.socketpair()
send(last, receiver.fileno(), sender.fileno())
receiver.close(), sender.close()
"""


@pytest.mark.parametrize("more", ["", _IN_ANOTHER], ids=["in a socket", "in a socket in a socket"])
async def test_files_are_not_left_on_their_way_through_a_socket(
    dog: Watchdog, tmp_path: Path, more: str
) -> None:
    said = await _told(dog, f"{_SEND_AWAY}{more}input()", tmp_path, ROOMY)
    assert "through a socket" in said


async def test_files_may_be_handed_from_process_to_process(tmp_path: Path) -> None:
    code = f"{_SEND_AWAY}print('sent', flush=True)\ninput()\nreceiver.recvmsg(1, 100)\nprint('had')\ninput()"
    with caged(code, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        seen = []
        for _ in range(2):
            process.stdout.readline()
            inside = _inside(process.pid)
            inside.unlinked_bytes(tmp_path)
            seen.append(inside.is_in_flight)
            inside.close()
            process.stdin.write(b"\n")
            process.stdin.flush()
    assert seen == [True, False]


async def test_a_workspace_that_is_too_full_may_be_tidied_but_not_grow(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"old {number}").write_bytes(bytes(20 * MEGABYTE))
    code = """
import os
os.remove("old 0")
print("tidied")
input()
open("new", "wb").write(bytes(30 << 20))
input()
"""
    limits = ResourceLimits(1000, 50, 25)
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with caged(code, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        watch = SandboxWatch(
            process.pid, tmp_path, limits, limits.measure_allowance(tmp_path), told.set_result
        )
        watch.look()
        await asyncio.sleep(0)
        assert not told.done()
        process.stdin.write(b"\n")
        process.stdin.flush()
        async with asyncio.timeout(60):
            while not told.done():
                watch.look()
                await asyncio.sleep(0.01)
        watch.stop()
    assert "take more than 25 MB" in told.result()
    assert _names(tmp_path) == ["new", "old 1", "old 2"]


async def test_after_stop_nothing_is_reported_and_nothing_stays_open(dog: Watchdog, tmp_path: Path) -> None:
    before = _names(Path("/proc/self/fd"))
    limits = ResourceLimits(50, 50, 50)
    told: list[str] = []
    with caged("x = bytearray(b'1') * (90 << 20)\nprint('ready')\ninput()", tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        dog.watch(process.pid, tmp_path, limits, ANY_SIZE, told.append).stop()
        # Another that is told of shows that the thread has been at work.
        async with asyncio.timeout(60):
            other: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            dog.watch(process.pid, tmp_path, limits, ANY_SIZE, other.set_result)
            await other
    dog.close()
    assert told == []
    assert _names(Path("/proc/self/fd")) == before


@contextmanager
def _settled(
    code: str, workspace: Path, limits: ResourceLimits
) -> Iterator[tuple[SandboxWatch, Popen[bytes], list[str]]]:
    """Yield a watched sandbox that has been idle for a while; reports about it are appended to a list."""
    told: list[str] = []
    with caged(code, workspace) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watch = SandboxWatch(process.pid, workspace, limits, ANY_SIZE, told.append)
        _look_until(lambda: watch.is_settled, watch)
        yield watch, process, told
        watch.stop()


def _look_until(condition: Callable[[], bool], watch: SandboxWatch) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        watch.look()


def _wake(process: Popen[bytes]) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.flush()


async def test_a_sandbox_in_which_nothing_runs_is_not_measured_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[int] = []
    measure = SandboxInspector.usage
    with _settled("print('ready')\ninput()", tmp_path, ROOMY) as (watch, _, _):
        monkeypatch.setattr(SandboxInspector, "usage", lambda *each: measured.append(1) or measure(*each))
        for _ in range(9):
            watch.due = 0.0
            watch.look()
            # It is looked at as often as ever.
            assert watch.due <= time.monotonic() + module._INTERVAL_SECONDS
    assert len(measured) <= 1


async def test_what_begins_after_a_quiet_time_is_seen_at_the_next_look(tmp_path: Path) -> None:
    code = "print('ready')\ninput()\nx = bytearray(b'1') * (90 << 20)\nprint('taken')\ninput()"
    with _settled(code, tmp_path, ResourceLimits(50, 50, 50)) as (watch, process, told):
        _wake(process)
        assert process.stdout is not None
        process.stdout.readline()
        for _ in range(module._CHECKS_IN_A_ROW):
            watch.due = 0.0
            watch.look()
        await asyncio.sleep(0)
        assert "50 MB of memory" in told[0]


async def test_a_thread_that_resumes_by_itself_marks_its_sandbox_active(tmp_path: Path) -> None:
    code = """
import signal
signal.signal(signal.SIGALRM, lambda *each: None)
signal.setitimer(signal.ITIMER_REAL, 3, 3)
print("ready")
while True: signal.pause()
"""
    with _settled(code, tmp_path, ROOMY) as (watch, _, _):
        _look_until(lambda: not watch.is_settled, watch)


async def test_files_that_wait_in_a_socket_let_no_sandbox_settle(tmp_path: Path) -> None:
    told: list[str] = []
    with caged(f"{_SEND_AWAY}print('sent', flush=True)\ninput()", tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        watch = SandboxWatch(process.pid, tmp_path, ROOMY, ANY_SIZE, told.append)
        _look_until(lambda: watch.is_over or watch.is_settled, watch)
        assert not watch.is_settled
        await asyncio.sleep(0)
    assert "through a socket" in told[0]


async def test_closing_ends_the_thread(dog: Watchdog, tmp_path: Path) -> None:
    dog.watch(os.getpid(), tmp_path, ROOMY, ANY_SIZE, print)
    assert "sandbox-watchdog" in {thread.name for thread in threading.enumerate()}
    dog.close()
    assert "sandbox-watchdog" not in {thread.name for thread in threading.enumerate()}


async def test_a_sandbox_that_cannot_be_seen_is_stopped(
    dog: Watchdog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_START_SECONDS", 0)
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    dog.watch(os.getpid(), tmp_path, ROOMY, ANY_SIZE, told.set_result)
    async with asyncio.timeout(60):
        assert "could not be watched" in (await told)


async def test_a_look_that_fails_stops_the_sandbox_and_not_the_watchdog(
    dog: Watchdog, tmp_path: Path
) -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    with caged("input()", tmp_path) as process:
        dog.watch(process.pid, tmp_path / "missing", ROOMY, ANY_SIZE, told.set_result)
        async with asyncio.timeout(60):
            assert "not be watched ([Errno 2]" in await told
    assert "of memory" in await _told(dog, "x = bytearray(b'1') * (30 << 20)\ninput()", tmp_path, TIGHT)


def test_a_hole_in_a_file_and_a_second_name_take_no_disk(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as file:
        file.truncate(10**12)
    (tmp_path / "data").write_bytes(bytes(5 * MEGABYTE))
    for number in range(10):
        (tmp_path / f"name {number}").hardlink_to(tmp_path / "data")
    use = measure_disk_use(tmp_path, 10**9, 100)
    assert 5 * MEGABYTE <= use.size_bytes < 6 * MEGABYTE
    assert use.entries == 12


def test_counting_follows_no_link_and_ends_at_the_limit(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/usr")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert measure_disk_use(tmp_path, 10**9, 100).entries == 2
    for number in range(50):
        (tmp_path / str(number)).touch()
    assert measure_disk_use(tmp_path, 10**9, 10).entries == 11


def test_a_tree_that_is_deeper_than_a_path_can_be_is_named(tmp_path: Path) -> None:
    directory = os.open(tmp_path, os.O_RDONLY)
    for _ in range(100):
        os.mkdir("d" * 200, dir_fd=directory)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = below
    os.close(directory)
    use = measure_disk_use(tmp_path, 10**9, 1000)
    assert use.too_deep.endswith("/" + "d" * 200)
    assert "lies below" in ResourceLimits(1, 1, 1).explain_disk_use(use, 0, (10**9, 1000))
