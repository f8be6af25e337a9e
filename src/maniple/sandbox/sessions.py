"""The sandbox as tools use it: one session per thread, started on demand.

`SessionPool` limits the sessions that exist; most of them are idle while a model writes. `CallLimit` limits
the calls that run at the same time.
"""

import asyncio
import logging
import resource
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backend import (
    BackgroundProcesses,
    ExecutionResult,
    OnOutput,
    SandboxBackend,
    SandboxSession,
)
from maniple.sandbox.host import read_machine_memory
from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import BESIDE

_LOG = logging.getLogger(__name__)
_LOST = "variables and background processes of earlier calls are gone; files are kept."
_IDLE = f"The sandbox had not been used for a while and was stopped: {_LOST}"
_NEEDED = f"The sandbox was stopped because others needed the place: {_LOST}"
_ENDED = f"The sandbox ended since the last call: {_LOST}"
_CANCELLED = f"An earlier call was cancelled, which stopped the sandbox: {_LOST}"
_STOPPED = f"The sandbox was stopped with a cancelled run: {_LOST}"
_MAX_LOSS_NOTICES = 1_000


class SessionMarker:
    """A file beside a workspace, inaccessible to its code, while variables can be lost. Blocks on disk.

    It survives the server, so that the next one can report the loss.
    """

    def __init__(self, workspace: Workspace) -> None:
        path = workspace.path
        self._file = path.parent / BESIDE / path.name / "session"
        self.is_set = self._file.exists()
        """Whether a session has run calls and its loss has not been reported yet."""

    def set(self, wanted: bool) -> None:
        """Create or remove the file; a failure is ignored."""
        # Without the file, only a hint is missing.
        with suppress(OSError):
            if wanted:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600)
            else:
                self._file.unlink(missing_ok=True)
            self.is_set = wanted


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """How long a session may stay idle while other threads wait for its slot."""

    rest_seconds: float = 10
    """After a call, in which a model writes the next one."""
    patience_seconds: float = 30
    """After this waiting time, a session is evicted although it is in use."""


