"""The bubblewrap backend: one sandbox a thread, which lives as long as its session.

    nice, choom        the server's event loop and memory come first
    bwrap, sh, setpriv only when the server is root: show the workspace at a place that every user can
                       reach (bwrap as another user could not enter /root), then stop being root
    bwrap              new namespaces, an empty file system with /usr read-only, the system-call filter
    prlimit            limits, set in here because they count per user namespace, not per host user
    python             the worker, process 1, whose end is the end of everything started beside it

Both bwraps end with their parent, so nothing of this outlives the server. What is not here yet: a processor
share that holds where the kernel groups tasks by session (`nice` counts only within one).
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AllowedHosts, ConnectionLimits, EgressRoute, open_gateway
from maniple.errors import SandboxError
from maniple.sandbox.host import (
    SYSTEM_PATH,
    VARIABLES,
    HostPrograms,
    find_programs,
    find_python_prefixes,
    give_away,
)
from maniple.sandbox.isolation import (
    CERTIFICATES,
    INNER_FORWARDER,
    INNER_SOCKET,
    OWN_FILES,
    WORKSPACE,
    EgressProxy,
    Isolation,
    IsolationSpec,
    build_seccomp_filter,
    data_mounts,
    memory_file,
    open_egress_proxy,
    read_forwarder,
)
from maniple.sandbox.package_environment import INNER_PATH, PackageEnvironment, find_usable_environment
from maniple.sandbox.processes import PipedProgram, open_pipes
from maniple.sandbox.watchdog import ResourceLimits, Watchdog
from maniple.sandbox.worker_session import WorkerLaunch, WorkerSession, compile_worker, start_worker
from maniple.sandbox.workspaces import Workspace
from maniple.types import Unavailable

ENVIRONMENT = {
    **VARIABLES,
    "HOME": "/tmp",
    "USER": "sandbox",
    "PYTHONPATH": WORKSPACE,
}
_INSIDE = "/run/maniple"
# A process reserves more than it uses, which is what the kernel limits; the watchdog counts what all use. One
# that asks for far too much at once is told so and keeps its variables.
_RESERVED_TIMES = 2
ADDED_PACKAGES = "/tmp/packages"
"""Where pip puts what code installs itself: for one session, and not among the files that are kept."""
# In the private /tmp, because matplotlib wants to be able to write beside its list.
_MATPLOTLIB = "/tmp/matplotlib"
_ALWAYS_SEEN = ("/usr", "/bin", "/sbin")
LINE_BYTES = 8_000_000
"""The longest line that a service may write; its reader raises `ValueError` for a longer one."""
_SHARES = ConnectionLimits(connections=32, bytes_each_way=1_000_000_000, seconds=3_600.0)
_MOST_FILES = 200_000  # node_modules alone has some ten thousand


@dataclass(frozen=True, slots=True)
class SandboxLayout:
    """`environment` is one that stands."""

    environment: PackageEnvironment | None = None
    way_out: EgressProxy | None = None

    @property
    def python(self) -> str:
        """The interpreter inside a sandbox that is made of mounts; "" for the system's."""
        return f"{INNER_PATH}/bin/python" if self.environment else ""

    def shown(self) -> Iterator[tuple[str, str]]:
        """(path on the host, path inside) of what is to be seen there, read-only, by every session."""
        if self.environment is not None:
            yield str(self.environment.path), INNER_PATH
            if fonts := self.environment.font_list():
                yield str(fonts), f"{_MATPLOTLIB}/{fonts.name}"
        if self.way_out is not None:
            yield from ((path, path) for path in CERTIFICATES if Path(path).is_dir())

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the environment inside, which has PATH and PYTHONPATH, with what belongs to these."""
        found = {**given, "MPLCONFIGDIR": _MATPLOTLIB}
        if self.environment is not None:
            found["PATH"] = f"{INNER_PATH}/bin:{given['PATH']}"
        if self.way_out is not None:
            found |= self.way_out.variables()
            found |= {"PIP_TARGET": ADDED_PACKAGES, "PYTHONPATH": f"{given['PYTHONPATH']}:{ADDED_PACKAGES}"}
            # Its cache would lie in memory, and its question for a newer pip would often be refused.
            found |= {"PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return found


@asynccontextmanager
async def open_layout(
    settings: SandboxSettings, cache_dir: Path | None, egress: EgressRoute | None
) -> AsyncIterator[SandboxLayout]:
    """Open what `settings` ask for and is there; `egress` is the way out, for `network: allowlist`.

    Raises `SandboxError` when the network cannot be opened.
    """
    async with AsyncExitStack() as stack:
        environment = None
        if cache_dir is not None:
            environment = await asyncio.to_thread(find_usable_environment, settings, cache_dir)
        if environment is not None:
            held = await asyncio.to_thread(stack.enter_context, environment.held())
            environment = environment if held else None
        yield SandboxLayout(environment, await stack.enter_async_context(open_egress_proxy(settings, egress)))


class BubblewrapBackend:
    """Gives each session namespaces of its own."""

    name = "bubblewrap"

    def __init__(
        self, settings: SandboxSettings, programs: HostPrograms, fittings: SandboxLayout | None = None
    ) -> None:
        """Blocks on disk; raises `SandboxError` where there is no system-call filter for this machine."""
        self._settings = settings
        self._programs = programs
        self._filter = build_seccomp_filter()
        self._fittings = fittings = fittings or SandboxLayout()
        worker = compile_worker(programs.python, _INSIDE)
        self._worker_names = tuple(worker)
        self._sources = {f"{_INSIDE}/{name}": text for name, text in worker.items()} | OWN_FILES
        if fittings.way_out is not None:
            self._sources[INNER_FORWARDER] = read_forwarder()
        self._python = fittings.python or programs.python
        self.variables = fittings.variables(ENVIRONMENT)
        """The environment of the code inside."""
        self._shown = tuple(fittings.shown())
        self._isolation = Isolation(programs)

    async def start(self, workspace: Workspace) -> WorkerSession:
        try:
            return await self._start(workspace)
        except OSError as error:
            raise SandboxError(f"The sandbox could not be started: {error}") from error

    async def _start(self, workspace: Workspace) -> WorkerSession:
        way_out = self._fittings.way_out
        if way_out is None:
            return await self._launch(workspace, ())
        door = await way_out.open_socket()
        try:
            session = await self._launch(workspace, [(str(door.path), INNER_SOCKET)])
        except BaseException:  # the session that would have closed it does not begin
            door.close()
            raise
        session.at_end(door.close)
        if not session.is_alive:
            door.close()
        return session

    async def _launch(self, workspace: Workspace, shown: Iterable[tuple[str, str]]) -> WorkerSession:
        with ExitStack() as files:
            rules = files.enter_context(memory_file(self._filter)).fileno()
            status = files.enter_context(memory_file()).fileno()
            sources = {
                path: files.enter_context(memory_file(text)).fileno() for path, text in self._sources.items()
            }

            def command(control: int, calls: int) -> list[str]:
                isolation = self._isolation.argv(self._place(workspace.path, shown))
                isolation += ["--as-pid-1", "--seccomp", str(rules), *data_mounts(sources)]
                isolation += ["--json-status-fd", str(status), "--"]
                return [*isolation, *self._limits(), *self._worker(control, calls)]

            def why_not(printed: str) -> str:
                # bwrap notes an exit code only for a program that it managed to start.
                if b'"exit-code"' not in os.pread(status, 65_536, 0):
                    return f"The sandbox could not run the code: {printed}"
                where = "check the limits and `sandbox.python` in the settings"
                return f"Python could not start in the sandbox; {where}. It said: {printed}"

            launch = WorkerLaunch(command, inherited=(rules, status, *sources.values()), why_not=why_not)
            return await start_worker(launch, self._settings, workspace)

    def _place(self, workspace: Path, more: Iterable[tuple[str, str]]) -> IsolationSpec:
        return IsolationSpec(
            workspace,
            self.variables,
            self._settings.memory_mb,
            read_only=(*self._shown, *more),
            directories=() if self._fittings.way_out is None else (ADDED_PACKAGES,),
        )

    def _worker(self, control: int, calls: int) -> list[str]:
        worker, interpreter = (f"{_INSIDE}/{name}" for name in self._worker_names)
        # Neither the workspace nor what lies in site-packages has a say in how the worker itself starts.
        python = [self._python, "-I", "-S", "-B"]
        if self._fittings.way_out is not None:
            python = [*self._fittings.way_out.command(self._programs.sh, self._python), *python]
        return [*python, worker, str(control), str(calls), interpreter, self._programs.bash]

    def _limits(self) -> list[str]:
        settings = self._settings
        return [
            self._programs.prlimit,
            f"--nproc={settings.processes}",
            f"--as={_RESERVED_TIMES * settings.memory_mb * 1024 * 1024}",
            f"--fsize={settings.disk_mb * 1024 * 1024}",
            "--nofile=256",
            "--core=0",
            "--",
        ]


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What is started, and what it may have.

    `folder` is made, kept, and its home; `reads` and `writes` are shown at the same places as on the host.
    """

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str]
    cwd: Path | None = None
    reads: Sequence[Path] = ()
    writes: Sequence[Path] = ()
    allow_hosts: Sequence[str] = ()
    memory_mb: int = 512
    disk_mb: int = 500
    processes: int = 64


