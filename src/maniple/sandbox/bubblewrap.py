"""Runs sessions and services (such as MCP servers) in bubblewrap.

A session is started as a chain of programs:

    nice, choom        the server's event loop and memory take precedence
    bwrap, sh, setpriv only for a server of root: mount the workspace at a path that every user can
                       reach (bwrap as another user could not enter /root), then drop root
    bwrap              new namespaces, an empty file system with /usr read-only, the system-call filter
    prlimit            limits, set inside because they count per user namespace, not per host user
    python             the worker, process 1, whose end ends every process inside

Both bwraps end with their parent, so nothing outlives the server. Missing: a processor share where the kernel
groups tasks by session (`nice` counts only within one).

A service is larger and lives longer than a session. It has a permanent folder, its own limits, and
reaches only the hosts that the settings name for it.
"""

import asyncio
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AllowedHosts, ConnectionLimits, EgressRoute, open_gateway
from maniple.errors import SandboxError
from maniple.sandbox.control_groups import (
    ControlGroup,
    ControlGroups,
    find_control_groups,
    sandbox_limits,
)
from maniple.sandbox.host import SYSTEM_PATH, VARIABLES, HostPrograms, find_programs, find_python_prefixes
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
from maniple.sandbox.socket_memory import narrow_tcp_buffers
from maniple.sandbox.usage import find_process_inside
from maniple.sandbox.watchdog import ResourceLimits, Watchdog
from maniple.sandbox.worker_session import WorkerLaunch, WorkerSession, compile_worker, start_worker
from maniple.workspace.account import give_away
from maniple.workspace.files import Workspace

ENVIRONMENT = {
    **VARIABLES,
    "HOME": "/tmp",
    "USER": "sandbox",
    "PYTHONPATH": WORKSPACE,
}
_INSIDE = "/run/maniple"
# The kernel limits reserved memory, of which a process uses only a part; the watchdog limits the memory in
# use. A huge allocation thus fails with MemoryError and variables survive.
_RESERVED_TIMES = 2
ADDED_PACKAGES = "/tmp/packages"
"""The folder of packages that code installs with pip; it exists in memory, for one session."""
# In the private /tmp, because matplotlib must be able to write beside its font list.
_MATPLOTLIB = "/tmp/matplotlib"
_ALWAYS_VISIBLE = ("/usr", "/bin", "/sbin")
LINE_BYTES = 8_000_000
"""The longest line of a service's output; its reader raises `ValueError` for a longer one."""
_SHARES = ConnectionLimits(connections=32, bytes_each_way=1_000_000_000, seconds=3_600.0)
# A service's own start takes longer, so it does not open sockets before they are limited.
_START_SECONDS, _LOOK_SECONDS = 5.0, 0.002
_MAX_FILES = 200_000  # node_modules alone has some ten thousand