class SessionPool:
    """Hands out a limited number of session slots, first come first served.

    For a waiting thread, a session that is marked as done is evicted first. Otherwise the session that has
    been idle for longest is evicted, after `rest_seconds` of idle time or after `patience_seconds` of
    waiting. A holder that is never idle checks `is_overdue` between its calls.
    """

    def __init__(
        self, number: int, evict: Callable[[str], None], policy: EvictionPolicy | None = None
    ) -> None:
        """`evict` starts to end the session of a key, which then calls `release`."""
        self._number = self._free = number
        self._evict = evict
        self._policy = policy or EvictionPolicy()
        self._waiting: dict[asyncio.Future[None], float] = {}
        self._idle: dict[str, float] = {}
        """The time since when each key is idle, longest first."""
        self._done: dict[str, None] = {}
        """The idle keys that expect no call soon, longest first."""
        self._evicting: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_overdue(self) -> bool:
        """Whether a thread has waited for `patience_seconds` and no session is being evicted for it."""
        since = self._first_unserved()
        return since is not None and _now() >= since + self._policy.patience_seconds

    @property
    def resident(self) -> int:
        """How many slots are held."""
        return self._number - self._free

    @property
    def has_room(self) -> bool:
        """Whether `acquire` would return immediately."""
        return self._free > 0

    def evict_one(self) -> None:
        """Evict the session that is marked as done or has been idle for longest, if there is one."""
        if (key := self._next_idle()) is not None:
            self._start_eviction(key)

    async def acquire(self) -> None:
        """Wait for a slot."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting[turn] = _now()
        self._make_room()
        try:
            await turn
        except asyncio.CancelledError:
            self._waiting.pop(turn, None)
            if not turn.cancelled():  # it was granted at the moment of the cancellation
                self._grant_next()
            raise

    def release(self, key: str) -> None:
        """Return the slot of a session that has ended or failed to start."""
        self.mark_busy(key)
        self._evicting.discard(key)
        self._grant_next()

    def mark_idle(self, key: str) -> None:
        """Note that a holder has no running and no waiting call."""
        self.mark_busy(key)
        self._idle[key] = _now()
        self._evicting.discard(key)
        self._make_room()

    def mark_done(self, key: str) -> None:
        """Note that an idle holder expects no call soon."""
        if key in self._idle:
            self._done[key] = None
            self._make_room()

    def mark_busy(self, key: str) -> None:
        """Note that a call of this key arrives, whether it holds a slot or not."""
        self._idle.pop(key, None)
        self._done.pop(key, None)

    def close(self) -> None:
        """Wake all waiting threads, which then find that the sandbox is closed."""
        self._cancel_timer()
        for turn in self._waiting:
            if not turn.done():
                turn.set_result(None)
        self._waiting.clear()

    def _grant_next(self) -> None:
        while self._waiting:
            turn = next(iter(self._waiting))
            del self._waiting[turn]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _first_unserved(self) -> float | None:
        """Return since when the first thread waits for which no session is being evicted."""
        return next(islice(self._waiting.values(), len(self._evicting), None), None)

    def _make_room(self) -> None:
        """Evict one session per waiting thread as far as the policy permits, and set a timer for the next."""
        self._cancel_timer()
        while (key := self._next_idle()) and (waits_since := self._first_unserved()) is not None:
            policy = self._policy
            due = min(self._idle[key] + policy.rest_seconds, waits_since + policy.patience_seconds)
            if key not in self._done and due > _now():
                self._timer = asyncio.get_running_loop().call_at(due, self._make_room)
                return
            self._start_eviction(key)

    def _next_idle(self) -> str | None:
        """Return the key of the session to evict next."""
        return next(iter(self._done), None) or next(iter(self._idle), None)

    def _start_eviction(self, key: str) -> None:
        self.mark_busy(key)
        self._evicting.add(key)
        self._evict(key)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


_THAW_SECONDS = 1.0


class CallLimit:
    """Limits how many sandboxes work at the same time.

    Calls wait for a place, first come first served. A sandbox without a call works, too, while its background
    processes run. Where a call makes them too many, the background processes of the session that has rested
    for longest are frozen, until its next call or until fewer sandboxes work. So nothing is frozen while
    there are no more sandboxes than places.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self._slots = asyncio.Semaphore(number)
        self._calls = 0
        self._idle: dict[str, BackgroundProcesses] = {}
        """By key, without frozen ones; longest idle first."""
        self._frozen: dict[str, BackgroundProcesses] = {}
        self._timer: asyncio.TimerHandle | None = None

    @property
    def has_room(self) -> bool:
        """Whether a call would begin immediately."""
        return not self._slots.locked()

    @asynccontextmanager
    async def working(self, key: str) -> AsyncGenerator[None]:
        """Wait for a slot and hold it during a call."""
        async with self._slots:
            self._calls += 1
            try:
                self._thaw(key)
                self._freeze_excess()
                yield
            finally:
                self._calls -= 1

    def rest(self, key: str, background: BackgroundProcesses | None) -> None:
        """Record that a session with these background processes has no call."""
        if background is not None and key not in self._frozen:
            self._idle.pop(key, None)
            self._idle[key] = background

    def forget(self, key: str) -> None:
        """Record that a session has ended."""
        self._idle.pop(key, None)
        self._frozen.pop(key, None)

    def close(self) -> None:
        """Stop freezing and thawing sessions."""
        if self._timer is not None:
            self._timer.cancel()

    def _thaw(self, key: str) -> None:
        self._idle.pop(key, None)
        if (background := self._frozen.pop(key, None)) is not None:
            background.thaw()

    def _busy(self) -> list[str]:
        return [key for key, background in self._idle.items() if background.is_busy()]

    def _freeze_excess(self) -> None:
        busy = self._busy()
        for key in busy[: max(self._calls + len(busy) - self._number, 0)]:
            self._frozen[key] = self._idle.pop(key)
            self._frozen[key].freeze()
        if self._frozen and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_THAW_SECONDS, self._thaw_some)

    def _thaw_some(self) -> None:
        """Thaw as many sessions as there are free slots, longest frozen first; each counts as idle again."""
        self._timer = None
        free = max(self._number - self._calls - len(self._busy()), 0)
        for key in list(self._frozen)[:free]:
            self._idle[key] = self._frozen.pop(key)
            self._idle[key].thaw()
        self._freeze_excess()