class ServiceLauncher:
    """Starts services within the walls that code of a model has, too."""

    def __init__(self, programs: HostPrograms, watchdog: Watchdog, egress: EgressRoute | None) -> None:
        """Blocks on disk; raises `SandboxError` where there is no system-call filter for this machine."""
        self._programs = programs
        self._watchdog = watchdog
        self._leads = egress
        self._isolation = Isolation(programs)
        self._filter = build_seccomp_filter()
        self._certificates = [(path, path) for path in CERTIFICATES if Path(path).is_dir()]

    async def start(self, service: ServiceSpec) -> PipedProgram:
        """Start it; raises `SandboxError` with what to do, also where its command cannot be seen in there."""
        async with AsyncExitStack() as stack:
            try:
                await asyncio.to_thread(_make, service)
                way_out = await self._way_out(service, stack)
                program = await self._launch(service, way_out)
            except (OSError, ValueError) as error:
                raise SandboxError(f"{service.argv[0]} could not be started: {error}") from error
            limits = ResourceLimits(service.memory_mb, service.processes, service.disk_mb, _MOST_FILES)
            watch = self._watchdog.watch(program.pid, service.folder, limits, program.overrun)
            program.at_end(watch.stop)
            program.keep(stack.pop_all())
        return program

    async def _way_out(self, service: ServiceSpec, stack: AsyncExitStack) -> tuple[EgressProxy, str] | None:
        if not service.allow_hosts or self._leads is None:
            return None
        gateway = await stack.enter_async_context(
            open_gateway(AllowedHosts(service.allow_hosts), self._leads, _SHARES)
        )
        door = await gateway.open_socket()
        return EgressProxy(gateway), str(door.path)

    async def _launch(self, service: ServiceSpec, way_out: tuple[EgressProxy, str] | None) -> PipedProgram:
        sources = dict(OWN_FILES)
        variables = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "HOME": WORKSPACE, **service.environment}
        shown = [(str(path), str(path)) for path in _seen(service)]
        command = [*service.argv]
        if way_out is not None:
            sources[INNER_FORWARDER] = read_forwarder()
            variables = way_out[0].variables() | variables
            shown += [(way_out[1], INNER_SOCKET), *self._certificates]
            command = [*way_out[0].command(self._programs.sh, self._programs.python), *command]
        writable = tuple((str(path), str(path)) for path in service.writes)
        place = IsolationSpec(service.folder, {}, service.memory_mb, tuple(shown), writable)
        with ExitStack() as files:

            def open_file(content: bytes) -> int:
                return files.enter_context(memory_file(content)).fileno()

            rules = open_file(self._filter)
            # Not among the arguments, which everybody on this machine can read: there may be secrets in it.
            given = open_file(_settings(variables))
            mounts = {path: open_file(text) for path, text in sources.items()}
            argv = [*self._isolation.argv(place), "--args", str(given)]
            argv += ["--chdir", str(service.cwd)] if service.cwd else []
            argv += ["--seccomp", str(rules), *data_mounts(mounts), "--", *self._limits(service), *command]
            inherited = (rules, given, *mounts.values())
            return await open_pipes(argv, environment={}, inherited=inherited, line_bytes=LINE_BYTES)

    def _limits(self, service: ServiceSpec) -> list[str]:
        # Not of reserved memory: Node reserves far more than it uses. The watchdog counts what is used.
        return [
            self._programs.prlimit,
            f"--nproc={service.processes}",
            f"--fsize={service.disk_mb * 1024 * 1024}",
            "--nofile=1024",
            "--core=0",
            "--",
        ]


