"""Opens the sandbox of the settings; one that does not start, or from which code escapes, is refused."""

import asyncio
import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import EgressRoute
from maniple.errors import FileError, SandboxError, Unavailable
from maniple.installation import installing
from maniple.sandbox.backend import ExecutionResult, SandboxBackend
from maniple.sandbox.bubblewrap import BubblewrapBackend, SandboxLayout, open_layout
from maniple.sandbox.host import find_programs, standalone_program
from maniple.sandbox.package_environment import PackageEnvironment, find_usable_environment
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.socket_probe import find_unlimited_sockets
from maniple.sandbox.usage import find_inspector
from maniple.sandbox.watchdog import WatchableBackend, WatchableSession, Watchdog, WatchedBackend
from maniple.workspace.account import find_sandbox_account
from maniple.workspace.files import Workspace
from maniple.workspace.safe_open import open_directory, open_regular
from maniple.workspace.workspaces import Workspaces

if TYPE_CHECKING:
    from maniple.sandbox.backends.docker import DockerBackend

# (file, value that forbids user namespaces, command that allows them)
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
    egress: EgressRoute | None = None,
    search_path: str | None = None,
) -> AsyncIterator[Sandbox]:
    """Yield a sandbox that passed its probes; raises `Unavailable` without one. Nothing replaces it.

    `cache_dir` holds the prepared packages, `egress` is the route for `network: allowlist`. `search_path`
    replaces PATH in the search for bwrap and its companions. Costs one sandboxed call.
    """
    async with AsyncExitStack() as stack:
        if settings.backend in OPTIONAL_BACKENDS:
            backend = await stack.enter_async_context(open_backend(settings, cache_dir))
        else:
            try:
                fittings = await stack.enter_async_context(open_layout(settings, cache_dir, egress))
            except SandboxError as error:
                raise Unavailable(str(error), "or set `sandbox.network: none`.") from error
            watchdog = Watchdog()
            stack.push_async_callback(asyncio.to_thread, watchdog.close)
            backend = await _probed(settings, fittings, watchdog, (cache_dir, search_path))
        sandbox = await asyncio.to_thread(Sandbox, backend, settings)
        stack.push_async_callback(sandbox.close)
        yield sandbox


async def _probed(
    settings: SandboxSettings,
    fittings: SandboxLayout,
    watchdog: Watchdog,
    places: tuple[Path | None, str | None],
) -> SandboxBackend:
    cache_dir, search_path = places
    if settings.backend == "off":
        raise Unavailable("The sandbox is turned off.", "set `sandbox.backend: bubblewrap`.")
    programs = await asyncio.to_thread(find_programs, settings.python, search_path)
    try:
        backend = await asyncio.to_thread(BubblewrapBackend, settings, programs, fittings)
        escapes = await find_escapes(backend, set(backend.variables), settings.processes)
        if not escapes:
            escapes = await find_unlimited_sockets(settings, programs, watchdog, cache_dir)
    except (SandboxError, FileError, OSError) as error:
        raise Unavailable(str(error), await asyncio.to_thread(_remedy)) from error
    if escapes:
        raise Unavailable(f"Code in the sandbox could {'; '.join(escapes)}.", _UPDATE)
    return WatchedBackend(backend, watchdog, settings)


def _remedy() -> str:
    for path, forbidding, remedy in _SWITCHES:
        switch = Path(path)
        if switch.exists() and switch.read_text().strip() == forbidding:
            return remedy
    return _CONTAINER


_SETTINGS = "see `sandbox` in conf.yaml and docs/sandbox.md; sandbox.backend chooses another."
_HELLO = "print(6 * 7)"


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """How to open a backend; this may raise `SandboxError`, `FileError` or `OSError`.

    `extra` installs the package of its SDK; importing `client` from it loads the rest.
    """

    open: Callable[[SandboxSettings], AbstractAsyncContextManager[SandboxBackend]]
    package: str = ""
    client: str = ""
    extra: str = ""

    def load(self) -> None:
        """Import the SDK. Blocks for up to two seconds."""
        if self.package:
            getattr(import_module(self.package), self.client)


@asynccontextmanager
async def open_backend(
    settings: SandboxSettings, cache_dir: Path | None = None
) -> AsyncIterator[SandboxBackend]:
    """Yield the backend that the settings choose, one of `CHOICES`, once it has shown that it runs code.

    Raises `Unavailable` where it has not: nothing takes its place. `cache_dir` is where the prepared packages
    are, for the one backend that can use them. Costs a session or two.
    """
    entry = OPTIONAL_BACKENDS[settings.backend]
    _check_requirements(settings, entry)
    await asyncio.to_thread(entry.load)
    async with AsyncExitStack() as stack:
        try:
            environment = await asyncio.to_thread(_environment, settings, cache_dir)
            prepared = stack.enter_context(_with_packages(settings, environment))
            backend = await stack.enter_async_context(entry.open(prepared))
        except (SandboxError, FileError, OSError) as error:
            raise Unavailable(str(error), _SETTINGS) from error
        yield backend


