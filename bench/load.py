"""Servers under load: the team beside a bare and a lean server, over one model, in one run.

Every server and the model are processes of their own, and this process is the client. CPU is that of a
server's process with all its threads; what it starts (sandboxes, Chromium) is not in it.
"""

import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from bench.bare_server import TEAMS
from bench.model_server import IMMEDIATE, Pace, count_tokens
from tests.environment import environment
from tests.serving import ROOT, memory_mb, server_process

TEAM, BARE, LEAN = "team", "bare", "lean"
NO_PROXY = "no_proxy"
"""The team's server whose environment has a proxy, and names the model's host as an exception."""
HTTP_PROXY = "http_proxy"
"""The team's server behind an HTTP proxy, which is the model itself: it takes any address."""
_PROXY_EXCEPTIONS = {"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1,localhost"}
KINDS = (TEAM, BARE, LEAN)
_END = b"event: end_of_workflow"
_FAILURES = (b"event: error", b'"status": "failed"')
_OVERLAP = 64
"""Bytes of a piece that are searched again with the next one, in which a mark may end."""
_RUN_SECONDS = 600
_ADDRESS = re.compile(r"http://\S+")


@dataclass(frozen=True)
class RunTimes:
    """Seconds from a request to its first event and to the end of its answer."""

    first_event: float
    total: float


@dataclass(frozen=True)
class LoadResult:
    """What one server took for some concurrent runs."""

    runs: list[RunTimes]
    cpu_seconds: float
    """Of the server's process."""
    model_share: float
    """Of one core, taken by the model's process."""
    client_share: float
    """Of one core, taken by this process."""

    @classmethod
    def combine(cls, results: Sequence["LoadResult"]) -> "LoadResult":
        """Return the runs of several rounds as one result, with the largest shares."""
        return cls(
            [run for result in results for run in result.runs],
            sum(result.cpu_seconds for result in results),
            max(result.model_share for result in results),
            max(result.client_share for result in results),
        )

    @property
    def cpu_ms(self) -> float:
        """CPU of one run."""
        return 1000 * self.cpu_seconds / len(self.runs)

    def seconds(self, percentile: int) -> float:
        """Return a percentile of the times that runs took."""
        return percentile_of([run.total for run in self.runs], percentile)

    def first_event_seconds(self, percentile: int) -> float:
        """Return a percentile of the times to the first event."""
        return percentile_of([run.first_event for run in self.runs], percentile)


