"""The conversations that are kept: which there are, how each stands, and going on where one was cut off."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from maniple.cli.ending import WrongUsage
from maniple.evidence import Source
from maniple.store import RunRecord, Store, Thread

LISTED = 20
OWNER = ""
"""Whose they are: nobody's key is asked for at the terminal."""
_SHORTEST_PREFIX = 4
_PAGE = 500

Standing = Literal["empty", "over", "waits", "cut off", "under way"]
"""`cut off`: nobody drives its run any more; `under way`: another program does."""


class UnknownConversation(WrongUsage):
    """No conversation has this id or number, or more than one."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A thread with its newest run."""

    thread: Thread
    newest: RunRecord | None
    standing: Standing

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.thread.thread_id


@dataclass(slots=True)
class Conversations:
    """What the store has of them. `recover` goes on with a run that nobody drives."""

    store: Store
    recover: Callable[[RunRecord], Awaitable[RunRecord | None]]
    _listed: list[str] = field(default_factory=list)

    async def list(self) -> Sequence[Conversation]:
        """Return the newest ones, newest first; `find` knows them by their numbers, from 1, from now on."""
        threads = await self.store.threads.list(OWNER, LISTED)
        self._listed = [thread.thread_id for thread in threads]
        left = await self._left()
        return [await self._conversation(thread, left) for thread in threads]

    async def find(self, name: str) -> Conversation:
        """Return the one of this id, beginning of an id, or number in the list shown last.

        Raises `UnknownConversation`.
        """
        if name.isdecimal() and 1 <= int(name) <= len(self._listed):
            name = self._listed[int(name) - 1]
        thread = await find_thread(self.store, name, OWNER)
        return await self._conversation(thread, await self._left())

    async def newest(self, *, without: str = "") -> Conversation | None:
        """Return the newest one but `without`."""
        for thread in await self.store.threads.list(OWNER, 2):
            if thread.thread_id != without:
                return await self._conversation(thread, await self._left())
        return None

    async def cut_off(self) -> Sequence[RunRecord]:
        """Return the runs that a terminal left behind, newest first."""
        return [run for run in reversed(await self.store.runs.unfinished("chat")) if run.owner == OWNER]

    async def take_up(self, conversation: Conversation) -> RunRecord | None:
        """Go on with what was cut off on it; return the newest of these runs.

        None says that there is none any more: another program has taken it up.
        """
        newest: RunRecord | None = None
        for left in [run for run in await self._left() if run.thread_id == conversation.thread_id]:
            newest = await self.recover(left) or await self.store.runs.get(left.run_id)
            if newest is not None and newest.process != self.store.process:
                return None
        return newest

    async def sources(self, thread_id: str) -> Sequence[Source]:
        """Return what the newest run on a thread has read, as its report numbers it."""
        runs = await self.store.runs.of_thread(thread_id, limit=1)
        return await self.store.evidence(runs[0].run_id).sources() if runs else []

    async def is_under_way(self, thread_id: str) -> bool:
        """Say whether another program works on it."""
        thread = await self.store.threads.get(thread_id, OWNER)
        if thread is None:
            return False
        return (await self._conversation(thread, await self._left())).standing == "under way"

    async def _left(self) -> Sequence[RunRecord]:
        runs = self.store.runs
        return [*await runs.unfinished("server"), *await runs.unfinished("chat")]

    async def _conversation(self, thread: Thread, left: Sequence[RunRecord]) -> Conversation:
        runs = await self.store.runs.of_thread(thread.thread_id, limit=1)
        newest = runs[0] if runs else None
        return Conversation(thread, newest, _standing(newest, left))


async def find_thread(store: Store, name: str, owner: str | None) -> Thread:
    """Return the owner's thread of this id, or whose id alone begins so; raises `UnknownConversation`."""
    thread = await store.threads.get(name, owner)
    if thread is not None:
        return thread
    found: list[Thread] = []
    before: float | None = None
    searches = len(name) >= _SHORTEST_PREFIX
    while searches and (page := await store.threads.list(owner, _PAGE, before)):
        found += [thread for thread in page if thread.thread_id.startswith(name)]
        before = page[-1].created_at
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownConversation(f"{len(found)} conversations begin with {name!r}: give more of the id.")
    raise UnknownConversation(f"There is no conversation {name!r}. /threads at the prompt lists them.")


def _standing(newest: RunRecord | None, left: Sequence[RunRecord]) -> Standing:
    if newest is None:
        return "empty"
    if any(run.run_id == newest.run_id for run in left):
        return "cut off"
    if newest.is_unfinished:
        return "under way"
    return "waits" if newest.status == "interrupted" else "over"
