"""What is seen of a sandbox's processes, by the account that runs the tests and by an ordinary user.

Each test's code runs in a sandbox without limits, and says a line when everything is in place.
"""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import pytest

from maniple.sandbox.usage import DIRECTORY, ProcessTable, ThreadActivity, find_inspector
from tests.sandbox.cage import caged
from tests.sandbox.nobody import as_nobody, home_of_nobody, needs_root

MEGABYTE = 1024**2
_WAIT = "\nprint('ready', flush=True)\ninput()\n"
_LIBC = """
import ctypes, mmap, os, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
"""
# Runs what follows in a thread that outlives the first one; the line on stdin never comes.
_WITHOUT_FIRST_THREAD = (
    _LIBC
    + """
def first_has_ended():
    return "\\nState:\\tZ" in open(f"/proc/self/status").read()
def rest():
    while not first_has_ended(): pass
    {}
    print("ready", flush=True)
    os.read(0, 1)
if os.fork() == 0:
    threading.Thread(target=rest).start()
    libc.syscall({}, 0)
os.read(0, 1)
"""
)
_EXIT_OF_A_THREAD = {"x86_64": 60, "aarch64": 93}[os.uname().machine]


def _without_first_thread(statement: str) -> str:
    return _WITHOUT_FIRST_THREAD.format(statement, _EXIT_OF_A_THREAD)


@dataclass(frozen=True, slots=True)
class Seen:
    cheap_bytes: int
    exact_bytes: int
    unlinked_bytes: int


Look = Callable[[str], Seen]


def _look(code: str, workspace: Path) -> Seen:
    with caged(code, workspace) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        inside = find_inspector(process.pid)
        assert inside is not None
        with closing(inside):
            unlinked_bytes = inside.unlinked_bytes(workspace)
            cheap, exact = inside.usage(1 << 50), inside.usage(0)
    return Seen(cheap.memory_bytes, exact.memory_bytes, unlinked_bytes)


def _of_nobody(code: str, home: Path) -> Seen:
    said = as_nobody(lambda: json.dumps(asdict(_look(code, home))))
    assert said.startswith("{"), said
    return Seen(**json.loads(said))


@pytest.fixture(
    params=[pytest.param(False, id="own"), pytest.param(True, id="ordinary user", marks=needs_root)]
)
def look(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Look]:
    """Runs code and reports the measured activity."""
    if request.param:
        with home_of_nobody() as home:
            yield lambda code: _of_nobody(code, home)
    else:
        yield lambda code: _look(code, tmp_path)


def test_children_that_ended_and_are_not_waited_for_are_nothing(look: Look) -> None:
    code = """
import os, subprocess
kept = [subprocess.Popen(["/bin/true"]) for _ in range(5)]
for child in kept: os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
"""
    seen = look(code + _WAIT)
    assert seen.unlinked_bytes == 0
    assert seen.exact_bytes < 30 * MEGABYTE


def test_memory_counts_when_the_first_thread_has_ended(look: Look) -> None:
    seen = look(_without_first_thread("global kept; kept = bytearray(b'1') * (60 << 20)"))
    assert 60 * MEGABYTE < seen.exact_bytes <= seen.cheap_bytes


def test_open_files_count_when_the_first_thread_has_ended(look: Look) -> None:
    statement = "global f; f = open('x', 'wb', 0); os.remove('x'); f.write(bytes(30 << 20))"
    assert 30 * MEGABYTE <= look(_without_first_thread(statement)).unlinked_bytes < 31 * MEGABYTE


def test_files_that_only_one_thread_has_open_count(look: Look) -> None:
    code = """
import ctypes, os, threading
done = threading.Event()
def other():
    assert ctypes.CDLL(None).unshare(0x400) == 0  # CLONE_FILES
    file = open('x', 'wb', 0)
    os.remove('x')
    file.write(bytes(30 << 20))
    done.set()
    os.read(0, 1)
threading.Thread(target=other, daemon=True).start()
done.wait()
print('ready', flush=True)
threading.Event().wait()
"""
    assert 30 * MEGABYTE <= look(code).unlinked_bytes < 31 * MEGABYTE


class _Ending(ProcessTable):
    """Its process 7 has lost its first thread; the others cannot be asked any more."""

    later: tuple[str, ...] = ("8",)

    def threads(self, pid: str) -> list[str]:
        threads, self.later = self.later[:1], self.later[1:] or self.later
        return [f"{pid}/task/7", *(f"{pid}/task/{thread}" for thread in threads)]


@pytest.fixture
def ending(tmp_path: Path) -> Iterator[_Ending]:
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "status").write_text("State:\tZ (zombie)\nThreads:\t2\n")
    with closing(_Ending(os.open(tmp_path, os.O_RDONLY))) as table:
        yield table


def test_a_process_whose_threads_are_ending_is_nothing(ending: _Ending) -> None:
    assert ending.find_live_thread("7") is None


