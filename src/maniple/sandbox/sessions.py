"""The sandbox as tools use it: a session for each thread, begun when it is needed, and not too many."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import islice

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backend import ExecutionResult, OnOutput, SandboxBackend, SandboxSession
from maniple.sandbox.workspaces import BESIDE, Workspace

_LOG = logging.getLogger(__name__)
_GONE = "variables and background processes of earlier calls are gone; files are kept."
_IDLE = f"The sandbox had not been used for a while and was stopped: {_GONE}"
_NEEDED = f"The sandbox was stopped because others needed the place: {_GONE}"
_ENDED = f"The sandbox ended since the last call: {_GONE}"
_CANCELLED = f"An earlier call was cancelled, which stopped the sandbox: {_GONE}"
_STOPPED = f"The sandbox was stopped with a cancelled run: {_GONE}"
_MOST_REMEMBERED = 1_000


class SessionMarker:
    """Stands beside a workspace, out of reach of its code, while variables can be lost. Blocks on disk."""

    def __init__(self, workspace: Workspace) -> None:
        path = workspace.path
        self._file = path.parent / BESIDE / path.name / "session"
        self.is_set = self._file.exists()
        """Whether a call has ended in a session of which nobody has been told that it is gone."""

    def set(self, wanted: bool) -> None:
        """Set it or take it away, as far as the disk lets itself be written."""
        # Without it, only a hint is missing.
        with suppress(OSError):
            if wanted:
                self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file.touch(mode=0o600)
            else:
                self._file.unlink(missing_ok=True)
            self.is_set = wanted


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """How long a session is left alone while others wait for its place."""

    rest_seconds: float = 10
    """Between two calls: a model writes the next one meanwhile."""
    patience_seconds: float = 30
    """After so long in line, a session makes room that is still used."""


class SessionPool:
    """Hands out places, first come first served.

    For who waits in line, the session makes room whose holder is done. When there is none, the one that
    has rested for longest: once it has rested for `rest_seconds`, or once who waits has done so for
    `patience_seconds`. A holder whose calls follow one another without a rest is to look at `is_overdue`
    between them.
    """

    def __init__(
        self, number: int, dismiss: Callable[[str], None], tenure: EvictionPolicy | None = None
    ) -> None:
        """`dismiss` begins to end the session of a key, which then calls `release`."""
        self._free = number
        self._dismiss = dismiss
        self._tenure = tenure or EvictionPolicy()
        self._line: dict[asyncio.Future[None], float] = {}
        self._resting: dict[str, float] = {}
        """Since when, longest first."""
        self._done: dict[str, None] = {}
        """Those of the resting that expect no call soon, longest first."""
        self._asked: set[str] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_overdue(self) -> bool:
        """Whether somebody has lost patience for whom nobody is making room yet."""
        since = self._unserved()
        return since is not None and _now() >= since + self._tenure.patience_seconds

    async def acquire(self) -> None:
        """Wait for a place."""
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._line[turn] = _now()
        self._make_room()
        try:
            await turn
        except asyncio.CancelledError:
            self._line.pop(turn, None)
            if not turn.cancelled():  # the place came in the moment of the cancellation
                self._hand_on()
            raise

    def release(self, key: str) -> None:
        """The session of this key has ended, or did not begin."""
        self.mark_busy(key)
        self._asked.discard(key)
        self._hand_on()

    def mark_idle(self, key: str) -> None:
        """A holder has no call under way and none that waits."""
        self.mark_busy(key)
        self._resting[key] = _now()
        self._asked.discard(key)
        self._make_room()

    def mark_done(self, key: str) -> None:
        """Who rests, if it does, expects no call soon."""
        if key in self._resting:
            self._done[key] = None
            self._make_room()

    def mark_busy(self, key: str) -> None:
        """A call of this key comes, whether it holds a place or not."""
        self._resting.pop(key, None)
        self._done.pop(key, None)

    def close(self) -> None:
        """Let everybody in who waits, to find out that it is too late."""
        self._silence()
        for turn in self._line:
            if not turn.done():
                turn.set_result(None)
        self._line.clear()

    def _hand_on(self) -> None:
        while self._line:
            turn = next(iter(self._line))
            del self._line[turn]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _unserved(self) -> float | None:
        """Since when the first one waits for whom nobody makes room."""
        return next(islice(self._line.values(), len(self._asked), None), None)

    def _make_room(self) -> None:
        """Ask as many to leave as wait in line and may be asked; come again when the next one may be."""
        self._silence()
        while self._resting and (waits_since := self._unserved()) is not None:
            key = next(iter(self._done), None) or next(iter(self._resting))
            tenure = self._tenure
            due = min(self._resting[key] + tenure.rest_seconds, waits_since + tenure.patience_seconds)
            if key not in self._done and due > _now():
                self._timer = asyncio.get_running_loop().call_at(due, self._make_room)
                return
            self.mark_busy(key)
            self._asked.add(key)
            self._dismiss(key)

    def _silence(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


Call = Callable[[SandboxSession], Awaitable[ExecutionResult]]


During = AbstractAsyncContextManager[object]
"""Entered when the thread's turn has come, left before the next turn."""


