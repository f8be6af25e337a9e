"""The prompt: its input line and its slash commands."""

import asyncio
import dataclasses
import difflib
import errno
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

from maniple.cli.chat.answers import (
    EditorFailure,
    EditRequest,
    UnchangedAnswer,
    UnclearAnswer,
    edit_text,
    parse_answer,
    parse_edited_answer,
)
from maniple.cli.chat.clipboard import copy_text
from maniple.cli.chat.conversation_text import conversation_lines, state_text
from maniple.cli.chat.inspection import INSPECTIONS
from maniple.cli.chat.model_choice import UnknownModel
from maniple.cli.chat.saved_files import render_report, write_page
from maniple.cli.chat.session import (
    ChatSession,
    PendingQuestion,
    open_conversation,
)
from maniple.cli.options import (
    SAVE_FORMATS,
    InvalidBudget,
    UnknownMember,
    describe_budget,
    parse_budget,
    parse_members,
)
from maniple.cli.render import Consoles
from maniple.cli.text import claim_lines, clean, one_line, source_lines
from maniple.errors import ManipleError
from maniple.media_types import REPORT_SUFFIXES
from maniple.scope.budget import Budget
from maniple.text import counted
from maniple.types import DIRECTORS, EFFORTS, LLM_TYPES

_PROMPT_MARK = FormattedText([("bold", "› ")])
_TITLE_CHARACTERS = 60
_MESSAGE_SUFFIX = ".md"
"""By which an editor knows what a message is."""
_KEY_HELP = (
    ("Enter", "sends the message"),
    ("Alt-Enter", "starts a new line; pasted text may have several"),
    ("Ctrl-X Ctrl-E", "opens the line in your editor"),
    ("Enter during a run", "sends what was typed to the step that asks, else to the team at work"),
    ("Ctrl-C", "clears the line; during a run, cancels the run"),
    ("Ctrl-D", "quits"),
)
_EDIT_HINT = (
    "Enter sends, Alt-Enter starts a new line. Above the last line, Enter first goes there. Ctrl-C clears."
)


class Prompt:
    """Reads messages; their history is stored in `history_file` if that can be written."""

    def __init__(
        self, history_file: Path, commands: Iterable[str], members: Iterable[str], *, color: bool
    ) -> None:
        self._color_depth = None if color else ColorDepth.DEPTH_1_BIT
        self._session: PromptSession[str] = PromptSession(
            history=_open_history(history_file),
            completer=_CommandCompleter(commands, members),
            complete_while_typing=False,
            key_bindings=_key_bindings(),
            color_depth=self._color_depth,
            enable_open_in_editor=True,
            tempfile_suffix=_MESSAGE_SUFFIX,
        )

    async def ask(self, hint: str, draft: str = "") -> str:
        """Return the next message; `hint` is shown while the line is empty, which begins with `draft`.

        Raises EOFError for Ctrl-D, and KeyboardInterrupt for Ctrl-C on an empty line.
        """
        placeholder = FormattedText([("ansibrightblack", hint)])
        return await self._session.prompt_async(_PROMPT_MARK, placeholder=placeholder, default=draft)

    def remember(self, text: str) -> None:
        """Add a message to the history that was not typed here."""
        self._session.history.append_string(text)

    async def edit(self, text: str) -> str:
        """Return `text` as the user edited it: Enter on its last line ends, Alt-Enter starts a new line.

        Raises as `ask` does; Ctrl-C first clears the text.
        """
        session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(),
            key_bindings=_editing_keys(),
            color_depth=self._color_depth,
            bottom_toolbar=_EDIT_HINT,
        )
        return await session.prompt_async(_PROMPT_MARK, default=text)


def _open_history(file: Path) -> History:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        with file.open("a"):
            pass
    except OSError:
        return InMemoryHistory()
    return _ForgivingHistory(file)


class _ForgivingHistory(FileHistory):
    """Drops a line that cannot be written, for example on a full disk, instead of ending the program."""

    def store_string(self, string: str) -> None:
        with suppress(OSError):
            super().store_string(string)


