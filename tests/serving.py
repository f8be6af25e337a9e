"""A real server process of maniple over a scripted endpoint, and clients that read its stream."""

import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.environment import environment
from tests.forking import Forked

__all__ = [
    "ROOT",
    "Frame",
    "ServerProcess",
    "environment",
    "frames_of",
    "memory_mb",
    "server_process",
    "stream",
]

ROOT = Path(__file__).parents[1]
_ADDRESS = re.compile(r"Serving on (http://127\.0\.0\.1:\d+)")
Frame = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class ServerProcess:
    """A running server."""

    url: str
    process: subprocess.Popen[str]

    def memory_mb(self) -> float:
        """Return the resident memory of the server itself."""
        return memory_mb(self.process.pid)


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]


@contextmanager
def server_process(
    env: dict[str, str],
    cwd: Path,
    *,
    measured: bool = False,
    start: type[subprocess.Popen[Any]] = Forked,
    port: int = 0,
) -> Iterator[ServerProcess]:
    """Start `server.py` on `port` (0: a free one), stop it by its process id; `measured` watches its loop.

    What is to be known of its start and its size needs `start=subprocess.Popen`.
    """
    command = [sys.executable, *(["-m", "tests.looped_server"] if measured else [str(ROOT / "server.py")])]
    env = {**env, "PYTHONPATH": str(ROOT), "MANIPLE_SERVER__PORT": str(port)}
    process = start(command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    reader = threading.Thread(target=_read_to_the_end, args=(process,), name="server-log", daemon=True)
    try:
        url = _address(process)
        # Its log is read to the end: a full pipe would stop the server.
        reader.start()
        yield ServerProcess(url, process)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reader.is_alive():
            reader.join(5)
        if process.stdout:
            process.stdout.close()


def _read_to_the_end(process: subprocess.Popen[str]) -> None:
    for _ in process.stdout or ():
        pass


def _address(process: subprocess.Popen[str]) -> str:
    said = []
    for line in process.stdout or ():
        said.append(line)
        if found := _ADDRESS.search(line):
            return found.group(1)
    raise AssertionError("the server ended at its start:\n" + "".join(said))


async def frames_of(client: httpx.AsyncClient, body: dict[str, Any]) -> list[Frame]:
    """Ask once and return what was streamed, by name and data."""
    return [frame async for _, frame in stream(client, body)]


async def stream(client: httpx.AsyncClient, body: dict[str, Any]) -> AsyncIterator[tuple[int, Frame]]:
    """Ask once and yield (id, (name, data)) as the old client would read it: strictly."""
    async with client.stream("POST", "/api/chat/stream", json=body) as response:
        assert response.status_code == 200, await response.aread()
        waiting = ""
        async for text in response.aiter_text():
            waiting += text
            *complete, waiting = waiting.split("\n\n")
            for block in complete:
                if not block.startswith(":"):
                    yield _frame(block)
        assert waiting == "", "the last frame was not terminated"


def _frame(block: str) -> tuple[int, Frame]:
    assert "\r" not in block
    number, name, content = block.split("\n")
    assert number.startswith("id: ")
    assert name.startswith("event: ")
    assert content.startswith("data: ")
    return int(number[4:]), (name[7:], json.loads(content[6:]))
