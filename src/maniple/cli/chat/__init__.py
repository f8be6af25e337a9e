"""`maniple chat`: ask the team once, or in a conversation at a prompt."""

import asyncio
import shlex
import shutil
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from maniple.cli.process import WrongUsage, pause_garbage_collection
from maniple.cli.render import Consoles
from maniple.cli.store_admin import TERMINAL_OWNER, find_thread, require_thread
from maniple.cli.text import clean, one_line
from maniple.config import Settings
from maniple.errors import BrowserError, ConfigError, FileError, ManipleError
from maniple.types import Depth, Effort, ReportStyle, Worker

if TYPE_CHECKING:
    from maniple.app import App
    from maniple.cli.chat.prompt import Prompt
    from maniple.cli.chat.session import ChatSession, SessionTeam
    from maniple.config import ModelsSettings
    from maniple.events import RunView
    from maniple.graph import RunOptions
    from maniple.scope.budget import Budget
    from maniple.store import RunRecord, Store

_PLACEHOLDER = "Ask the team, or /help"
_LOG_FILE = "chat.log"
_SHOWN_ID = 8
_ONLY_READS = (
    "This model is too small to operate web pages. It only reads the page that the task names, and --mode "
    "and --strategy have no effect. For a larger model, set BASIC_MODEL in .env."
)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What the command line sets for every run.

    `thread` is the id of the conversation to continue, or its beginning. With `resume` a run that was cut
    off is continued first; `resume_only`: the user asked for nothing else. `agent` answers alone; a browser
    begins at `start_page`.
    """

    members: tuple[Worker, ...] = ()
    deep: bool = False
    """Whether the reasoning model plans."""
    search_first: bool = False
    review: bool = False
    json: bool = False
    thread: str = ""
    resume: bool = False
    resume_only: bool = False
    files: tuple[Path, ...] = ()
    agent: Worker = ""
    start_page: str = ""
    style: ReportStyle | Literal[""] = ""
    """The style of the report; "" for that of the settings."""
    save: tuple[Path, ...] = ()
    """Where the report is saved at the end: one file for each path."""
    out: Path | None = None
    """The folder into which the report and the files of the run are written at the end."""
    retry: bool = False
    """Whether what the conversation's last run has not done is done, instead of asking a question."""
    depth: Depth | None = None
    """How far questions are researched; None for the depth of the settings."""
    effort: Effort | None = None
    """How much the models are to reason; None leaves it to them."""
    config: Path | None = None
    """The settings file of the command line, which the commands that are printed name again."""
    budget: "Budget | None" = None
    """The limits of each question; None for those of the settings alone."""
    models: tuple[str, ...] = ()
    """The models of the command line (see `model_choice.choose_models`)."""

    def command(self, *arguments: str) -> str:
        """Return the shell command that calls `chat` with the same settings file and these arguments."""
        config = ["--config", str(self.config)] if self.config is not None else []
        return " ".join([_program(), "chat", *map(shlex.quote, config), *arguments])

    def run_options(self) -> "RunOptions":
        """Return the options of a run."""
        from maniple.graph import RunOptions

        return RunOptions(
            team_members=self.members,
            deep_thinking_mode=self.deep,
            search_before_planning=self.search_first,
            auto_accepted_plan=not self.review,
            agent=self.agent,
            start_page=self.start_page,
            depth=self.depth or "",
            report_style=self.style,
            effort=self.effort or "",
        )


async def ask_once(
    question: str | None,
    settings: Settings,
    options: ChatOptions,
    consoles: Consoles,
    *,
    at_terminal: bool,
    afterwards: "Callable[[ChatSession], Awaitable[None]] | None" = None,
) -> int:
    """Ask one question, or only continue a run that was cut off, and return the exit status.

    With `at_terminal` the user can answer what the team asks. `afterwards` is called before the session is
    closed.
    """
    from maniple.cli.chat.session import note_cut_off_run
    from maniple.cli.render.run_text import exit_code

    _require_outputs(settings, options)
    async with open_session(settings, options, consoles) as session:
        works = question is not None or options.retry
        run = await _start(session, options, consoles, opens_team=works)
        if options.retry:
            run = await session.retry()
        elif options.resume_only and run is None:
            await _note_undone_run(session, options, consoles)
        elif question is not None:
            if run is None and not options.thread:
                await note_cut_off_run(session, consoles, options.command("--continue"))
            run = await _ask_or_answer(question, session, consoles, interrupted=run)
        if at_terminal and not options.json and session.pending is not None:
            run = await _answer_at_prompt(_open_prompt(settings, consoles), session, consoles) or run
        _note_next_command(session, run, options, consoles, asked=question is not None)
        if afterwards is not None:
            await afterwards(session)
        await _save_answer(session, options, consoles)
        if run is None:
            return 3 if session.pending is not None else 0
        return exit_code(run)


