"""The tool `str_replace_editor`: it shows, creates and changes files, and undoes changes."""

import asyncio
import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from maniple.errors import FileError
from maniple.scope.run_scope import thread_key
from maniple.tools.documents import OpenedFile, WorkspaceDocuments
from maniple.tools.files import listing
from maniple.tools.registry import define_tool
from maniple.tools.text_file import TextFile, decode_text, number_lines
from maniple.workspace import EditHistory, Workspace, Workspaces

_CONTEXT_LINES = 3
_NAMED_LINES = 10
_COMPARED_LINES = 2_000
_COMPARED_CHARACTERS = 200
_LEAST_LIKENESS = 0.6
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
Command = Literal["view", "create", "str_replace", "insert", "undo_edit"]
_NO_LINE = _TO_THE_END = -1


@define_tool(
    "str_replace_editor",
    "View, create and change text files. old_str must stand there exactly once; new_str takes its place, or "
    "goes in after insert_line; view_range: [first, last]; undo_edit is repeatable.",
    roles=("file_manager", "coder"),
    is_core=True,
    writes_files={"command": ("view",)},
    response_format="content_and_artifact",
)
async def str_replace_editor(  # noqa: PLR0913 - a tool's arguments are those that models know
    workspaces: Workspaces,
    documents: WorkspaceDocuments | None,
    /,
    command: Command,
    path: str,
    file_text: str = "",
    old_str: str = "",
    new_str: str = "",
    insert_line: int = _NO_LINE,
    view_range: list[int] = [],  # noqa: B006 - only read; a default of None would double the schema
) -> tuple[str, dict[str, Any] | None]:
    """Return the text, and the pictures to show; raise `FileError` with what the model can do instead."""
    key = thread_key()
    if command == "view" and (picture := await _open_picture(workspaces, documents, path)):
        return picture.as_result()

    def work() -> str:
        editor = _Editor(workspaces.open(key), EditHistory.of(workspaces, key), path)
        match command:
            case "view":
                return editor.view(view_range)
            case "create":
                return editor.create(file_text)
            case "str_replace":
                return editor.edit(lambda file: replace_text(path, file, old_str, new_str))
            case "insert":
                return editor.insert(insert_line, new_str)
            case "undo_edit":
                return editor.undo()

    return await asyncio.to_thread(work), None


async def _open_picture(
    workspaces: Workspaces, documents: WorkspaceDocuments | None, path: str
) -> OpenedFile | None:
    if documents is None:
        return None
    return await documents.open_picture(await asyncio.to_thread(workspaces.open, thread_key()), path)


@dataclass(frozen=True, slots=True)
class FileEdit:
    """The file after an edit, and its new lines: `count` lines from line `first`."""

    file: TextFile
    first: int
    count: int

    def format_excerpt(self) -> str:
        """Return the new lines with their context, numbered."""
        start = max(1, self.first - _CONTEXT_LINES)
        end = self.first + self.count - 1 + _CONTEXT_LINES
        return number_lines(self.file.lines[start - 1 : end], start, 4_000)


def replace_text(path: str, file: TextFile, old: str, new: str) -> FileEdit:
    """Replace the only occurrence of `old`; raises `FileError` for none, several, or no change.

    Line ends in `old` match both kinds of line ends in the file.
    """
    old = old.replace("\r\n", "\n")
    if not old:
        raise FileError("old_str is empty: give the exact text to be replaced, or use insert.")
    if old == new.replace("\r\n", "\n"):
        raise FileError("old_str and new_str are the same: nothing would change.")
    places = list(re.finditer(_pattern(old), file.text))
    if not places:
        raise FileError(
            f"old_str does not stand in {path}, character by character. {_describe_nearest(file, old)}"
        )
    first_lines = [file.text.count("\n", 0, place.start()) + 1 for place in places[: _NAMED_LINES + 1]]
    if len(places) > 1:
        named = ", ".join(map(str, first_lines[:_NAMED_LINES])) + (
            ", …" if len(places) > _NAMED_LINES else ""
        )
        raise FileError(
            f"old_str stands in {path} {len(places)} times, at lines {named}: give more of the lines around "
            "the place that is meant."
        )
    place, put = places[0], file.with_line_ends(new)
    text = file.text[: place.start()] + put + file.text[place.end() :]
    return FileEdit(file.with_text(text), first_lines[0], put.count("\n") + 1)


def _pattern(old: str) -> str:
    """Return a regular expression for `old` with line ends of either kind.

    It has no repetition, so it is linear.
    """
    *lines, last = old.split("\n")
    # A carriage return at the end of `old` must not match a part of a line end.
    ended = (re.escape(line) + ("\r\n" if line.endswith("\r") else "\r?\n") for line in lines)
    return "".join(ended) + re.escape(last) + ("(?!\n)" if last.endswith("\r") else "")


