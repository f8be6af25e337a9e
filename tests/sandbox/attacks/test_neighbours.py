"""One thread's code against another thread's session, and what honest code must still be able to do."""

from pathlib import Path

import pytest

from maniple.sandbox import Sandbox
from maniple.workspace import Workspaces

pytestmark = pytest.mark.anyio

LISTEN = """
import os, socket
os.environ["CANARY_OF_A_NEIGHBOUR"] = "1"
open("/tmp/mine", "w").write("mine")
open("/dev/shm/mine", "w").write("mine")
open("mine", "w").write("mine")
tcp = socket.create_server(("127.0.0.1", 8123))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0neighbour")
abstract.listen()
path = socket.socket(socket.AF_UNIX)
path.bind("/tmp/neighbour")
path.listen()
os.getpid()
"""
ATTACK = """
import os, signal, socket
from pathlib import Path
for family, address in (
    (socket.AF_INET, ("127.0.0.1", 8123)),
    (socket.AF_UNIX, "\\0neighbour"),
    (socket.AF_UNIX, "/tmp/neighbour"),
):
    try:
        socket.socket(family).connect(address)
        print("reached", address)
    except OSError:
        pass
print(*(path for path in ("/tmp/mine", "/dev/shm/mine", "mine") if os.path.exists(path)))
print(*(path for path in Path("/proc").glob("[0-9]*/environ") if b"NEIGHBOUR" in path.read_bytes()))
for pid in range(2, 40_000):
    if pid != os.getpid():
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
"""


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces")


async def test_a_neighbour_is_neither_reached_nor_seen_nor_hurt(
    narrow: Sandbox, workspaces: Workspaces
) -> None:
    mine, theirs = workspaces.open("mine"), workspaces.open("theirs")
    await narrow.run_python(LISTEN, key="mine", workspace=mine)
    completed = await narrow.run_python(ATTACK, key="theirs", workspace=theirs)
    assert completed.stdout.strip() == "", completed.text()
    kept = await narrow.run_python("tcp.getsockname()[1]", key="mine", workspace=mine)
    assert kept.value == "8123", kept.text()
    assert not kept.lost


async def test_killing_everything_ends_only_its_own_session(narrow: Sandbox, workspaces: Workspaces) -> None:
    mine, theirs = workspaces.open("mine"), workspaces.open("theirs")
    await narrow.run_python("kept = 1", key="mine", workspace=mine)
    await narrow.run_bash("kill -9 1; kill -9 -1; kill -9 $$", key="theirs", workspace=theirs)
    again = await narrow.run_bash("echo next", key="theirs", workspace=theirs)
    assert again.stdout == "next\n"
    assert (await narrow.run_python("kept", key="mine", workspace=mine)).value == "1"


async def test_only_the_message_channels_are_inherited_from_the_server(
    narrow: Sandbox, workspaces: Workspaces
) -> None:
    code = """
import os
for name in os.listdir("/proc/self/fd"):
    try:
        print(os.readlink("/proc/self/fd/" + name).partition(":")[0])
    except OSError:
        pass  # the listing's own
"""
    completed = await narrow.run_python(code, key="thread", workspace=workspaces.open("thread"))
    assert completed.exit_code == 0
    assert set(completed.stdout.split()) <= {"pipe", "socket", "/dev/null"}


async def test_honest_code_has_threads_processes_locks_and_shared_memory(
    narrow: Sandbox, workspaces: Workspaces
) -> None:
    code = """
import mmap, os, socket, sqlite3, subprocess, tempfile
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import Lock, Value, shared_memory
for pool in (ThreadPoolExecutor, ProcessPoolExecutor):
    with pool(2) as workers:
        print(list(workers.map(abs, [-1, -2])))
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
with Lock():
    print(Value("i", 7).value)
block = shared_memory.SharedMemory(create=True, size=1000)
block.close(), block.unlink()
print(len(mmap.mmap(-1, 1000)))
sqlite3.connect("a.db").execute("create table t (a)")
with tempfile.NamedTemporaryFile() as file:
    os.chmod(file.name, 0o755)
left, right = socket.socketpair()
print(os.pipe() is not None)
"""
    completed = await narrow.run_python(code, key="thread", workspace=workspaces.open("thread"))
    assert completed.stdout == "[1, 2]\n[1, 2]\nchild\n7\n1000\nTrue\n", completed.text()
