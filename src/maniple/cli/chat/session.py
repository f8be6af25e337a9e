"""A conversation with the team in this terminal, and the stored conversations that it can continue."""

import asyncio
import errno
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol
from uuid import uuid4

from langchain_core.messages import HumanMessage

from maniple.cli.chat.attachments import Attachments, is_folder
from maniple.cli.chat.inspection import RunInspector, find_inspection
from maniple.cli.chat.message_writer import MessageWriter
from maniple.cli.process import cancel_on_interrupt, hide_typing
from maniple.cli.render import Consoles, RunDisplay
from maniple.cli.render.run_text import has_answer, is_undone
from maniple.cli.store_admin import TERMINAL_OWNER, find_thread
from maniple.cli.text import clean, one_line, time_ago
from maniple.config.model_settings import ModelsSettings
from maniple.errors import ConfigError
from maniple.events import (
    ClaimsChecked,
    RunInterrupted,
    RunStatusChanged,
    RunView,
    ToolCalled,
    UsageReported,
    event_of,
    load_run_view,
)
from maniple.evidence import Source
from maniple.graph import RunOptions
from maniple.runs import Engine, NothingToRetry, RunNotWaiting, RunRequest, ThreadBusy, can_be_retried
from maniple.scope.budget import Budget, Prices, load_prices
from maniple.store import RunRecord, Store, Thread, read_event_pages
from maniple.text import counted, file_size
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.cli.chat import ChatOptions
    from maniple.report_files import ReportRenderer

LISTED_CONVERSATIONS = 20
_TITLE_CHARACTERS = 60
_CLOCK_SECONDS = 1.0
"""The times of files are of a coarser clock than those of runs."""

ConversationState = Literal["empty", "finished", "waiting", "cut off", "in progress"]
"""`waiting`: for an answer; `cut off`: its process has ended; `in progress`: in another process."""


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

    async def list(self, limit: int = LISTED_CONVERSATIONS, titled: str = "") -> Sequence[Conversation]:
        """Return the newest conversations, newest first; `find` then accepts their numbers, from 1.

        With `titled`, only those whose title contains it.
        """
        threads = await self.store.threads.list(TERMINAL_OWNER, limit, titled=titled)
        self._listed = [thread.thread_id for thread in threads]
        cut_off = await self._cut_off_runs()
        return [await self._conversation(thread, cut_off) for thread in threads]

    async def find(self, name: str) -> Conversation:
        """Return the conversation with this id, beginning of an id, or number in the newest list.

        Raises `UnknownConversation`.
        """
        if name.isdecimal() and 1 <= int(name) <= len(self._listed):
            name = self._listed[int(name) - 1]
        thread = await find_thread(self.store, name, TERMINAL_OWNER)
        return await self._conversation(thread, await self._cut_off_runs())

    async def newest(self, *, without: str = "") -> Conversation | None:
        """Return the newest conversation other than `without`."""
        for thread in await self.store.threads.list(TERMINAL_OWNER, 2):
            if thread.thread_id != without:
                return await self._conversation(thread, await self._cut_off_runs())
        return None

    async def cut_off(self) -> Sequence[RunRecord]:
        """Return the runs of terminals that have ended, newest first."""
        return [
            run
            for run in reversed(await self.store.runs.list_orphaned("chat"))
            if run.owner == TERMINAL_OWNER
        ]

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

    async def is_undone(self, conversation: Conversation) -> bool:
        """Return whether the newest run of a conversation has ended without everything done."""
        newest = conversation.newest
        if newest is None or conversation.state != "finished":
            return False
        view = await load_run_view(self.store.events, newest.run_id, [RunStatusChanged])
        return can_be_retried(newest, view) and is_undone(view)

    async def sources(self, thread_id: str) -> Sequence[Source]:
        """Return the sources of a thread's newest run that has any, in the order of their numbers."""
        before: float | None = None
        while runs := await self.store.runs.list_by_thread(thread_id, before=before):
            for run in runs:
                if found := await self.store.evidence(run.run_id).sources():
                    return found
            before = runs[-1].created_at
        return []

    async def claims(self, thread_id: str) -> ClaimsChecked | None:
        """Return the check of the claims in a thread's newest answer; None if nothing in it was checked."""
        from maniple.report_files import find_newest_report, read_claims

        found = await find_newest_report(self.store, thread_id)
        return await read_claims(self.store, found[0]) if found is not None else None

    async def is_in_progress(self, thread_id: str) -> bool:
        """Return whether another process runs on the thread."""
        thread = await self.store.threads.get(thread_id, TERMINAL_OWNER)
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
    waiting: int = 1
    """The number of questions that wait, with this one, which is the first."""