def _environment(settings: SandboxSettings, cache_dir: Path | None) -> PackageEnvironment | None:
    return None if cache_dir is None else find_usable_environment(settings, cache_dir)


@contextmanager
def _with_packages(
    settings: SandboxSettings, environment: PackageEnvironment | None
) -> Iterator[SandboxSettings]:
    """Yield the settings with the Python of the prepared packages, where these are installed."""
    if environment is None:
        yield settings
        return
    with environment.lock() as is_ready:
        yield settings.model_copy(update={"python": environment.python}) if is_ready else settings


def _check_requirements(settings: SandboxSettings, entry: BackendEntry) -> None:
    """Raise `Unavailable` where the backend lacks its package, its key or what the settings ask of it."""
    name = settings.backend
    if entry.package and find_spec(entry.package) is None:
        reason = f"sandbox.backend is {name}, whose package {entry.package} is not installed."
        raise Unavailable(reason, installing(entry.extra))
    for key, variable, needs in (
        ("e2b_api_key", "E2B_API_KEY", "e2b"),
        ("daytona_api_key", "DAYTONA_API_KEY", "daytona"),
    ):
        if name == needs and getattr(settings, key) is None:
            raise Unavailable(
                f"sandbox.backend is {name}, but its key is missing.", f"set {variable} in .env"
            )
    if settings.network == "allowlist":
        _check_allowlist(settings)


def _check_allowlist(settings: SandboxSettings) -> None:
    """Raise `Unavailable` if the backend cannot restrict code to the allowed hosts."""
    remedy = "set `sandbox.network: none`, or `sandbox.backend: bubblewrap`, which can."
    if settings.backend in ("docker", "unsafe-local"):
        raise Unavailable(f"sandbox.backend {settings.backend} cannot restrict code to some hosts.", remedy)
    if ports := [host for host in settings.allow_hosts if ":" in host]:
        raise Unavailable(
            f"{settings.backend} cannot restrict code to a port of a host ({ports[0]}).", remedy
        )


async def _check_greeting(backend: SandboxBackend) -> None:
    """Run one line in a new session; raises `SandboxError` for a wrong result."""
    with TemporaryDirectory(prefix="maniple-hello-") as folder:
        session = await backend.start(Workspaces(Path(folder, "workspaces")).open("hello"))
        try:
            completed = await session.run_python(_HELLO)
        finally:
            await session.stop()
    if completed.stdout.strip() != "42":
        raise SandboxError(f"The sandbox did not run a line of Python: {completed.text()}")


@asynccontextmanager
async def _open_local(settings: SandboxSettings) -> AsyncIterator[SandboxBackend]:
    from maniple.sandbox.backends.local import LocalBackend

    backend = LocalBackend(settings)
    await _check_greeting(backend)
    yield backend


@asynccontextmanager
async def _open_docker(settings: SandboxSettings) -> AsyncIterator[SandboxBackend]:
    from maniple.sandbox.backends.docker import open_docker

    async with open_docker(settings) as backend:
        await check_container(backend, settings)
        yield backend


@asynccontextmanager
async def _open_e2b(settings: SandboxSettings) -> AsyncIterator[SandboxBackend]:
    from maniple.sandbox.backends.e2b import E2BBackend

    backend = E2BBackend(settings)
    await _check_greeting(backend)
    yield backend


@asynccontextmanager
async def _open_daytona(settings: SandboxSettings) -> AsyncIterator[SandboxBackend]:
    from maniple.sandbox.backends.daytona import open_daytona

    async with open_daytona(settings) as backend:
        await _check_greeting(backend)
        yield backend


OPTIONAL_BACKENDS = {
    "unsafe-local": BackendEntry(_open_local),
    "docker": BackendEntry(_open_docker, "aiodocker", "Docker", extra="docker"),
    "e2b": BackendEntry(_open_e2b, "e2b_code_interpreter", "AsyncSandbox", extra="e2b"),
    "daytona": BackendEntry(_open_daytona, "daytona", "AsyncDaytona", extra="daytona"),
}


# The files that `standalone/probes.py` creates in the workspace.
_DAEMONS_LOCK, _PLANTED = "daemon", ("planted", "planted-folder/canary")


async def find_escapes(backend: WatchableBackend, variables: set[str], processes: int) -> list[str]:
    """Return what code could do without permission; each entry completes "Code in the sandbox could …".

    `variables` are the permitted names in its environment, `processes` is the permitted number. Costs one
    session. Raises `SandboxError` if no code runs, `Unavailable` if the test itself cannot.
    """
    with ExitStack() as stack:
        try:
            code, workspace = await asyncio.to_thread(
                stack.enter_context, _open_targets(variables, processes)
            )
        except (FileError, OSError) as error:
            remedy = await _temporary_folder_remedy()
            raise Unavailable(f"The sandbox could not be tested: {error}", remedy) from error
        try:
            session = await backend.start(workspace)
            try:
                completed = await session.run_python(code)
                unseen = await asyncio.to_thread(_find_unwatched, session)
            finally:
                await session.stop()
            remains = await asyncio.to_thread(_find_leftovers, workspace)
        finally:
            await asyncio.to_thread(stack.close)
    if (escapes := _parse_escapes(completed)) is None:
        reason = f"The sandbox's own test did not finish: {completed.text()}"
        raise Unavailable(reason, "check the limits and `sandbox.python` in the settings.")
    return [*escapes, *unseen, *remains]


