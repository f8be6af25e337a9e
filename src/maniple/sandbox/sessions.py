"""The sandbox as tools use it: a session for each thread, begun when it is needed, and not too many."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backend import Backend, Completed, OnOutput, Session
from maniple.sandbox.mark import Mark
from maniple.sandbox.places import Places, Tenure
from maniple.sandbox.workspace import Workspace

_LOG = logging.getLogger(__name__)
_GONE = "variables and background processes of earlier calls are gone; files are kept."
_IDLE = f"The sandbox had not been used for a while and was stopped: {_GONE}"
_NEEDED = f"The sandbox was stopped because others needed the place: {_GONE}"
_ENDED = f"The sandbox ended since the last call: {_GONE}"
_CANCELLED = f"An earlier call was cancelled, which stopped the sandbox: {_GONE}"
_STOPPED = f"The sandbox was stopped with a cancelled run: {_GONE}"
_MOST_REMEMBERED = 1_000

Call = Callable[[Session], Awaitable[Completed]]
During = AbstractAsyncContextManager[object]
"""Entered when the thread's turn has come, left before the next turn."""


@dataclass(slots=True)
class _Seat:
    """What is kept of a thread."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0
    session: Session | None = None
    folder: tuple[int, int] = (0, 0)
    """Which directory the session works in: device and inode."""
    mark: Mark | None = None
    is_leaving: bool = False
    alarm: asyncio.TimerHandle | None = None


class Sandbox:
    """Runs each thread's calls in its own session, one after the other.

    At most `settings.concurrent` sessions live at once. Who finds no place waits, first come first served;
    `places.py` says which session makes room. One that was idle for `settings.idle_seconds` ends anyway.
    """

    def __init__(self, backend: Backend, settings: SandboxSettings, tenure: Tenure | None = None) -> None:
        self._backend = backend
        self._settings = settings
        self._places = Places(settings.concurrent, self._make_room, tenure)
        self._seats: dict[str, _Seat] = {}
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
    ) -> Completed:
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
    ) -> Completed:
        """Run a command beside the thread's Python; raises `SandboxError`."""
        return await self._run(
            key, workspace, lambda session: session.run_bash(command, on_output=on_output), during
        )

    def rest(self, key: str) -> None:
        """Expect no call of a thread soon; its session stays until somebody needs the place."""
        self._places.done(key)

    async def stop(self, key: str) -> None:
        """End a thread's session when its calls under way have ended; its next call is told of that."""
        if (seat := self._seats.get(key)) is not None:
            await self._vacate(key, seat, _STOPPED)

    async def close(self) -> None:
        """End every session; calls are refused from now on."""
        self._closed = True
        self._places.close()
        seats = list(self._seats.values())
        await asyncio.gather(*(seat.session.stop() for seat in seats if seat.session), return_exceptions=True)
        for seat in seats:
            _silence(seat)
        await asyncio.gather(*self._ends)

    async def _run(
        self, key: str, workspace: Workspace, call: Call, during: During | None = None
    ) -> Completed:
        seat = self._seats.setdefault(key, _Seat())
        seat.waiting += 1
        self._places.work(key)
        try:
            async with seat.turn:
                _silence(seat)
                session: Session | None = None
                try:
                    async with during or nullcontext():
                        # Nothing is awaited between the look whether it lives and the call.
                        session = await self._session(key, seat, workspace)
                        completed = await call(session)
                except asyncio.CancelledError:
                    if session is not None and not session.is_alive:
                        self._remember(key, _CANCELLED)
                    raise
                finally:
                    self._look_after(key, seat)
                lost = filter(None, (self._lost.pop(key, ""), completed.lost))
                if seat.mark is not None and seat.mark.is_set != (seat.session is not None):
                    await asyncio.to_thread(seat.mark.set, seat.session is not None)
                return replace(completed, lost=" ".join(lost))
        finally:
            seat.waiting -= 1
            self._settle(key, seat)

    async def _session(self, key: str, seat: _Seat, workspace: Workspace) -> Session:
        """The thread's living session, or a new one in a place of its own."""
        session = seat.session
        if session is None:
            return await self._begin(key, seat, workspace)
        is_same_folder = seat.folder == await asyncio.to_thread(_folder, workspace)
        if not session.is_alive:
            self._remember(key, _ended(session))
        elif is_same_folder and not self._places.is_overdue:
            return session
        elif is_same_folder:
            self._remember(key, _NEEDED)
        # Otherwise the thread's files were removed and begun anew; what is mounted inside are the old ones.
        await session.stop()
        self._leave(key, seat)
        return await self._begin(key, seat, workspace)

    async def _begin(self, key: str, seat: _Seat, workspace: Workspace) -> Session:
        self._refuse_when_closed()
        await self._places.take()
        try:
            self._refuse_when_closed()
            seat.folder = await asyncio.to_thread(_folder, workspace)
            seat.mark = await asyncio.to_thread(Mark, workspace)
            if seat.mark.is_set and not self._lost.get(key):
                self._remember(key, _ENDED)  # in a server before this one
            session = await self._backend.start(workspace)
            if self._closed:
                await session.stop()
            self._refuse_when_closed()
        except BaseException:  # the place is not taken after all
            self._places.give_back(key)
            raise
        seat.session = session
        return session

    def _remember(self, key: str, lost: str) -> None:
        """Let the thread's next call tell what it has lost."""
        self._lost[key] = lost
        if len(self._lost) > _MOST_REMEMBERED:
            del self._lost[next(iter(self._lost))]

    def _make_room(self, key: str) -> None:
        """Let a session go whose place somebody else needs."""
        seat = self._seats[key]
        if not seat.is_leaving:
            self._dismiss(key, seat, _NEEDED)

    def _look_after(self, key: str, seat: _Seat) -> None:
        """A call has ended: a session that ended with it leaves its place."""
        if seat.session is not None and not seat.session.is_alive:
            self._leave(key, seat)

    def _settle(self, key: str, seat: _Seat) -> None:
        if seat.waiting or seat.is_leaving:
            return
        if seat.session is None:
            if self._seats.get(key) is seat:
                del self._seats[key]
            return
        loop = asyncio.get_running_loop()
        seat.alarm = loop.call_later(self._settings.idle_seconds, self._dismiss, key, seat, _IDLE)
        self._places.rest(key)

    def _leave(self, key: str, seat: _Seat) -> None:
        seat.session = None
        self._places.give_back(key)

    def _dismiss(self, key: str, seat: _Seat, why: str) -> None:
        """Stop an idle session in the background."""
        seat.is_leaving = True
        task = asyncio.get_running_loop().create_task(self._vacate(key, seat, why))
        self._ends.add(task)
        task.add_done_callback(self._ends.discard)

    async def _vacate(self, key: str, seat: _Seat, why: str) -> None:
        seat.is_leaving = True
        try:
            async with seat.turn:
                _silence(seat)
                if seat.session is None:
                    return
                try:
                    await seat.session.stop()
                except SandboxError as error:
                    _LOG.warning("The sandbox of thread %s could not be stopped: %s", key, error)
                finally:
                    self._remember(key, why)
                    self._leave(key, seat)
        finally:
            seat.is_leaving = False
            self._settle(key, seat)

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise SandboxError("The sandbox is closed; it is too late to run code.")


def _silence(seat: _Seat) -> None:
    if seat.alarm is not None:
        seat.alarm.cancel()
        seat.alarm = None


def _folder(workspace: Workspace) -> tuple[int, int]:
    try:
        found = workspace.path.lstat()
    except OSError:  # the backend will say what is wrong with it
        return 0, 0
    return found.st_dev, found.st_ino


def _ended(session: Session) -> str:
    """Why a session ended between two calls."""
    return str(getattr(session, "ending", "")) or _ENDED
