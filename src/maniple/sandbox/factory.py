"""The refusal rule: a sandbox that cannot be started, or that can be left, is not handed out."""

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
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import ExecutionResult, SandboxBackend
from maniple.sandbox.bubblewrap import BubblewrapBackend, SandboxLayout, open_layout
from maniple.sandbox.host import find_programs, find_sandbox_account, standalone_program
from maniple.sandbox.package_environment import PackageEnvironment, find_usable_environment
from maniple.sandbox.safe_open import open_directory, open_regular
from maniple.sandbox.sessions import Sandbox
from maniple.sandbox.usage import find_inspector
from maniple.sandbox.watchdog import WatchableBackend, WatchableSession, Watchdog, WatchedBackend
from maniple.sandbox.workspaces import Workspace, Workspaces
from maniple.types import Unavailable, installing

if TYPE_CHECKING:
    from maniple.sandbox.backends.docker import DockerBackend

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
    egress: EgressRoute | None = None,
    search_path: str | None = None,
) -> AsyncIterator[Sandbox | Unavailable]:
    """Yield a sandbox that withstood the probes, or why there is none. Nothing takes its place.

    `cache_dir` is where the prepared packages are, `egress` where `network: allowlist` goes. `search_path`
    replaces PATH in the search for bwrap and its companions. Costs one sandboxed call.
    """
    async with AsyncExitStack() as stack:
        if settings.backend in OPTIONAL_BACKENDS:
            chosen = await stack.enter_async_context(open_backend(settings, cache_dir))
            if not isinstance(chosen, Unavailable):
                chosen = Sandbox(chosen, settings)
                stack.push_async_callback(chosen.close)
            yield chosen
            return
        try:
            fittings = await stack.enter_async_context(open_layout(settings, cache_dir, egress))
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
    settings: SandboxSettings, fittings: SandboxLayout, watchdog: Watchdog, search_path: str | None
) -> SandboxBackend | Unavailable:
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


_SETTINGS = "see `sandbox` in conf.yaml and docs/sandbox.md; sandbox.backend chooses another."
_HELLO = "print(6 * 7)"


@dataclass(frozen=True, slots=True)
class BackendEntry:
    """How a backend is opened, which may raise `SandboxError`, `FileError` or `OSError`.

    `extra` installs the package of its SDK; `client` is the name in it that loads the rest.
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
) -> AsyncIterator[SandboxBackend | Unavailable]:
    """Yield the backend that the settings choose, one of `CHOICES`, once it has shown that it runs code.

    Or why there is none: nothing takes its place. `cache_dir` is where the prepared packages are, for the one
    backend that can use them. Costs a session or two.
    """
    choice = OPTIONAL_BACKENDS[settings.backend]
    if obstacle := _obstacle(settings, choice):
        yield obstacle
        return
    await asyncio.to_thread(choice.load)
    async with AsyncExitStack() as stack:
        found: SandboxBackend | Unavailable
        try:
            environment = await asyncio.to_thread(_environment, settings, cache_dir)
            fitted = stack.enter_context(_fitted(settings, environment))
            found = await stack.enter_async_context(choice.open(fitted))
        except (SandboxError, FileError, OSError) as error:
            found = Unavailable(str(error), _SETTINGS)
        yield found


def _environment(settings: SandboxSettings, cache_dir: Path | None) -> PackageEnvironment | None:
    return None if cache_dir is None else find_usable_environment(settings, cache_dir)


@contextmanager
def _fitted(settings: SandboxSettings, environment: PackageEnvironment | None) -> Iterator[SandboxSettings]:
    """The settings with the Python that has the prepared packages, where they stand."""
    if environment is None:
        yield settings
        return
    with environment.held() as stands:
        yield settings.model_copy(update={"python": environment.python}) if stands else settings


def _obstacle(settings: SandboxSettings, choice: BackendEntry) -> Unavailable | None:
    name = settings.backend
    if choice.package and find_spec(choice.package) is None:
        reason = f"sandbox.backend is {name}, whose package {choice.package} is not installed."
        return Unavailable(reason, installing(choice.extra))
    for key, variable, needs in (
        ("e2b_api_key", "E2B_API_KEY", "e2b"),
        ("daytona_api_key", "DAYTONA_API_KEY", "daytona"),
    ):
        if name == needs and getattr(settings, key) is None:
            return Unavailable(f"sandbox.backend is {name}, and there is no key.", f"set {variable} in .env")
    if settings.network == "allowlist":
        return _unreachable_hosts(settings)
    return None


def _unreachable_hosts(settings: SandboxSettings) -> Unavailable | None:
    """Why the hosts that are named cannot be the only ones that code reaches."""
    remedy = "set `sandbox.network: none`, or `sandbox.backend: bubblewrap`, which can."
    if settings.backend in ("docker", "unsafe-local"):
        return Unavailable(
            f"sandbox.backend {settings.backend} cannot let code reach only some hosts.", remedy
        )
    if ports := [host for host in settings.allow_hosts if ":" in host]:
        return Unavailable(f"{settings.backend} cannot tell the ports of a host apart ({ports[0]}).", remedy)
    return None


async def _greet(backend: SandboxBackend) -> None:
    """Run one line in a new session; raises `SandboxError` unless its answer comes back."""
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
    await _greet(backend)
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
    await _greet(backend)
    yield backend


@asynccontextmanager
async def _open_daytona(settings: SandboxSettings) -> AsyncIterator[SandboxBackend]:
    from maniple.sandbox.backends.daytona import open_daytona

    async with open_daytona(settings) as backend:
        await _greet(backend)
        yield backend


OPTIONAL_BACKENDS = {
    "unsafe-local": BackendEntry(_open_local),
    "docker": BackendEntry(_open_docker, "aiodocker", "Docker", extra="docker"),
    "e2b": BackendEntry(_open_e2b, "e2b_code_interpreter", "AsyncSandbox", extra="e2b"),
    "daytona": BackendEntry(_open_daytona, "daytona", "AsyncDaytona", extra="daytona"),
}


# What `escapes.py` makes in the workspace.
_DAEMONS_LOCK, _PLANTED = "daemon", ("planted", "planted-folder/canary")


async def find_escapes(
    backend: WatchableBackend, variables: set[str], processes: int
) -> list[str] | Unavailable:
    """What code could do that it must not, each completing "Code in the sandbox could …".

    `variables` and `processes` are what it may see in its environment and how many it may start. Costs one
    session. Raises `SandboxError` if nothing runs at all.
    """
    with ExitStack() as stack:
        try:
            code, workspace = await asyncio.to_thread(stack.enter_context, _baits(variables, processes))
        except (FileError, OSError) as error:
            return Unavailable(
                f"The sandbox could not be tried out: {error}", await _temporary_folder_remedy()
            )
        try:
            session = await backend.start(workspace)
            try:
                completed = await session.run_python(code)
                unseen = await asyncio.to_thread(_unseen, session)
            finally:
                await session.stop()
            remains = await asyncio.to_thread(_remains, workspace)
        finally:
            await asyncio.to_thread(stack.close)
    if (escapes := _told(completed)) is None:
        reason = f"The sandbox's own test did not finish: {completed.text()}"
        return Unavailable(reason, "check the limits and `sandbox.python` in the settings.")
    return [*escapes, *unseen, *remains]


def _told(completed: ExecutionResult) -> list[str] | None:
    *escapes, last = completed.stdout.splitlines() or [""]
    return escapes if last == "end of probes" else None


def _unseen(session: WatchableSession) -> list[str]:
    """Whether the watchdog would see the session."""
    inside = find_inspector(session.pid)
    if inside is None:
        return [
            "share more memory than its limit among its processes, which the server may not look at "
            "(one that is root needs CAP_SYS_PTRACE, as `docker run --cap-add SYS_PTRACE` gives it)"
        ]
    inside.close()
    return []


def _remains(workspace: Workspace) -> list[str]:
    """Look at what the ended session left, as the host's tools do."""
    found = []
    for path in _PLANTED:
        try:
            workspace.read(path, 100)
        except FileError:
            continue
        found.append(f"lead the server's own eyes out of the workspace ({path})")
    with open_directory(workspace.path, ()) as directory, open_regular(_DAEMONS_LOCK, directory) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append("leave a process behind that outlives it")
    return found


