"""Programs of others that stay, such as MCP servers: each in a sandbox of its own, spoken with through pipes.

Beside the code that a model wrote these are bigger and live longer: each has a folder that is kept, limits of
its own, and reaches only the hosts that settings name for it.
"""

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from maniple.config.process import surroundings
from maniple.config.sandbox_settings import SandboxSettings
from maniple.egress import AllowedHosts, Exit, open_gateway
from maniple.egress import Limits as Shares
from maniple.errors import SandboxError
from maniple.sandbox.account import give_away
from maniple.sandbox.commands import missing_command
from maniple.sandbox.isolation import OWN_FILES, WORKSPACE, Isolation, Place, data_mounts, memory_file
from maniple.sandbox.limits import Limits
from maniple.sandbox.network import CERTIFICATES, INNER_FORWARDER, INNER_SOCKET, WayOut, forwarder_program
from maniple.sandbox.pipes import PipedProgram, open_pipes
from maniple.sandbox.programs import SYSTEM_PATH, Programs, find_programs, python_prefixes
from maniple.sandbox.seccomp import filter_program
from maniple.sandbox.watchdog import Watchdog
from maniple.types import Unavailable

LINE_BYTES = 8_000_000
"""The longest line that a service may write; its reader raises `ValueError` for a longer one."""
_SHARES = Shares(connections=32, bytes_each_way=1_000_000_000, seconds=3_600.0)
_MOST_FILES = 200_000  # node_modules alone has some ten thousand
_ENDLESS_BYTES = 2**62


@dataclass(frozen=True, slots=True)
class Service:
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


class Services:
    """Starts services within the walls that code of a model has, too."""

    def __init__(self, programs: Programs, watchdog: Watchdog, leads: Exit | None) -> None:
        """Blocks on disk; raises `SandboxError` where there is no system-call filter for this machine."""
        self._programs = programs
        self._watchdog = watchdog
        self._leads = leads
        self._isolation = Isolation(programs)
        self._filter = filter_program()
        self._certificates = [(path, path) for path in CERTIFICATES if Path(path).is_dir()]

    async def start(self, service: Service) -> PipedProgram:
        """Start it; raises `SandboxError` with what to do, also where its command cannot be seen in there."""
        async with AsyncExitStack() as stack:
            try:
                await asyncio.to_thread(_make, service)
                way_out = await self._way_out(service, stack)
                program = await self._launch(service, way_out)
            except (OSError, ValueError) as error:
                raise SandboxError(f"{service.argv[0]} could not be started: {error}") from error
            limits = Limits(service.memory_mb, service.processes, service.disk_mb, _MOST_FILES)
            watch = self._watchdog.watch(program.pid, service.folder, limits, program.overrun)
            program.at_end(watch.stop)
            program.keep(stack.pop_all())
        return program

    async def _way_out(self, service: Service, stack: AsyncExitStack) -> tuple[WayOut, str] | None:
        if not service.allow_hosts or self._leads is None:
            return None
        gateway = await stack.enter_async_context(
            open_gateway(AllowedHosts(service.allow_hosts), self._leads, _SHARES)
        )
        door = await gateway.open_door()
        return WayOut(gateway), str(door.path)

    async def _launch(self, service: Service, way_out: tuple[WayOut, str] | None) -> PipedProgram:
        sources = dict(OWN_FILES)
        variables = {"PATH": SYSTEM_PATH, "LANG": "C.UTF-8", "HOME": WORKSPACE, **service.environment}
        shown = [(str(path), str(path)) for path in _seen(service)]
        command = [*service.argv]
        if way_out is not None:
            sources[INNER_FORWARDER] = forwarder_program()
            variables = way_out[0].variables() | variables
            shown += [(way_out[1], INNER_SOCKET), *self._certificates]
            command = [*way_out[0].command(self._programs.sh, self._programs.python), *command]
        writable = tuple((str(path), str(path)) for path in service.writes)
        place = Place(service.folder, {}, service.memory_mb, tuple(shown), writable)
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

    def _limits(self, service: Service) -> list[str]:
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
async def open_services(settings: SandboxSettings, leads: Exit | None) -> AsyncIterator[Services]:
    """Open what starts services, for a machine on which the sandbox withstood its probes.

    Raises `SandboxError` where its programs are missing.
    """
    programs = await asyncio.to_thread(find_programs, settings.python)
    if isinstance(programs, Unavailable):
        raise SandboxError(str(programs))
    watchdog = Watchdog()
    try:
        yield await asyncio.to_thread(Services, programs, watchdog, leads)
    finally:
        await asyncio.to_thread(watchdog.close)


async def start_unprotected(service: Service) -> PipedProgram:
    """Start a service with this user's rights, for who has spelled out that this is wanted.

    Of this program's environment it gets what says where things are. Raises `SandboxError` with what to do.
    """
    kept = surroundings("PATH", "HOME", "LANG", "TMPDIR")
    command = shutil.which(service.argv[0], path=service.environment.get("PATH", kept.get("PATH")))
    if command is None:
        raise SandboxError(f"There is no program {service.argv[0]}: install it, or write its whole path.")
    folder = service.cwd or service.folder
    keeper = str(resources.files("maniple.sandbox") / "backends" / "keeper.py")
    argv = [sys.executable, "-I", "-S", "-B", keeper, str(os.getpid()), str(folder)]
    argv += [str(_ENDLESS_BYTES)] * 2
    try:
        await asyncio.to_thread(service.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        return await open_pipes(
            [*argv, command, *service.argv[1:]],
            environment=kept | dict(service.environment),
            line_bytes=LINE_BYTES,
        )
    except (OSError, ValueError) as error:
        raise SandboxError(f"{service.argv[0]} could not be started: {error}") from error


def _make(service: Service) -> None:
    """Make its folder, and look for what it is to be shown and for its command."""
    service.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    give_away(service.folder)
    for path in (*service.reads, *service.writes):
        if not path.exists():
            raise SandboxError(f"There is no {path}, which the server is to be shown.")
    path = service.environment.get("PATH", SYSTEM_PATH)
    if missing := missing_command(service.argv[0], path, service.cwd, [*_seen(service), *service.writes]):
        raise SandboxError(missing)


def _seen(service: Service) -> list[Path]:
    """What is shown read-only: `cwd`, the command with what stands around it, and what settings name."""
    seen = [*service.reads]
    program = Path(service.argv[0])
    if program.is_absolute() and not program.is_relative_to("/usr"):
        home = program.parent.parent
        # A program of a virtual environment needs its packages, and the Python that it was made with.
        has_environment = (home / "pyvenv.cfg").is_file()
        seen += python_prefixes(home / "bin" / "python") if has_environment else [program]
    writable = [*service.writes]
    if service.cwd is not None and not any(service.cwd.is_relative_to(one) for one in (*seen, *writable)):
        seen.append(service.cwd)
    return list(dict.fromkeys(path.absolute() for path in seen))


def _settings(variables: Mapping[str, str]) -> bytes:
    words = [word for name, value in variables.items() for word in ("--setenv", name, value)]
    if any("\0" in word for word in words):
        raise ValueError("a variable of its environment holds a NUL character")
    return b"".join(word.encode() + b"\0" for word in words)
