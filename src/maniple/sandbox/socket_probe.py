"""Lets code try to hold more memory in sockets than its limit, once after each start of the machine.

The attempts take up to a second, and only the kernel, the settings and this program decide how they end. So
that they passed is noted in a folder, and they are repeated when one of these is another.
"""

import asyncio
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.host import HostPrograms, standalone_program
from maniple.sandbox.watchdog import Watchdog, WatchedBackend
from maniple.workspace.workspaces import Workspaces

_KINDS = ("stream", "datagram", "tcp")
# Enough for Python, and little to fill; the limit of the settings is kept by the same means.
_MEMORY_MB, _PROCESSES, _SECONDS = 128, 64, 30.0
_END = "end of probes"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_SYSTEM_LIMITS = (
    *("/proc/sys/net/core/wmem_default", "/proc/sys/net/core/rmem_default", "/proc/sys/net/core/wmem_max"),
    *("/proc/sys/net/core/rmem_max", "/proc/sys/net/core/optmem_max"),
    *("/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_wmem"),
)
_FOLDER = "sandbox-probes"


async def find_unlimited_sockets(
    settings: SandboxSettings, programs: HostPrograms, watchdog: Watchdog, cache_dir: Path | None
) -> list[str]:
    """Return the kinds of sockets in which code keeps more memory than its limit; each completes "could …".

    Costs a session for each kind, once for each state of the machine where `cache_dir` is given. Raises
    `SandboxError` if no code runs, or `OSError` without a temporary folder.
    """
    memory_mb = min(settings.memory_mb, _MEMORY_MB)
    fixed = {"memory_mb": memory_mb, "processes": _PROCESSES, "timeout_seconds": _SECONDS, "network": "none"}
    own = settings.model_copy(update=fixed)
    mark = None if cache_dir is None else await asyncio.to_thread(_mark_in, cache_dir, own, programs)
    if mark is not None and await asyncio.to_thread(_is_ours, mark):
        return []
    backend = await asyncio.to_thread(BubblewrapBackend, own, programs)
    watched = WatchedBackend(backend, watchdog, own)
    async with _workspaces() as workspaces:
        tried = (_holds_too_much(watched, workspaces, kind, memory_mb) for kind in _KINDS)
        found = [kind for kind, held in zip(_KINDS, await asyncio.gather(*tried), strict=True) if held]
    if mark is not None and not found:
        await asyncio.to_thread(_note, mark)
    return [f"keep more memory than its limit in sockets ({kind})" for kind in found]


async def _holds_too_much(backend: WatchedBackend, workspaces: Workspaces, kind: str, memory_mb: int) -> bool:
    source = await asyncio.to_thread(standalone_program("probes.py").read_text)
    session = await backend.start(await asyncio.to_thread(workspaces.open, kind))
    try:
        completed = await session.run_python(f"{source}\n\nprint_unread({kind!r}, {memory_mb} << 20)\n")
    finally:
        await session.stop()
    *held, last = completed.stdout.splitlines() or [""]
    if completed.lost:  # the watchdog has ended it
        return False
    if last != _END:
        raise SandboxError(f"The sandbox's test of sockets did not finish: {completed.text()}")
    return bool(held)


@asynccontextmanager
async def _workspaces() -> AsyncGenerator[Workspaces]:
    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-probe-"))
    try:
        await asyncio.to_thread(folder.chmod, 0o755)
        yield Workspaces(folder / "workspaces")
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _mark_in(cache_dir: Path, settings: SandboxSettings, programs: HostPrograms) -> Path:
    """Return the file that says that this state of the machine has passed."""
    state = hashlib.sha256(repr((os.uname(), os.geteuid(), settings.model_dump_json(), programs)).encode())
    for path in (programs.bwrap, programs.nsenter, programs.python):
        state.update(str(Path(path).stat().st_mtime_ns).encode())
    for path in map(Path, _SYSTEM_LIMITS):
        state.update(_text_of(path))
    for text in _own_code(resources.files("maniple.sandbox")):
        state.update(text)
    return cache_dir / _FOLDER / _text_of(_BOOT).decode().strip() / state.hexdigest()


def _text_of(path: Path) -> bytes:
    with suppress(OSError):
        return path.read_bytes()
    return b"?"


def _own_code(folder: Traversable) -> Iterator[bytes]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name.endswith(".py"):
            yield entry.read_bytes()
        elif entry.is_dir():
            yield from _own_code(entry)


def _is_ours(mark: Path) -> bool:
    with suppress(OSError):
        return mark.lstat().st_uid == os.geteuid()
    return False


def _note(mark: Path) -> None:
    """Create the file, and remove those of earlier starts; a folder that cannot be written means nothing."""
    with suppress(OSError):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
        for other in mark.parent.parent.iterdir():
            if other != mark.parent:
                shutil.rmtree(other, ignore_errors=True)