@dataclass(frozen=True, slots=True)
class SandboxLayout:
    """What a session has besides Python and a shell: prepared packages and a network proxy."""

    environment: PackageEnvironment | None = None
    egress: EgressProxy | None = None

    @property
    def python(self) -> str:
        """The interpreter inside; empty for the system's."""
        return f"{INNER_PATH}/bin/python" if self.environment else ""

    def mounts(self) -> Iterator[tuple[str, str]]:
        """Yield the read-only mounts of every session: (path on the host, path inside)."""
        if self.environment is not None:
            yield str(self.environment.path), INNER_PATH
            if fonts := self.environment.font_list():
                yield str(fonts), f"{_MATPLOTLIB}/{fonts.name}"
        if self.egress is not None:
            yield from ((path, path) for path in CERTIFICATES if Path(path).is_dir())

    def variables(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables inside: the `given` ones (with PATH, PYTHONPATH) and those of the layout."""
        found = {**given, "MPLCONFIGDIR": _MATPLOTLIB}
        if self.environment is not None:
            found["PATH"] = f"{INNER_PATH}/bin:{given['PATH']}"
        if self.egress is not None:
            found |= self.egress.variables()
            found |= {"PIP_TARGET": ADDED_PACKAGES, "PYTHONPATH": f"{given['PYTHONPATH']}:{ADDED_PACKAGES}"}
            # The cache would take memory, and the check for a newer pip would often be refused.
            found |= {"PIP_NO_CACHE_DIR": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        return found


@asynccontextmanager
async def open_layout(
    settings: SandboxSettings, cache_dir: Path | None, egress: EgressRoute | None
) -> AsyncIterator[SandboxLayout]:
    """Open the layout that `settings` ask for; `egress` is the route for `network: allowlist`.

    Raises `SandboxError` when the network cannot be opened.
    """
    async with AsyncExitStack() as stack:
        environment = None
        if cache_dir is not None:
            environment = await asyncio.to_thread(find_usable_environment, settings, cache_dir)
        if environment is not None:
            held = await asyncio.to_thread(stack.enter_context, environment.lock())
            environment = environment if held else None
        yield SandboxLayout(environment, await stack.enter_async_context(open_egress_proxy(settings, egress)))


class BubblewrapBackend:
    """Starts each session in namespaces of its own."""

    name = "bubblewrap"

    def __init__(
        self, settings: SandboxSettings, programs: HostPrograms, layout: SandboxLayout | None = None
    ) -> None:
        """Blocks on disk; raises `SandboxError` where there is no system-call filter for this machine."""
        self._settings = settings
        self._programs = programs
        self._filter = build_seccomp_filter()
        self._layout = layout = layout or SandboxLayout()
        worker = compile_worker(programs.python, _INSIDE)
        self._worker_names = tuple(worker)
        self._sources = {f"{_INSIDE}/{name}": text for name, text in worker.items()} | OWN_FILES
        if layout.egress is not None:
            self._sources[INNER_FORWARDER] = read_forwarder()
        self._python = layout.python or programs.python
        self.variables = layout.variables(ENVIRONMENT)
        """The environment variables of the code inside."""
        self._shown = tuple(layout.mounts())
        self._isolation = Isolation(programs)
        self._groups = find_control_groups()

    async def start(self, workspace: Workspace) -> WorkerSession:
        try:
            return await self._start(workspace)
        except OSError as error:
            raise SandboxError(f"The sandbox could not be started: {error}") from error

    async def _start(self, workspace: Workspace) -> WorkerSession:
        egress = self._layout.egress
        if egress is None:
            return await self._launch(workspace, ())
        socket = await egress.open_socket()
        try:
            session = await self._launch(workspace, [(str(socket.path), INNER_SOCKET)])
        except BaseException:  # no session exists that would close it
            socket.close()
            raise
        session.on_end(socket.close)
        if not session.is_alive:
            socket.close()
        return session

    async def _launch(self, workspace: Workspace, shown: Iterable[tuple[str, str]]) -> WorkerSession:
        mirrors = await asyncio.to_thread(workspace.mounts)
        group = await asyncio.to_thread(
            _make_group, self._groups, self._settings.memory_mb, self._settings.processes
        )
        place = replace(
            self._describe_isolation(
                workspace.path, shown, [(str(one.folder), f"{WORKSPACE}/{one.name}") for one in mirrors]
            ),
            group=group,
        )
        try:
            session = await self._start_worker(workspace, place)
        except BaseException:  # no session exists that would end it
            _end_group(self._groups, group)
            raise
        session.on_end(partial(_end_group, self._groups, group))
        return session

    async def _start_worker(self, workspace: Workspace, place: IsolationSpec) -> WorkerSession:
        with ExitStack() as files:
            rules = files.enter_context(memory_file(self._filter)).fileno()
            status = files.enter_context(memory_file()).fileno()
            sources = {
                path: files.enter_context(memory_file(text)).fileno() for path, text in self._sources.items()
            }

            def command(control: int, calls: int) -> list[str]:
                isolation = self._isolation.build_argv(place)
                isolation += ["--as-pid-1", "--seccomp", str(rules), *data_mounts(sources)]
                isolation += ["--json-status-fd", str(status), "--"]
                return [*isolation, *self._limits(), *self._worker(control, calls)]

            def explain(output: str) -> str:
                # bwrap notes an exit code only for a program that it managed to start.
                if b'"exit-code"' not in os.pread(status, 65_536, 0):
                    return f"The sandbox could not run the code: {output}"
                where = "check the limits and `sandbox.python` in the settings"
                return f"Python could not start in the sandbox; {where}. Its output: {output}"

            inherited = (rules, status, *sources.values())
            launch = WorkerLaunch(
                command,
                inherited,
                explain=explain,
                owns_namespace=True,
                prepare=lambda leader: _narrow_sockets(leader, self._programs),
            )
            return await start_worker(launch, self._settings, workspace)

    def _describe_isolation(
        self, workspace: Path, more: Iterable[tuple[str, str]], mirrors: Iterable[tuple[str, str]]
    ) -> IsolationSpec:
        return IsolationSpec(
            workspace,
            self.variables,
            self._settings.memory_mb,
            read_only=(*self._shown, *more),
            directories=() if self._layout.egress is None else (ADDED_PACKAGES,),
            over_folder=tuple(mirrors),
        )

    def _worker(self, control: int, calls: int) -> list[str]:
        worker, interpreter = (f"{_INSIDE}/{name}" for name in self._worker_names)
        # Neither the workspace nor site-packages may influence how the worker itself starts.
        python = [self._python, "-I", "-S", "-B"]
        if self._layout.egress is not None:
            python = [*self._layout.egress.command(self._programs.sh, self._python), *python]
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
    """A program to start as a service, and its rights.

    `folder` is created if necessary and is its home; `reads` and `writes` are mounted at the same paths as on
    the host.
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
    """Starts services with the isolation of sandboxed code."""

    def __init__(self, programs: HostPrograms, watchdog: Watchdog, egress: EgressRoute | None) -> None:
        """Blocks on disk; raises `SandboxError` where there is no system-call filter for this machine."""
        self._programs = programs
        self._watchdog = watchdog
        self._leads = egress
        self._isolation = Isolation(programs)
        self._filter = build_seccomp_filter()
        self._groups = find_control_groups()
        self._certificates = [(path, path) for path in CERTIFICATES if Path(path).is_dir()]

    async def start(self, service: ServiceSpec) -> PipedProgram:
        """Start a service; raises `SandboxError` with what to do, also for a missing command."""
        limits = ResourceLimits(service.memory_mb, service.processes, service.disk_mb, _MAX_FILES)
        async with AsyncExitStack() as stack:
            try:
                await asyncio.to_thread(_prepare_service, service)
                allowed = await asyncio.to_thread(limits.measure_allowance, service.folder)
                egress = await self._egress(service, stack)
                program = await self._launch(service, egress)
            except (OSError, ValueError) as error:
                raise SandboxError(f"{service.argv[0]} could not be started: {error}") from error
            watch = self._watchdog.watch(program.pid, service.folder, limits, allowed, program.stop_for_limit)
            program.on_end(watch.stop)
            program.own(stack.pop_all())
        return program

    async def _egress(self, service: ServiceSpec, stack: AsyncExitStack) -> tuple[EgressProxy, str] | None:
        if not service.allow_hosts or self._leads is None:
            return None
        gateway = await stack.enter_async_context(
            open_gateway(AllowedHosts(service.allow_hosts), self._leads, _SHARES)
        )
        socket = await gateway.open_socket()
        return EgressProxy(gateway), str(socket.path)

    async def _launch(self, service: ServiceSpec, egress: tuple[EgressProxy, str] | None) -> PipedProgram:
        sources = dict(OWN_FILES)
        variables = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "HOME": WORKSPACE, **service.environment}
        shown = [(str(path), str(path)) for path in _read_only_paths(service)]
        command = [*service.argv]
        if egress is not None:
            sources[INNER_FORWARDER] = read_forwarder()
            variables = egress[0].variables() | variables
            shown += [(egress[1], INNER_SOCKET), *self._certificates]
            command = [*egress[0].command(self._programs.sh, self._programs.python), *command]
        writable = tuple((str(path), str(path)) for path in service.writes)
        place = IsolationSpec(service.folder, {}, service.memory_mb, tuple(shown), writable)
        with ExitStack() as files:

            def open_file(content: bytes) -> int:
                return files.enter_context(memory_file(content)).fileno()

            rules = open_file(self._filter)
            # Not in the arguments, which every user of this machine can read: the variables may hold secrets.
            given = open_file(_encode_variables(variables))
            mounts = {path: open_file(text) for path, text in sources.items()}
            group = await asyncio.to_thread(_make_group, self._groups, service.memory_mb, service.processes)
            argv = [*self._isolation.build_argv(replace(place, group=group)), "--args", str(given)]
            argv += ["--chdir", str(service.cwd)] if service.cwd else []
            argv += ["--seccomp", str(rules), *data_mounts(mounts), "--", *self._limits(service), *command]
            inherited = (rules, given, *mounts.values())
            try:
                program = await open_pipes(argv, environment={}, inherited=inherited, line_bytes=LINE_BYTES)
            except BaseException:  # no program exists that would end it
                _end_group(self._groups, group)
                raise
        program.on_end(partial(_end_group, self._groups, group))
        try:
            await asyncio.to_thread(_narrow_sockets, program.pid, self._programs)
        except BaseException:  # a cancelled start leaves nothing behind
            await program.stop()
            raise
        return program

    def _limits(self, service: ServiceSpec) -> list[str]:
        # Reserved memory is not limited: Node reserves far more than it uses. The watchdog limits the memory
        # in use.
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
    """Open a launcher of services, on a machine whose sandbox passed its probes.

    Raises `Unavailable` where its programs are missing.
    """
    programs = await asyncio.to_thread(find_programs, settings.python)
    watchdog = Watchdog()
    try:
        yield await asyncio.to_thread(ServiceLauncher, programs, watchdog, egress)
    finally:
        await asyncio.to_thread(watchdog.close)