async def _start(
    session: "ChatSession", options: ChatOptions, consoles: Consoles, *, opens_team: bool
) -> "RunView | None":
    """Enter the conversation (see `start_session`) with the files of the command line."""
    from maniple.cli.chat.session import start_session

    if opens_team:
        await session.team()
    run = await start_session(session, options, consoles)
    await _attach_files(session, options, consoles)
    return run


def _note_next_command(
    session: "ChatSession", run: "RunView | None", options: ChatOptions, consoles: Consoles, *, asked: bool
) -> None:
    """Print the command that answers the team, retries the run, or continues the conversation."""
    from maniple.cli.render.run_text import is_undone

    if session.pending is not None:
        consoles.note(_answer_command(session, options), "yellow")
    elif options.json:
        return
    elif run is not None and is_undone(run):
        consoles.note(_retry_command(session.thread_id, options), "dim")
    elif asked and options.agent != "browser":
        consoles.note(_continue_command(session, options), "dim")


async def _note_undone_run(session: "ChatSession", options: ChatOptions, consoles: Consoles) -> None:
    """Say that no run was cut off; name the command that does what the newest run has not done."""
    consoles.note("No run was cut off.", "dim")
    newest = await session.conversations.newest()
    if newest is not None and await session.conversations.is_undone(newest):
        title = one_line(newest.thread.title)
        consoles.note(f'"{title}" ended without everything done.', "dim")
        consoles.note(_retry_command(newest.thread_id, options), "dim")


async def enter_lines(text: str, settings: Settings, options: ChatOptions, consoles: Consoles) -> int:
    """Enter the commands of a text and the messages between them; return the exit status of the last run.

    A text without a command is asked as it is.
    """
    from maniple.cli.chat.prompt import is_command, split_commands
    from maniple.cli.chat.session import start_session
    from maniple.cli.render.run_text import exit_code

    entries = split_commands(text)
    if not any(map(is_command, entries)):
        return await ask_once(text, settings, options, consoles, at_terminal=False)
    _require_outputs(settings, options)
    run: RunView | None = None
    async with open_session(settings, options, consoles) as session:
        await start_session(session, options, consoles)
        await _attach_files(session, options, consoles)
        for entry in entries:
            if not is_command(entry):
                run = await _ask_or_answer(entry, session, consoles, interrupted=None)
            elif not await _enter_command(entry, session, options, consoles):
                break
        _note_next_command(session, run, options, consoles, asked=run is not None)
        await _save_answer(session, options, consoles)
    if run is None:
        return 3 if session.pending is not None else 0
    return exit_code(run)


async def _enter_command(
    entry: str, session: "ChatSession", options: ChatOptions, consoles: Consoles
) -> bool:
    """Run a command, and print its output; return False if it quits."""
    from maniple.cli.chat.prompt import ExitRequested, MessageRequested, run_slash_command

    try:
        output = await run_slash_command(session, entry)
    except ExitRequested:
        return False
    except MessageRequested as error:
        consoles.note(str(error), "yellow")
        return True
    if output and options.json:  # only events are on the output
        consoles.note(output)
    elif output:
        consoles.print(output)
    return True


def _require_outputs(settings: Settings, options: ChatOptions) -> None:
    """Raise `WrongUsage` if the report cannot be saved in the form or the folder that the options name."""
    from maniple.cli.chat.saved_files import choose_format

    if options.out is not None:
        from maniple.cli.chat.output_folder import require_output_folder

        require_output_folder(options.out, settings.data_dir)

    try:
        for path in options.save:
            choose_format(path.name)
    except FileError as error:
        raise WrongUsage(f"--save: {error}") from error