def test_threads_that_follow_each_other_too_fast_are_not_passed_over(ending: _Ending) -> None:
    ending.later = ("8", "9", "10")
    with pytest.raises(OSError, match="end too fast"):
        ending.find_live_thread("7")


def test_memory_that_processes_share_counts_once(look: Look) -> None:
    code = """
import mmap, os
kept = mmap.mmap(-1, 60 << 20)
kept.write(bytes(60 << 20))
reading, writing = os.pipe()
for _ in range(2):
    if os.fork() == 0:
        sum(kept[::4096])
        os.write(writing, b".")
        os.read(0, 1)
        os._exit(0)
for _ in range(2): os.read(reading, 1)
"""
    seen = look(code + _WAIT)
    assert seen.cheap_bytes > 120 * MEGABYTE
    assert 60 * MEGABYTE < seen.exact_bytes < 100 * MEGABYTE


def test_files_in_memory_that_are_mapped_count_once(look: Look) -> None:
    code = """
import mmap
with open("/dev/shm/x", "w+b") as file: file.truncate(60 << 20); kept = mmap.mmap(file.fileno(), 60 << 20)
kept.write(bytes(60 << 20))
"""
    seen = look(code + _WAIT)
    assert 60 * MEGABYTE < seen.exact_bytes < 100 * MEGABYTE


def _removed_and_mapped(files: int, size: int, mapped: int, holders: str = "") -> str:
    return f"""{_LIBC}
for _ in range({files}):
    with open("x", "w+b", 0) as file:
        os.remove("x")
        file.write(bytes({size} << 20))
        kept = libc.mmap(None, {mapped}, 1, 1, file.fileno(), 0)
# So many mappings that they do not fit into one page of the list, below the file's.
for _ in range(100): libc.mmap(None, 4096, 0, 0x22, -1, 0), libc.mmap(None, 4096, 1, 0x22, -1, 0)
{holders}{_WAIT}"""


@pytest.mark.parametrize("holders", ["", "for _ in range(2): os.fork() or (os.read(0, 1), os._exit(0))\n"])
def test_a_removed_file_that_is_only_mapped_counts_once(look: Look, holders: str) -> None:
    seen = look(_removed_and_mapped(1, 30, 30 << 20, holders))
    assert 30 * MEGABYTE <= seen.unlinked_bytes < 31 * MEGABYTE


def test_there_cannot_be_many_removed_files_of_which_little_is_mapped(look: Look) -> None:
    assert look(_removed_and_mapped(5, 20, 4096)).unlinked_bytes >= 5 * 8 * MEGABYTE


def test_a_removed_file_on_a_file_system_in_memory_is_not_the_workspaces(look: Look) -> None:
    assert look("import os\nos.chdir('/tmp')" + _removed_and_mapped(1, 1, 4096)).unlinked_bytes == 0


def test_more_mappings_than_can_be_looked_at_are_not_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maniple.sandbox.usage._MAX_LISTED_BYTES", 1000)
    with pytest.raises(OSError, match="too many mappings"):
        _look(_WAIT, tmp_path)


def _activity(pid: int) -> ThreadActivity:
    host = Path("/proc").stat().st_dev
    for child in [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]:
        if Path(f"/proc/{child}/root/proc/1").stat().st_dev != host:
            return ThreadActivity(ProcessTable(os.open(f"/proc/{child}/root/proc", DIRECTORY)))
    raise AssertionError("there is no process inside")


@pytest.mark.parametrize(
    "what",
    [
        "pass",
        "threading.Thread(target=os.read, args=(pipe[0], 1), daemon=True).start()",
        "os.fork() or signal.pause()",
        "os._exit(0)",
    ],
    ids=["nothing more", "a thread", "a process", "its end"],
)
def test_activity_of_any_process_is_detected(tmp_path: Path, what: str) -> None:
    before = "import os, signal, threading\npipe = os.pipe()\nprint('ready')\ninput()\n"
    code = f"{before}{what}\nprint('did')\ninput()"
    with caged(code, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        activity = _activity(process.pid)
        assert activity.has_run(), "nothing is noted yet"
        _mark_when_still(activity)
        process.stdin.write(b"\n")
        process.stdin.flush()
        process.stdout.readline()
        assert activity.has_run()
        activity.forget()


def test_of_many_threads_nothing_is_noted(tmp_path: Path) -> None:
    start = "for _ in range(20): threading.Thread(target=os.read, args=(ends[0], 1)).start()"
    code = f"import os, threading\nends = os.pipe()\n{start}{_WAIT}"
    with caged(code, tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        activity = _activity(process.pid)
        activity.mark()
        assert activity.has_run()


def _mark_when_still(activity: ThreadActivity) -> None:
    """Mark it when its processes have come to wait for what follows."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        activity.mark()
        os.sched_yield()
        if not activity.has_run():
            return
    raise AssertionError("it never waited")
