"""Asking the team: once, or at a prompt."""

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
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rich.text import Text

from maniple.cli.exit_status import WrongUsage, loading
from maniple.cli.render import Screens, announce
from maniple.cli.text import clean
from maniple.config import Settings
from maniple.errors import BrowserError, ConfigError, FileError, ManipleError
from maniple.types import GENERAL, Worker

if TYPE_CHECKING:
    from maniple.cli.chat.prompt import Prompt
    from maniple.cli.chat.session import Session
    from maniple.cli.render.run_state import Tally
    from maniple.graph import RunOptions

_ONLY_READS = (
    "This model is too small to work in a page: it only reads the one that the task names, and does nothing "
    "there. --mode and --strategy have no effect. Set BASIC_MODEL in .env for a larger one."
)


ALONE: tuple[Worker, ...] = (GENERAL, "browser")
"""Who can be given a run alone; a conversation goes on with one of theirs, whoever began it."""


_DRAIN_SECONDS = 0.5
"""Somebody waits for the prompt of the shell."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says about every run."""

    members: tuple[Worker, ...] = ()
    deep: bool = False
    search_first: bool = False
    review: bool = False
    json: bool = False
    thread: str = ""
    """The conversation to go on with: its id, or the beginning of it."""
    resumes: bool = False
    """Whether a run that was cut off goes on first; `demands`: whether that was asked for."""
    demands: bool = False
    files: tuple[Path, ...] = ()
    """What the team is given."""
    agent: Worker = ""
    """Who answers alone."""


_HINT = "Ask the team, or /help"


async def ask_once(
    question: str | None,
    settings: Settings,
    choices: Choices,
    screens: Screens,
    *,
    at_terminal: bool,
    afterwards: "Callable[[Session], Awaitable[None]] | None" = None,
) -> int:
    """Ask one question, or only go on with a run that was cut off, and return the program's status.

    What the team waits for is answered at the terminal, if that is where the person is. What is to be done
    `afterwards` is done while the session is still open.
    """
    from maniple.cli.chat.session import arrive, mention

    async with open_session(settings, choices, screens) as session:
        tally = await arrive(session, choices, screens)
        await _give(session, choices, screens)
        if question is not None:
            if tally is None and not choices.thread:
                await mention(session, screens)
            tally = await _send(question, session, screens, interrupted=tally)
        if at_terminal and not choices.json and session.waiting is not None:
            tally = await _discuss(_open_prompt(session, settings, screens), session, screens) or tally
        if session.waiting is not None:
            screens.note(_how_to_answer(session), "yellow")
        if afterwards is not None:
            await afterwards(session)
        if tally is None:
            return 3 if session.waiting is not None else 0
        return tally.exit_code


async def converse(settings: Settings, choices: Choices, screens: Screens) -> int:
    """Talk until the person leaves."""
    from maniple.cli.chat.prompt import Leave
    from maniple.cli.chat.session import arrive

    async with open_session(settings, choices, screens) as session:
        prompt = _open_prompt(session, settings, screens)
        screens.output.print(Text(f"maniple {version('maniple')} · /help, Ctrl-D leaves", style="dim"))
        if await arrive(session, choices, screens) is not None:
            screens.output.print()
        await _give(session, choices, screens)
        while True:
            try:
                await _one_turn(prompt, session, screens)
            except (EOFError, Leave):
                return 0
            except KeyboardInterrupt:
                screens.note("Ctrl-D or /quit leaves.", "dim")


async def _give(session: "Session", choices: Choices, screens: Screens) -> None:
    """Copy the files of the command line to where the team works."""
    _refuse_one_name_twice(choices.files)
    for path in choices.files:
        try:
            screens.note(clean(await session.give(path)), "dim")
        except FileError as error:
            raise WrongUsage(f"--file: {error}") from error


def _refuse_one_name_twice(paths: Iterable[Path]) -> None:
    """Raise `WrongUsage` for two files of which the team would have only the second."""
    from maniple.sandbox import clean_file_name

    given: dict[str, Path] = {}
    for path in paths:
        name = clean_file_name(path.name)
        if name in given:
            raise WrongUsage(
                f"--file: {given[name]} and {path} would both be {name} to the team. Rename one of them."
            )
        given[name] = path


async def _send(
    question: str, session: "Session", screens: Screens, *, interrupted: "Tally | None"
) -> "Tally":
    """Ask the question, or take it for the answer that the conversation waits for."""
    from maniple.cli.chat.answers import Edit, Unclear, decide

    if session.waiting is None:
        return await session.ask(question)
    if interrupted is not None:
        screens.note("That waits for an answer now, so your question was not asked.", "yellow")
        return interrupted
    try:
        answer = decide(session.waiting.question, question)
    except Unclear as error:
        raise WrongUsage(str(error)) from error
    if isinstance(answer, Edit):
        raise WrongUsage("To edit, give the whole text (e and the JSON), or answer at a terminal.")
    return await session.answer(answer)


async def _discuss(prompt: "Prompt", session: "Session", screens: Screens) -> "Tally | None":
    """Answer at the terminal until nothing is waited for; None if nothing was answered."""
    from maniple.cli.chat.answers import answer_to

    tally = None
    while session.waiting is not None:
        try:
            line = await _read(prompt, session, screens)
            if line.strip() in ("/quit", "/exit"):
                break
            answer = await answer_to(session.waiting, line, session, prompt, screens)
        except (EOFError, KeyboardInterrupt):
            break
        if answer is not None:
            tally = await session.answer(answer)
    return tally


