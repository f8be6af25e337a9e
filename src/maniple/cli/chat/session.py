"""A conversation with the team in this terminal, and the stored conversations that it can continue."""

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

from maniple.cli.chat.attachments import Attachments
from maniple.cli.process import WrongUsage, cancel_on_interrupt, hide_typing
from maniple.cli.render import Consoles, RunDisplay
from maniple.cli.render.run_text import has_answer
from maniple.cli.text import clean, file_size, one_line, time_ago
from maniple.errors import FileError
from maniple.events import RunInterrupted, RunView, load_run_view, read_event
from maniple.evidence import Source
from maniple.graph import RunOptions
from maniple.runs import Engine, NothingToRetry, RunNotWaiting, RunRequest, ThreadBusy
from maniple.store import RunRecord, Store, Thread
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.cli.chat import ChatOptions
    from maniple.report_files import Report, ReportRenderer

LISTED_CONVERSATIONS = 20
OWNER = ""
"""The owner of the conversations of the terminal, which asks for no API key."""
_SHORTEST_PREFIX = 4
_PAGE = 500
_TITLE_CHARACTERS = 60

ConversationState = Literal["empty", "finished", "waiting", "cut off", "in progress"]
"""`waiting`: for an answer; `cut off`: its process has ended; `in progress`: in another process."""


class UnknownConversation(WrongUsage):
    """No conversation has this id or number, or several have."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A thread with its newest run."""

    thread: Thread
    newest: RunRecord | None
    state: ConversationState

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.thread.thread_id


@dataclass(slots=True)
class Conversations:
    """The stored conversations. `recover` continues a run that was cut off."""

    store: Store
    recover: Callable[[RunRecord], Awaitable[RunRecord | None]]
    _listed: list[str] = field(default_factory=list)

    async def list(self) -> Sequence[Conversation]:
        """Return the newest conversations, newest first; `find` then accepts their numbers, from 1."""
        threads = await self.store.threads.list(OWNER, LISTED_CONVERSATIONS)
        self._listed = [thread.thread_id for thread in threads]
        cut_off = await self._cut_off_runs()
        return [await self._conversation(thread, cut_off) for thread in threads]

    async def find(self, name: str) -> Conversation:
        """Return the conversation with this id, beginning of an id, or number in the newest list.

        Raises `UnknownConversation`.
        """
        if name.isdecimal() and 1 <= int(name) <= len(self._listed):
            name = self._listed[int(name) - 1]
        thread = await find_thread(self.store, name, OWNER)
        return await self._conversation(thread, await self._cut_off_runs())

    async def newest(self, *, without: str = "") -> Conversation | None:
        """Return the newest conversation other than `without`."""
        for thread in await self.store.threads.list(OWNER, 2):
            if thread.thread_id != without:
                return await self._conversation(thread, await self._cut_off_runs())
        return None

    async def cut_off(self) -> Sequence[RunRecord]:
        """Return the runs of terminals that have ended, newest first."""
        return [run for run in reversed(await self.store.runs.list_orphaned("chat")) if run.owner == OWNER]

    async def recover_runs(self, conversation: Conversation) -> RunRecord | None:
        """Continue the runs of a conversation that were cut off, and return the newest of them.

        Returns None if another process continues them.
        """
        newest: RunRecord | None = None
        for run in [one for one in await self._cut_off_runs() if one.thread_id == conversation.thread_id]:
            newest = await self.recover(run) or await self.store.runs.get(run.run_id)
            if newest is not None and newest.process != self.store.process:
                return None
        return newest

    async def sources(self, thread_id: str) -> Sequence[Source]:
        """Return the sources of a thread's newest run, in the order of their numbers in its report."""
        runs = await self.store.runs.list_by_thread(thread_id, limit=1)
        return await self.store.evidence(runs[0].run_id).sources() if runs else []

    async def is_in_progress(self, thread_id: str) -> bool:
        """Return whether another process runs on the thread."""
        thread = await self.store.threads.get(thread_id, OWNER)
        if thread is None:
            return False
        return (await self._conversation(thread, await self._cut_off_runs())).state == "in progress"

    async def _cut_off_runs(self) -> Sequence[RunRecord]:
        runs = self.store.runs
        return [*await runs.list_orphaned("server"), *await runs.list_orphaned("chat")]

    async def _conversation(self, thread: Thread, cut_off: Sequence[RunRecord]) -> Conversation:
        runs = await self.store.runs.list_by_thread(thread.thread_id, limit=1)
        newest = runs[0] if runs else None
        return Conversation(thread, newest, _conversation_state(newest, cut_off))


