"""The backend unsafe-local: no isolation, the server's own rights; the settings must name it explicitly.

There are limits of time, memory and file size against mistakes, none against malice.
"""

import asyncio
import logging
import os
import shutil
import sys

from maniple.config.sandbox_settings import SandboxSettings
from maniple.config.sources import environment_variables
from maniple.egress.environment_proxies import NETWORK_VARIABLES
from maniple.errors import SandboxError
from maniple.sandbox.bubblewrap import LINE_BYTES, ServiceSpec
from maniple.sandbox.host import VARIABLES, standalone_program
from maniple.sandbox.processes import PipedProgram, open_pipes
from maniple.sandbox.worker_session import WorkerLaunch, WorkerSession, start_worker
from maniple.workspace.files import Workspace

WARNING = (
    "sandbox.backend is unsafe-local: code that a model wrote runs unprotected, with this user's rights. "
    "It can read and change all files and reach every network. Use it only on a machine that may be lost."
)
_ENDLESS_BYTES = 2**62
_LOG = logging.getLogger(__name__)


class LocalBackend:
    """Starts workers without isolation."""

    name = "unsafe-local"

    def __init__(self, settings: SandboxSettings) -> None:
        """Raises `SandboxError` where there is no bash."""
        self._settings = settings
        self._python = str(settings.python or sys.executable)
        bash = shutil.which("bash")
        if bash is None:
            raise SandboxError("`bash` is not installed: apt-get install -y bash")
        self._bash = bash

    async def start(self, workspace: Workspace) -> WorkerSession:
        """Start a worker in a workspace; logs a warning."""
        _LOG.warning(WARNING)
        directory = str(workspace.path)

        def command(control: int, calls: int) -> list[str]:
            python = [self._python, "-I", "-S", "-B"]
            limits = (self._settings.memory_mb * 1024 * 1024, self._settings.disk_mb * 1024 * 1024)
            keeper = [*python, str(standalone_program("keeper.py")), str(os.getpid()), directory]
            worker = [*python, str(standalone_program("worker.py")), str(control), str(calls)]
            return [
                *keeper,
                *map(str, limits),
                *worker,
                str(standalone_program("interpreter.py")),
                self._bash,
            ]

        launch = WorkerLaunch(
            command,
            environment={**VARIABLES, "HOME": directory, "PYTHONPATH": directory},
            explain=lambda printed: (
                f"Python could not start: {printed} See `sandbox.python` in the settings."
            ),
        )
        return await start_worker(launch, self._settings, workspace)


async def start_unprotected(service: ServiceSpec) -> PipedProgram:
    """Start a service with this user's rights; the settings must ask for this explicitly.

    Of this process's environment it gets only the variables for paths and for the network: proxies and
    certificates. Raises `SandboxError` with what to do.
    """
    inherited = environment_variables("PATH", "HOME", "LANG", "TMPDIR", *NETWORK_VARIABLES)
    command = shutil.which(service.argv[0], path=service.environment.get("PATH", inherited.get("PATH")))
    if command is None:
        raise SandboxError(f"There is no program {service.argv[0]}: install it, or write its whole path.")
    folder = service.cwd or service.folder
    keeper = str(standalone_program("keeper.py"))
    argv = [sys.executable, "-I", "-S", "-B", keeper, str(os.getpid()), str(folder)]
    argv += [str(_ENDLESS_BYTES)] * 2
    try:
        await asyncio.to_thread(service.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        return await open_pipes(
            [*argv, command, *service.argv[1:]],
            environment=inherited | dict(service.environment),
            line_bytes=LINE_BYTES,
        )
    except (OSError, ValueError) as error:
        raise SandboxError(f"{service.argv[0]} could not be started: {error}") from error