def insert_lines(path: str, file: TextFile, after_line: int, new: str) -> FileEdit:
    """Insert lines after a line, 0 for the beginning; raises `FileError` if the line does not exist."""
    lines = _LINE.findall(file.text)
    if not 0 <= after_line <= len(lines):
        raise FileError(
            f"insert_line is {after_line}, but {path} has the lines 1 to {len(lines)}; 0 is before."
        )
    put = file.with_line_ends(new)
    if not put.endswith("\n"):
        put += file.newline
    above = "".join(lines[:after_line])
    if above and not above.endswith("\n"):
        above, put = above + file.newline, put.removesuffix(file.newline)
    text = above + put + "".join(lines[after_line:])
    return FileEdit(file.with_text(text), after_line + 1, new.removesuffix("\n").count("\n") + 1)


def find_first_difference(before: TextFile, after: TextFile) -> FileEdit:
    """Return the first line of `after` that differs from `before`, as a new line."""
    old, new = before.lines, after.lines
    pairs = zip(old, new, strict=False)
    same = next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
    return FileEdit(after, min(same + 1, max(1, len(new))), 1)


def _describe_nearest(file: TextFile, old: str) -> str:
    """Return the most similar lines of the file, for the error message."""
    wanted = next((line for line in old.split("\n") if line.strip()), "")
    lines = file.lines[:_COMPARED_LINES]
    squeezed = "".join(wanted.split())
    for number, line in enumerate(lines, start=1):
        if squeezed and squeezed in "".join(line.split()):
            return f"Nearest is (check the blanks, and what follows):\n{_number_context(file, number)}"
    short = [line.strip()[:_COMPARED_CHARACTERS] for line in lines]
    close = difflib.get_close_matches(wanted.strip()[:_COMPARED_CHARACTERS], short, 1, _LEAST_LIKENESS)
    if close:
        return f"Nearest is:\n{_number_context(file, short.index(close[0]) + 1)}"
    return "Nothing there is like it: view the file first."


def _number_context(file: TextFile, line: int) -> str:
    start = max(1, line - 1)
    return number_lines(file.lines[start - 1 : line + _CONTEXT_LINES], start, 2_000)


@dataclass(frozen=True, slots=True)
class _Editor:
    """The commands on one path. Every method blocks on disk and raises `FileError`."""

    workspace: Workspace
    history: EditHistory
    path: str

    def view(self, wanted: list[int]) -> str:
        if self.workspace.is_directory(self.path):
            return listing(self.workspace, self.path)
        head = self.workspace.read(self.path, self.workspace.max_file_bytes)
        file = self._text(head.content, is_cut=head.size > len(head.content))
        lines = file.lines
        first, last = _range(wanted, len(lines))
        return number_lines(lines[first - 1 : last], first) or f"[{self.path} is empty]"

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
        return self.edit(lambda file: insert_lines(self.path, file, after_line, text))

    def edit(self, change: Callable[[TextFile], FileEdit]) -> str:
        edited: list[FileEdit] = []

        def changed(before: bytes | None) -> bytes:
            if before is None:
                raise FileError(f"There is no file {self.path!r} in the workspace.")
            edited.append(change(self._text(before)))
            return edited[0].file.content()

        self.history.change(self.workspace, self.path, changed)
        return f"Changed {self.path}:\n{edited[0].format_excerpt() or '[empty]'}"

    def undo(self) -> str:
        held, again = self.history.undo(self.workspace, self.path)
        if again is None:
            return f"Undone: {self.path} was new, and is gone again."
        before, after = decode_text(held), decode_text(again)
        shown = find_first_difference(before, after).format_excerpt() if before and after else "[binary]"
        return f"Undone. {self.path} is as it was:\n{shown or '[empty]'}"

    def _text(self, content: bytes, *, is_cut: bool = False) -> TextFile:
        file = decode_text(content, is_cut=is_cut)
        if file is None:
            raise FileError(f"{self.path!r} is a binary file; work on it with Python instead.")
        return file


def _range(wanted: list[int], count: int) -> tuple[int, int]:
    """Return the first and the last line to show; -1 or a larger number means the last line of the file."""
    if not wanted:
        return 1, count
    if len(wanted) != 2 or not 1 <= wanted[0] <= max(1, count):
        raise FileError(f"view_range {wanted} does not fit: give [first, last] within 1 and {count}.")
    first, last = wanted
    last = count if last == _TO_THE_END else min(last, count)
    if last < first:
        raise FileError(f"view_range {wanted} ends before it begins.")
    return first, last