async def find_thread(store: Store, name: str, owner: str | None) -> Thread:
    """Return the owner's thread with this id, or the only one whose id begins with `name`.

    Raises `UnknownConversation`.
    """
    thread = await store.threads.get(name, owner)
    if thread is not None:
        return thread
    found: list[Thread] = []
    before: float | None = None
    is_prefix = len(name) >= _SHORTEST_PREFIX
    while is_prefix and (page := await store.threads.list(owner, _PAGE, before)):
        found += [thread for thread in page if thread.thread_id.startswith(name)]
        before = page[-1].created_at
    if len(found) == 1:
        return found[0]
    if found:
        raise UnknownConversation(
            f"{len(found)} conversations have an id that begins with {name!r}. Give more of the id."
        )
    raise UnknownConversation(
        f"There is no conversation {name!r}. To list conversations, enter /threads in maniple chat."
    )


def _conversation_state(newest: RunRecord | None, cut_off: Sequence[RunRecord]) -> ConversationState:
    if newest is None:
        return "empty"
    if any(run.run_id == newest.run_id for run in cut_off):
        return "cut off"
    if newest.is_unfinished:
        return "in progress"
    return "waiting" if newest.status == "interrupted" else "finished"


@dataclass(slots=True)
class PendingQuestion:
    """A question of a run that waits for its answer. `draft` is the edited text that was not accepted."""

    run_id: str
    question: RunInterrupted
    draft: str = ""


def _new_thread() -> str:
    return str(uuid4())


@dataclass(slots=True)
class ChatSession:
    """The conversation of this terminal: a thread, its runs, and what the user has chosen for them.

    `run_id` is the run that was shown last, `report` the newest finished answer as Markdown, `pending` the
    question that the team waits for. A method that starts a run raises `ManipleError` if that fails.
    """

    engine: Engine
    conversations: Conversations
    available: Sequence[Worker]
    new_view: Callable[[], RunDisplay]
    attachments: Attachments
    options: RunOptions = field(default_factory=RunOptions)
    max_plan_steps: int = 12
    pages_folder: Path = Path("pages")
    renderer: "ReportRenderer | None" = None
    thread_id: str = field(default_factory=_new_thread)
    report: str = ""
    pending: PendingQuestion | None = None
    run_id: str = ""

    async def ask(self, text: str) -> RunView:
        """Send a message, show the run, then list the files that it wrote."""
        if await self.conversations.is_in_progress(self.thread_id):
            raise ThreadBusy(
                "Another process is running this conversation. Wait until it ends, or enter /new to start "
                "another conversation."
            )
        request = RunRequest([HumanMessage(text)], thread_id=self.thread_id, options=self.options)
        accepted = await self.engine.submit(request)
        return await self._show_run(accepted.run.run_id, accepted.after)

    async def answer(self, answer: Any) -> RunView:
        """Answer the pending question and show how the run continues."""
        if self.pending is None:
            raise RunNotWaiting("The team does not wait for an answer.")
        run_id, question = self.pending.run_id, self.pending.question
        try:
            accepted = await self.engine.resume(run_id, answer, interrupt_id=question.interrupt_id)
        except RunNotWaiting:
            self.pending = None  # another process has answered
            raise
        return await self._show_run(run_id, accepted.after)

    async def retry(self) -> RunView:
        """Do what the conversation's newest run has not done, and show it.

        Raises `NothingToRetry` if it has neither failed nor gaps.
        """
        runs = await self.conversations.store.runs.list_by_thread(self.thread_id, limit=1)
        if not runs:
            raise NothingToRetry("There is no run in this conversation yet.")
        accepted = await self.engine.retry(runs[0].run_id)
        return await self._show_run(accepted.run.run_id, accepted.after)

    async def attach(self, path: Path) -> str:
        """Copy a file of the user into the workspace and return a line about it; raises `FileError`."""
        stored = await self.attachments.add(self.thread_id, path)
        name, size = one_line(stored.upload.path), file_size(stored.upload.size)
        replaced = " It replaced the file of the same name." if stored.replaced else ""
        return f"Attached {name} ({size}).{replaced}"

    async def switch_to(self, conversation: Conversation) -> RunView | None:
        """Switch to a conversation; return its newest run if that is finished or waits for an answer."""
        self.thread_id, self.pending = conversation.thread_id, None
        self.attachments.track(self.thread_id)
        newest = conversation.newest
        if newest is None or conversation.state not in ("finished", "waiting"):
            return None
        await self.attachments.new_files(self.thread_id)  # they were listed when the run ended
        run = await load_run_view(self.conversations.store.events, newest.run_id)
        self._take_over(newest.run_id, run)
        return run

    async def recover(self, conversation: Conversation) -> RunView:
        """Continue the cut-off run of a conversation and show it from its beginning.

        Raises `ThreadBusy` if another process has continued it.
        """
        self.thread_id, self.pending = conversation.thread_id, None
        run = await self.conversations.recover_runs(conversation)
        if run is None:
            raise ThreadBusy("Another process has already continued this conversation.")
        return await self._show_run(run.run_id)

    async def cancel(self, conversation: Conversation) -> bool:
        """Cancel the waiting or cut-off run of a conversation; return whether there was one.

        Raises `ThreadBusy` if another process has continued it.
        """
        run = conversation.newest
        if run is None or conversation.state not in ("cut off", "waiting"):
            return False
        # Cancelled without recovering it first, because a recovered run would work until it is cancelled.
        await self.engine.cancel(run.run_id)
        if conversation.thread_id == self.thread_id:
            self.pending = None
        return True

    def start_thread(self) -> None:
        """Switch to a new thread; the options and the newest report stay."""
        self.thread_id = _new_thread()
        self.pending = None

    async def _show_run(self, run_id: str, after: int = 0) -> RunView:
        view = self.new_view()
        self.pending, self.run_id = None, run_id
        self.attachments.track(self.thread_id)
        run = await follow_run(self.engine, run_id, view, after=after)
        for line in await self.attachments.new_files(self.thread_id):
            view.note(clean(line))
        self._take_over(run_id, run)
        return run

    def _take_over(self, run_id: str, run: RunView) -> None:
        if run.status == "interrupted" and run.pauses:
            self.pending = PendingQuestion(run_id, run.pauses[-1])
        if has_answer(run):
            self.report = run.answer


