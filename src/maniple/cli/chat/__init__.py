"""`maniple chat`: ask the team once, or in a conversation at a prompt."""

import asyncio
import shlex
import sys
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Container,
    Iterable,
    Mapping,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.text import Text

from maniple.cli.process import WrongUsage, pause_garbage_collection
from maniple.cli.render import Consoles
from maniple.cli.text import clean
from maniple.config import Settings
from maniple.errors import BrowserError, ConfigError, FileError, ManipleError
from maniple.types import Worker

if TYPE_CHECKING:
    from maniple.cli.chat.prompt import Prompt
    from maniple.cli.chat.session import ChatSession
    from maniple.events import RunView
    from maniple.graph import RunOptions

_PLACEHOLDER = "Ask the team, or /help"
_LOG_FILE = "chat.log"
_ONLY_READS = (
    "This model is too small to operate web pages. It only reads the page that the task names, and --mode "
    "and --strategy have no effect. For a larger model, set BASIC_MODEL in .env."
)


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """What the command line sets for every run.

    `thread` is the id of the conversation to continue, or its beginning. With `resume` a run that was cut
    off is continued first; `resume_only`: the user asked for nothing else. `agent` answers alone.
    """

    members: tuple[Worker, ...] = ()
    deep: bool = False
    search_first: bool = False
    review: bool = False
    json: bool = False
    thread: str = ""
    resume: bool = False
    resume_only: bool = False
    files: tuple[Path, ...] = ()
    agent: Worker = ""

    def run_options(self) -> "RunOptions":
        """Return the options of a run."""
        from maniple.graph import RunOptions

        return RunOptions(
            team_members=self.members,
            deep_thinking_mode=self.deep,
            search_before_planning=self.search_first,
            auto_accepted_plan=not self.review,
            agent=self.agent,
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
    from maniple.cli.chat.session import note_cut_off_run, start_session
    from maniple.cli.render.run_text import exit_code

    async with open_session(settings, options, consoles) as session:
        run = await start_session(session, options, consoles)
        await _attach_files(session, options, consoles)
        if question is not None:
            if run is None and not options.thread:
                await note_cut_off_run(session, consoles)
            run = await _ask_or_answer(question, session, consoles, interrupted=run)
        if at_terminal and not options.json and session.pending is not None:
            run = await _answer_at_prompt(_open_prompt(session, settings, consoles), session, consoles) or run
        if session.pending is not None:
            consoles.note(_answer_command(session), "yellow")
        if afterwards is not None:
            await afterwards(session)
        if run is None:
            return 3 if session.pending is not None else 0
        return exit_code(run)


async def converse(settings: Settings, options: ChatOptions, consoles: Consoles) -> int:
    """Read and answer messages until the user quits; return the exit status."""
    from maniple.cli.chat.prompt import ExitRequested
    from maniple.cli.chat.session import start_session

    async with open_session(settings, options, consoles) as session:
        prompt = _open_prompt(session, settings, consoles)
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
    from maniple.sandbox import clean_file_name

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
    from maniple.cli.chat.answers import read_answer

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
    from maniple.cli.chat.answers import read_answer
    from maniple.cli.chat.prompt import run_slash_command

    line = await _read_line(prompt, session, consoles)
    try:
        if line.startswith("/"):
            if output := clean(await run_slash_command(session, line)):
                consoles.output.print(Text(output), soft_wrap=True)
        elif session.pending is not None:
            answer = await read_answer(session.pending, line, session, prompt, consoles)
            if answer is not None:
                await session.answer(answer)
                consoles.output.print()
        elif line.strip():
            await session.ask(line.strip())
            consoles.output.print()
    except ManipleError as error:
        consoles.note(f"✘ {error}", "bold red")


async def _read_line(prompt: "Prompt", session: "ChatSession", consoles: Consoles) -> str:
    """Return the next line; first print how to answer, if the team waits for an answer."""
    from maniple.cli.render.run_text import answer_hint, answer_instructions

    if session.pending is None:
        return await prompt.ask(_PLACEHOLDER)
    question = session.pending.question
    consoles.output.print(Text(answer_instructions(question), style="yellow"), soft_wrap=True)
    return await prompt.ask(answer_hint(question))


def _answer_command(session: "ChatSession") -> str:
    from maniple.cli.render.run_text import answer_instructions, example_answer

    assert session.pending is not None
    question = session.pending.question
    command = f"maniple chat --thread {session.thread_id} {shlex.quote(example_answer(question))}"
    return f"{answer_instructions(question)} Answer with: {command}"


def _open_prompt(session: "ChatSession", settings: Settings, consoles: Consoles) -> "Prompt":
    from maniple.cli.chat.prompt import COMMANDS, Prompt

    return Prompt(
        settings.data_dir / "history", COMMANDS, session.available, color=not consoles.output.no_color
    )


@asynccontextmanager
async def open_session(
    settings: Settings, options: ChatOptions, consoles: Consoles
) -> AsyncIterator["ChatSession"]:
    """Open the team and a conversation with it; raises `ManipleError` if that fails."""
    progress = consoles.progress()
    try:
        progress.step("starting the team")
        # Imports take two seconds; the line above is shown meanwhile.
        with pause_garbage_collection():
            from maniple.app import open_app
            from maniple.capabilities.workspace import workspaces_of
            from maniple.cli.chat.attachments import open_attachments
            from maniple.cli.chat.session import ChatSession, Conversations
            from maniple.graph import members_of
            from maniple.runs import recover_run

        configure_chat_log(settings)
        workspaces = await asyncio.to_thread(workspaces_of, settings)
        # Attachments that no run used are discarded last, when every run has ended.
        async with (
            open_attachments(workspaces) as attachments,
            open_app(settings, kind="chat", progress=progress) as app,
        ):
            runtime, engine, store = app.runtime, app.engine, app.store
            progress.close()
            consoles.announce_model(runtime.answering, runtime.notices)
            _require_agent(options.agent, runtime.graph.nodes, runtime.missing)
            if options.agent == "browser" and runtime.only_reads:
                consoles.note(_ONLY_READS, "yellow")
            yield ChatSession(
                engine,
                Conversations(store, lambda left: recover_run(engine, store, left)),
                members_of(runtime.graph),
                lambda: consoles.view(json=options.json),
                attachments,
                options.run_options(),
                settings.team.max_plan_steps,
                settings.data_dir / "pages",
                app.report_renderer,
            )
    finally:
        progress.close()


def _require_agent(agent: Worker, available: Container[str], missing: Mapping[Worker, str]) -> None:
    if agent and agent not in available:
        if agent in missing:
            raise BrowserError(missing[agent])
        raise ConfigError(
            f"{agent} needs a model that can call tools; this model is too small. Set BASIC_MODEL in .env."
        )


def configure_chat_log(settings: Settings) -> None:
    """Log to stderr; if stderr is a terminal or closed, log to `chat.log` in the data directory.

    On stderr the level INFO is raised to WARNING, because the progress lines already report the same.
    """
    from maniple.config.secrets import redactor_of
    from maniple.telemetry.logs import configure_logs

    level, redactor = settings.logging.level, redactor_of(settings)
    format = "json" if settings.logging.format == "json" else "console"
    if sys.stderr is not None and not sys.stderr.isatty():
        configure_logs("WARNING" if level == "INFO" else level, format, redactor)
        return
    file = settings.data_dir / _LOG_FILE
    configure_logs(level, format, redactor, stream=file)
    log_exception = sys.excepthook

    def report(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        log_exception(kind, error, traceback)
        if sys.stderr is not None and not issubclass(kind, KeyboardInterrupt):
            reason = redactor.text(f"{kind.__name__}: {error}")
            print(f"The program ended unexpectedly. {reason}\nDetails are in {file}.", file=sys.stderr)

    sys.excepthook = report
