"""What keeping everything costs: CPU per run of a server with SQLite beside one that keeps nothing."""

import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx

from tests.environment import environment
from tests.serving import ServerProcess, server_process

ROUNDS = 40
WARM_UP = 5


def measure(base_url: str) -> dict[str, float]:
    """Ask two servers the same question in turn, over HTTP; the CPU is that of their processes alone."""
    with ExitStack() as stack:
        kept, free = (_server(stack, base_url, backend) for backend in ("sqlite", "memory"))
        pairs = [(_cpu(kept, f"k{number}"), _cpu(free, f"m{number}")) for number in range(WARM_UP + ROUNDS)]
    sqlite, memory = zip(*pairs[WARM_UP:], strict=True)
    return {
        "run_cpu_ms": round(statistics.median(sqlite) * 1000, 1),
        "run_cpu_in_memory_ms": round(statistics.median(memory) * 1000, 1),
        "persistence_ratio": round(statistics.median(a / b for a, b in pairs[WARM_UP:]), 3),
    }


def _server(stack: ExitStack, base_url: str, backend: str) -> ServerProcess:
    home = stack.enter_context(tempfile.TemporaryDirectory())
    env = environment(base_url, home, MANIPLE_STORE__BACKEND=backend)
    return stack.enter_context(server_process(env, Path(home), start=subprocess.Popen))


def _cpu(server: ServerProcess, name: str) -> float:
    """Return the seconds of CPU that a server takes for one run, from the request to the last event."""
    body = {"messages": [{"role": "user", "content": f"1+3=? #run={name}"}]}
    began = _cpu_seconds(server.process.pid)
    answer = httpx.post(f"{server.url}/api/chat/stream", json=body, timeout=60)
    assert "end_of_workflow" in answer.text
    return _cpu_seconds(server.process.pid) - began


def _cpu_seconds(pid: int) -> float:
    # The clock of another process, in nanoseconds: MAKE_PROCESS_CPUCLOCK of linux/posix-timers.h.
    return time.clock_gettime((~pid << 3) | 2)
