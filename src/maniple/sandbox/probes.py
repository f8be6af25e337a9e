"""The refusal rule: a sandbox that cannot be started, or that can be left, is not handed out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from maniple.config.settings import SandboxSettings
from maniple.egress import Exit
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import Backend
from maniple.sandbox.bubblewrap import BubblewrapBackend
from maniple.sandbox.choice import CHOICES, open_chosen
from maniple.sandbox.fittings import Fittings, open_fittings
from maniple.sandbox.programs import find_programs
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.trial import find_escapes
from maniple.sandbox.watchdog import Watchdog
from maniple.sandbox.watched import WatchedBackend
from maniple.types import Unavailable

# (file, value that forbids user namespaces, what allows them)
_SWITCHES = (
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)

_CONTAINER = (
    "allow user namespaces here; for a Docker container that is `docker run --privileged`, or an ordinary "
    "user inside with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`."
)

_UPDATE = "apt-get install --only-upgrade -y bubblewrap; when that does not help, update the kernel."


@asynccontextmanager
async def open_sandbox(
    settings: SandboxSettings,
    *,
    cache_dir: Path | None = None,
    leads: Exit | None = None,
    search_path: str | None = None,
) -> AsyncIterator[Sandbox | Unavailable]:
    """Yield a sandbox that withstood the probes, or why there is none. Nothing takes its place.

    `cache_dir` is where the prepared packages are, `leads` where `network: allowlist` goes. `search_path`
    replaces PATH in the search for bwrap and its companions. Costs one sandboxed call.
    """
    async with AsyncExitStack() as stack:
        if settings.backend in CHOICES:
            chosen = await stack.enter_async_context(open_chosen(settings, cache_dir))
            if not isinstance(chosen, Unavailable):
                chosen = Sandbox(chosen, settings)
                stack.push_async_callback(chosen.close)
            yield chosen
            return
        try:
            fittings = await stack.enter_async_context(open_fittings(settings, cache_dir, leads))
        except SandboxError as error:
            yield Unavailable(str(error), "or set `sandbox.network: none`.")
            return
        watchdog = Watchdog()
        stack.push_async_callback(asyncio.to_thread, watchdog.close)
        backend = await _probed(settings, fittings, watchdog, search_path)
        if isinstance(backend, Unavailable):
            yield backend
            return
        sandbox = Sandbox(backend, settings)
        stack.push_async_callback(sandbox.close)
        yield sandbox


async def _probed(
    settings: SandboxSettings, fittings: Fittings, watchdog: Watchdog, search_path: str | None
) -> Backend | Unavailable:
    if settings.backend == "off":
        return Unavailable("The sandbox is turned off.", "set `sandbox.backend: bubblewrap`.")
    programs = await asyncio.to_thread(find_programs, settings.python, search_path)
    if isinstance(programs, Unavailable):
        return programs
    try:
        backend = await asyncio.to_thread(BubblewrapBackend, settings, programs, fittings)
        escapes = await find_escapes(backend, set(backend.variables), settings.processes)
    except (SandboxError, FileError, OSError) as error:
        return Unavailable(str(error), await asyncio.to_thread(_remedy))
    if isinstance(escapes, Unavailable):
        return escapes
    if escapes:
        return Unavailable(f"Code in the sandbox could {'; '.join(escapes)}.", _UPDATE)
    return WatchedBackend(backend, watchdog, settings)


def _remedy() -> str:
    for path, forbidding, remedy in _SWITCHES:
        switch = Path(path)
        if switch.exists() and switch.read_text().strip() == forbidding:
            return remedy
    return _CONTAINER
