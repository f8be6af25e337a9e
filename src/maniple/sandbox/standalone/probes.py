"""Runs inside the sandbox at start-up and tries to get out; prints one line for each way that works.

This file is sent into the sandbox as text and must stand alone: only the standard library, nothing of
maniple. The module that sends it adds a last line, `print_escapes(...)` with what to try.
"""

import fcntl
import json
import os
import resource
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

# bwrap and bash add these themselves.
_HARMLESS = {"PWD", "OLDPWD", "SHLVL", "_"}
_FEW = 8


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except (OSError, MemoryError):
        return False
    return True


def _connect(address: tuple[str, int] | str) -> None:
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        client.connect(address)


def _take_all_memory() -> None:
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY:
        bytearray(limit)


def _strange_variables(known: set[str]) -> set[str]:
    """Names in the environment that any process here was started with, bwrap's own among them."""
    names: set[str] = set()
    for environ in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            entries = environ.read_bytes().split(b"\0")
            names |= {entry.partition(b"=")[0].decode(errors="replace") for entry in entries if entry}
    return names - known - _HARMLESS


def _process_limit_holds(limit: int) -> bool:
    """Whether the limit is set, and whether the kernel applies one to this user (to root it does not)."""
    hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    if not 0 < hard <= limit:
        return False
    resource.setrlimit(resource.RLIMIT_NPROC, (min(_FEW, hard), hard))
    children: list[int] = []
    try:
        while len(children) < _FEW:
            child = os.fork()
            if child == 0:
                signal.pause()
            children.append(child)
    except OSError:
        return True
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return False


def _leave_daemon() -> None:
    """A process that has left this session and ignores signals holds a lock in the workspace."""
    child = os.fork()
    if child == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            lock = os.open("daemon", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX)
            os.write(lock, b"held")
            while True:
                signal.pause()
        os._exit(0)
    os.waitpid(child, 0)
    while not (Path("daemon").exists() and Path("daemon").stat().st_size):
        os.sched_yield()


def _plant_links(canary: str) -> None:
    Path("planted").symlink_to(canary)
    Path("planted-folder").symlink_to(Path(canary).parent)


def _read_users() -> None:
    """The sandbox's own list has one user, who is not root."""
    if b"root:" not in Path("/etc/passwd").read_bytes():
        raise FileNotFoundError


def print_escapes(
    canary: str, tcp: tuple[str, int], abstract: str, variables: set[str], processes: int
) -> None:
    """`canary` is a host file's path, `tcp` and `abstract` are listeners on the host.

    Leaves a daemon and links, which the host looks for when this sandbox has ended.
    """
    attempts: dict[str, Callable[[], object]] = {
        "read /etc/shadow": Path("/etc/shadow").read_bytes,
        "read /etc/passwd": _read_users,
        f"read {canary}": Path(canary).read_bytes,
        f"write beside {canary}": Path(canary).with_name("planted").touch,
        "write to /usr": Path("/usr/maniple-probe").touch,
        "write to the root directory": Path("/maniple-probe").touch,
        "connect to a TCP port of the host": lambda: _connect(tcp),
        "connect to a unix socket of the host": lambda: _connect(abstract),
        "open a socket to the hypervisor": lambda: socket.socket(socket.AF_VSOCK).close(),
        "take more memory than its limit": _take_all_memory,
    }
    for name, attempt in attempts.items():
        if _works(attempt):
            print(name)
    if strange := _strange_variables(variables):
        print(f"see the environment variables {', '.join(sorted(strange))}")
    if not _process_limit_holds(processes):
        print(f"start more than {processes} processes")
    _plant_links(canary)
    _leave_daemon()
    print("end of probes")


_UNREAD_CHUNK, _LARGE_BUFFER = 65_536, 16 << 20
_HOLDERS, _SOCKETS_EACH = 48, 200
_HOLD_SECONDS = 2.0
_SOCKET_KINDS = {"stream": socket.SOCK_STREAM, "datagram": socket.SOCK_DGRAM}


def _pair_of(kind: str) -> tuple[socket.socket, socket.socket]:
    if kind in _SOCKET_KINDS:
        return socket.socketpair(socket.AF_UNIX, _SOCKET_KINDS[kind])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        return client, listener.accept()[0]


def _fill(sender: socket.socket) -> int:
    held = 0
    with suppress(OSError):
        while True:
            held += sender.send(bytes(_UNREAD_CHUNK))
    return held


def _hold_unread(kind: str, enough: int, report: int) -> None:
    """Fill sockets until they are enough, or no more are given; say how much, and wait for the end."""
    kept: list[socket.socket] = []
    held = 0
    with suppress(OSError):
        while held < enough and len(kept) < _SOCKETS_EACH:
            pair = _pair_of(kind)
            kept += pair
            for one in pair:
                one.setblocking(False)
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    with suppress(OSError):
                        one.setsockopt(socket.SOL_SOCKET, option, _LARGE_BUFFER)
            held += sum(map(_fill, pair))
    os.write(report, f"{held}\n".encode())
    signal.pause()


def print_unread(kind: str, limit: int) -> None:
    """Try to keep more than `limit` bytes, twice as much at most, in sockets that nobody reads."""
    reading, report = os.pipe()
    children: list[int] = []
    held = 0
    with os.fdopen(reading, "rb", 0) as counts:
        while held <= limit and len(children) < _HOLDERS:
            child = os.fork()
            if child == 0:
                try:
                    _hold_unread(kind, 2 * limit - held, report)
                finally:
                    os._exit(1)
            children.append(child)
            held += int(counts.readline())
    if held > limit:
        time.sleep(_HOLD_SECONDS)  # the watchdog needs a moment
        print("held")
    for child in children:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    print("end of probes")


def print_broken(packages: list[str]) -> None:
    """Try the modules of every package of that name; names are spelled as in PEP 503."""
    modules: dict[str, list[str]] = {}
    for module, distributions in packages_distributions().items():
        for distribution in distributions:
            name = distribution.lower().replace("_", "-").replace(".", "-")
            modules.setdefault(name, []).append(module)
    # setuptools replaces distutils, and fails where another package has imported that before.
    ordered = sorted(packages, key=lambda package: package != "setuptools")
    broken = {package: _why_not(modules.get(package, [])) for package in ordered}
    _store_font_list()
    print(json.dumps({package: why for package, why in broken.items() if why}))


def _why_not(modules: list[str]) -> str:
    if not modules:
        return "it is not installed"
    for module in modules:
        if module.startswith("_"):
            continue
        try:
            import_module(module)
        except BaseException as error:  # noqa: BLE001 - a foreign module may even call sys.exit
            return f"{type(error).__name__}: {error}"[:200]
    return ""


def _store_font_list() -> None:
    if "matplotlib" not in sys.modules:
        return
    cache = import_module("matplotlib").get_cachedir()
    import_module("matplotlib.font_manager")
    for file in Path(cache).glob("fontlist-*.json"):
        shutil.copy(file, ".")
