"""A conversation with the team, and what its person has chosen."""

import asyncio
import errno
import os
import time
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from langchain_core.messages import HumanMessage

from maniple.cli.chat.attachments import Belongings
from maniple.cli.exit_status import WrongUsage, cancelling, silent_keyboard
from maniple.cli.render import Screens, View
from maniple.cli.render.run_state import Tally
from maniple.cli.text import clean, file_size, one_line, time_ago
from maniple.errors import FileError
from maniple.events import PlanChanged, RunInterrupted, read_event
from maniple.evidence import Source
from maniple.graph import RunOptions
from maniple.runs import Engine, NotWaiting, RunRequest, ThreadBusy
from maniple.store import RunRecord, Store, Thread
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.cli.chat import Choices
    from maniple.report_files import Press


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


@dataclass(slots=True)
class Recollection:
    """The last exchange of a conversation. `plan` is its newest plan."""

    asked: str
    tally: Tally = field(default_factory=Tally)
    plan: PlanChanged | None = None


async def recall(engine: Engine, run: RunRecord) -> Recollection:
    """Read a run that has ended or waits."""
    recollection = Recollection(question_of(run))
    async for page in engine.events(run.run_id):
        for record in page:
            if record.type == "message" and not recollection.tally.listens:
                continue  # a run has thousands of them
            event = read_event(record.type, record.data)
            recollection.tally.count(event)
            if isinstance(event, PlanChanged):
                recollection.plan = event
    return recollection


def question_of(run: RunRecord) -> str:
    """Return what the person asked."""
    request = RunRequest.of(run)
    return request.messages[-1].text


@dataclass(slots=True)
class Waiting:
    """A run that waits for the person's word. `draft` is what was edited last and could not be used."""

    run_id: str
    question: RunInterrupted
    draft: str = ""


def _new_thread() -> str:
    return str(uuid4())


@dataclass(slots=True)
class Session:
    """One thread of turns.

    `report` is the newest finished answer as Markdown, `waiting` what the team waits for. Whatever is
    asked raises the `ManipleError` that keeps it from being begun.
    """

    engine: Engine
    conversations: Conversations
    available: Sequence[Worker]
    new_view: Callable[[], View]
    belongings: Belongings
    options: RunOptions = field(default_factory=RunOptions)
    most_steps: int = 12
    pages: Path = Path("pages")
    """Where the pages of runs are written."""
    press: "Press | None" = None
    """What makes files of reports."""
    thread_id: str = field(default_factory=_new_thread)
    report: str = ""
    waiting: Waiting | None = None
    run_id: str = ""
    """Of the run that was followed last."""

    async def ask(self, text: str) -> Tally:
        """Send one message and show the run, then the files that it left."""
        if await self.conversations.is_under_way(self.thread_id):
            raise ThreadBusy(
                "Another program works on this conversation. Ask again when it has ended, or in /new."
            )
        request = RunRequest([HumanMessage(text)], thread_id=self.thread_id, options=self.options)
        accepted = await self.engine.submit(request)
        return await self._follow(accepted.run.run_id, accepted.after)

    async def answer(self, answer: Any) -> Tally:
        """Give the answer that the team waits for, and show how the run goes on."""
        if self.waiting is None:
            raise NotWaiting("The team waits for no answer.")
        run_id, question = self.waiting.run_id, self.waiting.question
        try:
            accepted = await self.engine.resume(run_id, answer, interrupt_id=question.interrupt_id)
        except NotWaiting:
            self.waiting = None  # it was answered elsewhere
            raise
        return await self._follow(run_id, accepted.after)

    async def give(self, path: Path) -> str:
        """Put a file of the person's where the team works, and say so; raises `FileError`."""
        stored = await self.belongings.give(self.thread_id, path)
        name, size = one_line(stored.upload.path), file_size(stored.upload.size)
        replaced = ", in place of the file of that name that was there" if stored.replaced else ""
        return f"The team has {name} ({size}){replaced}."

    async def join(self, conversation: Conversation) -> Recollection | None:
        """Go over to a conversation; return its last exchange if that is over or waits for an answer."""
        self.thread_id, self.waiting = conversation.thread_id, None
        self.belongings.expect(self.thread_id)
        run = conversation.newest
        if run is None or conversation.standing not in ("over", "waits"):
            return None
        await self.belongings.news(self.thread_id)  # those were told when they came
        recollection = await recall(self.engine, run)
        self._take(run.run_id, recollection.tally)
        return recollection

    async def go_on(self, conversation: Conversation) -> Tally:
        """Go on with what was cut off on a conversation, and show it from its beginning.

        Raises `ThreadBusy` when another program was faster.
        """
        self.thread_id, self.waiting = conversation.thread_id, None
        run = await self.conversations.take_up(conversation)
        if run is None:
            raise ThreadBusy("Another program has gone on with this conversation.")
        return await self._follow(run.run_id)

    async def cancel(self, conversation: Conversation) -> bool:
        """Cancel what waits or was cut off on a conversation; says whether there was something.

        Raises `ThreadBusy` when another program was faster.
        """
        run = conversation.newest
        if run is None or conversation.standing not in ("cut off", "waits"):
            return False
        # Not taken up before: the run would begin to work until the engine hears of this.
        await self.engine.cancel(run.run_id)
        if conversation.thread_id == self.thread_id:
            self.waiting = None
        return True

    def start_over(self) -> None:
        """Begin a new thread; choices and the last report stay."""
        self.thread_id = _new_thread()
        self.waiting = None

    async def _follow(self, run_id: str, after: int = 0) -> Tally:
        view = self.new_view()
        self.waiting, self.run_id = None, run_id
        self.belongings.expect(self.thread_id)
        tally = await follow(self.engine, run_id, view, after=after)
        for line in await self.belongings.news(self.thread_id):
            view.say(clean(line))
        self._take(run_id, tally)
        return tally

    def _take(self, run_id: str, tally: Tally) -> None:
        if tally.status == "interrupted" and tally.question is not None:
            self.waiting = Waiting(run_id, tally.question)
        if tally.has_answer():
            self.report = tally.answer