@dataclass(slots=True)
class SessionSlot:
    """What is kept of a thread."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    session: SandboxSession | None = None
    folder: tuple[int, int] = (0, 0)
    """Which directory the session works in: device and inode."""
    mark: SessionMarker | None = None
    is_leaving: bool = False
    alarm: asyncio.TimerHandle | None = None


class Sandbox:
    """Runs each thread's calls in its own session, one after the other.

    At most `settings.concurrent` sessions live at once. Who finds no place waits, first come first served;
    `places.py` says which session makes room. One that was idle for `settings.idle_seconds` ends anyway.
    """

    def __init__(
        self, backend: SandboxBackend, settings: SandboxSettings, tenure: EvictionPolicy | None = None
    ) -> None:
        self._backend = backend
        self._settings = settings
        self._pool = SessionPool(settings.concurrent, self._make_room, tenure)
        self._slots: dict[str, SessionSlot] = {}
        self._ends: set[asyncio.Task[None]] = set()
        self._lost: dict[str, str] = {}
        self._closed = False

    @property
    def name(self) -> str:
        """The backend's."""
        return self._backend.name

    @property
    def output_bytes(self) -> int:
        """How much of each stream of a call is kept."""
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

    def mark_idle(self, key: str) -> None:
        """Expect no call of a thread soon; its session stays until somebody needs the place."""
        self._pool.mark_done(key)

    async def stop(self, key: str) -> None:
        """End a thread's session when its calls under way have ended; its next call is told of that."""
        if (slot := self._slots.get(key)) is not None:
            await self._vacate(key, slot, _STOPPED)

    async def close(self) -> None:
        """End every session; calls are refused from now on."""
        self._closed = True
        self._pool.close()
        slots = list(self._slots.values())
        await asyncio.gather(*(slot.session.stop() for slot in slots if slot.session), return_exceptions=True)
        for slot in slots:
            _silence(slot)
        await asyncio.gather(*self._ends)

    async def _run(
        self, key: str, workspace: Workspace, call: Call, during: During | None = None
    ) -> ExecutionResult:
        slot = self._slots.setdefault(key, SessionSlot())
        slot.waiting += 1
        self._pool.mark_busy(key)
        try:
            async with slot.turn:
                _silence(slot)
                session: SandboxSession | None = None
                try:
                    async with during or nullcontext():
                        # Nothing is awaited between the look whether it lives and the call.
                        session = await self._session(key, slot, workspace)
                        completed = await call(session)
                except asyncio.CancelledError:
                    if session is not None and not session.is_alive:
                        self._remember(key, _CANCELLED)
                    raise
                finally:
                    self._look_after(key, slot)
                lost = filter(None, (self._lost.pop(key, ""), completed.lost))
                if slot.mark is not None and slot.mark.is_set != (slot.session is not None):
                    await asyncio.to_thread(slot.mark.set, slot.session is not None)
                return replace(completed, lost=" ".join(lost))
        finally:
            slot.waiting -= 1
            self._settle(key, slot)

    async def _session(self, key: str, slot: SessionSlot, workspace: Workspace) -> SandboxSession:
        """The thread's living session, or a new one in a place of its own."""
        session = slot.session
        if session is None:
            return await self._begin(key, slot, workspace)
        is_same_folder = slot.folder == await asyncio.to_thread(_folder, workspace)
        if not session.is_alive:
            self._remember(key, _ended(session))
        elif is_same_folder and not self._pool.is_overdue:
            return session
        elif is_same_folder:
            self._remember(key, _NEEDED)
        # Otherwise the thread's files were removed and begun anew; what is mounted inside are the old ones.
        await session.stop()
        self._leave(key, slot)
        return await self._begin(key, slot, workspace)

    async def _begin(self, key: str, slot: SessionSlot, workspace: Workspace) -> SandboxSession:
        self._refuse_when_closed()
        await self._pool.acquire()
        try:
            self._refuse_when_closed()
            slot.folder = await asyncio.to_thread(_folder, workspace)
            slot.mark = await asyncio.to_thread(SessionMarker, workspace)
            if slot.mark.is_set and not self._lost.get(key):
                self._remember(key, _ENDED)  # in a server before this one
            session = await self._backend.start(workspace)
            if self._closed:
                await session.stop()
            self._refuse_when_closed()
        except BaseException:  # the place is not taken after all
            self._pool.release(key)
            raise
        slot.session = session
        return session

    def _remember(self, key: str, lost: str) -> None:
        """Let the thread's next call tell what it has lost."""
        self._lost[key] = lost
        if len(self._lost) > _MOST_REMEMBERED:
            del self._lost[next(iter(self._lost))]

    def _make_room(self, key: str) -> None:
        """Let a session go whose place somebody else needs."""
        slot = self._slots[key]
        if not slot.is_leaving:
            self._dismiss(key, slot, _NEEDED)

    def _look_after(self, key: str, slot: SessionSlot) -> None:
        """A call has ended: a session that ended with it leaves its place."""
        if slot.session is not None and not slot.session.is_alive:
            self._leave(key, slot)

    def _settle(self, key: str, slot: SessionSlot) -> None:
        if slot.waiting or slot.is_leaving:
            return
        if slot.session is None:
            if self._slots.get(key) is slot:
                del self._slots[key]
            return
        loop = asyncio.get_running_loop()
        slot.alarm = loop.call_later(self._settings.idle_seconds, self._dismiss, key, slot, _IDLE)
        self._pool.mark_idle(key)

    def _leave(self, key: str, slot: SessionSlot) -> None:
        slot.session = None
        self._pool.release(key)

    def _dismiss(self, key: str, slot: SessionSlot, why: str) -> None:
        """Stop an idle session in the background."""
        slot.is_leaving = True
        task = asyncio.get_running_loop().create_task(self._vacate(key, slot, why))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _vacate(self, key: str, slot: SessionSlot, why: str) -> None:
        slot.is_leaving = True
        try:
            async with slot.turn:
                _silence(slot)
                if slot.session is None:
                    return
                try:
                    await slot.session.stop()
                except SandboxError as error:
                    _LOG.warning("The sandbox of thread %s could not be stopped: %s", key, error)
                finally:
                    self._remember(key, why)
                    self._leave(key, slot)
        finally:
            slot.is_leaving = False
            self._settle(key, slot)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise SandboxError("The sandbox is closed; it is too late to run code.")


def _silence(slot: SessionSlot) -> None:
    if slot.alarm is not None:
        slot.alarm.cancel()
        slot.alarm = None


def _folder(workspace: Workspace) -> tuple[int, int]:
    try:
        found = workspace.path.lstat()
    except OSError:  # the backend will say what is wrong with it
        return 0, 0
    return found.st_dev, found.st_ino


def _ended(session: SandboxSession) -> str:
    """Why a session ended between two calls."""
    return str(getattr(session, "ending", "")) or _ENDED


def _now() -> float:
    return asyncio.get_running_loop().time()
