"""Code that tries to get out, by name, against the real sandbox."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from maniple.sandbox import Sandbox, Workspace

pytestmark = pytest.mark.anyio

# Numbers on x86_64 and aarch64.
_REFUSED_CALLS = {
    "io_uring_setup": (425, 425),
    "clone3": (435, 435),
    "memfd_secret": (447, 447),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "memfd_create": (319, 279),
    "shmget": (29, 194),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "unshare": (272, 97),
}


async def test_files_of_the_host_are_not_there(
    sandbox: Sandbox, workspace: Workspace, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("canary")
    code = f"""
import os
for path in ("/etc/passwd", "/etc/shadow", "/root", "/home", "/var", "/sys", "/proc/1/root/etc/passwd"):
    print(os.path.exists(path), end=" ")
print(os.path.exists({str(secret)!r}))
"""
    completed = await sandbox.run_python(code, workspace=workspace.path)
    assert completed.stdout.split() == ["False"] * 8


async def test_the_servers_environment_is_not_there(
    sandbox: Sandbox, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANIPLE_CANARY", "canary-in-the-environment")
    command = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'"
    completed = await sandbox.run_bash(command, workspace=workspace.path)
    assert "PATH=/usr/local/bin" in completed.stdout
    assert "canary-in-the" not in completed.stdout


async def test_no_descriptor_of_the_server_comes_along(sandbox: Sandbox, workspace: Workspace) -> None:
    code = "import os; print(sorted(os.listdir('/proc/self/fd')))"
    completed = await sandbox.run_python(code, workspace=workspace.path)
    # Input, output, errors, and the listing's own.
    assert completed.stdout == "['0', '1', '2', '3']\n"


async def test_the_hosts_loopback_is_out_of_reach(sandbox: Sandbox, workspace: Workspace) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        unix.bind(f"\0maniple-test-{os.getpid()}")
        unix.listen()
        code = f"""
import socket
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, {tcp.getsockname()!r}),
    (socket.AF_UNIX, socket.SOCK_STREAM, {unix.getsockname()!r}),
):
    try:
        socket.socket(family, kind).connect(address)
        print("connected")
    except OSError as error:
        print("refused")
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"out", {udp.getsockname()!r})
"""
        completed = await sandbox.run_python(code, workspace=workspace.path)
        assert completed.stdout == "refused\nrefused\n"
        with pytest.raises(BlockingIOError):
            udp.recv(10)


@pytest.mark.parametrize("family", ["AF_VSOCK", "AF_NETLINK", "AF_PACKET", "AF_ALG", "AF_BLUETOOTH"])
async def test_other_socket_families_are_refused(sandbox: Sandbox, workspace: Workspace, family: str) -> None:
    code = f"import socket\nsocket.socket(int(socket.{family}), socket.SOCK_RAW)"
    completed = await sandbox.run_python(code, workspace=workspace.path)
    assert "Address family not supported" in completed.stderr


@pytest.mark.parametrize("name", _REFUSED_CALLS)
async def test_a_dangerous_system_call_is_refused(sandbox: Sandbox, workspace: Workspace, name: str) -> None:
    number = _REFUSED_CALLS[name][os.uname().machine == "aarch64"]
    code = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall({number}, 0, 0, 0, 0, 0, 0)
print(result, errno.errorcode.get(ctypes.get_errno()))
"""
    completed = await sandbox.run_python(code, workspace=workspace.path)
    assert completed.stdout in ("-1 EPERM\n", "-1 ENOSYS\n")


async def test_no_namespace_can_be_made_inside(sandbox: Sandbox, workspace: Workspace) -> None:
    clone = 220 if os.uname().machine == "aarch64" else 56
    code = f"""
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
for flag in (0x20000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
    print(libc.syscall({clone}, flag | 17, 0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
"""
    completed = await sandbox.run_python(code, workspace=workspace.path)
    assert completed.stdout.splitlines() == ["-1 EPERM"] * 7


async def test_threads_and_child_processes_work_all_the_same(sandbox: Sandbox, workspace: Workspace) -> None:
    code = """
import subprocess
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
for pool in (ThreadPoolExecutor, ProcessPoolExecutor):
    with pool(2) as workers:
        print(list(workers.map(abs, [-1, -2])))
print(subprocess.run(["echo", "child"], capture_output=True, text=True).stdout)
"""
    completed = await sandbox.run_python(code, workspace=workspace.path)
    assert completed.text() == "[1, 2]\n[1, 2]\nchild"


@pytest.mark.parametrize("path", ["/usr/x", "/etc/x", "/dev/x", "/x", "/run/x", "/proc/sys/kernel/hostname"])
async def test_nothing_but_the_workspace_and_tmp_can_be_written(
    sandbox: Sandbox, workspace: Workspace, path: str
) -> None:
    completed = await sandbox.run_bash(f"echo x > {path}", workspace=workspace.path)
    assert completed.exit_code == 1


async def test_a_fork_bomb_hurts_neither_neighbours_nor_the_server(
    hasty_sandbox: Sandbox, workspace: Workspace
) -> None:
    bomb = asyncio.create_task(
        hasty_sandbox.run_python(
            "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass", workspace=workspace.path
        )
    )
    neighbours = [await hasty_sandbox.run_bash("echo well", workspace=workspace.path) for _ in range(3)]
    assert (await bomb).timed_out
    assert [neighbour.stdout for neighbour in neighbours] == ["well\n"] * 3


async def test_too_much_memory_is_an_error_inside(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_python("x = bytearray(10 * 1024 ** 3)", workspace=workspace.path)
    assert "MemoryError" in completed.stderr


async def test_a_file_cannot_outgrow_the_disk_limit(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_bash("head -c 5000000 /dev/zero > big", workspace=workspace.path)
    assert completed.exit_code != 0
    assert (workspace.path / "big").stat().st_size <= 1024 * 1024


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
async def test_files_in_memory_are_bounded(sandbox: Sandbox, workspace: Workspace, place: str) -> None:
    command = f"for n in $(seq 100); do head -c 1000000 /dev/zero > {place}/$n || exit 9; done"
    completed = await sandbox.run_bash(command, workspace=workspace.path)
    assert completed.exit_code == 9
    assert "No space left" in completed.stderr


async def test_killing_everything_ends_only_the_call_itself(sandbox: Sandbox, workspace: Workspace) -> None:
    completed = await sandbox.run_bash("kill -9 1; kill -9 -1; kill -9 $$", workspace=workspace.path)
    assert completed.text().endswith("[exit code 137, SIGKILL]")
    again = await sandbox.run_bash("echo next", workspace=workspace.path)
    assert again.stdout == "next\n"
