"""No sandbox at all: a worker with the server's own rights, for who has spelled out that this is wanted.

There are limits of time, memory and file size against mistakes, none against malice.
"""

import logging
import os
import shutil
import sys
from importlib import resources

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.programs import VARIABLES
from maniple.sandbox.session import WorkerSession
from maniple.sandbox.workers import Launch, start_worker
from maniple.sandbox.workspace import Workspace

WARNING = (
    "sandbox.backend is unsafe-local: code that a model wrote runs unprotected, with this user's rights. "
    "It can read and change all files and reach every network. Use it only in a machine that may be lost."
)
_LOG = logging.getLogger(__name__)


class LocalBackend:
    """Starts workers that nothing holds back."""

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
        """Start a worker in a thread's files; warns in the log."""
        _LOG.warning(WARNING)
        directory = str(workspace.path)
        room = resources.files("maniple.sandbox")

        def command(control: int, calls: int) -> list[str]:
            python = [self._python, "-I", "-S", "-B"]
            limits = (self._settings.memory_mb * 1024 * 1024, self._settings.disk_mb * 1024 * 1024)
            keeper = [*python, str(room / "backends" / "keeper.py"), str(os.getpid()), directory]
            worker = [*python, str(room / "worker.py"), str(control), str(calls)]
            return [*keeper, *map(str, limits), *worker, str(room / "interpreter.py"), self._bash]

        launch = Launch(
            command,
            environment={**VARIABLES, "HOME": directory, "PYTHONPATH": directory},
            why_not=lambda printed: (
                f"Python could not start: {printed} See `sandbox.python` in the settings."
            ),
        )
        return await start_worker(launch, self._settings, workspace)
