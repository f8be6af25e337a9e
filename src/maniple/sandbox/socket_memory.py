"""The memory that the sockets of a sandbox can hold, and the limits that keep it small.

Data that waits in sockets is memory of the kernel, which no process's own limit counts, and whose amount the
host cannot see from outside. So it is bounded for each socket: the system-call filter ignores larger buffers,
TCP, which enlarges its buffers by itself, gets small limits in the network namespace of the sandbox (the
host's stay as they are), and every socket counts with what it can hold by the system's own limits. The kernel
counts a socket that waits in another one, or is closed with data on the way, until its memory is free.
"""

import fcntl
import os
import subprocess
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from maniple.sandbox.host import HostPrograms

# (the setting, its path inside, its values in a sandbox: least, at first, most)
_TCP = (
    ("/proc/sys/net/ipv4/tcp_rmem", "/run/maniple/tcp_rmem", "4096 131072 196608"),
    ("/proc/sys/net/ipv4/tcp_wmem", "/run/maniple/tcp_wmem", "4096 16384 98304"),
)
TCP_LIMITS = tuple((path, inner) for path, inner, _ in _TCP)
"""Files to mount: a file that is mounted keeps the values of the namespace in which it was mounted."""
_CORE = "/proc/sys/net/core"
_USUAL_BUFFER = 212_992
_USUAL_OPTIONS = 131_072
_USUAL_TCP = ("4096 131072 6291456", "4096 16384 4194304")
# A packet of 64 kB for each direction may exceed a buffer that is not yet full.
_TCP_EXCESS = 131_072
# A datagram may be as large as the buffer that it exceeds.
_EXCESS_TIMES = 2
_OWNER_OF_NAMESPACE = 0xB701  # NS_GET_USERNS of linux/nsfs.h
_SECONDS = 10.0


class SocketBounds:
    """How many bytes one socket of a sandbox can hold; the constructor reads the system's own limits."""

    def __init__(self, core: Path = Path(_CORE)) -> None:
        buffers = [_read_number(core / f"{name}_default", _USUAL_BUFFER) for name in ("wmem", "rmem")]
        self._buffered = _EXCESS_TIMES * max(buffers)
        self._options = _read_number(core / "optmem_max", _USUAL_OPTIONS)

    def bytes_per_socket(self, read: Callable[[str], bytes]) -> int:
        """Return the bound; `read` reads a file of the sandbox, and returns nothing for a missing one."""
        found = [
            _greatest(read(inner.lstrip("/"))) or _greatest(usual.encode())
            for (_, inner), usual in zip(TCP_LIMITS, _USUAL_TCP, strict=True)
        ]
        return max(self._buffered, sum(found) + _TCP_EXCESS) + self._options


def _read_number(path: Path, usual: int) -> int:
    with suppress(OSError, ValueError):  # older kernels show these on the host alone
        return int(path.read_text())
    return usual


def _greatest(values: bytes) -> int:
    return max((int(value) for value in values.split() if value.isdigit()), default=0)


def narrow_tcp_buffers(process: int, programs: HostPrograms) -> bool:
    """Give the network namespace of a process small limits; blocks for some milliseconds.

    Returns False where this is forbidden: then the greater limits of the system count for each socket.
    """
    script = " && ".join(f"echo {values} > {path}" for path, _, values in _TCP)
    with ExitStack() as stack:
        try:
            network = os.open(f"/proc/{process}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, network)
            # That of bwrap's first step, in which this user may do everything.
            owner = fcntl.ioctl(network, _OWNER_OF_NAMESPACE)
            stack.callback(os.close, owner)
            command = [programs.nsenter, "--preserve-credentials", f"--user=/proc/self/fd/{owner}"]
            command += [f"--net=/proc/self/fd/{network}", "--", programs.sh, "-c", script]
            completed = subprocess.run(
                command, pass_fds=(network, owner), env={}, capture_output=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return completed.returncode == 0
