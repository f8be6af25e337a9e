"""A backend whose sessions are held to limits over all their processes together."""

from collections.abc import Callable
from typing import Protocol

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox.backend import Session
from maniple.sandbox.limits import Limits
from maniple.sandbox.watchdog import Watchdog
from maniple.sandbox.workspace import Workspace


class Watchable(Session, Protocol):
    """A session whose processes can be seen on this machine."""

    @property
    def pid(self) -> int:
        """The host's id of the process from which all others descend."""
        ...

    def overrun(self, reason: str) -> None:
        """Stop everything, and tell the reason with the call under way or the next one."""
        ...

    def at_end(self, farewell: Callable[[], object]) -> None:
        """Call `farewell` once, when the session has ended."""
        ...


class WatchableBackend(Protocol):
    """A technique that keeps its processes on this machine."""

    @property
    def name(self) -> str: ...

    async def start(self, workspace: Workspace) -> Watchable: ...


class WatchedBackend:
    """Shows each session of another backend to a watchdog, which the caller closes."""

    def __init__(self, backend: WatchableBackend, watchdog: Watchdog, settings: SandboxSettings) -> None:
        self._backend = backend
        self._watchdog = watchdog
        self._limits = Limits(settings.memory_mb, settings.processes, settings.disk_mb)

    @property
    def name(self) -> str:
        return self._backend.name

    async def start(self, workspace: Workspace) -> Watchable:
        session = await self._backend.start(workspace)
        watch = self._watchdog.watch(session.pid, workspace.path, self._limits, session.overrun)
        session.at_end(watch.stop)
        if not session.is_alive:
            watch.stop()
        return session
