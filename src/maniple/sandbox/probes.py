"""The refusal rule: a sandbox that cannot be started, or that can be left, is not handed out."""

import asyncio
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib import resources
from pathlib import Path

from maniple.config.settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import Sandbox
from maniple.sandbox.bubblewrap import ENVIRONMENT, BubblewrapSandbox
from maniple.sandbox.programs import find_programs
from maniple.sandbox.workspace import Workspaces
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


@asynccontextmanager
async def open_sandbox(
    settings: SandboxSettings, *, search_path: str | None = None
) -> AsyncIterator[Sandbox | Unavailable]:
    """Yield a sandbox that withstood the probes, or why there is none. Nothing takes its place.

    `search_path` replaces PATH in the search for bwrap and its companions. Costs one sandboxed call.
    """
    yield await _probed(settings, search_path)


async def _probed(settings: SandboxSettings, search_path: str | None) -> Sandbox | Unavailable:
    if settings.backend == "off":
        return Unavailable("The sandbox is turned off.", "set `sandbox.backend: bubblewrap`.")
    programs = await asyncio.to_thread(find_programs, settings.python, search_path)
    if isinstance(programs, Unavailable):
        return programs
    try:
        sandbox = await asyncio.to_thread(BubblewrapSandbox, settings, programs)
        escapes = await _find_escapes(sandbox, settings.processes)
    except (SandboxError, FileError, OSError) as error:
        return Unavailable(str(error), await asyncio.to_thread(_remedy))
    if isinstance(escapes, Unavailable):
        return escapes
    if escapes:
        return Unavailable(
            f"Code in the sandbox could {'; '.join(escapes)}.", "update bubblewrap and the kernel."
        )
    return sandbox


async def _find_escapes(sandbox: Sandbox, processes: int) -> list[str] | Unavailable:
    """Let code inside try to get out: what it could do. Raises `SandboxError` if nothing runs at all."""
    with ExitStack() as stack:
        code, workspace = await asyncio.to_thread(stack.enter_context, _baits(processes))
        try:
            completed = await sandbox.run_python(code, workspace=workspace)
        finally:
            await asyncio.to_thread(stack.close)
    *escapes, last = completed.stdout.splitlines() or [""]
    if last != "end of probes":
        reason = f"The sandbox's own test did not finish: {completed.text()}"
        return Unavailable(reason, "check the limits and `sandbox.python` in the settings.")
    return escapes


@contextmanager
def _baits(processes: int) -> Iterator[tuple[str, Path]]:
    """Things on the host to reach for; yields the code that tries to, and where to run it."""
    with tempfile.TemporaryDirectory(prefix="maniple-probe-") as outside, _listeners() as (tcp, abstract):
        # Not protected by anything but the sandbox.
        Path(outside).chmod(0o755)
        canary = Path(outside, "canary")
        canary.write_text("outside")
        arguments = (str(canary), tcp, abstract, set(ENVIRONMENT), processes)
        source = resources.files("maniple.sandbox").joinpath("escapes.py").read_text()
        code = f"{source}\n\nprint_escapes({', '.join(map(repr, arguments))})\n"
        yield code, Workspaces(Path(outside, "workspaces")).open("probe").path


@contextmanager
def _listeners() -> Iterator[tuple[tuple[str, int], str]]:
    """A TCP listener on loopback and one on an abstract unix address."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix,
    ):
        abstract = f"\0maniple-probe-{os.getpid()}-{tcp.getsockname()[1]}"
        unix.bind(abstract)
        unix.listen()
        yield tcp.getsockname(), abstract


def _remedy() -> str:
    for path, forbidding, remedy in _SWITCHES:
        switch = Path(path)
        if switch.exists() and switch.read_text().strip() == forbidding:
            return remedy
    return _CONTAINER
