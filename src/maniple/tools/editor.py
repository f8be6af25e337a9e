"""`str_replace_editor`: look at files, make and change them, and take changes back."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.sandbox import History, Workspace, Workspaces
from maniple.tools.editing import Edited, first_difference, with_inserted, with_replaced
from maniple.tools.files import listing
from maniple.tools.run_context import thread_key
from maniple.tools.text_file import TextFile, decoded, numbered

Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]
_NO_LINE = _TO_THE_END = -1
_DESCRIPTION = (
    "View, create and change text files. old_str must stand there exactly once; new_str takes its place, or "
    "goes in after insert_line; view_range: [first, last]; undo_edit is repeatable."
)


def editor_tool(workspaces: Workspaces) -> BaseTool:
    """The tool; it raises `FileError` with what the model can do instead."""

    async def str_replace_editor(  # noqa: PLR0913 - a tool's arguments are those that models know
        command: Command,
        path: str,
        file_text: str = "",
        old_str: str = "",
        new_str: str = "",
        insert_line: int = _NO_LINE,
        view_range: list[int] = [],  # noqa: B006 - only read; a default of None would double the schema
    ) -> str:
        key = thread_key()

        def work() -> str:
            editor = _Editor(workspaces.open(key), workspaces.history(key), path)
            match command:
                case "view":
                    return editor.view(view_range)
                case "create":
                    return editor.create(file_text)
                case "str_replace":
                    return editor.edit(lambda file: with_replaced(path, file, old_str, new_str))
                case "insert":
                    return editor.insert(insert_line, new_str)
                case "undo_edit":
                    return editor.undo()

        return await asyncio.to_thread(work)

    return StructuredTool.from_function(
        coroutine=str_replace_editor, name="str_replace_editor", description=_DESCRIPTION
    )


@dataclass(frozen=True, slots=True)
class _Editor:
    """The commands on one path. Every method blocks on disk and raises `FileError`."""

    workspace: Workspace
    history: History
    path: str

    def view(self, wanted: list[int]) -> str:
        if self.workspace.is_directory(self.path):
            return listing(self.workspace, self.path)
        head = self.workspace.read(self.path, self.workspace.max_file_bytes)
        file = self._text(head.content, is_cut=head.size > len(head.content))
        lines = file.lines
        first, last = _range(wanted, len(lines))
        return numbered(lines[first - 1 : last], first) or f"[{self.path} is empty]"

    def create(self, text: str) -> str:
        def made(before: bytes | None) -> bytes:
            if before is not None:
                raise FileError(f"{self.path!r} exists. Change it with str_replace or insert.")
            return TextFile(text).content()

        self.history.change(self.workspace, self.path, made)
        return f"Created {self.path} ({len(TextFile(text).lines)} lines)."

    def insert(self, after_line: int, text: str) -> str:
        if after_line == _NO_LINE:
            raise FileError(
                "insert needs insert_line: the line after which new_str goes, 0 for the beginning."
            )
        return self.edit(lambda file: with_inserted(self.path, file, after_line, text))

    def edit(self, change: Callable[[TextFile], Edited]) -> str:
        edited: list[Edited] = []

        def changed(before: bytes | None) -> bytes:
            if before is None:
                raise FileError(f"There is no file {self.path!r} in the workspace.")
            edited.append(change(self._text(before)))
            return edited[0].file.content()

        self.history.change(self.workspace, self.path, changed)
        return f"Changed {self.path}:\n{edited[0].shown() or '[empty]'}"

    def undo(self) -> str:
        held, again = self.history.undo(self.workspace, self.path)
        if again is None:
            return f"Undone: {self.path} was new, and is gone again."
        before, after = decoded(held), decoded(again)
        shown = first_difference(before, after).shown() if before and after else "[binary]"
        return f"Undone. {self.path} is as it was:\n{shown or '[empty]'}"

    def _text(self, content: bytes, *, is_cut: bool = False) -> TextFile:
        file = decoded(content, is_cut=is_cut)
        if file is None:
            raise FileError(f"{self.path!r} is a binary file; work on it with Python instead.")
        return file


def _range(wanted: list[int], count: int) -> tuple[int, int]:
    """Return the first and the last line to be shown; -1 or a number beyond is the last one."""
    if not wanted:
        return 1, count
    if len(wanted) != 2 or not 1 <= wanted[0] <= max(1, count):
        raise FileError(f"view_range {wanted} does not fit: give [first, last] within 1 and {count}.")
    first, last = wanted
    last = count if last == _TO_THE_END else min(last, count)
    if last < first:
        raise FileError(f"view_range {wanted} ends before it begins.")
    return first, last