@dataclass(frozen=True, slots=True)
class SessionTeam:
    """What a session uses of an open team. Without a `renderer` no PDF can be printed."""

    engine: Engine
    members: Sequence[Worker]
    renderer: "ReportRenderer | None" = None


class ModelControl(Protocol):
    """Shows and changes the models with which the team of a session is opened."""

    async def describe_models(self) -> str:
        """Return which model answers for each role."""
        ...

    async def choose_models(self, choices: Sequence[str]) -> ModelsSettings:
        """Close the team, so that it opens with the chosen models; return all models.

        Raises `UnknownModel`, and then nothing has changed.
        """
        ...


OpenSessionTeam = Callable[[], Awaitable[SessionTeam]]
"""Opens the team, which can take minutes: a model may be downloaded. Raises `ManipleError`."""


def _new_thread() -> str:
    return str(uuid4())


@dataclass(slots=True)
class ChatSession:
    """The conversation of this terminal: a thread, its runs, and what the user has chosen for them.

    The team is opened when it is first needed: what is only read needs the store alone. `run_id` is the run
    that was shown last, `report` the newest finished answer as Markdown and `report_run_id` its run,
    `pending` the question that the team waits for. A method that starts a run raises `ManipleError` if that
    fails.
    """

    open_team: OpenSessionTeam
    conversations: Conversations
    new_view: Callable[[], RunDisplay]
    attachments: Attachments
    options: RunOptions = field(default_factory=RunOptions)
    max_plan_steps: int = 12
    pages_folder: Path = Path("pages")
    thread_id: str = field(default_factory=_new_thread)
    report: str = ""
    report_run_id: str = ""
    pending: PendingQuestion | None = None
    run_id: str = ""
    _seconds: dict[str, float] = field(default_factory=dict[str, float])
    """How long each run was shown, by its id."""
    draft: str = ""
    """What was typed while a run was shown, and not sent: the next line begins with it."""
    models: ModelsSettings = field(default_factory=ModelsSettings)
    """The models of the next question."""
    model_control: ModelControl | None = None
    """Chooses other models; None where the team is not the session's own."""
    _earlier_prices: dict[str, Prices] = field(default_factory=dict[str, Prices])
    budget: Budget = field(default_factory=Budget)
    """The limits of each question; those of the settings hold as well."""
    _team: SessionTeam | None = None

    @property
    def inspector(self) -> RunInspector:
        """What describes the plan, the costs and the calls of the conversation's newest run."""
        return RunInspector(self.conversations.store, {**self._earlier_prices, **load_prices(self.models)})

    @property
    def has_budget(self) -> bool:
        """Whether the user has limited what a question may use."""
        return self.budget != Budget()

    async def team(self) -> SessionTeam:
        """Return the team, which is opened at the first call; raises `ManipleError` if that fails."""
        if self._team is None:
            self._team = await self.open_team()
        return self._team

    async def choose_models(self, choices: Sequence[str]) -> bool:
        """Use other models from the next question on; return whether an open team was closed for it.

        Raises `UnknownModel` for a name that does not exist, and then nothing has changed.
        """
        if self.model_control is None:
            raise ConfigError("The models of this session cannot be changed.")
        chosen = await self.model_control.choose_models(choices)
        self._earlier_prices |= load_prices(self.models)
        self.models, team, self._team = chosen, self._team, None
        return team is not None

    async def ask(self, text: str) -> RunView:
        """Send a message, show the run, then list the files that it wrote."""
        if await self.conversations.is_in_progress(self.thread_id):
            raise ThreadBusy(
                "Another process is running this conversation. Wait until it ends, or enter /new to start "
                "another conversation."
            )
        request = RunRequest(
            [HumanMessage(text)], thread_id=self.thread_id, options=self.options, budget=self.budget
        )
        accepted = await (await self.team()).engine.submit(request)
        return await self._show_run(accepted.run.run_id, accepted.after, accepted.run.created_at)

    async def answer(self, answer: Any) -> RunView:
        """Answer the pending question and show how the run continues."""
        if self.pending is None:
            raise RunNotWaiting("The team does not wait for an answer.")
        run_id, question = self.pending.run_id, self.pending.question
        engine = (await self.team()).engine
        try:
            accepted = await engine.resume(run_id, answer, interrupt_id=question.interrupt_id)
        except RunNotWaiting:
            self.pending = None  # another process has answered
            raise
        return await self._show_run(run_id, accepted.after, accepted.run.created_at)

    async def retry(self) -> RunView:
        """Do what the conversation's newest run has not done, and show it.

        Raises `NothingToRetry` if it has done everything.
        """
        runs = await self.conversations.store.runs.list_by_thread(self.thread_id, limit=1)
        if not runs:
            raise NothingToRetry("There is no run in this conversation yet.")
        accepted = await (await self.team()).engine.retry(runs[0].run_id)
        return await self._show_run(accepted.run.run_id, accepted.after, accepted.run.created_at)

    async def last_question(self) -> str:
        """Return what the conversation's newest run was asked; "" without a run."""
        runs = await self.conversations.store.runs.list_by_thread(self.thread_id, limit=1)
        return question_of(runs[0]) if runs else ""

    async def attach(self, path: Path) -> str:
        """Copy a file or a folder of the user into the workspace and return a line about it.

        Raises `FileError`.
        """
        if await asyncio.to_thread(is_folder, path):
            content, files = await self.attachments.add_folder(self.thread_id, path)
            size = file_size(sum(one.upload.size for one in files))
            known = sum(one.replaced for one in files)
            replaced = f" {counted(known, 'file')} of the same name were replaced." if known else ""
            what = f"{one_line(content.name)}/ ({counted(len(files), 'file')}, {size})"
            return f"Attached a copy of {what}.{replaced}{content.describe_skipped()}"
        stored = await self.attachments.add(self.thread_id, path)
        name, size = one_line(stored.upload.path), file_size(stored.upload.size)
        replaced = " It replaced the file of the same name." if stored.replaced else ""
        return f"Attached a copy of {name} ({size}).{replaced}"

    async def switch_to(self, conversation: Conversation) -> RunView | None:
        """Switch to a conversation; return its newest run if that is finished or waits for an answer."""
        await self.open_thread(conversation.thread_id)
        await self.attachments.track(self.thread_id)
        newest = conversation.newest
        if newest is None or conversation.state not in ("finished", "waiting"):
            return None
        await self.attachments.new_files(self.thread_id)  # they were listed when the run ended
        run = await load_run_view(self.conversations.store.events, newest.run_id)
        self.run_id = newest.run_id
        self._take_over(newest.run_id, run)
        return run

    async def open_thread(self, thread_id: str) -> None:
        """Switch to a stored thread and its newest report, which may be of an earlier run than its newest."""
        from maniple.report_files import find_newest_report

        self.thread_id, self.pending = thread_id, None
        self.report, self.report_run_id = "", ""
        if found := await find_newest_report(self.conversations.store, thread_id):
            self.report, self.report_run_id = found[1], found[0].run_id

    async def recover(self, conversation: Conversation) -> RunView:
        """Continue the cut-off run of a conversation and show it from its beginning.

        Raises `ThreadBusy` if another process has continued it.
        """
        await self.open_thread(conversation.thread_id)
        run = await self.conversations.recover_runs(conversation)
        if run is None:
            raise ThreadBusy("Another process has already continued this conversation.")
        return await self._show_run(run.run_id, since=run.created_at)

    async def cancel(self, conversation: Conversation) -> bool:
        """Cancel the waiting or cut-off run of a conversation; return whether there was one.

        Raises `ThreadBusy` if another process has continued it.
        """
        run = conversation.newest
        if run is None or conversation.state not in ("cut off", "waiting"):
            return False
        # Cancelled without recovering it first, because a recovered run would work until it is cancelled.
        await (await self.team()).engine.cancel(run.run_id)
        if conversation.thread_id == self.thread_id:
            self.pending = None
        return True

    def start_thread(self) -> None:
        """Switch to a new thread; the options and the newest report stay."""
        self.thread_id = _new_thread()
        self.pending = None

    async def _show_run(self, run_id: str, after: int = 0, since: float = 0) -> RunView:
        view = self.new_view()
        self.pending, self.run_id = None, run_id
        await self.attachments.track(self.thread_id)
        engine = (await self.team()).engine
        writer = MessageWriter(engine, run_id, view, self._inspect)
        usage = await self._earlier_usage(run_id, after) if after else RunView()
        seconds, started = self._seconds.get(run_id, 0.0), time.monotonic()
        earlier = usage, seconds
        run = await follow_run(engine, run_id, view, after=after, writer=writer, earlier=earlier)
        self._seconds[run_id] = seconds + time.monotonic() - started
        self.draft = " ".join(filter(None, (self.draft, writer.unsent)))
        for line in await self.attachments.new_files(self.thread_id, since - _CLOCK_SECONDS):
            view.note(clean(line))
        self._take_over(run_id, run)
        for next_run in run.next_runs:  # messages that were not answered before the run ended
            run = await self._show_run(next_run, since=since)
        return run

    def _inspect(self, line: str) -> Awaitable[str] | None:
        """Return the output of a command that only reads; None if the line is none."""
        found = find_inspection(line)
        return found[0](self.inspector, self.thread_id, found[1]) if found is not None else None

    async def _earlier_usage(self, run_id: str, after: int) -> RunView:
        """Return a view with the usage of a run until it waited or failed.

        Its totals are shown, and the next tool call has the number after the last one.
        """
        earlier = RunView()
        events = self.conversations.store.events
        types = [UsageReported.type, ToolCalled.type]
        async for page in read_event_pages(events, run_id, types=types):
            for record in page:
                if record.number <= after:
                    earlier.usage.apply(event_of(record))
        return earlier

    def take_draft(self) -> str:
        """Return what was typed and not sent, once."""
        draft, self.draft = self.draft, ""
        return draft

    def _take_over(self, run_id: str, run: RunView) -> None:
        if run.status == "interrupted" and run.pauses:
            self.pending = PendingQuestion(run_id, run.pauses[0], waiting=len(run.pauses))
        if has_answer(run):
            self.report, self.report_run_id = run.answer, run_id


