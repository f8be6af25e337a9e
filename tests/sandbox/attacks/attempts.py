"""Attacks of a few lines each. Runs inside the sandbox, where only its text is: the standard library alone.

Each is tried in a process of its own and has succeeded when it returns; whatever it raises stopped it.
Prints a JSON object: for each attack's name, what stopped it, or "".
"""

import ctypes
import errno
import fcntl
import json
import os
import pty
import resource
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_SECONDS = 10
_libc = ctypes.CDLL(None, use_errno=True)
Attempt = Callable[[], object]


class Blocked(Exception):
    """There was nothing to take."""


def call(number: int, *arguments: Any) -> None:
    """A system call by its number, which must not even reach what it is about."""
    if _libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def only_if(found: object) -> None:
    if not found:
        raise Blocked("not found")


def connect(family: int, address: Any, kind: int = socket.SOCK_STREAM) -> None:
    with socket.socket(family, kind) as client:
        client.settimeout(2)
        client.connect(address)
        if kind == socket.SOCK_DGRAM:
            client.send(b"out")


def send_datagram(host: str, port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(1)
        client.connect((host, port))
        client.send(b"out")
        try:
            client.recv(1)  # told at once when nobody is there
        except TimeoutError:
            return


def texts(name: str) -> bytes:
    """One of /proc's files of every process that can be seen."""
    found = b""
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        try:
            found += path.read_bytes()
        except OSError:
            continue
    return found


def folders_held() -> Iterator[str]:
    """Folders that a process here has open, or stands in, outside what it was given."""
    for link in [*Path("/proc").glob("[0-9]*/fd/*"), *Path("/proc").glob("[0-9]*/cwd")]:
        try:
            if link.is_dir() and (link / "../etc/shadow").exists():
                yield str(link)
        except OSError:
            continue


def capabilities() -> str:
    status = Path("/proc/self/status").read_text()
    held = [line for line in status.splitlines() if line.startswith(("CapInh", "CapPrm", "CapEff", "CapAmb"))]
    return "".join(line for line in held if int(line.split()[1], 16))


def typing_into(terminal: int) -> None:
    for letter in b"id\n":
        fcntl.ioctl(terminal, 0x5412, bytes([letter]))


def new_group_file() -> None:
    descriptor = os.open("/workspace/made-so", os.O_CREAT | os.O_RDWR, 0o6755)
    only_if(os.fstat(descriptor).st_mode & stat.S_ISUID)


def host_attempts(host: dict[str, Any]) -> dict[str, Attempt]:
    """Against the host's files, processes and network."""
    pid, secret = host["pid"], host["secret"].encode()
    attempts: dict[str, Attempt] = {
        f"read {path}": lambda path=path: Path(path).stat()
        for path in (
            *(
                "/etc/shadow",
                "/etc/hostname",
                "/etc/resolv.conf",
                "/etc/machine-id",
                "/root",
                "/home",
                "/var/log",
            ),
            *("/sys/kernel", "/boot", "/run/docker.sock", "/run/systemd", "/proc/1/root/etc/shadow"),
            *(
                "/proc/1/root/home",
                "/dev/sda",
                "/dev/vda",
                "/dev/mem",
                "/dev/kmsg",
                "/dev/kvm",
                "/dev/fuse",
                "/dev/vsock",
            ),
        )
    }
    attempts |= {
        "read the host's users": lambda: only_if("root" in Path("/etc/passwd").read_text()),
        "read the host's groups": lambda: only_if("root" in Path("/etc/group").read_text()),
        "read the hosts that the host knows": lambda: only_if(
            "sandbox" not in Path("/etc/hosts").read_text()
        ),
        "read a file of the host": Path(host["file"]).read_bytes,
        "write beside a file of the host": Path(host["file"]).with_name("planted").touch,
        "read another thread's workspace": lambda: list(Path(host["other"]).iterdir()),
        "read the workspaces beside its own": lambda: only_if(
            any(Path("..", name).exists() for name in host["threads"])
        ),
        "read another process's environment": lambda: only_if(secret in texts("environ")),
        "read another process's arguments": lambda: only_if(secret in texts("cmdline")),
        "read another process's memory": Path(f"/proc/{pid}/mem").read_bytes,
        "write into its worker's memory": lambda: os.open("/proc/1/mem", os.O_RDWR),
        "signal a process of the host": lambda: os.kill(pid, 0),
        "climb out through an open descriptor": lambda: only_if(list(folders_held())),
        "reach TCP on loopback": lambda: connect(socket.AF_INET, ("127.0.0.1", host["tcp"])),
        "reach TCP on loopback by IPv6": lambda: connect(socket.AF_INET6, ("::1", host["tcp6"])),
        "reach UDP on loopback": lambda: send_datagram("127.0.0.1", host["udp"]),
        "reach UDP on the host's address": lambda: send_datagram(host["address"], host["udp"]),
        "reach TCP on the host's address": lambda: connect(socket.AF_INET, (host["address"], host["tcp"])),
        "reach the internet": lambda: connect(socket.AF_INET, ("1.1.1.1", 53), socket.SOCK_DGRAM),
        "reach a metadata service": lambda: connect(socket.AF_INET, ("169.254.169.254", 80)),
        "ask a name server": lambda: socket.getaddrinfo("example.com", 80),
        "reach a unix socket by its path": lambda: connect(socket.AF_UNIX, host["unix"]),
        "reach a unix socket by its abstract name": lambda: connect(socket.AF_UNIX, "\0" + host["abstract"]),
        "reach the hypervisor": lambda: connect(socket.AF_VSOCK, (2, 1024)),
        "broadcast": lambda: connect(socket.AF_INET, ("255.255.255.255", 9), socket.SOCK_DGRAM),
        "write raw packets": lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1),
    }
    for family in ("AF_NETLINK", "AF_PACKET", "AF_ALG", "AF_BLUETOOTH", "AF_CAN", "AF_TIPC"):
        attempts[f"open a socket of {family}"] = lambda family=family: socket.socket(
            int(getattr(socket, family)), socket.SOCK_RAW
        )
    return attempts


