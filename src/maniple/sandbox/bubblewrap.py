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

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.fittings import ADDED_PACKAGES, Fittings
from maniple.sandbox.isolation import OWN_FILES, WORKSPACE, Isolation, Place, data_mounts, memory_file
from maniple.sandbox.network import INNER_FORWARDER, INNER_SOCKET, forwarder_program
from maniple.sandbox.programs import VARIABLES, Programs
from maniple.sandbox.seccomp import filter_program
from maniple.sandbox.session import WorkerSession
from maniple.sandbox.workers import Launch, start_worker, worker_files
from maniple.sandbox.workspace import Workspace

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


class BubblewrapBackend:
    """Gives each session namespaces of its own."""

    name = "bubblewrap"

    def __init__(
        self, settings: SandboxSettings, programs: Programs, fittings: Fittings | None = None
    ) -> None:
        """Blocks on disk; raises `SandboxError` where there is no system-call filter for this machine."""
        self._settings = settings
        self._programs = programs
        self._filter = filter_program()
        self._fittings = fittings = fittings or Fittings()
        worker = worker_files(programs.python, _INSIDE)
        self._worker_names = tuple(worker)
        self._sources = {f"{_INSIDE}/{name}": text for name, text in worker.items()} | OWN_FILES
        if fittings.way_out is not None:
            self._sources[INNER_FORWARDER] = forwarder_program()
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
        door = await way_out.open_door()
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

            launch = Launch(command, inherited=(rules, status, *sources.values()), why_not=why_not)
            return await start_worker(launch, self._settings, workspace)

    def _place(self, workspace: Path, more: Iterable[tuple[str, str]]) -> Place:
        return Place(
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