@contextmanager
def _baits(variables: set[str], processes: int) -> Iterator[tuple[str, Workspace]]:
    """Things on the host to reach for; yields the code that tries to, and where to run it."""
    with _temporary_folder() as outside, _listeners() as (tcp, abstract):
        # Not protected by anything but the sandbox.
        Path(outside).chmod(0o755)
        canary = Path(outside, "canary")
        canary.write_text("outside")
        arguments = (str(canary), tcp, abstract, variables, processes)
        source = standalone_program("probes.py").read_text()
        code = f"{source}\n\nprint_escapes({', '.join(map(repr, arguments))})\n"
        yield code, Workspaces(Path(outside, "workspaces")).open("probe")


@contextmanager
def _temporary_folder() -> Iterator[str]:
    """A temporary folder. Python 3.11's own never ends removing one that may not be entered."""
    folder = tempfile.mkdtemp(prefix="maniple-probe-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _temporary_folder_remedy() -> str:
    """What helps where nothing can be put into the temporary folder."""
    if find_sandbox_account() is not None:
        # It may write there, and may not enter what it has given away.
        return "do not be root, or be one with all its rights (docker takes some with `--cap-drop`)."
    try:
        folder = await asyncio.to_thread(tempfile.gettempdir)
    except OSError:  # there is none
        folder = "one of these folders"
    return f"let this user write to {folder}, or `export TMPDIR=FOLDER` with a folder of its own."


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


# The image's own file, and what the engine limits by other means (see `missing_limits`).
_NO_ESCAPES = (
    *("read /etc/passwd", "take more memory than its limit", "start more than"),
    "share more memory than its limit",
)
_CONTAINER_GREETING = "seen"


async def check_container(backend: "DockerBackend", settings: SandboxSettings) -> None:
    """Let code in a container try to get out; raises `SandboxError` that says what it could do.

    Finds out, too, whether the engine sees this machine's files; if not, they are mirrored from now on.
    """
    if missing := await backend.missing_limits():
        raise SandboxError(
            f"Code in a container could {'; '.join(missing)}: the engine's kernel cannot limit it."
        )
    backend.mirrors = backend.mirrors or not await _sees_files(backend)
    watchable = cast(WatchableBackend, backend)  # its processes are not seen here, and need not be
    found = await find_escapes(watchable, await backend.variables(), settings.processes)
    if isinstance(found, Unavailable):
        raise SandboxError(str(found))
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