def right_attempts() -> dict[str, Attempt]:
    """To get rights that the code was not given."""
    attempts: dict[str, Attempt] = {
        f"make a device {place}": lambda place=place: os.mknod(
            f"{place}/disk", stat.S_IFBLK | 0o666, os.makedev(8, 0)
        )
        for place in ("/workspace", "/tmp", "/dev/shm")
    }
    attempts |= {
        "become root": lambda: os.setuid(0),
        "become root by all ids": lambda: os.setresuid(0, 0, 0),
        "join another group": lambda: os.setgroups([0]),
        "hold a capability": lambda: only_if(capabilities()),
        "gain rights by a program": lambda: only_if(
            "NoNewPrivs:\t0" in Path("/proc/self/status").read_text()
        ),
        "lend its rights by a program": lambda: _lend(0o4755),
        "lend its group by a program": lambda: _lend(0o2755),
        "lend its rights by a new file": new_group_file,
        "chroot": lambda: os.chroot("/workspace"),
        "set the host's name": lambda: socket.sethostname("mine"),
        "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, 0),
        "type into a terminal": lambda: typing_into(pty.openpty()[1]),
        "type into its own terminal": lambda: typing_into(os.open("/dev/tty", os.O_RDWR)),
        "go before others": lambda: os.setpriority(os.PRIO_PROCESS, 0, -5),
        "run in real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
        "lock memory": lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, (-1, -1)),
    }
    attempts |= {
        f"raise its limit {name}": lambda name=name: resource.setrlimit(getattr(resource, name), (-1, -1))
        for name in ("RLIMIT_AS", "RLIMIT_NPROC", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_CORE")
    }
    attempts |= {
        f"write {path}": lambda path=path: Path(path).write_text("1")
        for path in (
            *("/usr/x", "/etc/x", "/bin/sh", "/dev/x", "/x", "/run/x", "/run/maniple/worker.py"),
            *("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger"),
            *("/proc/sys/kernel/hostname", "/proc/self/uid_map", "/proc/self/oom_score_adj", "/proc/1/comm"),
        )
    }
    return attempts


def _lend(mode: int) -> None:
    program = Path("/workspace/program")
    program.touch()
    program.chmod(mode)


def call_attempts(calls: dict[str, int], clone: int) -> dict[str, Attempt]:
    """To reach more of the kernel: each of these must be refused before its arguments are looked at."""

    def refused(number: int, *arguments: int) -> None:
        try:
            call(number, *(arguments or (0, 0, 0, 0, 0, 0)))
        except OSError as error:
            if error.errno in (errno.EPERM, errno.ENOSYS):
                raise

    attempts: dict[str, Attempt] = {
        f"call {name}": lambda number=number: refused(number) for name, number in calls.items()
    }
    namespaces = {
        **{"mount": 0x20000, "cgroup": 0x2000000, "uts": 0x4000000, "ipc": 0x8000000},
        **{"user": 0x10000000, "pid": 0x20000000, "network": 0x40000000},
    }
    for name, flag in namespaces.items():
        attempts[f"make a {name} namespace"] = lambda flag=flag: refused(
            clone, flag | signal.SIGCHLD, 0, 0, 0, 0
        )
    return attempts


def tried(attempt: Attempt) -> str:
    """What stopped it, "" if nothing did; in a child, which may end as it likes."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_SECONDS)
        try:
            attempt()
        except BaseException as error:  # noqa: BLE001  whatever it was, it stopped the attack
            os.write(writing, f"{type(error).__name__}: {error}"[:200].encode(errors="replace"))
        else:
            os.write(writing, b"\n")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return said.decode().strip() if said else f"ended with {status}"


def main(host: dict[str, Any]) -> None:
    """Try everything."""
    attempts = {
        **host_attempts(host),
        **right_attempts(),
        **call_attempts(host["calls"], host["clone"]),
    }
    json.dump({name: tried(attempt) for name, attempt in attempts.items()}, sys.stdout)