async def _require_report(settings: Settings, options: ChatOptions) -> None:
    """Raise `FileError` if the conversation has no report, without waiting for the team to open."""
    from maniple.report_files import find_newest_report
    from maniple.store.configured import open_configured_store

    async with open_configured_store(settings, server=False) as store:
        thread = await find_thread(store, options.thread, TERMINAL_OWNER)
        if await find_newest_report(store, thread.thread_id) is None:
            command = options.command("--thread", options.thread, '"…"', "--save PATH")
            raise FileError(
                f"The conversation {options.thread} has no report yet. To ask for one and save it: {command}"
            )


async def export_report(settings: Settings, options: ChatOptions, consoles: Consoles) -> int:
    """Save the newest report of a stored conversation without a run, and return the exit status."""
    _require_outputs(settings, options)
    if options.save:
        await _require_report(settings, options)
    async with open_session(settings, options, consoles) as session:
        found = await session.conversations.find(options.thread)
        await session.open_thread(found.thread_id)
        await session.attachments.track(found.thread_id)
        newest = found.newest.run_id if found.newest is not None else ""
        try:
            await _write_out(session, session.report_run_id or newest, options, consoles)
        finally:
            await _save_reports(session, options, consoles)
    return 0


async def _save_answer(session: "ChatSession", options: ChatOptions, consoles: Consoles) -> None:
    """Save the report and the files of the run that was shown, unless the run waits for an answer."""
    if session.pending is not None:
        return
    try:
        await _write_out(session, session.run_id, options, consoles)
    finally:
        await _save_newest(session, options, consoles)


async def _save_newest(session: "ChatSession", options: ChatOptions, consoles: Consoles) -> None:
    if not options.save:
        return
    if session.report and session.report_run_id == session.run_id:
        await _save_reports(session, options, consoles)
    else:  # an earlier report of the conversation does not answer this question
        paths = ", ".join(map(str, options.save))
        consoles.note(f"Nothing was saved to {paths}: the run has no report.", "yellow")


async def _write_out(session: "ChatSession", run_id: str, options: ChatOptions, consoles: Consoles) -> None:
    """Write the report and the files of a run into the folder that the options name, if they name one."""
    if options.out is None:
        return
    from maniple.cli.chat.output_folder import write_run_files

    store = session.conversations.store
    run = await store.runs.get(run_id) if run_id else None
    if run is None:
        consoles.note(f"Nothing was written to {options.out}: there is no run.", "yellow")
        return
    report = session.report if session.report_run_id == run_id else ""
    lines = await write_run_files(store, session.attachments.workspaces, run, report, options.out)
    for line in lines:
        consoles.note(line, "dim")


async def _save_reports(session: "ChatSession", options: ChatOptions, consoles: Consoles) -> None:
    """Save the newest report to every path; raises the first `FileError` at the end."""
    failure: FileError | None = None
    for path in options.save:
        try:
            await _save_report(session, path, options, consoles)
        except FileError as error:
            failure = failure or error
    if failure:
        raise failure


async def _save_report(session: "ChatSession", path: Path, options: ChatOptions, consoles: Consoles) -> None:
    """Save the newest report, also over an existing file; raises `FileError`."""
    from maniple.cli.chat.prompt import save_report

    try:
        consoles.note(await save_report(session, str(path), replace=True), "dim")
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        command = options.command("--thread", session.thread_id[:_SHOWN_ID], "--save PATH")
        raise FileError(
            f"{path} cannot be written: {reason}. To save the report elsewhere: {command}"
        ) from error


async def converse(settings: Settings, options: ChatOptions, consoles: Consoles) -> int:
    """Read and answer messages until the user quits; return the exit status."""
    from maniple.cli.chat.prompt import ExitRequested
    from maniple.cli.chat.session import start_session

    async with open_session(settings, options, consoles) as session:
        prompt = _open_prompt(settings, consoles)
        if _is_model_configured(settings):  # else its start takes long: it begins with the first question
            await session.team()
        banner = f"maniple {version('maniple')} · /help lists commands, Ctrl-D quits"
        consoles.output.print(Text(banner, style="dim"))
        if await start_session(session, options, consoles) is not None:
            consoles.output.print()
        await _attach_files(session, options, consoles)
        while True:
            try:
                await _take_turn(prompt, session, consoles)
            except (EOFError, ExitRequested):
                return 0
            except KeyboardInterrupt:
                consoles.note("To quit, press Ctrl-D or enter /quit.", "dim")


