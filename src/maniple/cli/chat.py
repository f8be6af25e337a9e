"""Asking the team: once, or at a prompt."""

from importlib.metadata import version
from typing import TYPE_CHECKING

from rich.text import Text

from maniple.cli.opening import Choices, open_session
from maniple.cli.screens import Screens
from maniple.cli.untrusted import clean
from maniple.config import Settings
from maniple.errors import ManipleError

if TYPE_CHECKING:
    from maniple.cli.prompt import Prompt
    from maniple.cli.session import Session

_HINT = "Ask the team, or /help"
_REVIEW = "The plan waits: Enter accepts it, or say what should be different."


async def ask_once(
    question: str, settings: Settings, choices: Choices, screens: Screens, *, at_terminal: bool
) -> int:
    """Ask one question and return the program's status.

    A plan that waits for its review is reviewed at the terminal, if that is where the person is.
    """
    async with open_session(settings, choices, screens) as session:
        tally = await session.ask(question)
        if not at_terminal or choices.json or session.question is None:
            return tally.exit_code
        prompt = _open_prompt(session, settings, screens)
        while session.question is not None:
            try:
                answer = await _read(prompt, session, screens)
            except (EOFError, KeyboardInterrupt):
                break
            tally = await session.ask(answer)
        return tally.exit_code


async def converse(settings: Settings, choices: Choices, screens: Screens) -> int:
    """Talk until the person leaves."""
    from maniple.cli.commands import Leave

    async with open_session(settings, choices, screens) as session:
        prompt = _open_prompt(session, settings, screens)
        screens.output.print(Text(f"maniple {version('maniple')} · /help, Ctrl-D leaves", style="dim"))
        while True:
            try:
                await _one_turn(prompt, session, screens)
            except (EOFError, Leave):
                return 0
            except KeyboardInterrupt:
                screens.note("Ctrl-D or /quit leaves.", "dim")


async def _one_turn(prompt: "Prompt", session: "Session", screens: Screens) -> None:
    from maniple.cli.commands import obey

    line = await _read(prompt, session, screens)
    if line.startswith("/"):
        screens.output.print(Text(clean(await obey(session, line))), soft_wrap=True)
    elif line.strip():
        try:
            await session.ask(line.strip())
            screens.output.print()
        except ManipleError as error:
            screens.note(f"✘ {error}", "bold red")


async def _read(prompt: "Prompt", session: "Session", screens: Screens) -> str:
    """Return the next message; an empty one accepts a plan that waits."""
    question = session.question
    if question is None:
        return await prompt.ask(_HINT)
    review = question.kind == "plan_review"
    words = _REVIEW if review else f"The team waits for one of: {', '.join(question.options)}"
    screens.output.print(Text(clean(words), style="yellow"), soft_wrap=True)
    answer = await prompt.ask("accept" if review else _HINT)
    return "accept" if review and not answer.strip() else answer


def _open_prompt(session: "Session", settings: Settings, screens: Screens) -> "Prompt":
    from maniple.cli.commands import COMMANDS
    from maniple.cli.prompt import Prompt

    return Prompt(
        settings.data_dir / "history", COMMANDS, session.available, color=not screens.output.no_color
    )