@asynccontextmanager
async def open_service_launcher(
    settings: SandboxSettings, egress: EgressRoute | None
) -> AsyncIterator[ServiceLauncher]:
    """Open what starts services, for a machine on which the sandbox withstood its probes.

    Raises `SandboxError` where its programs are missing.
    """
    programs = await asyncio.to_thread(find_programs, settings.python)
    if isinstance(programs, Unavailable):
        raise SandboxError(str(programs))
    watchdog = Watchdog()
    try:
        yield await asyncio.to_thread(ServiceLauncher, programs, watchdog, egress)
    finally:
        await asyncio.to_thread(watchdog.close)


def missing_command(command: str, path: str, cwd: Path | None, seen: Iterable[Path]) -> str:
    """Return why `command` cannot be started in the sandbox, with what to do; "" when it can.

    `path` is the PATH in there, `seen` is what is shown beside /usr. Blocks on disk.
    """
    if "/" not in command:
        found = shutil.which(command, path=path)
        return "" if found and _is_seen(Path(found), seen) else _not_on_path(command, path)
    if not command.startswith("/") and cwd is None:
        return f"{command} is looked for in cwd, and none is set: write its whole path, or set cwd."
    place = (cwd or Path("/")) / command
    if not place.exists():
        return f"There is no program {place}."
    if not os.access(place, os.X_OK):
        return (
            f"{place} is not executable. Make it so (chmod +x {place}), or start it by its interpreter: "
            "command python3 or node, its path in args, and its folder in reads."
        )
    return ""