def _key_bindings() -> KeyBindings:
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


def _editing_keys() -> KeyBindings:
    keys = _key_bindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if "\n" in buffer.document.text_after_cursor:
            # Perhaps meant as a new line: a text that is half edited is not sent.
            buffer.cursor_position = len(buffer.text)
        else:
            buffer.validate_and_handle()

    return keys


class _CommandCompleter(Completer):
    """Completes `/` commands, names of agents after `/team`, roles and types after `/model`, and efforts."""

    def __init__(self, commands: Iterable[str], members: Iterable[str]) -> None:
        self._commands = tuple(commands)
        self._members = tuple(members)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if not before.startswith("/"):
            return
        word = before.rpartition(" ")[2]
        for candidate in self._candidates(before, word):
            if candidate.startswith(word):
                yield Completion(candidate, start_position=-len(word))

    def _candidates(self, before: str, word: str) -> Iterable[str]:
        if word == before:
            return self._commands
        if before.startswith("/team "):
            return self._members
        if before.startswith("/model "):
            target, is_assigned, _ = word.partition("=")
            names = (*DIRECTORS, *self._members, *LLM_TYPES)
            return [f"{target}={kind}" for kind in LLM_TYPES] if is_assigned else names
        return (*EFFORTS, "off") if before.startswith("/effort ") else ()


class ExitRequested(Exception):
    """The user has entered /quit."""


class MessageRequested(Exception):
    """The user has entered /edit: the next message is written in an editor, which begins with `text`.

    `is_draft`: the user has typed the text; else it is the last question.
    """

    def __init__(self, text: str, *, is_draft: bool) -> None:
        super().__init__("/edit opens an editor and needs a terminal. Enter the message itself.")
        self.text = text
        self.is_draft = is_draft


@dataclass(frozen=True, slots=True)
class SlashCommand:
    """A command of the prompt; `run` gets the session and the rest of the line, and returns what to print."""

    usage: str
    purpose: str
    run: Callable[[ChatSession, str], Awaitable[str]]


async def run_slash_command(session: ChatSession, line: str) -> str:
    """Run the command of a line that begins with `/`; return what to print.

    Raises `ExitRequested` and `MessageRequested`.
    """
    name, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(name.casefold().removesuffix("!"))
    if command is not None:
        is_forced = name.endswith("!")
        return await command.run(session, f"! {rest}" if is_forced else rest.strip())
    is_path = "/" in name[1:]
    close = difflib.get_close_matches(name.casefold(), COMMANDS, n=1)
    if close and not is_path:
        return f"Unknown command {name}. Did you mean {close[0]}?"
    return (
        f"Unknown command {name}. /help lists the commands. To send it as a message, put a space before it."
    )


def is_command(line: str) -> bool:
    """Return whether a line is exactly a command: its name, and arguments only where it takes some."""
    name, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(name.casefold().removesuffix("!"))
    return command is not None and (not rest.strip() or " " in command.usage)


def split_commands(text: str) -> list[str]:
    """Return a text as what is entered one after another: each command alone, and the text between them."""
    entries, lines = list[str](), list[str]()
    for line in text.splitlines():
        if is_command(line):
            entries += ["\n".join(lines), line]
            lines = []
        else:
            lines.append(line)
    return [entry.strip() for entry in (*entries, "\n".join(lines)) if entry.strip()]


async def _help(session: ChatSession, rest: str) -> str:
    rows = [(command.usage, command.purpose) for command in COMMANDS.values()] + list(_KEY_HELP)
    width = max(len(left) for left, _ in rows)
    return "\n".join(f"  {left:<{width}}  {right}" for left, right in rows)


async def _new(session: ChatSession, rest: str) -> str:
    session.start_thread()
    return "New conversation. The team does not see earlier messages."


async def _threads(session: ChatSession, rest: str) -> str:
    listed = await session.conversations.list()
    if not listed:
        return "There are no conversations yet."
    lines = conversation_lines(listed, session.thread_id)
    return "\n".join([*lines, "To continue a conversation, enter /resume NUMBER."])