def _make_group(groups: ControlGroups | None, memory_mb: int, processes: int) -> ControlGroup | None:
    return groups.make(sandbox_limits(memory_mb, processes)) if groups is not None else None


def _end_group(groups: ControlGroups | None, group: ControlGroup | None) -> None:
    if groups is not None and group is not None:
        groups.end(group)


def _narrow_sockets(leader: int, programs: HostPrograms) -> None:
    """Limit the sockets of the sandbox that `leader` starts, when it is there; blocks until then."""
    end = time.monotonic() + _START_SECONDS
    while _is_running(leader) and time.monotonic() < end:
        if inside := find_process_inside(leader):
            narrow_tcp_buffers(inside, programs)
            return
        time.sleep(_LOOK_SECONDS)


def _is_running(process: int) -> bool:
    with suppress(OSError):
        return b"State:\tZ" not in Path(f"/proc/{process}/status").read_bytes()
    return False


def _explain_missing_command(command: str, path: str, cwd: Path | None, visible: Iterable[Path]) -> str:
    """Return why `command` cannot be started in the sandbox, with what to do; "" when it can.

    `path` is the PATH inside, `visible` are the paths mounted besides /usr. Blocks on disk.
    """
    if "/" not in command:
        found = shutil.which(command, path=path)
        return "" if found and _is_visible(Path(found), visible) else _not_on_path(command, path)
    if not command.startswith("/") and cwd is None:
        return f"{command} is relative to cwd, which is not set. Write its whole path, or set cwd."
    place = (cwd or Path("/")) / command
    if not place.exists():
        return f"There is no program {place}."
    if not os.access(place, os.X_OK):
        return (
            f"{place} is not executable. Make it so (chmod +x {place}), or start it by its interpreter: "
            "command python3 or node, its path in args, and its folder in reads."
        )
    return ""