def _is_model_configured(settings: Settings) -> bool:
    models = settings.models
    return any(one is not None for one in (models.basic, models.reasoning, models.vision))


async def _attach_files(session: "ChatSession", options: ChatOptions, consoles: Consoles) -> None:
    """Copy the files of the command line into the workspace."""
    _require_distinct_names(options.files)
    for path in options.files:
        try:
            consoles.note(clean(await session.attach(path)), "dim")
        except FileError as error:
            raise WrongUsage(f"--file: {error}") from error


def _require_distinct_names(paths: Iterable[Path]) -> None:
    """Raise `WrongUsage` if two files have the same name in the workspace."""
    from maniple.workspace import clean_file_name

    given: dict[str, Path] = {}
    for path in paths:
        name = clean_file_name(path.name)
        if name in given:
            raise WrongUsage(
                f"--file: {given[name]} and {path} would have the same name, {name}. Rename one of them."
            )
        given[name] = path


async def _ask_or_answer(
    question: str, session: "ChatSession", consoles: Consoles, *, interrupted: "RunView | None"
) -> "RunView":
    """Ask the question; if the conversation waits for an answer, give it as that answer."""
    from maniple.cli.chat.answers import EditRequest, UnclearAnswer, parse_answer

    if session.pending is None:
        return await session.ask(question)
    if session.has_budget:
        consoles.note("--budget has no effect: the run that waits keeps the one it was asked with.", "yellow")
    if interrupted is not None:
        consoles.note(
            "Your question was not asked: the run that was continued now waits for an answer.", "yellow"
        )
        return interrupted
    try:
        answer = parse_answer(session.pending.question, question)
    except UnclearAnswer as error:
        raise WrongUsage(str(error)) from error
    if isinstance(answer, EditRequest):
        raise WrongUsage("To edit on the command line, give e and the new JSON; or answer at a terminal.")
    return await session.answer(answer)


async def _answer_at_prompt(prompt: "Prompt", session: "ChatSession", consoles: Consoles) -> "RunView | None":
    """Read answers until the team waits for none; return None if none was given."""
    from maniple.cli.chat.prompt import read_answer

    run = None
    while session.pending is not None:
        try:
            line = await _read_line(prompt, session, consoles)
            if line.strip() in ("/quit", "/exit"):
                break
            answer = await read_answer(session.pending, line, session, prompt, consoles)
        except (EOFError, KeyboardInterrupt):
            break
        if answer is not None:
            run = await session.answer(answer)
    return run


async def _take_turn(prompt: "Prompt", session: "ChatSession", consoles: Consoles) -> None:
    from maniple.cli.chat.prompt import read_answer

    line = await _read_line(prompt, session, consoles)
    try:
        if line.startswith("/"):
            written = await _run_command(line, prompt, session, consoles)
            if written is None:
                return
            line = written
        if session.pending is not None:
            answer = await read_answer(session.pending, line, session, prompt, consoles)
            if answer is not None:
                _note_retry(await session.answer(answer), consoles)
        elif line.strip():
            _note_retry(await session.ask(line.strip()), consoles)
    except ManipleError as error:
        consoles.note(f"✘ {error}", "bold red")


async def _run_command(line: str, prompt: "Prompt", session: "ChatSession", consoles: Consoles) -> str | None:
    """Run a command and print its output; return the message that the user has written by it, if any."""
    from maniple.cli.chat.prompt import MessageRequested, run_slash_command, write_message

    try:
        output = await run_slash_command(session, line)
    except MessageRequested as request:
        return await write_message(request, prompt, consoles)
    if output:
        consoles.print(output)
    return None