async def _resume(session: ChatSession, rest: str) -> str:
    conversations = session.conversations
    found = await conversations.find(rest) if rest else await conversations.newest(without=session.thread_id)
    if found is None:
        return "There is no other conversation yet."
    await open_conversation(found, session)
    return ""


async def _cancel(session: ChatSession, rest: str) -> str:
    if not rest and session.pending is None:
        return "Nothing waits for you here. To cancel a run of another conversation, enter /cancel NUMBER."
    found = await session.conversations.find(rest or session.thread_id)
    title = clean(one_line(found.thread.title, _TITLE_CHARACTERS))
    if await session.cancel(found):
        return f'Cancelled: "{title}". Its results so far are kept; you can ask again.'
    if found.state == "in progress":
        return "Another process is running this conversation. Cancel it there with Ctrl-C."
    return f'There is nothing to cancel: "{title}" is not running ({state_text(found)}).'


async def _retry(session: ChatSession, rest: str) -> str:
    await session.retry()
    return ""


async def _team(session: ChatSession, rest: str) -> str:
    available = (await session.team()).members
    if rest:
        names = () if rest.strip().casefold() in ("all", "everyone") else rest.split()
        try:
            chosen = parse_members(names, available)
        except UnknownMember as error:
            return str(error)
        session.options = dataclasses.replace(session.options, team_members=chosen)
    enabled = session.options.enabled(available)
    lines = [f"  {'✔' if member in enabled else '–'} {member}" for member in available]
    return "\n".join(
        [*lines, "To change it, enter /team NAME NAME … or /team all. The reporter always works."]
    )


async def _model(session: ChatSession, rest: str) -> str:
    control = session.model_control
    if control is None:
        return "The models of this session cannot be changed."
    if not rest:
        return await control.describe_models()
    try:
        was_open = await session.choose_models(rest.split())
    except UnknownModel as error:
        return str(error)
    lost = " The team is opened again; variables of its Python are lost, files are kept." if was_open else ""
    return f"Chosen for this session.{lost}\n{await control.describe_models()}"


async def _file(session: ChatSession, rest: str) -> str:
    name = rest.strip("\"'")
    if not name:
        return "Usage: /file PATH, for example /file data.csv"
    return await session.attach(Path(name))


async def _files(session: ChatSession, rest: str) -> str:
    if rest.casefold() not in ("", "all"):
        return "Usage: /files, or /files all to list every file of every folder"
    lines = await session.attachments.all_files(session.thread_id, each=bool(rest))
    return "\n".join(lines) or "This conversation has no files yet. To attach one, enter /file PATH."


async def _sources(session: ChatSession, rest: str) -> str:
    found = await session.conversations.sources(session.thread_id)
    return "\n".join(source_lines(found)) or "This conversation has no sources yet."


async def _claims(session: ChatSession, rest: str) -> str:
    if rest.casefold() not in ("", "all"):
        return "Usage: /claims, or /claims all to list the supported and unchecked ones, too"
    checked = await session.conversations.claims(session.thread_id)
    if checked is None:
        return "No claims of this conversation were checked yet."
    return "\n".join(claim_lines(checked, with_all=bool(rest)))


async def _page(session: ChatSession, rest: str) -> str:
    try:
        path = await write_page(session)
    except ManipleError as error:
        return str(error)
    return f"Page of the run: {path}" if path else "No run was shown in this session yet."


async def _save(session: ChatSession, rest: str) -> str:
    name, replace = _file_name(rest)
    if not session.report:
        return "There is no report yet."
    if not name:
        return "Usage: /save FILE, for example /save report.md"
    if _names_several(name, rest):
        return '/save takes one file at a time. Quote a name with spaces: /save "my report.pdf"'
    try:
        return await save_report(session, name, replace=replace)
    except ManipleError as error:
        return str(error)
    except FileExistsError as error:
        return f"{error.filename} exists. To replace it, enter /save! {name}"
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: `~name` without such a user; ValueError: a NUL in the name.
        reason = getattr(error, "strerror", None) or error
        return f"{name} cannot be written: {reason}. The report is not lost; enter /save with another name."


