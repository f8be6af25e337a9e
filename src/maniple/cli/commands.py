"""The commands of the prompt."""

import asyncio
import dataclasses
import difflib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from maniple.cli.members import UnknownMember, parse_members
from maniple.cli.session import Session
from maniple.cli.untrusted import clean

KEYS = (
    ("Enter", "sends the message"),
    ("Alt-Enter", "begins a new line; pasted text may have several"),
    ("Ctrl-C", "clears the line; during a run, cancels the run"),
    ("Ctrl-D", "leaves"),
)


class Leave(Exception):
    """The person wants to go."""


@dataclass(frozen=True, slots=True)
class Command:
    """What a word after `/` does: `run` gets the session and the rest of the line, and returns words."""

    usage: str
    purpose: str
    run: Callable[[Session, str], Awaitable[str]]


async def obey(session: Session, line: str) -> str:
    """Do what a line that begins with `/` says, and return the words for the person. Raises `Leave`."""
    name, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(name.casefold().removesuffix("!"))
    if command is not None:
        forced = name.endswith("!")
        return await command.run(session, f"! {rest}" if forced else rest.strip())
    close = difflib.get_close_matches(name.casefold(), COMMANDS, n=1, cutoff=0.5)
    guess = f"Did you mean {close[0]}?" if close else "/help lists the commands."
    return f"There is no command {name}. {guess} To send a message that begins with /, put a space before it."


async def _help(session: Session, rest: str) -> str:
    rows = [(command.usage, command.purpose) for command in COMMANDS.values()] + list(KEYS)
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"  {left:<{width}}  {right}" for left, right in rows)


async def _new(session: Session, rest: str) -> str:
    session.start_over()
    return "A new conversation: the team remembers nothing of the one before."


async def _team(session: Session, rest: str) -> str:
    if rest:
        names = () if rest.strip().casefold() in ("all", "everyone") else rest.split()
        try:
            chosen = parse_members(names, session.available)
        except UnknownMember as error:
            return str(error)
        session.options = dataclasses.replace(session.options, team_members=chosen)
    working = session.options.enabled(session.available)
    lines = [f"  {'✔' if member in working else '–'} {member}" for member in session.available]
    return "\n".join([*lines, "Choose with /team NAME NAME …, or /team all. The reporter always works."])


async def _save(session: Session, rest: str) -> str:
    name, replace = _file_name(rest)
    if not session.report:
        return "There is no report yet."
    if not name:
        return "Say where: /save report.md"
    try:
        path = await asyncio.to_thread(_write, name, clean(session.report).strip("\n") + "\n", replace)
    except FileExistsError:
        return f"{name} exists. To replace it: /save! {name}"
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: nobody's home for a `~name`; ValueError: a NUL in the name.
        return f"{name} cannot be written: {getattr(error, 'strerror', None) or error}."
    return f"Saved to {path}"


def _file_name(rest: str) -> tuple[str, bool]:
    """Return the file's name and whether a `!`, before or after it, allows to replace it."""
    words = rest.strip()
    name = words.removeprefix("! ").removesuffix(" !").strip()
    return name.strip("\"'"), name != words


def _write(name: str, text: str, replace: bool) -> Path:
    path = Path(name).expanduser().absolute()
    with path.open("w" if replace else "x", encoding="utf-8") as file:
        file.write(text)
    return path


async def _quit(session: Session, rest: str) -> str:
    raise Leave


COMMANDS: Mapping[str, Command] = {
    "/help": Command("/help", "shows this list", _help),
    "/new": Command("/new", "starts a new conversation", _new),
    "/team": Command("/team [NAME …]", "shows or chooses who works; /team all", _team),
    "/save": Command("/save FILE", "writes the last report as Markdown; /save! FILE replaces a file", _save),
    "/quit": Command("/quit", "leaves", _quit),
}
