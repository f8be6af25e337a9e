"""The prompt: its input line and its slash commands."""

import asyncio
import dataclasses
import difflib
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from maniple.cli.chat.session import Conversation, Session, enter, saved_form, write_page
from maniple.cli.options import UnknownMember, parse_members
from maniple.cli.text import clean, one_line, source_lines, time_ago
from maniple.errors import FileError, ManipleError

_MARK = FormattedText([("bold", "› ")])


class Prompt:
    """Reads messages, with their history in `history_file` where that can be written."""

    def __init__(
        self, history_file: Path, commands: Iterable[str], members: Iterable[str], *, color: bool
    ) -> None:
        self._color_depth = None if color else ColorDepth.DEPTH_1_BIT
        self._session: PromptSession[str] = PromptSession(
            history=_open_history(history_file),
            completer=_CommandCompleter(commands, members),
            complete_while_typing=False,
            key_bindings=_keys(),
            color_depth=self._color_depth,
        )

    async def ask(self, hint: str) -> str:
        """Return the next message.

        Raises EOFError for Ctrl-D, and KeyboardInterrupt for Ctrl-C on an empty line.
        """
        placeholder = FormattedText([("ansibrightblack", hint)])
        return await self._session.prompt_async(_MARK, placeholder=placeholder)

    async def edit(self, text: str) -> str:
        """Return `text` as the person changed it: Enter ends, Alt-Enter begins a new line.

        Raises as `ask` does, Ctrl-C by emptying the text first.
        """
        session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(), key_bindings=_keys(), color_depth=self._color_depth
        )
        return await session.prompt_async(_MARK, default=text)


def _open_history(file: Path) -> History:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        with file.open("a"):
            pass
    except OSError:
        return InMemoryHistory()
    return _PatientHistory(file)


class _PatientHistory(FileHistory):
    """Forgets what cannot be written, on a full disk say, rather than end the conversation."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def _keys() -> KeyBindings:
    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if not event.current_buffer.text:
            event.app.exit(exception=KeyboardInterrupt)
        event.current_buffer.reset()

    return keys


class _CommandCompleter(Completer):
    """Completes `/` commands, and members after `/team`."""

    def __init__(self, commands: Iterable[str], members: Iterable[str]) -> None:
        self._commands = tuple(commands)
        self._members = tuple(members)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if not before.startswith("/"):
            return
        word = before.rpartition(" ")[2]
        words = self._commands if word == before else self._members if before.startswith("/team ") else ()
        for candidate in words:
            if candidate.startswith(word):
                yield Completion(candidate, start_position=-len(word))


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
        path = await asyncio.to_thread(_write, name, await saved_form(session, name), replace)
    except ManipleError as error:
        return str(error)
    except FileExistsError:
        return f"{name} exists. To replace it: /save! {name}"
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: nobody's home for a `~name`; ValueError: a NUL in the name.
        why = getattr(error, "strerror", None) or error
        return f"{name} cannot be written: {why}. The report is still here: say where else, /save FILE."
    return f"Saved to {path}"


async def _page(session: Session, rest: str) -> str:
    try:
        path = await write_page(session)
    except FileError as error:
        return str(error)
    return f"The run's page: {path}" if path else "No run has been shown here yet."


def _file_name(rest: str) -> tuple[str, bool]:
    """Return the file's name and whether a `!`, before or after it, allows to replace it."""
    words = rest.strip()
    name = words.removeprefix("! ").removesuffix(" !").strip()
    return name.strip("\"'"), name != words


def _write(name: str, content: bytes, replace: bool) -> Path:
    path = Path(name).expanduser().absolute()
    with path.open("wb" if replace else "xb") as file:
        try:
            file.write(content)
            file.flush()
        except OSError:
            if not replace:
                path.unlink()  # half a report would be in the way of the next try
            raise
    return path


async def _threads(session: Session, rest: str) -> str:
    listed = await session.conversations.list()
    if not listed:
        return "There is no conversation yet."
    now = time.time()
    rows = [
        (
            f"{'▸' if one.thread_id == session.thread_id else ' '}{number:>3}  {clean(one.thread_id[:8])}",
            time_ago(now - one.thread.updated_at),
            _how_it_stands(one),
            clean(one_line(one.thread.title, 60)),
        )
        for number, one in enumerate(listed, start=1)
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, (*widths, 0), strict=True)) for row in rows
    ]
    return "\n".join([*lines, "/resume NUMBER goes on with one of them."])


async def _file(session: Session, rest: str) -> str:
    name = rest.strip("\"'")
    if not name:
        return "Say which: /file data.csv"
    return await session.give(Path(name))


async def _files(session: Session, rest: str) -> str:
    lines = await session.belongings.all(session.thread_id)
    return "\n".join(lines) or "There are no files here yet. /file PATH gives the team one of yours."


async def _sources(session: Session, rest: str) -> str:
    found = await session.conversations.sources(session.thread_id)
    return "\n".join(source_lines(found)) or "Nothing was searched or opened for the last answer here."


def _how_it_stands(one: Conversation) -> str:
    if one.standing == "over" and one.newest is not None:
        return one.newest.status.replace("_", " ")
    return "waits for you" if one.standing == "waits" else one.standing


async def _resume(session: Session, rest: str) -> str:
    conversations = session.conversations
    found = await conversations.find(rest) if rest else await conversations.newest(without=session.thread_id)
    if found is None:
        return "There is no other conversation yet."
    await enter(found, session)
    return ""


async def _cancel(session: Session, rest: str) -> str:
    if not rest and session.waiting is None:
        return "Nothing waits here. /threads lists what could be cancelled: /cancel NUMBER."
    found = await session.conversations.find(rest or session.thread_id)
    title = clean(one_line(found.thread.title, 60))
    if await session.cancel(found):
        return f'Cancelled: "{title}". What was done is kept; ask on.'
    if found.standing == "under way":
        return "Another program works on this conversation: cancel it there, with Ctrl-C."
    return f'Nothing is to be cancelled: "{title}" is {_how_it_stands(found)}.'


async def _quit(session: Session, rest: str) -> str:
    raise Leave


COMMANDS: Mapping[str, Command] = {
    "/help": Command("/help", "shows this list", _help),
    "/new": Command("/new", "starts a new conversation", _new),
    "/threads": Command("/threads", "lists the conversations, newest first", _threads),
    "/resume": Command("/resume [ID]", "goes on with a conversation, by its id or number", _resume),
    "/cancel": Command("/cancel [ID]", "drops what waits for your answer, or was cut off", _cancel),
    "/team": Command("/team [NAME …]", "shows or chooses who works; /team all", _team),
    "/file": Command("/file PATH", "gives the team a copy of a file of yours", _file),
    "/files": Command("/files", "lists the files of this conversation", _files),
    "/sources": Command("/sources", "lists what the last answer was built on, as it cites it", _sources),
    "/page": Command("/page", "writes the last run's page, with every step, as an HTML file", _page),
    "/save": Command(
        "/save FILE", "writes the last report: .md, .html, .pdf or .docx; /save! FILE replaces a file", _save
    ),
    "/quit": Command("/quit", "leaves", _quit),
}
