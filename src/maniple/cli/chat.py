"""Asking the team: once, or at a prompt."""

import shlex
from collections.abc import Awaitable, Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from maniple.cli.ending import WrongUsage
from maniple.cli.opening import Choices, open_session
from maniple.cli.screens import Screens
from maniple.cli.untrusted import clean
from maniple.config import Settings
from maniple.errors import FileError, ManipleError

if TYPE_CHECKING:
    from maniple.cli.prompt import Prompt
    from maniple.cli.session import Session
    from maniple.cli.tally import Tally

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
    from maniple.cli.arrival import arrive, mention

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
    from maniple.cli.arrival import arrive
    from maniple.cli.commands import Leave

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
    from maniple.sandbox import file_name

    given: dict[str, Path] = {}
    for path in paths:
        name = file_name(path.name)
        if name in given:
            raise WrongUsage(
                f"--file: {given[name]} and {path} would both be {name} to the team. Rename one of them."
            )
        given[name] = path


async def _send(
    question: str, session: "Session", screens: Screens, *, interrupted: "Tally | None"
) -> "Tally":
    """Ask the question, or take it for the answer that the conversation waits for."""
    from maniple.cli.decisions import Edit, Unclear, decide

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
    from maniple.cli.answering import answer_to

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
    from maniple.cli.answering import answer_to
    from maniple.cli.commands import obey

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
    from maniple.cli.pauses import hint, instructions

    if session.waiting is None:
        return await prompt.ask(_HINT)
    question = session.waiting.question
    screens.output.print(Text(instructions(question), style="yellow"), soft_wrap=True)
    return await prompt.ask(hint(question))


def _how_to_answer(session: "Session") -> str:
    from maniple.cli.pauses import example, instructions

    assert session.waiting is not None
    question = session.waiting.question
    command = f"maniple chat --thread {session.thread_id} {shlex.quote(example(question))}"
    return f"{instructions(question)} Answer with: {command}"


def _open_prompt(session: "Session", settings: Settings, screens: Screens) -> "Prompt":
    from maniple.cli.commands import COMMANDS
    from maniple.cli.prompt import Prompt

    return Prompt(
        settings.data_dir / "history", COMMANDS, session.available, color=not screens.output.no_color
    )