class RunLeft(asyncio.CancelledError):
    """The program is being ended while it shows a run, which can be continued later."""


async def follow_run(
    engine: Engine,
    run_id: str,
    view: RunDisplay,
    *,
    after: int = 0,
    writer: MessageWriter | None = None,
    earlier: tuple[RunView, float] | None = None,
) -> RunView:
    """Show a run, from the event after number `after`, until it ends or waits for an answer.

    What is typed meanwhile goes to the `writer`, where the view can show it. `earlier` is the state to go on
    from, and for how many seconds the run was shown before.

    Ctrl-C cancels the run, and so does closing the reader of the output. The run is not cancelled when the
    program is ended or its terminal is closed: it can be continued later, and `RunLeft` is raised.
    """
    run, seconds = earlier or (RunView(), 0.0)
    started = time.monotonic() - seconds
    canceller = _RunCanceller(engine, run_id)
    try:
        with writer.reading() if writer is not None else hide_typing():
            async with view:
                with cancel_on_interrupt(canceller.cancel, view.note):
                    async for page in engine.events(run_id, after):
                        for record in page:
                            event = event_of(record)
                            run.apply(event)
                            view.show(record.number, event, run)
                            if writer is not None:
                                writer.follow(run)
    except asyncio.CancelledError:
        raise (asyncio.CancelledError if canceller.is_asked else RunLeft) from None
    except OSError as error:
        if error.errno != errno.EIO:  # EIO: the terminal was closed
            await engine.cancel(run_id)
        raise
    await canceller.wait()
    if writer is not None:
        await writer.wait()
    view.finish(run, time.monotonic() - started)
    return run