async def save_report(session: ChatSession, name: str, *, replace: bool) -> str:
    """Save the newest report and return a line about it; raises as `render_report` does, and `OSError`."""
    content, figures = await render_report(session, name)
    path = await asyncio.to_thread(_write, name, content, figures, replace)
    if not figures:
        return f"Saved to {path}"
    folder = path.parent / next(iter(figures)).partition("/")[0]
    return f"Saved to {path}, with {counted(len(figures), 'picture')} in {folder}"


async def _plan(session: ChatSession, rest: str) -> str:
    return await INSPECTIONS["/plan"](session.inspector, session.thread_id, rest)


async def _cost(session: ChatSession, rest: str) -> str:
    return await INSPECTIONS["/cost"](session.inspector, session.thread_id, rest)


async def _show(session: ChatSession, rest: str) -> str:
    return await INSPECTIONS["/show"](session.inspector, session.thread_id, rest)


async def _budget(session: ChatSession, rest: str) -> str:
    if rest.casefold() in ("off", "none"):
        session.budget = Budget()
    elif rest:
        try:
            session.budget = parse_budget(rest, session.models)
        except InvalidBudget as error:
            return str(error)
    limits = describe_budget(session.budget)
    shown = f"Each question may use: {limits}." if limits else "No budget is set here."
    return f"{shown} To change it, enter /budget tokens=200k,seconds=600 or /budget off."


async def _effort(session: ChatSession, rest: str) -> str:
    level = rest.casefold()
    if level == "off":
        session.options = dataclasses.replace(session.options, effort="")
    elif level in EFFORTS:
        session.options = dataclasses.replace(session.options, effort=level)
    elif level:
        return f"There is no effort {rest!r}; known: {', '.join(EFFORTS)}, or off."
    chosen = session.options.effort
    shown = (
        f"Each question has the effort {chosen}." if chosen else "The models reason as they do by themselves."
    )
    return f"{shown} To change it, enter /effort {'|'.join(EFFORTS)} or /effort off."


async def _copy(session: ChatSession, rest: str) -> str:
    if not session.report:
        return "There is no report yet."
    return await copy_text(clean(session.report).strip("\n") + "\n")


async def _edit(session: ChatSession, rest: str) -> str:
    raise MessageRequested(rest or await session.last_question(), is_draft=bool(rest))


async def _quit(session: ChatSession, rest: str) -> str:
    raise ExitRequested


COMMANDS: Mapping[str, SlashCommand] = {
    "/help": SlashCommand("/help", "lists commands and keys", _help),
    "/edit": SlashCommand("/edit [TEXT]", "writes a message in your editor; else the last question", _edit),
    "/new": SlashCommand("/new", "starts a new conversation", _new),
    "/threads": SlashCommand("/threads", "lists the conversations, newest first", _threads),
    "/resume": SlashCommand("/resume [ID]", "continues a conversation, by its number or id", _resume),
    "/cancel": SlashCommand("/cancel [ID]", "cancels a run that waits for you or was cut off", _cancel),
    "/retry": SlashCommand("/retry", "does what the last run has not done; what is done stays", _retry),
    "/team": SlashCommand("/team [NAME …]", "shows or chooses the agents; /team all", _team),
    "/model": SlashCommand("/model [NAME …]", "shows or chooses the model of each role or type", _model),
    "/file": SlashCommand("/file PATH", "gives the team a copy of a file or folder", _file),
    "/files": SlashCommand("/files [all]", "lists the files of this conversation", _files),
    "/sources": SlashCommand("/sources", "lists the sources of the last answer, as it cites them", _sources),
    "/claims": SlashCommand("/claims [all]", "lists what in the last answer lacks support", _claims),
    "/plan": SlashCommand("/plan", "shows the plan with the state of each step, also during a run", _plan),
    "/show": SlashCommand("/show [NUMBER]", "shows a tool call in full, also during a run", _show),
    "/cost": SlashCommand("/cost", "shows tokens and money by member, also during a run", _cost),
    "/budget": SlashCommand("/budget [NAME=N,…]", "shows or sets what each question may use", _budget),
    "/effort": SlashCommand("/effort [LEVEL]", "shows or sets how much the models reason", _effort),
    "/page": SlashCommand("/page", "writes a page (HTML) with every step of the last run", _page),
    "/save": SlashCommand(
        "/save FILE",
        f"saves the last report ({SAVE_FORMATS}); /save! overwrites",
        _save,
    ),
    "/copy": SlashCommand("/copy", "copies the last report, as Markdown, to the clipboard", _copy),
    "/quit": SlashCommand("/quit", "quits", _quit),
}