def _is_seen(place: Path, seen: Iterable[Path]) -> bool:
    return any(place.is_relative_to(one) for one in (*_ALWAYS_SEEN, *seen))


def _not_on_path(command: str, path: str) -> str:
    words = f"There is no program {command} in the sandbox, whose PATH is {path}"
    if command == "python":
        return f"{words}. Write python3."
    if elsewhere := shutil.which(command):
        return (
            f"{words}. On this machine it is {elsewhere}: write that as command, and name in reads what else "
            "it needs, such as the folder of its interpreter."
        )
    return f"{words}. Install it there, or write its whole path."


def _make(service: ServiceSpec) -> None:
    """Make its folder, and look for what it is to be shown and for its command."""
    service.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    give_away(service.folder)
    for path in (*service.reads, *service.writes):
        if not path.exists():
            raise SandboxError(f"There is no {path}, which the server is to be shown.")
    path = service.environment.get("PATH", SYSTEM_PATH)
    if missing := missing_command(service.argv[0], path, service.cwd, [*_seen(service), *service.writes]):
        raise SandboxError(missing)


def _seen(service: ServiceSpec) -> list[Path]:
    """What is shown read-only: `cwd`, the command with what stands around it, and what settings name."""
    seen = [*service.reads]
    program = Path(service.argv[0])
    if program.is_absolute() and not program.is_relative_to("/usr"):
        home = program.parent.parent
        # A program of a virtual environment needs its packages, and the Python that it was made with.
        has_environment = (home / "pyvenv.cfg").is_file()
        seen += find_python_prefixes(home / "bin" / "python") if has_environment else [program]
    writable = [*service.writes]
    if service.cwd is not None and not any(service.cwd.is_relative_to(one) for one in (*seen, *writable)):
        seen.append(service.cwd)
    return list(dict.fromkeys(path.absolute() for path in seen))


def _settings(variables: Mapping[str, str]) -> bytes:
    words = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    if any("\0" in word for word in words):
        raise ValueError("a variable of its environment holds a NUL character")
    return b"".join(word.encode() + b"\0" for word in words)
