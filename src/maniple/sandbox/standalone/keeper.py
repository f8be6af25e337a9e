"""Supervise an unprotected worker; kill all its descendants when it or the server ends.

A program that uses only the standard library:

    python keeper.py SERVER DIRECTORY MEMORY_BYTES FILE_BYTES PROGRAM [ARGUMENT…]

A descendant that loses its parent becomes this process's child, however often it forks or changes its
session, so that none is missed. This is no security boundary: the worker's programs can kill this process.
"""

import contextlib
import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_ROUNDS = 10_000


def _limit(memory_bytes: int, file_bytes: int) -> None:
    # Not the number of processes: that one counts everything which this user runs.
    limits = {
        resource.RLIMIT_AS: memory_bytes,
        resource.RLIMIT_FSIZE: file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
    }
    for kind, wanted in limits.items():
        hard = resource.getrlimit(kind)[1]
        wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (wanted, wanted))


def _children() -> list[int]:
    found: list[int] = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib is slow to import
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - pathlib is slow to import
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, IndexError):
                continue
            if parent == os.getpid():
                found.append(int(name))
    return found


def _sweep() -> None:
    """Kill every child, and those that become children by that, until there is none."""
    for _ in range(_ROUNDS):
        for child in _children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill(worker: int) -> None:
    # The worker notices the server's end, too, and may have exited already.
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)


def main(server: int, directory: str, memory_bytes: int, file_bytes: int, argv: list[str]) -> None:
    """Run the program to its end, or to the server's."""
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    worker = os.fork()
    if worker == 0:
        os.setsid()
        os.chdir(directory)
        _limit(memory_bytes, file_bytes)
        os.execv(argv[0], argv)
    signal.signal(signal.SIGTERM, lambda number, frame: _kill(worker))
    prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != server:  # it ended before it could be watched
        _kill(worker)
    while os.waitpid(-1, 0)[0] != worker:
        pass
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _sweep()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
