"""Enforces limits over all processes of a sandbox together; the kernel limits only each single process.

One thread checks every sandbox ten times a second and its files twice a second, or when the disk fills; one
that works without using more, half as often. A sandbox in which nothing runs is measured every five seconds;
ten times a second the thread looks whether anything has run in it, which costs a fiftieth. Control groups
would do this better, but need a delegated subtree; this works everywhere.

Sockets count with what they can hold (`socket_memory`), as nobody can see what they do hold.

The watchdog does not see other kernel memory (the limits on processes and open files bound it), the size of
removed files that wait in a socket (so they may stay there only for a moment), and the memory of processes
that pass it on and end within microseconds (a machine runs as many of them as it has processors).
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox.backend import SandboxSession
from maniple.sandbox.usage import ResourceUsage, SandboxInspector, find_inspector
from maniple.workspace.files import Workspace
from maniple.workspace.safe_open import MAX_LEVELS, DiskUse, measure_disk_use

_INTERVAL_SECONDS = 0.1
_DISK_SECONDS = 0.5
# Applies to a sandbox with unchanged usage.
_QUIET_TIMES_LONGER = 2
# The longest time between two measurements of a sandbox in which nothing runs; most wait for their next call.
_SETTLED_SECONDS = 5.0
# A sandbox that is expensive to check is checked less often: for a third or a fifth of the time.
_MEMORY_SHARE, _DISK_SHARE = 3, 5
# A program that starts another one shares its memory with it for a moment, and the kernel counts it twice.
_CHECKS_IN_A_ROW, _AGAIN_SECONDS = 3, 0.025
_START_SECONDS = 10.0
# When this share of the limit has gone from the disk, files are measured before their time.
_SUSPICIOUS_SHARE = 4
# The blocks of the workspace's own folders, beside a file of the size that is allowed.
_FOLDERS_BYTES = 65_536
STOPPED = "so everything was stopped: variables are gone"
_FILES_KEPT = f"{STOPPED}, the files are still there"
_MEGABYTE = 1024**2
# Code may run in a workspace over its limit to clean up, but not at any size: each session can write until
# the watchdog notices it, and measuring more and more files takes time from all other sandboxes.
CLEANUP_FACTOR = 20
# bwrap, its first process, and the shell that sets the limits do not count.
_OWN_PROCESSES = 4


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """The limits of one sandbox; `files` counts folders too.

    Each method returns a sentence for the model, or "" within the limits.
    """

    memory_mb: int
    processes: int
    disk_mb: int
    files: int = 20_000

    @property
    def memory_bytes(self) -> int:
        return self.memory_mb * _MEGABYTE

    @property
    def disk_bytes(self) -> int:
        return self.disk_mb * _MEGABYTE

    def explain_usage(self, usage: ResourceUsage) -> str:
        """Check memory and processes."""
        if self.is_full_of_sockets(usage):
            return (
                f"The code's sockets can hold more than {self.memory_mb} MB of memory together, {STOPPED}. "
                "Close sockets that are no longer needed, and open fewer at a time."
            )
        if usage.memory_bytes > self.memory_bytes:
            return (
                f"The code used more than {self.memory_mb} MB of memory together, {STOPPED}. "
                "Work on smaller pieces, and with fewer processes at a time."
            )
        if usage.processes > self.processes + _OWN_PROCESSES:
            return f"The code ran more than {self.processes} processes at once, {STOPPED}. Start fewer."
        return ""

    def is_full_of_sockets(self, usage: ResourceUsage) -> bool:
        """Return whether the sockets alone may hold more memory than the limit."""
        return usage.socket_bytes > self.memory_bytes

    def explain_disk_use(self, found: DiskUse, unlinked_bytes: int, allowed: tuple[int, int]) -> str:
        """Check the workspace; `allowed` are the bytes and entries that are currently permitted."""
        size, entries = allowed
        if found.too_deep:
            return f"A folder in the workspace lies below more than {MAX_LEVELS} others, {_FILES_KEPT}."
        if found.entries > entries:
            return (
                f"There are more than {self.files} files and folders in the workspace, {_FILES_KEPT}. "
                f"{self._remedy(allowed)}, and put many small things into one file."
            )
        if found.size_bytes + unlinked_bytes <= size + _FOLDERS_BYTES:
            return ""
        if unlinked_bytes > found.size_bytes:
            return (
                f"Files that were removed and are still open or mapped take more than {self.disk_mb} MB, "
                f"{_FILES_KEPT}. "
                "Close files when they are removed."
            )
        return (
            f"The files in the workspace take more than {self.disk_mb} MB, {_FILES_KEPT}. "
            f"Among the largest: {_named(found)}. {self._remedy(allowed)}, and write less."
        )

    def explain_files_in_sockets(self) -> str:
        """Describe files in sockets, whose size cannot be measured."""
        return f"Files were left on their way through a socket, {_FILES_KEPT}. Receive what is sent."

    def measure_allowance(self, workspace: Path) -> tuple[int, int]:
        """Return the bytes and entries that `workspace` may hold: the limits, or what it holds already.

        Blocks on disk. Measure before code runs in it, so that what the code writes at first is not taken
        for what was there. Of a folder that cannot be read, the first check reports the error.
        """
        most_bytes, most_entries = CLEANUP_FACTOR * self.disk_bytes, CLEANUP_FACTOR * self.files
        try:
            found = measure_disk_use(workspace, most_bytes, most_entries)
        except OSError:
            return self.disk_bytes, self.files
        return (
            min(max(self.disk_bytes, found.size_bytes), most_bytes),
            min(max(self.files, found.entries), most_entries),
        )

    def _remedy(self, allowed: tuple[int, int]) -> str:
        if allowed[0] < CLEANUP_FACTOR * self.disk_bytes:
            return "Remove what is not needed"
        return (
            f"No code is run where it is {CLEANUP_FACTOR} times as much: ask the user to delete files "
            "of this conversation, or to begin another"
        )


class SandboxWatch:
    """One watched sandbox. The caller calls `stop` when it has ended; a second call does nothing."""

    def __init__(
        self,
        leader: int,
        workspace: Path,
        limits: ResourceLimits,
        allowed: tuple[int, int],
        on_overrun: Callable[[str], None],
    ) -> None:
        self._leader = leader
        self._workspace = workspace
        self._limits = limits
        self._on_overrun = on_overrun
        self._loop = asyncio.get_running_loop()
        # Held during a check, so that no descriptor is closed meanwhile.
        self._looking = threading.Lock()
        self._inspector: SandboxInspector | None = None
        self._usage = ResourceUsage(0, 0)
        self._is_quiet = self._is_marked = False
        self._overruns = self._flights = 0
        self._free_bytes = 0
        self._allowed = allowed
        self._began = self.due = self._disk_due = self._settled_due = time.monotonic()
        self._is_stopped = False
        self.is_over = False
        self.is_settled = False
        """Whether nothing has run in the sandbox between its last measurement and the last look."""

    def stop(self) -> None:
        """Stop watching; does not wait for a running check."""
        self.is_over = self._is_stopped = True
        self._release()

    def look(self) -> None:
        """Check what is due; blocks. An overrun is reported once, on the event loop."""
        now = time.monotonic()
        if now < self.due:
            return
        with self._looking:
            reason = "" if self.is_over else self._find_overrun(now)
        if reason:
            self.is_over = True
            with suppress(RuntimeError):  # the loop has ended, and the sandbox with it
                self._loop.call_soon_threadsafe(self._report, reason)
        if self.is_over:
            self._release()

    def _release(self) -> None:
        if self._looking.acquire(blocking=False):
            inspector, self._inspector = self._inspector, None
            if inspector is not None:
                inspector.close()
            self._looking.release()

    def _report(self, reason: str) -> None:
        if not self._is_stopped:
            self._on_overrun(reason)

    def _find_overrun(self, now: float) -> str:
        try:
            return self._overrun(now)
        except Exception as error:  # noqa: BLE001  without the thread nothing would be limited
            return f"The sandbox's limits could not be watched ({error}), {STOPPED}."

    def _overrun(self, now: float) -> str:
        self._inspector = self._inspector or find_inspector(self._leader)
        if self._inspector is None:
            late = now - self._began > _START_SECONDS
            return f"The sandbox's limits could not be watched, {STOPPED}." if late else ""
        self.is_settled = self._is_marked and not self._inspector.has_run()
        if self.is_settled and now < self._settled_due:
            self.due = _next_tick(now)
            return ""
        return self._measure(self._inspector, now)

    def _measure(self, inspector: SandboxInspector, now: float) -> str:
        # Noted before everything is measured, so that nothing happens unseen in between.
        is_settling = self._is_quiet and now >= self._disk_due
        if is_settling and inspector.has_run():
            inspector.mark_activity()
        usage = inspector.usage(self._limits.memory_bytes)
        self._is_quiet, self._usage = usage == self._usage, usage
        longer = _QUIET_TIMES_LONGER if self._is_quiet else 1
        reason = self._too_much(usage)
        pause = _AGAIN_SECONDS if self._overruns else longer * _INTERVAL_SECONDS
        self.due = now + max(pause, _MEMORY_SHARE * (time.monotonic() - now))
        if not reason and (now >= self._disk_due or self._disk_shrinks()):
            began = time.monotonic()
            reason = self._too_full(inspector)
            self._disk_due = now + max(longer * _DISK_SECONDS, _DISK_SHARE * (time.monotonic() - began))
        self._is_marked = is_settling and self._is_quiet and not (self._overruns or self._flights)
        self._settled_due = max(now + _SETTLED_SECONDS, self._disk_due)
        return reason

    def _too_much(self, usage: ResourceUsage) -> str:
        """Report an overrun only after several checks in a row; of sockets, which count once, at once."""
        reason = self._limits.explain_usage(usage)
        if self._limits.is_full_of_sockets(usage):
            return reason
        self._overruns = self._overruns + 1 if reason else 0
        return reason if self._overruns >= _CHECKS_IN_A_ROW else ""

    def _disk_shrinks(self) -> bool:
        """Return whether the free disk space has shrunk much since the last check."""
        return self._free_bytes - _free_bytes(self._workspace) > self._limits.disk_bytes / _SUSPICIOUS_SHARE

    def _too_full(self, inspector: SandboxInspector) -> str:
        self._free_bytes = _free_bytes(self._workspace)
        size, entries = self._allowed
        found = measure_disk_use(self._workspace, size + _FOLDERS_BYTES, entries)
        unlinked = inspector.unlinked_bytes(self._workspace)
        # For a moment this is legitimate: a process passes an open file to another one this way.
        self._flights = self._flights + 1 if inspector.is_in_flight else 0
        if self._flights >= _CHECKS_IN_A_ROW:
            return self._limits.explain_files_in_sockets()
        reason = self._limits.explain_disk_use(found, unlinked, self._allowed)
        # A workspace that is over the limit may shrink but not grow again.
        self._allowed = (
            max(self._limits.disk_bytes, found.size_bytes),
            max(self._limits.files, found.entries),
        )
        return reason


class Watchdog:
    """Checks every sandbox from a thread of its own, which sleeps while there is none."""

    def __init__(self) -> None:
        self._watches: list[SandboxWatch] = []
        self._changed = threading.Event()
        self._closed = False
        self._thread: threading.Thread | None = None

    def watch(
        self,
        pid: int,
        workspace_path: Path,
        limits: ResourceLimits,
        allowed: tuple[int, int],
        on_overrun: Callable[[str], None],
    ) -> SandboxWatch:
        """Watch the sandbox that process `pid` has started, until the result's `stop` is called.

        `allowed` is what `ResourceLimits.measure_allowance` returned before the start. Call this
        on the event loop; `on_overrun` runs there too, once, with a sentence for the model.
        """
        watch = SandboxWatch(pid, workspace_path, limits, allowed, on_overrun)
        self._watches.append(watch)
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="sandbox-watchdog", daemon=True)
            self._thread.start()
        self._changed.set()
        return watch

    def close(self) -> None:
        """Stop every watch and end the thread; waits for the running check."""
        self._closed = True
        self._changed.set()
        if self._thread is not None:
            self._thread.join()
        for watch in self._watches:
            watch.stop()

    def _run(self) -> None:
        while not self._closed:
            for watch in [*self._watches]:
                if watch.is_over:
                    self._watches.remove(watch)
                else:
                    watch.look()
            if self._changed.wait(self._pause_seconds()):
                self._changed.clear()

    def _pause_seconds(self) -> float | None:
        """Return how long nothing is due; None while there is no sandbox."""
        due = min((watch.due for watch in self._watches), default=None)
        return None if due is None else max(due - time.monotonic(), _AGAIN_SECONDS)


class WatchableSession(SandboxSession, Protocol):
    """A session whose processes run on this machine."""

    @property
    def pid(self) -> int:
        """The host's process id of the ancestor of all its processes."""
        ...

    def stop_for_limit(self, reason: str) -> None:
        """Stop everything; the running call, or the next one, reports the reason."""
        ...

    def on_end(self, callback: Callable[[], object]) -> None:
        """Call `callback` once, when the session has ended."""
        ...


