"""HTTP servers side by side: CPU of a stream, and what half-open connections do to them.

`python -m bench.http_servers --python PYTHON` measures maniple's (uvicorn with `LimitedConnection`) and those
of the other Python: uvicorn with h11 and with httptools, hypercorn, granian. Each has 512 descriptors, and
deadlines of two seconds where it offers them.
"""

import argparse
import asyncio
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bench.load import cpu_seconds
from tests.serving import ROOT

STREAMS = 64
ATTACKERS = 600
DESCRIPTORS = 512
WATCH_SECONDS = 6
_APP = "bench.http_app:app"
_UVICORN = ("-m", "uvicorn", _APP, "--loop", "uvloop", "--no-access-log", "--port", "{port}")
OURS = "maniple"
COMMANDS = {
    OURS: ("-m", "bench.http_app", "{port}"),
    "uvicorn-h11": (*_UVICORN, "--http", "h11"),
    "uvicorn-h11-asyncio": (*_UVICORN[:4], "asyncio", *_UVICORN[5:], "--http", "h11"),
    "uvicorn-httptools": (*_UVICORN, "--http", "httptools"),
    "hypercorn": ("-m", "hypercorn", _APP, "-k", "uvloop", "-b", "127.0.0.1:{port}", "--read-timeout", "2"),
    "granian": (
        *(
            "-m",
            "granian",
            _APP,
            "--interface",
            "asgi",
            "--http",
            "1",
            "--loop",
            "uvloop",
            "--port",
            "{port}",
        ),
        *("--http1-header-read-timeout", "2000"),
    ),
}
ATTACKS = {
    "half-sent headers": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "slow bodies": b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\nx",
    "idle connections": b"",
}


@dataclass(frozen=True)
class AttackResult:
    """What became of a server with 600 connections that send no more."""

    answer_seconds: float | None
    """Of a health check meanwhile; None: there was none."""
    closed: int
    """Of the 600, by the server within six seconds."""
    log_bytes: int
    cpu_seconds: float


@contextmanager
def open_server(python: str, command: Sequence[str]) -> Iterator[tuple[int, subprocess.Popen[bytes], Path]]:
    """Start a server with few descriptors; yield its port, its process and its log."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    arguments = [part.format(port=port) for part in command]
    limited = ["prlimit", f"--nofile={DESCRIPTORS}", python, *arguments]
    with tempfile.NamedTemporaryFile() as log:
        process = subprocess.Popen(limited, cwd=ROOT, stdout=log, stderr=log)
        try:
            _wait_for(port, process, Path(log.name))
            yield port, process, Path(log.name)
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        if process.poll() is not None:
            raise RuntimeError(log.read_text(encoding="utf-8")[-500:])
        time.sleep(0.05)


def _size_of(log: Path) -> int:
    return log.stat().st_size


async def check_health(port: int) -> float | None:
    """Return the seconds that a request takes, or None without an answer within three."""
    began = time.perf_counter()
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                if (await reader.readline()).startswith(b"HTTP/1.1 200"):
                    return time.perf_counter() - began
            finally:
                writer.close()
    return None


async def stream_cpu_ms(port: int, pids: Sequence[int]) -> float:
    """Return the CPU of one of 64 concurrent streams."""

    async def read() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /stream HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        while await reader.read(65_536):
            pass
        writer.close()

    before = sum(map(cpu_seconds, pids))
    await asyncio.gather(*(read() for _ in range(STREAMS)))
    return 1000 * (sum(map(cpu_seconds, pids)) - before) / STREAMS


async def attack(
    port: int, pids: Sequence[int], log: Path, opening: bytes, attackers: int = ATTACKERS
) -> AttackResult:
    """Open connections that send `opening` and nothing more, and look at the server until all are closed.

    That takes six seconds at most.
    """
    before, logged = sum(map(cpu_seconds, pids)), _size_of(log)
    closed = 0
    async with AsyncExitStack() as stack:

        async def watch(reader: asyncio.StreamReader) -> None:
            nonlocal closed
            with suppress(OSError):
                while await reader.read(65_536):
                    pass
            closed += 1

        tasks = []
        for _ in range(attackers):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(opening)
            tasks.append(asyncio.create_task(watch(reader)))
        answered = await check_health(port)
        await asyncio.wait(tasks, timeout=WATCH_SECONDS)
        result = AttackResult(answered, closed, _size_of(log) - logged, sum(map(cpu_seconds, pids)) - before)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    return result


def processes_below(pid: int) -> list[int]:
    """Return a process and its descendants."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(one for child in children for one in processes_below(int(child)))]


async def measure(other_python: str, names: Sequence[str]) -> None:
    """Print a line for each server, and one for each attack on it."""
    for name in names:
        python = sys.executable if name == OURS else other_python
        with open_server(python, COMMANDS[name]) as (port, process, _):
            pids = processes_below(process.pid)
            await stream_cpu_ms(port, pids)
            print(f"{name}: {await stream_cpu_ms(port, pids):.1f} ms of CPU a stream", flush=True)
        for title, opening in ATTACKS.items():
            with open_server(python, COMMANDS[name]) as (port, process, log):
                result = await attack(port, processes_below(process.pid), log, opening)
                answer = (
                    "no answer" if result.answer_seconds is None else f"{1000 * result.answer_seconds:.0f} ms"
                )
                print(
                    f"  {title}: health {answer}, {result.closed} of {ATTACKERS} closed, "
                    f"{result.log_bytes} bytes of log, {result.cpu_seconds:.1f} s of CPU",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.http_servers", description=__doc__)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("servers", nargs="*", default=list(COMMANDS), metavar="SERVER")
    options = parser.parse_args()
    asyncio.run(measure(options.python, options.servers))


if __name__ == "__main__":
    main()