def _note_retry(run: "RunView", consoles: Consoles) -> None:
    """Print how the rest of a run is done, if it has not done everything, and the line between two turns."""
    from maniple.cli.render.run_text import is_undone

    if is_undone(run):
        consoles.note("/retry does what was not done.", "dim")
    consoles.output.print()


async def _read_line(prompt: "Prompt", session: "ChatSession", consoles: Consoles) -> str:
    """Return the next line; first print how to answer, if the team waits for an answer."""
    from maniple.cli.render.run_text import answer_hint, answer_instructions, name_first

    if session.pending is None:
        return await prompt.ask(_PLACEHOLDER, session.take_draft())
    question = session.pending.question
    if session.pending.waiting > 1:
        first = name_first(question, session.pending.waiting)
        consoles.output.print(Text(first, style="bold yellow"), soft_wrap=True)
    consoles.output.print(Text(answer_instructions(question), style="yellow"), soft_wrap=True)
    return await prompt.ask(answer_hint(question), session.take_draft())


def _answer_command(session: "ChatSession", options: ChatOptions) -> str:
    from maniple.cli.render.run_text import command_instructions, example_answer, name_first

    assert session.pending is not None
    question, waiting = session.pending.question, session.pending.waiting
    command = options.command("--thread", session.thread_id, shlex.quote(example_answer(question)))
    how = f"{command_instructions(question)} Answer with: {command}"
    return f"{name_first(question, waiting)}\n{how}" if waiting > 1 else how


def _continue_command(session: "ChatSession", options: ChatOptions) -> str:
    command = options.command("--thread", session.thread_id[:_SHOWN_ID], '"…"')
    return f"To continue this conversation: {command}"


def _cut_off_command(session: "ChatSession", options: ChatOptions) -> str:
    command = options.command("--thread", session.thread_id[:_SHOWN_ID], "--continue")
    return f"The program was ended. The run is kept with its results so far. To continue it: {command}"


def _retry_command(thread_id: str, options: ChatOptions) -> str:
    return f"To try again: {options.command('--thread', thread_id[:_SHOWN_ID], '--retry')}"


def _program() -> str:
    """Return `maniple`, or the path that it was started by if the shell would not find it by its name."""
    started = Path(sys.argv[0])
    found = shutil.which("maniple")
    if started.name != "maniple" or not started.is_file() or (found and started.samefile(found)):
        return "maniple"
    path = started.absolute()
    return shlex.quote(str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path))


def _open_prompt(settings: Settings, consoles: Consoles) -> "Prompt":
    from maniple.cli.chat.prompt import COMMANDS, Prompt

    return Prompt(
        settings.data_dir / "history", COMMANDS, settings.team.enabled, color=not consoles.output.no_color
    )


@asynccontextmanager
async def open_session(
    settings: Settings, options: ChatOptions, consoles: Consoles
) -> AsyncIterator["ChatSession"]:
    """Open the stored conversations and a session over them; the team is opened when it is needed.

    Raises `UnknownConversation`, or the `StoreError` that prevents it.
    """
    if options.thread:  # without waiting for the imports
        await require_thread(settings, options.thread)
    configure_chat_log(settings)
    settings = await _choose_models(settings, options)
    with pause_garbage_collection():
        from maniple.capabilities.workspace import workspaces_of
        from maniple.cli.chat.attachments import open_attachments
        from maniple.cli.chat.session import ChatSession, Conversations, RunLeft
        from maniple.scope.budget import Budget
        from maniple.store.configured import open_configured_store

    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_configured_store(settings, server=False))
        # Attachments that no run used are discarded when the team is closed and every run has ended.
        workspaces = await asyncio.to_thread(workspaces_of, settings)
        attachments = await stack.enter_async_context(open_attachments(workspaces))
        opener = _TeamOpener(settings, options, consoles, store, stack)
        session = ChatSession(
            opener.open_for_session,
            Conversations(store, opener.recover),
            lambda: consoles.view(json=options.json),
            attachments,
            options.run_options(),
            settings.team.max_plan_steps,
            settings.data_dir / "pages",
            models=settings.models,
            budget=options.budget or Budget(),
            model_control=opener,
        )
        try:
            yield session
        except RunLeft:
            consoles.note(_cut_off_command(session, options), "yellow")
            raise


