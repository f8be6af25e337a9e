"""The embedded model as an OpenAI-compatible server in a child process on loopback."""

import asyncio
import importlib.util
import json
import os
import secrets
import sys
import tempfile
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import httpx

from maniple.config.settings import EmbeddedSettings
from maniple.installation import installing
from maniple.llms.embedded.discovery import LocalEndpoint
from maniple.llms.embedded.model_file import (
    QWEN_CODER,
    Progress,
    ensure_model_file,
    make_embedded_error,
    report_periodically,
    stop_process,
)

# By path, because `-m` would import the parent packages, including LangChain, into the child.
_CHILD = str(Path(__file__).with_name("child.py"))
_POLL_SECONDS = 0.05
_GRACE_SECONDS = 3.0
_OUTPUT_CHARACTERS = 800


_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_MAX_USEFUL = 8


@asynccontextmanager
async def open_embedded(
    settings: EmbeddedSettings, cache_dir: Path, progress: Progress
) -> AsyncIterator[LocalEndpoint]:
    """Start the embedded model and yield its endpoint; its process ends with the body, or with this process.

    Downloads the file first if it is missing (`ensure_model_file`). Raises `ConfigError` or
    `EmbeddedModelError`.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise make_embedded_error(
            "The local model's engine, xllamacpp, is not installed. Where this machine has a package for it, "
            f"install it: {installing('local')}."
        )
    file = await ensure_model_file(settings, cache_dir, progress)
    name = QWEN_CODER.title if settings.model_file is None else file.stem
    api_key = secrets.token_urlsafe(24)
    with await asyncio.to_thread(tempfile.TemporaryFile) as errors:
        process = await _start(settings, file, name, errors)
        try:
            address = await _load(process, api_key, settings.start_timeout_seconds, progress)
            if address is None:
                raise make_embedded_error(await asyncio.to_thread(_failure, file, settings, process, errors))
            yield LocalEndpoint(f"{address}/v1", api_key, name, "embedded", settings.context_tokens)
        finally:
            await stop_process(process, _GRACE_SECONDS)


async def _start(settings: EmbeddedSettings, file: Path, name: str, errors: IO[bytes]) -> Process:
    threads = settings.threads or await asyncio.to_thread(usable_cpus)
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", _CHILD, str(file), "--alias", name, "--threads", str(threads)),
        *("--parallel", str(settings.parallel), "--context-tokens", str(settings.context_tokens)),
        stdin=PIPE,
        stdout=PIPE,
        stderr=errors,
        start_new_session=True,
    )


async def _load(process: Process, api_key: str, timeout_seconds: float, progress: Progress) -> str | None:
    """Return the server's address when it answers; None if it ends or does not answer in time."""
    started = time.monotonic()

    async def tell() -> None:
        progress.step(f"loading the model ({time.monotonic() - started:.0f} s)")

    try:
        async with report_periodically(tell), asyncio.timeout(timeout_seconds):
            return await _answer(process, api_key)
    except TimeoutError:
        return None


async def _answer(process: Process, api_key: str) -> str | None:
    assert process.stdin
    assert process.stdout
    if not process.stdin.is_closing():  # else it has ended, and its output too
        process.stdin.write(f"{api_key}\n".encode())
    line = await process.stdout.readline()
    if not line:
        await process.wait()
        return None
    address = str(json.loads(line)["address"])
    async with httpx.AsyncClient(trust_env=False) as client:
        while process.returncode is None:
            try:
                if (await client.get(f"{address}/health")).status_code == 200:
                    return address
            except httpx.TransportError:  # it has ended (the loop stops) or is busy (the loop repeats)
                pass
            await asyncio.sleep(_POLL_SECONDS)
    return None


def _failure(file: Path, settings: EmbeddedSettings, process: Process, errors: IO[bytes]) -> str:
    if process.returncode is None:
        seconds = f"{settings.start_timeout_seconds:.0f} s"
        return f"The local model {file} was not ready within {seconds} (embedded.start_timeout_seconds)."
    errors.seek(0)
    output = " ".join(errors.read().decode(errors="replace").split())[-_OUTPUT_CHARACTERS:]
    return f"The local model {file} could not be started. Its output: {output or 'none'}."


def usable_cpus(quota_file: Path = _QUOTA) -> int:
    """Return the number of usable CPUs, 1 to 8, by CPU affinity and a container's quota (`QUOTA PERIOD` in
    µs).

    More threads than CPUs make the engine many times slower. Beyond 8, memory is the limit.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(count, _quota(quota_file), _MAX_USEFUL))


def _quota(quota_file: Path) -> int:
    try:
        quota, period = quota_file.read_text().split()
        return int(quota) // int(period)
    except (OSError, ValueError, ZeroDivisionError):  # no cgroup, or `max`, which means no quota
        return _MAX_USEFUL