async def follow_run(engine: Engine, run_id: str, view: RunDisplay, *, after: int = 0) -> RunView:
    """Show a run, from the event after number `after`, until it ends or waits for an answer.

    Ctrl-C cancels the run, and so does closing the reader of the output. The run is not cancelled when the
    program is ended or its terminal is closed: it can be continued later.
    """
    run = RunView()
    started = time.monotonic()
    canceller = _RunCanceller(engine, run_id)
    try:
        with hide_typing():
            async with view:
                with cancel_on_interrupt(canceller.cancel, view.note):
                    async for page in engine.events(run_id, after):
                        for record in page:
                            event = read_event(record.type, record.data)
                            run.apply(event, at=record.at)
                            view.show(record.number, event, run)
    except OSError as error:
        if error.errno != errno.EIO:  # EIO: the terminal was closed
            await engine.cancel(run_id)
        raise
    await canceller.wait()
    view.finish(run, time.monotonic() - started)
    return run


class _RunCanceller:
    """Cancels a run from a signal handler, which cannot wait for the result."""

    def __init__(self, engine: Engine, run_id: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self._task: asyncio.Task[object] | None = None

    def cancel(self) -> None:
        self._task = asyncio.create_task(self._engine.cancel(self._run_id))

    async def wait(self) -> None:
        """Wait until the cancellation is stored."""
        if self._task is not None:
            await self._task


async def start_session(session: ChatSession, options: "ChatOptions", consoles: Consoles) -> RunView | None:
    """Enter the conversation that the options name; return the run if a cut-off one was continued.

    The last exchange of an earlier conversation is printed, unless the command has a question.

    Raises `UnknownConversation`, and `ThreadBusy` if another process runs the conversation.
    """
    if options.thread:
        found = await session.conversations.find(options.thread)
        return await open_conversation(found, session, show_previous=options.resume)
    if not options.resume:
        return None
    runs = await session.conversations.cut_off()
    if not runs:
        if options.resume_only:
            consoles.note("No run was cut off.", "dim")
        return None
    if others := len(runs) - 1:
        consoles.note(
            f"Other runs that were cut off: {others}. /threads lists them, /resume NUMBER continues one.",
            "dim",
        )
    return await open_conversation(await session.conversations.find(runs[0].thread_id), session)


async def note_cut_off_run(session: ChatSession, consoles: Consoles) -> None:
    """Print how to continue the newest run that was cut off, if there is one."""
    runs = await session.conversations.cut_off()
    if runs:
        consoles.note(f"{_cut_off_text(runs[0])} To continue it: maniple chat --continue", "dim")


async def open_conversation(
    conversation: Conversation, session: ChatSession, *, show_previous: bool = True
) -> RunView | None:
    """Switch to a conversation: continue its cut-off run, or print its last exchange.

    Returns the run if one was continued. Raises `ThreadBusy` if another process runs the conversation.
    """
    newest = conversation.newest
    if conversation.state == "cut off" and newest is not None:
        session.new_view().note(f"{_cut_off_text(newest)} Continuing it now.")
        return await session.recover(conversation)
    if conversation.state == "in progress":
        raise ThreadBusy("Another process is running this conversation. Wait until it ends.")
    run = await session.switch_to(conversation)
    if run is not None and newest is not None and show_previous:
        session.new_view().show_previous(question_of(newest), run)
    return None


def question_of(run: RunRecord) -> str:
    """Return what the user asked."""
    return RunRequest.of(run).messages[-1].text


def _cut_off_text(run: RunRecord) -> str:
    question = clean(one_line(question_of(run), _TITLE_CHARACTERS))
    return f'"{question}" was cut off {time_ago(time.time() - run.created_at)}.'


async def render_report(session: ChatSession, name: str) -> bytes:
    """Return the newest report as a file; the suffix of `name` selects the format, by default Markdown.

    Raises:
        NoBrowser: a PDF needs a browser, and there is none.
        NotPrinted: the browser did not print the PDF.
        StoreError: the run cannot be read.
    """
    from maniple.report_files import SUFFIXES, ReportRenderer

    form = SUFFIXES.get(PurePath(name).suffix.casefold(), "markdown")
    if form == "markdown":
        return (clean(session.report).strip("\n") + "\n").encode()
    renderer = session.renderer or ReportRenderer(None)
    return await renderer.render(await _load_report(session), form)


async def _load_report(session: ChatSession) -> "Report":
    from maniple.report_files import Report
    from maniple.run_page.markup import image_targets
    from maniple.run_page.pictures import FigureFinder

    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    # A run without an answer is not the one that wrote the newest report.
    if run is None or run.status not in ("completed", "budget_exhausted"):
        return Report("", session.report)
    thread = await store.threads.get(run.thread_id, run.owner)
    sources = await store.evidence(run.run_id).sources()
    is_partial = run.status == "budget_exhausted"
    finder = FigureFinder(store, session.attachments.workspaces, run)
    figures = await finder.find_all(await asyncio.to_thread(image_targets, session.report))
    title = thread.title if thread else ""
    return Report(title, session.report, sources, run.ended_at, is_partial, figures)


async def write_page(session: ChatSession) -> Path | None:
    """Write the page of the run that was shown last; return its path, or None if no run was shown.

    Raises:
        FileError: the page cannot be written.
        StoreError: the run cannot be read.
    """
    from maniple.run_page import page_of
    from maniple.run_page.pictures import FigureFinder

    if not session.run_id:
        return None
    store = session.conversations.store
    run = await store.runs.get(session.run_id)
    if run is None:
        return None
    page = await page_of(store, run, FigureFinder(store, session.attachments.workspaces, run))
    path = session.pages_folder.absolute() / f"{run.run_id}.html"
    return await asyncio.to_thread(_write_privately, path, page)


async def open_page(path: Path) -> bool:
    """Open a page in the desktop's web browser; return whether there is one."""
    return await asyncio.to_thread(webbrowser.open, path.as_uri())


def _write_privately(path: Path, page: str) -> Path:
    """Write a file that only its owner can read: a page shows what the browser displayed."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(path, "w", encoding="utf-8", opener=_open_privately) as file:
            file.write(page)
    except OSError as error:
        raise FileError(f"The page of the run cannot be written to {path}: {error.strerror}.") from error
    return path


def _open_privately(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, mode=0o600)