def percentile_of(values: list[float], percentile: int) -> float:
    """Return a percentile by the nearest rank; 100 is the largest value."""
    return sorted(values)[max(0, -(-len(values) * percentile // 100) - 1)]


@dataclass
class ServersUnderLoad:
    """Running servers by kind, and their model."""

    model_url: str
    model_pid: int
    urls: dict[str, str] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    pace: Pace = IMMEDIATE
    _numbers: Iterator[int] = field(default_factory=count)

    def set_pace(self, pace: Pace) -> None:
        """Let the model write at this pace from now on."""
        self.pace = pace
        set_pace(self.model_url, pace)

    async def load(self, kind: str, streams: int, question: str = "1+3=?") -> LoadResult:
        """Ask one server `streams` times concurrently."""
        names = [f"{kind}{next(self._numbers)}" for _ in range(streams)]
        url = self.urls[kind]
        watched = (self.pids[kind], self.model_pid)
        began, own = time.perf_counter(), time.process_time()
        before = [cpu_seconds(pid) for pid in watched]
        runs = await asyncio.gather(*(ask(url, f"{question} #run={name}") for name in names))
        took = time.perf_counter() - began
        server, model = (cpu_seconds(pid) - earlier for pid, earlier in zip(watched, before, strict=True))
        return LoadResult(runs, server, model / took, (time.process_time() - own) / took)

    def memory_mb(self, kind: str) -> float:
        """Return the resident memory of a server."""
        return memory_mb(self.pids[kind])

    def descriptors(self, kind: str) -> int:
        """Return how many files and sockets a server has open."""
        return len(list(Path(f"/proc/{self.pids[kind]}/fd").iterdir()))


def set_pace(model_url: str, pace: Pace) -> None:
    """Let a model process write at this pace from now on."""
    body = {"first_seconds": pace.first_seconds, "token_seconds": pace.token_seconds}
    url = model_url.removesuffix("/v1")
    httpx.post(f"{url}/admin/pace", json=body, timeout=60).raise_for_status()


async def ask(url: str, question: str) -> RunTimes:
    """Ask one question over a connection of its own and read the answer to its end."""
    body = json.dumps({"messages": [{"role": "user", "content": question}]}).encode()
    address = urlsplit(url)
    head = (
        f"POST /api/chat/stream HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    began, first = time.perf_counter(), 0.0
    async with asyncio.timeout(_RUN_SECONDS):
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        try:
            writer.write(head.encode() + body)
            overlap, has_ended, failure = b"", False, b""
            while data := await reader.read(65_536):
                seen = overlap + data
                if not first and b"event: " in seen:
                    first = time.perf_counter() - began
                has_ended = has_ended or _END in seen
                failure = failure or next((mark for mark in _FAILURES if mark in seen), b"")
                overlap = seen[-_OVERLAP:]
        finally:
            writer.close()
    if failure or not has_ended:
        raise RuntimeError(f"A run of {url} did not complete: {failure or overlap!r}")
    return RunTimes(first, time.perf_counter() - began)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of another process, with its threads.

    The clock is MAKE_PROCESS_CPUCLOCK of Linux's posix-timers.h.
    """
    return time.clock_gettime((~pid << 3) | 2)


def floor_seconds(script: Mapping[str, list[dict[str, Any]]], roles: tuple[str, ...], pace: Pace) -> float:
    """Return the time that the model itself takes for a run in which these roles are asked."""
    asked = [reply for role in roles for reply in script[role]]
    return sum(map(pace.seconds, count_tokens(asked)))


@contextmanager
def model_process(script: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Start the model server; yield its URL and process id."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(script, file)
        file.flush()
        with _printed_url("bench.model_server", file.name) as started:
            yield started


@contextmanager
def _printed_url(module: str, *arguments: str) -> Iterator[tuple[str, int]]:
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            address = _ADDRESS.search(line)
            if address is None:
                raise RuntimeError(f"{module} did not start.")
            yield address[0], process.pid
        finally:
            process.terminate()


@contextmanager
def servers_under_load(
    script: Mapping[str, Any],
    *kinds: str,
    member: str = "coder",
    site: str = "",
    settings: Mapping[str, str] | None = None,
) -> Iterator[ServersUnderLoad]:
    """Start the model and the servers; `settings` are environment variables of the team's server."""
    assert member in TEAMS
    with ExitStack() as stack:
        model_url, model_pid = stack.enter_context(model_process(script))
        servers = ServersUnderLoad(model_url, model_pid)
        for kind in kinds or KINDS:
            if kind in (TEAM, NO_PROXY, HTTP_PROXY):
                home = stack.enter_context(tempfile.TemporaryDirectory())
                more = _proxy_variables(kind, model_url)
                env = environment(model_url, home, **(settings or {}), **more)
                server = stack.enter_context(server_process(env, Path(home), start=subprocess.Popen))
                servers.urls[kind], servers.pids[kind] = server.url, server.process.pid
            else:
                arguments = (kind, model_url, "--member", member, "--site", site)
                servers.urls[kind], servers.pids[kind] = stack.enter_context(
                    _printed_url("bench.bare_server", *arguments)
                )
        yield servers


def _proxy_variables(kind: str, model_url: str) -> Mapping[str, str]:
    """Return the environment's variables about proxies for one of the team's servers."""
    if kind == HTTP_PROXY:
        return {"HTTP_PROXY": model_url.removesuffix("/v1")}
    return _PROXY_EXCEPTIONS if kind == NO_PROXY else {}


async def compare_cpu(servers: ServersUnderLoad, streams: int, rounds: int) -> dict[str, float]:
    """Return the CPU milliseconds of a run of each server: the median of rounds in which they take turns."""
    spent: dict[str, list[float]] = {kind: [] for kind in servers.urls}
    for number in range(rounds + 1):
        for kind, values in spent.items():
            result = await servers.load(kind, streams)
            if number:  # the first round warms up
                values.append(result.cpu_ms)
    return {kind: statistics.median(values) for kind, values in spent.items()}
