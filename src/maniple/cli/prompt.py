"""The line at which people ask."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import ColorDepth

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