def _parse_escapes(completed: ExecutionResult) -> list[str] | None:
    *escapes, last = completed.stdout.splitlines() or [""]
    return escapes if last == "end of probes" else None


def _find_unwatched(session: WatchableSession) -> list[str]:
    """Return an escape if the watchdog cannot measure the session."""
    inspector = find_inspector(session.pid)
    if inspector is None:
        return [
            "share more memory than its limit among its processes, which the server may not look at "
            "(one that is root needs CAP_SYS_PTRACE, as `docker run --cap-add SYS_PTRACE` gives it)"
        ]
    inspector.close()
    return []


def _find_leftovers(workspace: Workspace) -> list[str]:
    """Read what the ended session left, as the host's tools do."""
    found = []
    for path in _PLANTED:
        try:
            workspace.read(path, 100)
        except FileError:
            continue
        found.append(f"make the server read outside the workspace ({path})")
    with open_directory(workspace.path, ()) as directory, open_regular(_DAEMONS_LOCK, directory) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append("leave a process behind that outlives it")
    return found


@contextmanager
def _open_targets(variables: set[str], processes: int) -> Iterator[tuple[str, Workspace]]:
    """Create targets on the host; yield the code that tries to reach them and its workspace."""
    with _temporary_folder() as outside, _listeners() as (tcp, abstract):
        # Only the sandbox protects it.
        Path(outside).chmod(0o755)
        canary = Path(outside, "canary")
        canary.write_text("outside")
        arguments = (str(canary), tcp, abstract, variables, processes)
        source = standalone_program("probes.py").read_text()
        code = f"{source}\n\nprint_escapes({', '.join(map(repr, arguments))})\n"
        yield code, Workspaces(Path(outside, "workspaces")).open("probe")


@contextmanager
def _temporary_folder() -> Iterator[str]:
    """Yield a temporary folder; Python 3.11 loops forever when it removes an inaccessible one."""
    folder = tempfile.mkdtemp(prefix="maniple-probe-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _temporary_folder_remedy() -> str:
    """Return the remedy for a temporary folder that cannot be written."""
    if find_sandbox_account() is not None:
        # Root without all capabilities can write there but not enter a folder that it has given away.
        return "run as an ordinary user, or as root with all capabilities (without docker's `--cap-drop`)."
    try:
        folder = await asyncio.to_thread(tempfile.gettempdir)
    except OSError:  # no folder is usable
        folder = "one of these folders"
    return f"let this user write to {folder}, or `export TMPDIR=FOLDER` with a folder of its own."


@contextmanager
def _listeners() -> Iterator[tuple[tuple[str, int], str]]:
    """Yield the addresses of a TCP listener on loopback and of one on an abstract unix socket."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix,
    ):
        abstract = f"\0maniple-probe-{os.getpid()}-{tcp.getsockname()[1]}"
        unix.bind(abstract)
        unix.listen()
        yield tcp.getsockname(), abstract


# /etc/passwd is the image's file; the engine limits the rest by other means (see `missing_limits`).
_NO_ESCAPES = (
    *("read /etc/passwd", "take more memory than its limit", "start more than"),
    "share more memory than its limit",
)
_CONTAINER_GREETING = "seen"


async def check_container(backend: "DockerBackend", settings: SandboxSettings) -> None:
    """Let code try to escape from a container; raises `SandboxError` with what it could do.

    Also checks whether the engine sees this machine's files; if not, they are mirrored from now on.
    """
    if missing := await backend.missing_limits():
        raise SandboxError(
            f"Code in a container could {'; '.join(missing)}: the engine's kernel cannot limit it."
        )
    backend.mirrors = backend.mirrors or not await _sees_files(backend)
    watchable = cast(WatchableBackend, backend)  # its processes are not visible here; the check is exempt
    found = await find_escapes(watchable, await backend.variables(), settings.processes)
    if escapes := [one for one in found if not one.startswith(_NO_ESCAPES)]:
        words = f"Code in a container of this engine could {'; '.join(escapes)}"
        raise SandboxError(f"{words}. Update Docker: 23 and newer let less through.")


async def _sees_files(backend: "DockerBackend") -> bool:
    with TemporaryDirectory(prefix="maniple-hello-") as folder:
        workspace = Workspaces(Path(folder, "workspaces")).open("hello")
        workspace.write("hello", _CONTAINER_GREETING.encode())
        session = await backend.start(workspace)
        try:
            return (await session.run_bash("cat hello")).stdout == _CONTAINER_GREETING
        finally:
            await session.stop()