async def _one_turn(prompt: "Prompt", session: "Session", screens: Screens) -> None:
    from maniple.cli.chat.answers import answer_to
    from maniple.cli.chat.prompt import obey

    line = await _read(prompt, session, screens)
    try:
        if line.startswith("/"):
            if words := clean(await obey(session, line)):
                screens.output.print(Text(words), soft_wrap=True)
        elif session.waiting is not None:
            answer = await answer_to(session.waiting, line, session, prompt, screens)
            if answer is not None:
                await session.answer(answer)
                screens.output.print()
        elif line.strip():
            await session.ask(line.strip())
            screens.output.print()
    except ManipleError as error:
        screens.note(f"✘ {error}", "bold red")


async def _read(prompt: "Prompt", session: "Session", screens: Screens) -> str:
    """Return the next line, having said how to answer what the team waits for."""
    from maniple.cli.render.run_state import hint, instructions

    if session.waiting is None:
        return await prompt.ask(_HINT)
    question = session.waiting.question
    screens.output.print(Text(instructions(question), style="yellow"), soft_wrap=True)
    return await prompt.ask(hint(question))


def _how_to_answer(session: "Session") -> str:
    from maniple.cli.render.run_state import example, instructions

    assert session.waiting is not None
    question = session.waiting.question
    command = f"maniple chat --thread {session.thread_id} {shlex.quote(example(question))}"
    return f"{instructions(question)} Answer with: {command}"


def _open_prompt(session: "Session", settings: Settings, screens: Screens) -> "Prompt":
    from maniple.cli.chat.prompt import COMMANDS, Prompt

    return Prompt(
        settings.data_dir / "history", COMMANDS, session.available, color=not screens.output.no_color
    )


@asynccontextmanager
async def open_session(settings: Settings, choices: Choices, screens: Screens) -> AsyncIterator["Session"]:
    """Open the team and a conversation with it. Raises the `ManipleError` that keeps it from opening."""
    progress = screens.progress()
    try:
        progress.step("starting the team")
        # Two seconds of imports: they come after the words.
        with loading():
            from maniple.cli.chat.attachments import open_belongings
            from maniple.cli.chat.session import Conversations, Session
            from maniple.graph import members_of
            from maniple.report_files import Press
            from maniple.runs import Workplace, open_engine, recover_run, rules_of
            from maniple.runtime import open_runtime
            from maniple.runtime.toolbox import workspaces_of
            from maniple.store.configured import open_configured_store

        configure_chat_log(settings)
        workspaces = await asyncio.to_thread(workspaces_of, settings)
        rules = replace(rules_of(settings), drain_seconds=_DRAIN_SECONDS)
        async with (
            open_belongings(workspaces) as belongings,
            open_configured_store(settings, server=False) as store,
            open_runtime(
                settings,
                checkpointer=store.checkpointer,
                progress=progress,
                on_call=ALONE,
            ) as runtime,
            open_engine(
                runtime.graph,
                store,
                kind="chat",
                rules=rules,
                workplace=Workplace(workspaces, runtime.sandbox, runtime.warning),
            ) as engine,
        ):
            progress.close()
            announce(runtime.answering, runtime.notices, screens)
            _require(choices.agent, runtime.graph.nodes, runtime.missing)
            if choices.agent == "browser" and runtime.only_reads:
                screens.note(_ONLY_READS, "yellow")
            yield Session(
                engine,
                Conversations(store, lambda left: recover_run(engine, store, left)),
                members_of(runtime.graph),
                lambda: screens.view(json=choices.json),
                belongings,
                _options(choices),
                settings.team.max_plan_steps,
                settings.data_dir / "pages",
                Press(runtime.browser, runtime.missing.get("browser", "")),
            )
    finally:
        progress.close()


def _options(choices: Choices) -> "RunOptions":
    from maniple.graph import RunOptions

    return RunOptions(
        team_members=choices.members,
        deep_thinking_mode=choices.deep,
        search_before_planning=choices.search_first,
        auto_accepted_plan=not choices.review,
        agent=choices.agent,
    )


def _require(agent: Worker, there: Container[str], missing: Mapping[Worker, str]) -> None:
    if agent and agent not in there:
        if agent in missing:
            raise BrowserError(missing[agent])
        raise ConfigError(
            f"{agent} needs a model that can call tools; this one is too small. Set BASIC_MODEL in .env."
        )


LOG_FILE = "chat.log"


def configure_chat_log(settings: Settings) -> None:
    """Log to stderr, plainly, but to `chat.log` in the data directory when stderr is a terminal or closed.

    On stderr INFO would only repeat the progress, so that it begins with warnings there; DEBUG is all.
    """
    from maniple.config.secrets import redactor_of
    from maniple.telemetry.logs import configure_logs

    level, redactor = settings.logging.level, redactor_of(settings)
    format = "json" if settings.logging.format == "json" else "console"
    if sys.stderr is not None and not sys.stderr.isatty():
        configure_logs("WARNING" if level == "INFO" else level, format, redactor)
        return
    file = settings.data_dir / LOG_FILE
    configure_logs(level, format, redactor, stream=file)
    log_the_end = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        log_the_end(kind, error, traceback)
        if sys.stderr is not None and not issubclass(kind, KeyboardInterrupt):
            words = redactor.text(f"{kind.__name__}: {error}")
            print(f"The program ended unexpectedly. {words}\nMore is in {file}.", file=sys.stderr)

    sys.excepthook = tell
