"""What a sandbox costs: its start, a call when it is warm, and many at once: memory, waiting, watching."""

import asyncio
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

from maniple.config import SandboxSettings
from maniple.sandbox import SandboxBackend, SandboxSession, open_sandbox
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.host import find_programs
from maniple.sandbox.watchdog import Watchdog, WatchedBackend
from maniple.workspace import Workspaces

ROUNDS = 25
WARM_CALLS = 200
AT_ONCE = 32
THREADS = 64
MODEL_SECONDS = 2
"""How long a model writes before, between and after the two calls of a thread."""
WATCHED_SECONDS = 10


async def measure() -> dict[str, float]:
    """Time each thing and its bare counterpart in turn, so that a busy machine slows both alike; medians."""
    settings = SandboxSettings(concurrent=AT_ONCE)
    async with open_sandbox(settings):  # it passes its probes
        pass
    programs = await asyncio.to_thread(find_programs, settings.python)
    backend = await asyncio.to_thread(BubblewrapBackend, settings, programs)
    with tempfile.TemporaryDirectory() as folder:
        workspaces = Workspaces(Path(folder))
        python = [programs.python, "-c", "pass"]
        return {
            **await _start(backend, workspaces, python),
            **await _warm(backend, workspaces),
            "sandboxes_32_mb": await _together(backend, workspaces),
            "watchdog_64_ms_per_s": await _watched(backend, workspaces, settings),
            "threads_64_p50_s": await _threads(workspaces),
        }


async def _start(backend: SandboxBackend, workspaces: Workspaces, python: list[str]) -> dict[str, float]:
    started: list[float] = []
    answered: list[float] = []
    bare: list[float] = []
    workspace = workspaces.open("start")
    for _ in range(ROUNDS):
        bare.append(await asyncio.to_thread(_bare, python))
        began = time.perf_counter()
        session = await backend.start(workspace)
        started.append(time.perf_counter() - began)
        await session.run_python("pass")
        answered.append(time.perf_counter() - began)
        await session.stop()
    return {
        "sandbox_start_ms": _milliseconds(started),
        "sandbox_first_answer_ms": _milliseconds(answered),
        "bare_python_ms": _milliseconds(bare),
        "sandbox_start_ratio": _ratio(started, bare),
        "sandbox_first_answer_ratio": _ratio(answered, bare),
    }


def _bare(argv: list[str]) -> float:
    """Run a program without an environment, as the sandbox does."""
    began = time.perf_counter()
    subprocess.run(argv, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


async def _warm(backend: SandboxBackend, workspaces: Workspaces) -> dict[str, float]:
    session = await backend.start(workspaces.open("warm"))
    names: dict[str, object] = {}
    try:
        calls = [await _timed(lambda: session.run_python("x = 1 + 1")) for _ in range(WARM_CALLS)]
        commands = [await _timed(lambda: session.run_bash("true")) for _ in range(ROUNDS)]
    finally:
        await session.stop()
    bare = [_exec("x = 1 + 1", names) for _ in range(WARM_CALLS)]
    shells = [await asyncio.to_thread(_bare, ["bash", "-c", "true"]) for _ in range(ROUNDS)]
    return {
        "warm_call_over_exec_ms": round(_milliseconds(calls) - _milliseconds(bare), 2),
        "warm_bash_over_bare_ms": round(_milliseconds(commands) - _milliseconds(shells), 2),
    }


async def _timed(call: Callable[[], Awaitable[object]]) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


def _exec(code: str, names: dict[str, object]) -> float:
    began = time.perf_counter()
    exec(code, names)
    return time.perf_counter() - began


async def _together(backend: SandboxBackend, workspaces: Workspaces) -> float:
    """Return the proportional memory (PSS) of all processes of 32 sandboxes that have answered."""
    async with AsyncExitStack() as stack:
        sessions: list[SandboxSession] = []
        for number in range(AT_ONCE):
            session = await backend.start(workspaces.open(f"t{number}"))
            stack.push_async_callback(session.stop)
            sessions.append(session)
        await asyncio.gather(*(session.run_python("import json, re; x = 1") for session in sessions))
        return await asyncio.to_thread(_memory_of_descendants_mb)


async def _watched(backend: BubblewrapBackend, workspaces: Workspaces, settings: SandboxSettings) -> float:
    """Return the processor time of this process for each second in which 64 sandboxes rest."""
    async with AsyncExitStack() as stack:
        watchdog = Watchdog()
        stack.push_async_callback(asyncio.to_thread, watchdog.close)
        watched = WatchedBackend(backend, watchdog, settings)
        for number in range(THREADS):
            session = await watched.start(workspaces.open(f"w{number}"))
            stack.push_async_callback(session.stop)
        await asyncio.sleep(WATCHED_SECONDS / 2)  # until all are quiet
        began, used = time.monotonic(), time.process_time()
        await asyncio.sleep(WATCHED_SECONDS)
        return round((time.process_time() - used) / (time.monotonic() - began) * 1000, 1)


async def _threads(workspaces: Workspaces) -> float:
    """Return how long the median of 64 threads takes with two calls, beside a model that takes 6 s."""
    async with open_sandbox(SandboxSettings()) as sandbox:

        async def run(key: str) -> float:
            began = time.monotonic()
            for _ in range(2):
                await asyncio.sleep(MODEL_SECONDS)
                await sandbox.run_python("x = 1", key=key, workspace=workspaces.open(key))
            await asyncio.sleep(MODEL_SECONDS)
            return time.monotonic() - began

        return round(statistics.median(await asyncio.gather(*(run(f"c{n}") for n in range(THREADS)))), 1)


def _memory_of_descendants_mb() -> float:
    total, pending = 0, list(_children("self"))
    for process in pending:
        pending += _children(process)
        rollup = Path(f"/proc/{process}/smaps_rollup").read_text()
        total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return round(total / 1024, 1)


def _children(process: str) -> list[str]:
    lists = Path(f"/proc/{process}/task").glob("*/children")
    return [child for each in lists for child in each.read_text().split()]


def _milliseconds(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1000, 2)


def _ratio(ours: list[float], bare: list[float]) -> float:
    return round(statistics.median(a / b for a, b in zip(ours, bare, strict=True)), 2)