def _file_name(rest: str) -> tuple[str, bool]:
    """Return the file's name, and whether a `!` before or after it allows to replace the file."""
    text = rest.strip()
    name = text.removeprefix("! ").removesuffix(" !").strip()
    return name.strip("\"'"), name != text


def _names_several(name: str, rest: str) -> bool:
    """Whether more than one word of a name without quotes ends in the suffix of a report."""
    endings = [word for word in name.split() if word.casefold().endswith(tuple(REPORT_SUFFIXES))]
    return len(endings) > 1 and f'"{name}"' not in rest and f"'{name}'" not in rest


def _write(name: str, content: bytes, figures: Mapping[str, bytes], replace: bool) -> Path:
    """Write a report and the pictures that it shows, by their paths relative to it; return the report's path.

    Without `replace`, raises `FileExistsError` before anything is written.
    """
    path = Path(name).expanduser().absolute()
    pictures = {path.parent / relative: picture for relative, picture in figures.items()}
    if not replace and (taken := next(filter(os.path.lexists, [path, *pictures]), None)):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(taken))
    for folder in {one.parent for one in pictures}:
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is no folder for its pictures")
    with path.open("wb" if replace else "xb") as file:
        try:
            file.write(content)
            file.flush()
            for picture, data in pictures.items():
                picture.parent.mkdir(exist_ok=True)
                picture.write_bytes(data)
        except OSError:
            for one in [path, *pictures] if not replace else []:
                one.unlink(missing_ok=True)  # a partial report would block the next attempt
            raise
    return path


async def write_message(request: MessageRequested, prompt: Prompt, consoles: Consoles) -> str | None:
    """Return the message that the user has written in an editor; None, after a line about it, for none.

    The last question that was left as it is, is no message.
    """
    try:
        text = (await edit_text(EditRequest(request.text, _MESSAGE_SUFFIX), prompt)).strip()
    except EditorFailure as error:
        consoles.note(str(error), "yellow")
        return None
    except (EOFError, KeyboardInterrupt):
        text = ""
    if not text or (text == request.text.strip() and not request.is_draft):
        consoles.note("Nothing was written, so nothing was sent.", "dim")
        return None
    prompt.remember(text)
    consoles.note(f"› {clean(text)}")
    return text


async def read_answer(
    pending: PendingQuestion, line: str, session: ChatSession, prompt: Prompt, consoles: Consoles
) -> Any | None:
    """Return the answer in `line`, which the user may edit first; None after printing what is wrong."""
    try:
        decision = parse_answer(pending.question, line)
        if not isinstance(decision, EditRequest):
            return decision
        text = await _edited_text(decision, pending, prompt)
        members = session.options.enabled((await session.team()).members)
        answer = parse_edited_answer(pending.question, text, members, session.max_plan_steps)
    except (UnclearAnswer, EditorFailure) as error:
        consoles.note(str(error), "yellow")
    except UnchangedAnswer:
        consoles.note("Nothing was changed; the question is still open.", "dim")
    else:
        return answer
    return None


async def _edited_text(what: EditRequest, pending: PendingQuestion, prompt: Prompt) -> str:
    """Let the user edit the text, or the draft that was not accepted before."""
    try:
        pending.draft = await edit_text(EditRequest(pending.draft or what.text, what.suffix), prompt)
    except (EOFError, KeyboardInterrupt):
        return ""
    return pending.draft