async def _choose_models(settings: Settings, options: ChatOptions) -> Settings:
    """Return the settings with the models of the command line; raises `WrongUsage` for an unknown name."""
    if not options.models:
        return settings
    from maniple.cli.chat.model_choice import UnknownModel, choose_models

    try:
        return await choose_models(settings, options.models)
    except UnknownModel as error:
        raise WrongUsage(f"--model: {error}") from error


@dataclass(slots=True)
class _TeamOpener:
    """Opens the team of a session, again after another model was chosen; `stack` closes it."""

    settings: Settings
    options: ChatOptions
    consoles: Consoles
    store: "Store"
    stack: AsyncExitStack
    _app: "App | None" = None
    _opened: AsyncExitStack = field(default_factory=AsyncExitStack)
    """Closes the open team."""

    async def describe_models(self) -> str:
        """Return which model answers for each role."""
        from maniple.cli.chat.model_choice import describe_models

        answering = self._app.runtime.answering.model if self._app is not None else ""
        return await describe_models(self.settings, answering)

    async def choose_models(self, choices: Sequence[str]) -> "ModelsSettings":
        """Use other models from the next question on: close the team; return the chosen models.

        Raises `UnknownModel`, and then nothing has changed.
        """
        from maniple.cli.chat.model_choice import choose_models

        self.settings = await choose_models(self.settings, choices)
        self._app = None
        await self._opened.aclose()
        return self.settings.models

    async def open_for_session(self) -> "SessionTeam":
        """Open the team and say which model answers; raises `ManipleError` if that fails."""
        from maniple.cli.chat.session import SessionTeam
        from maniple.graph import members_of

        app = await self._open()
        runtime = app.runtime
        _require_agent(self.options.agent, runtime.graph.nodes, runtime.missing)
        if self.options.agent == "browser" and runtime.only_reads:
            self.consoles.note(_ONLY_READS, "yellow")
        return SessionTeam(app.engine, members_of(runtime.graph), app.report_renderer)

    async def recover(self, run: "RunRecord") -> "RunRecord | None":
        """Continue a run that was cut off (see `recover_run`)."""
        from maniple.runs import recover_run

        return await recover_run((await self._open()).engine.tasks, run)

    async def _open(self) -> "App":
        if self._app is not None:
            return self._app
        progress = self.consoles.progress()
        try:
            progress.step("starting the team")
            # Imports take two seconds; the line above is shown meanwhile.
            with pause_garbage_collection():
                from maniple.app import open_app
            self._opened = await self.stack.enter_async_context(AsyncExitStack())
            app = await self._opened.enter_async_context(
                open_app(self.settings, kind="chat", progress=progress, store=self.store)
            )
        finally:
            progress.close()
        self.consoles.announce_model(app.runtime.answering, app.runtime.notices)
        self._app = app
        return app


def _require_agent(agent: Worker, available: Container[str], missing: Mapping[Worker, str]) -> None:
    if agent and agent not in available:
        if agent in missing:
            raise BrowserError(missing[agent])
        raise ConfigError(
            f"{agent} needs a model that can call tools; this model is too small. Set BASIC_MODEL in .env."
        )


def configure_chat_log(settings: Settings) -> None:
    """Log to `chat.log` in the data directory; to a stderr that is no terminal if a format is set.

    Log lines would stand between the lines of the plan.
    """
    from maniple.config.secrets import redactor_of
    from maniple.telemetry.logs import configure_logs

    level, redactor, chosen = settings.logging.level, redactor_of(settings), settings.logging.format
    if chosen != "auto" and sys.stderr is not None and not sys.stderr.isatty():
        # The progress lines already report what is logged at INFO.
        configure_logs("WARNING" if level == "INFO" else level, chosen, redactor)
        return
    file = settings.data_dir / _LOG_FILE
    configure_logs(level, "json" if chosen == "json" else "console", redactor, stream=file)
    log_exception = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        log_exception(kind, error, traceback)
        if sys.stderr is not None and not issubclass(kind, KeyboardInterrupt):
            reason = redactor.text(f"{kind.__name__}: {error}")
            print(f"The program ended unexpectedly. {reason}\nDetails are in {file}.", file=sys.stderr)

    sys.excepthook = report