class WatchableBackend(Protocol):
    """A backend that keeps its processes on this machine."""

    @property
    def name(self) -> str: ...

    async def start(self, workspace: Workspace) -> WatchableSession: ...


class WatchedBackend:
    """Registers each session of another backend with a watchdog, which the caller closes."""

    def __init__(self, backend: WatchableBackend, watchdog: Watchdog, settings: SandboxSettings) -> None:
        self._backend = backend
        self._watchdog = watchdog
        self._limits = ResourceLimits(settings.memory_mb, settings.processes, settings.disk_mb)

    @property
    def name(self) -> str:
        return self._backend.name

    async def start(self, workspace: Workspace) -> WatchableSession:
        allowed = await asyncio.to_thread(self._limits.measure_allowance, workspace.path)
        session = await self._backend.start(workspace)
        watch = self._watchdog.watch(
            session.pid, workspace.path, self._limits, allowed, session.stop_for_limit
        )
        session.on_end(watch.stop)
        if session.background is not None:
            session.background.is_busy = lambda: not watch.is_settled
        if not session.is_alive:
            watch.stop()
        return session


def _next_tick(now: float) -> float:
    """Return a moment that all settled sandboxes share, so that the thread wakes up once for all."""
    return (now // _INTERVAL_SECONDS + 1) * _INTERVAL_SECONDS


def _free_bytes(folder: Path) -> int:
    found = os.statvfs(folder)
    return found.f_bfree * found.f_frsize


def _named(found: DiskUse) -> str:
    return ", ".join(f"{path[-100:]!r} ({size / _MEGABYTE:.1f} MB)" for path, size in found.largest)