async def follow(engine: Engine, run_id: str, view: View, *, after: int = 0) -> Tally:
    """Show the run, from the event that follows number `after`, until it ends or waits for an answer.

    Ctrl-C cancels it, and so does a reader of the output who has left. It is not cancelled when the
    program is ended or its terminal is closed: then it can go on later.
    """
    tally = Tally()
    stop = _Stop(engine, run_id)
    try:
        with silent_keyboard():
            async with view:
                with cancelling(stop.begin, view.say):
                    async for page in engine.events(run_id, after):
                        for record in page:
                            event = read_event(record.type, record.data)
                            tally.count(event)
                            view.show(record.number, event)
    except OSError as error:
        if error.errno != errno.EIO:  # that is what a terminal says which was closed
            await engine.cancel(run_id)
        raise
    await stop.done()
    view.finish(tally)
    return tally


class _Stop:
    """The wish that a run be cancelled; a signal handler cannot wait for its fulfilment."""

    def __init__(self, engine: Engine, run_id: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self._task: asyncio.Task[object] | None = None

    def begin(self) -> None:
        self._task = asyncio.create_task(self._engine.cancel(self._run_id))

    async def done(self) -> None:
        """Wait until a cancelled run is kept as such."""
        if self._task is not None:
            await self._task


if TYPE_CHECKING:
    from maniple.cli.chat.session import Session
    from maniple.report_files import Report


async def saved_form(session: "Session", name: str) -> bytes:
    """Return the last report as a file of that name is to hold it: Markdown, unless its end says otherwise.

    Raises:
        NoBrowser: it is to be a PDF, and there is no browser.
        NotPrinted: the browser did not print it.
        StoreError: the run cannot be read.
    """
    from maniple.report_files import SUFFIXES, Press

    form = SUFFIXES.get(PurePath(name).suffix.casefold(), "markdown")
    if form == "markdown":
        return (clean(session.report).strip("\n") + "\n").encode()
    press = session.press or Press(None)
    return await press.made(await _report(session), form)


async def _report(session: "Session") -> "Report":
    from maniple.report_files import Report

    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    # A run that came to nothing is not the one that wrote the last report.
    if run is None or run.status not in ("completed", "budget_exhausted"):
        return Report("", session.report)
    thread = await store.threads.get(run.thread_id, run.owner)
    sources = await store.evidence(run.run_id).sources()
    is_partial = run.status == "budget_exhausted"
    return Report(
        thread.title if thread else "", session.report, sources, run.ended_at, is_partial=is_partial
    )


async def write_page(session: "Session") -> Path | None:
    """Write the page of the run that was followed last; return where, or None when there is none.

    Raises:
        FileError: it cannot be written.
        StoreError: the run cannot be read.
    """
    from maniple.run_page import page_of

    if not session.run_id:
        return None
    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    if run is None:
        return None
    page = await page_of(store, run)
    return await asyncio.to_thread(_write_privately, session.pages.absolute() / f"{run.run_id}.html", page)


async def open_page(path: Path) -> bool:
    """Open the page in the desktop's web browser; says whether there is one."""
    return await asyncio.to_thread(webbrowser.open, path.as_uri())


def _write_privately(path: Path, page: str) -> Path:
    """Write what nobody else is to read: a page shows what the browser saw."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=_open_privately) as file:
            file.write(page)
    except OSError as error:
        raise FileError(f"The run's page could not be written to {path}: {error.strerror}.") from error
    return path


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o600)


if TYPE_CHECKING:
    from maniple.cli.chat.session import Session
    from maniple.graph import RunOptions


_TITLE = 60


async def arrive(session: Session, choices: "Choices", screens: Screens) -> Tally | None:
    """Go where `choices` say; return what a run came to that was gone on with here.

    The last exchange of an earlier conversation is shown, unless a question comes with the command.

    Raises `UnknownConversation`, and `ManipleError` where another program works on the conversation.
    """
    if choices.thread:
        found = await session.conversations.find(choices.thread)
        return await enter(found, session, shows=choices.resumes)
    if not choices.resumes:
        return None
    left = await session.conversations.cut_off()
    if not left:
        if choices.demands:
            screens.note("No run was cut off.", "dim")
        return None
    if len(left) > 1:
        them, one = ("them", "one") if len(left) > 2 else ("it", "it")
        were = "more were" if len(left) > 2 else "more was"
        screens.note(
            f"{len(left) - 1} {were} cut off: /threads shows {them}, /resume goes on with {one}.", "dim"
        )
    return await enter(await session.conversations.find(left[0].thread_id), session)


async def mention(session: Session, screens: Screens) -> None:
    """Say in a line that a run was cut off, and how to go on with it."""
    left = await session.conversations.cut_off()
    if left:
        screens.note(f"{_was_cut_off(left[0])} To go on with it: maniple chat --continue", "dim")


async def enter(conversation: Conversation, session: Session, *, shows: bool = True) -> Tally | None:
    """Go over to a conversation: show its last exchange, or go on with its run that was cut off.

    Returns what such a run came to. Raises `ThreadBusy` where another program works on it.
    """
    run = conversation.newest
    if conversation.standing == "cut off" and run is not None:
        session.new_view().say(f"{_was_cut_off(run)} It goes on now.")
        return await session.go_on(conversation)
    if conversation.standing == "under way":
        raise ThreadBusy("Another program works on this conversation. Wait for its end.")
    recollection = await session.join(conversation)
    if recollection is not None and shows:
        told = recollection.tally
        waiting = [recollection.plan, told.question] if session.waiting is not None else []
        events = [event for event in waiting if event is not None]
        session.new_view().recall(recollection.asked, told.answer if told.has_answer() else "", events)
    return None


def _was_cut_off(run: RunRecord) -> str:
    asked = clean(one_line(question_of(run), _TITLE))
    return f'"{asked}" was cut off {time_ago(time.time() - run.created_at)}.'