# What an ordinary session takes: Python with pandas and matplotlib. Half of the memory is for idle ones.
_IDLE_BYTES, _IDLE_SHARE = 128 * 1024**2, 2
_MAX_RESIDENT = 256
_DESCRIPTORS, _DESCRIPTOR_SHARE = 10, 4
"""What a session holds open in this process, and the share of the process's limit for all of them."""


def count_residents(settings: SandboxSettings, memory_bytes: int, descriptors: int) -> int:
    """Return how many sessions may exist on a machine with this memory.

    `descriptors` is the number of files that this process may open. Elsewhere than in bubblewrap each session
    costs more, or money, and its background processes cannot be frozen.
    """
    openable = max(settings.concurrent, descriptors // _DESCRIPTOR_SHARE // _DESCRIPTORS)
    if settings.resident is not None:
        if settings.resident > openable:
            _LOG.warning(
                "sandbox.resident is %d, but the process may open %d files, enough for %d sandboxes. "
                "Raise its limit (ulimit -n).",
                *(settings.resident, descriptors, openable),
            )
        return min(settings.resident, openable)
    fitting = memory_bytes // _IDLE_SHARE // _IDLE_BYTES if settings.backend == "bubblewrap" else 0
    return max(settings.concurrent, min(fitting, _MAX_RESIDENT, openable))


def _descriptor_limit() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


Call = Callable[[SandboxSession], Awaitable[ExecutionResult]]


OnBegin = Callable[[], Awaitable[None]]
During = AbstractAsyncContextManager[OnBegin | None]
"""Entered before each call of the thread and left after it.

What it gives is awaited when the session is ready, directly before the call.
"""


@dataclass(slots=True)
class SessionSlot:
    """The state of one thread."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    is_resident: bool = False
    """Whether it holds a slot of the pool; outside of its turn, whether it has a session."""
    session: SandboxSession | None = None
    is_used: bool = False
    """Whether the session has begun a call, so that something is lost with it."""
    folder: tuple[int, int] = (0, 0)
    """The device and inode of the directory that the session works in."""
    mark: SessionMarker | None = None
    is_leaving: bool = False
    alarm: asyncio.TimerHandle | None = None


class Sandbox:
    """Runs the calls of each thread in a session of its own, one after the other.

    At most `settings.concurrent` calls run at a time; further ones wait, first come first served. At most
    `settings.resident` sessions exist; further threads wait, too, and `SessionPool` chooses the session to
    evict. A session ends after `settings.idle_seconds` without a call.
    """

    def __init__(
        self, backend: SandboxBackend, settings: SandboxSettings, policy: EvictionPolicy | None = None
    ) -> None:
        self._backend = backend
        self._settings = settings
        residents = count_residents(settings, read_machine_memory().total_bytes, _descriptor_limit())
        self._pool = SessionPool(residents, self._make_room, policy)
        self._work = CallLimit(settings.concurrent)
        self._slots: dict[str, SessionSlot] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self._lost: dict[str, str] = {}
        self._closed = False

    @property
    def name(self) -> str:
        """The name of the backend."""
        return self._backend.name

    @property
    def output_bytes(self) -> int:
        """How many bytes of each output stream of a call are returned."""
        return self._settings.output_bytes

    async def run_python(
        self,
        code: str,
        *,
        key: str,
        workspace: Workspace,
        on_output: OnOutput | None = None,
        during: During | None = None,
    ) -> ExecutionResult:
        """Run code with the variables of the thread's earlier calls; raises `SandboxError`."""
        return await self._run(
            key, workspace, lambda session: session.run_python(code, on_output=on_output), during
        )

    async def run_bash(
        self,
        command: str,
        *,
        key: str,
        workspace: Workspace,
        on_output: OnOutput | None = None,
        during: During | None = None,
    ) -> ExecutionResult:
        """Run a command beside the thread's Python; raises `SandboxError`."""
        return await self._run(
            key, workspace, lambda session: session.run_bash(command, on_output=on_output), during
        )

    async def prepare(self, key: str, workspace: Workspace) -> None:
        """Start the thread's session for a call that a model is writing, unless it would have to wait.

        Where that fails, nothing is raised: the call itself starts the session, or reports why it cannot.
        """
        slot = self._slots.setdefault(key, SessionSlot())
        slot.waiting += 1
        try:
            if slot.turn.locked() or slot.is_resident or not (self._pool.has_room and self._work.has_room):
                return
            async with slot.turn, self._work.working(key):
                await self._become_resident(key, slot)
                try:
                    await self._session(key, slot, workspace)
                finally:
                    self._release_if_ended(key, slot)
        except SandboxError as error:
            _LOG.info("The sandbox of thread %s could not be prepared: %s", key, error)
        finally:
            slot.waiting -= 1
            self._update_idle(key, slot)

    def mark_idle(self, key: str) -> None:
        """Expect no call of a thread soon; its session stays until another thread needs the slot."""
        self._pool.mark_done(key)

    async def stop(self, key: str) -> None:
        """End a thread's session after its running calls; the next call reports the loss."""
        if (slot := self._slots.get(key)) is not None:
            await self._end_session(key, slot, _STOPPED)

    async def close(self) -> None:
        """End every session and refuse all further calls."""
        self._closed = True
        self._pool.close()
        self._work.close()
        slots = list(self._slots.values())
        await asyncio.gather(*(slot.session.stop() for slot in slots if slot.session), return_exceptions=True)
        for slot in slots:
            _cancel_timer(slot)
        await asyncio.gather(*self._ends)

    async def _run(
        self, key: str, workspace: Workspace, call: Call, during: During | None = None
    ) -> ExecutionResult:
        slot = self._slots.setdefault(key, SessionSlot())
        slot.waiting += 1
        self._pool.mark_busy(key)
        try:
            async with slot.turn:
                _cancel_timer(slot)
                session: SandboxSession | None = None
                try:
                    async with during or nullcontext() as on_begin:
                        # In this order: a holder of a place for a call never waits for another.
                        await self._become_resident(key, slot)
                        async with self._work.working(key):
                            if on_begin is not None:
                                await self._session(key, slot, workspace)
                                await on_begin()
                            # Nothing is awaited between the check that it is alive and the call.
                            session = await self._session(key, slot, workspace)
                            slot.is_used = True
                            completed = await call(session)
                except asyncio.CancelledError:
                    if session is not None and not session.is_alive:
                        self._note_loss(key, slot, _CANCELLED)
                    raise
                finally:
                    self._release_if_ended(key, slot)
                lost = filter(None, (self._lost.pop(key, ""), completed.lost))
                if slot.mark is not None and slot.mark.is_set != (slot.session is not None):
                    await asyncio.to_thread(slot.mark.set, slot.session is not None)
                return replace(completed, lost=" ".join(lost))
        finally:
            slot.waiting -= 1
            self._update_idle(key, slot)

    async def _become_resident(self, key: str, slot: SessionSlot) -> None:
        """Acquire a slot of the pool; threads that have waited too long come first."""
        if slot.is_resident and self._pool.is_overdue:
            if slot.session is not None:
                self._note_loss(key, slot, _NEEDED if slot.session.is_alive else _ended(slot.session))
                await slot.session.stop()
            self._release(key, slot)
        if not slot.is_resident:
            self._refuse_when_closed()
            await self._pool.acquire()
            slot.is_resident = True
        await self._spare_memory()

    async def _spare_memory(self) -> None:
        """Evict a resting session if a call could use up the memory of the machine.

        Those that fit into the limit of calls stay, as they would without any memory to spare.
        """
        if self._pool.resident > self._settings.concurrent:
            memory = await asyncio.to_thread(read_machine_memory)
            if memory.available_bytes < self._settings.memory_mb * 1024**2:
                self._pool.evict_one()

    async def _session(self, key: str, slot: SessionSlot, workspace: Workspace) -> SandboxSession:
        """Return the thread's session, or start a new one in its place."""
        session = slot.session
        if session is not None:
            is_same_folder = slot.folder == await asyncio.to_thread(_folder, workspace)
            if session.is_alive and is_same_folder:
                return session
            if not session.is_alive:
                self._note_loss(key, slot, _ended(session))
            # Otherwise the workspace was removed and created again; the session still mounts the old one.
            await session.stop()
            slot.session = None
        return await self._start_session(key, slot, workspace)

    async def _start_session(self, key: str, slot: SessionSlot, workspace: Workspace) -> SandboxSession:
        self._refuse_when_closed()
        slot.is_used = False
        slot.folder = await asyncio.to_thread(_folder, workspace)
        await asyncio.to_thread(workspace.protect_mirrors)
        slot.mark = await asyncio.to_thread(SessionMarker, workspace)
        if slot.mark.is_set and not self._lost.get(key):
            self._lose(key, _ENDED)  # in an earlier server process
        session = await self._backend.start(workspace)
        if self._closed:
            await session.stop()
        self._refuse_when_closed()
        slot.session = session
        return session

    def _note_loss(self, key: str, slot: SessionSlot, lost: str) -> None:
        """Let the thread's next call report what it has lost with its session, if that was used."""
        if slot.is_used:
            self._lose(key, lost)

    def _lose(self, key: str, lost: str) -> None:
        self._lost[key] = lost
        if len(self._lost) > _MAX_LOSS_NOTICES:
            del self._lost[next(iter(self._lost))]

    def _make_room(self, key: str) -> None:
        """Evict a session whose slot another thread needs."""
        slot = self._slots[key]
        if not slot.is_leaving:
            self._dismiss(key, slot, _NEEDED)

    def _release_if_ended(self, key: str, slot: SessionSlot) -> None:
        """Release the slot of a session that ended with its call or did not start."""
        if slot.is_resident and (slot.session is None or not slot.session.is_alive):
            self._release(key, slot)

    def _update_idle(self, key: str, slot: SessionSlot) -> None:
        if slot.waiting or slot.is_leaving:
            return
        if slot.session is None:
            if self._slots.get(key) is slot:
                del self._slots[key]
            return
        loop = asyncio.get_running_loop()
        slot.alarm = loop.call_later(self._settings.idle_seconds, self._dismiss, key, slot, _IDLE)
        self._work.rest(key, slot.session.background)
        self._pool.mark_idle(key)

    def _release(self, key: str, slot: SessionSlot) -> None:
        slot.session = None
        slot.is_resident = False
        self._work.forget(key)
        self._pool.release(key)

    def _dismiss(self, key: str, slot: SessionSlot, reason: str) -> None:
        """Stop an idle session in the background."""
        slot.is_leaving = True
        task = asyncio.get_running_loop().create_task(self._end_session(key, slot, reason))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _end_session(self, key: str, slot: SessionSlot, reason: str) -> None:
        slot.is_leaving = True
        try:
            async with slot.turn:
                _cancel_timer(slot)
                if slot.session is None:
                    return
                try:
                    await slot.session.stop()
                except SandboxError as error:
                    _LOG.warning("The sandbox of thread %s could not be stopped: %s", key, error)
                finally:
                    self._note_loss(key, slot, reason)
                    self._release(key, slot)
        finally:
            slot.is_leaving = False
            self._update_idle(key, slot)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise SandboxError("The sandbox is closed, so the code was not run. Restart the server.")


def _cancel_timer(slot: SessionSlot) -> None:
    if slot.alarm is not None:
        slot.alarm.cancel()
        slot.alarm = None


def _folder(workspace: Workspace) -> tuple[int, int]:
    try:
        found = workspace.path.lstat()
    except OSError:  # the backend reports what is wrong with it
        return 0, 0
    return found.st_dev, found.st_ino


def _ended(session: SandboxSession) -> str:
    """Return why a session ended between two calls."""
    return str(getattr(session, "ending", "")) or _ENDED


def _now() -> float:
    return asyncio.get_running_loop().time()