def _is_visible(place: Path, visible: Iterable[Path]) -> bool:
    return any(place.is_relative_to(one) for one in (*_ALWAYS_VISIBLE, *visible))


def _not_on_path(command: str, path: str) -> str:
    words = f"There is no program {command} in the sandbox, whose PATH is {path}"
    if command == "python":
        return f"{words}. Write python3."
    if found := shutil.which(command):
        return (
            f"{words}. On this machine it is {found}: write that as command, and name in reads what else "
            "it needs, such as the folder of its interpreter."
        )
    return f"{words}. Install it there, or write its whole path."


def _prepare_service(service: ServiceSpec) -> None:
    """Create the folder of a service and check its paths and its command."""
    service.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    give_away(service.folder)
    for path in (*service.reads, *service.writes):
        if not path.exists():
            raise SandboxError(f"{path} does not exist. Correct reads or writes of the server.")
    path = service.environment.get("PATH", SYSTEM_PATH)
    if missing := _explain_missing_command(
        service.argv[0], path, service.cwd, [*_read_only_paths(service), *service.writes]
    ):
        raise SandboxError(missing)


def _read_only_paths(service: ServiceSpec) -> list[Path]:
    """Return the paths to mount read-only: `reads`, the command with its environment, and `cwd`."""
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


def _encode_variables(variables: Mapping[str, str]) -> bytes:
    words = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    if any("\0" in word for word in words):
        raise ValueError("a variable of its environment contains a NUL character")
    return b"".join(word.encode() + b"\0" for word in words)