class _RunCanceller:
    """Cancels a run from a signal handler, which cannot wait for the result."""

    def __init__(self, engine: Engine, run_id: str) -> None:
        self._engine = engine
        self._run_id = run_id
        self._task: asyncio.Task[object] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the user wants the run cancelled."""
        return self._task is not None

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
        return None
    if others := len(runs) - 1:
        consoles.note(
            f"Other runs that were cut off: {others}. /threads lists them, /resume NUMBER continues one.",
            "dim",
        )
    return await open_conversation(await session.conversations.find(runs[0].thread_id), session)


async def note_cut_off_run(session: ChatSession, consoles: Consoles, command: str) -> None:
    """Print the command that continues the newest run that was cut off, if there is one."""
    runs = await session.conversations.cut_off()
    if runs:
        consoles.note(f"{_cut_off_text(runs[0])} To continue it: {command}", "dim")


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
        if run.status != "interrupted" and session.report_run_id != newest.run_id:
            await _show_report(session)
        session.new_view().show_previous(question_of(newest), run)
    return None


async def _show_report(session: ChatSession) -> None:
    """Print the newest report of the conversation and what was asked, if there is one."""
    store = session.conversations.store
    run = await store.runs.get(session.report_run_id)
    if run is not None:
        view = await load_run_view(store.events, run.run_id)
        session.new_view().show_previous(question_of(run), view)


def question_of(run: RunRecord) -> str:
    """Return what the user asked."""
    return RunRequest.of(run).messages[-1].text


def _cut_off_text(run: RunRecord) -> str:
    question = clean(one_line(question_of(run), _TITLE_CHARACTERS))
    return f'"{question}" was cut off {time_ago(time.time() - run.created_at)}.'
