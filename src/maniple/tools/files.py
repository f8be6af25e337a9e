"""The tools that read, write, list, search, move, copy and delete files in the workspace of the thread."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any, Literal

from pydantic import BaseModel, Field

from maniple.errors import FileError
from maniple.scope.run_scope import thread_key
from maniple.tools.documents import WorkspaceDocuments, is_address
from maniple.tools.registry import FILE_WRITER, define_tool
from maniple.tools.text_file import (
    PIECE_CHARACTERS,
    LineRange,
    TextPieces,
    escape_unprintable,
    open_pieces,
)
from maniple.tools.web_pictures import WebPictures
from maniple.workspace import (
    EditHistory,
    FileGroup,
    FileOperation,
    OperationReport,
    TreeEntry,
    Upload,
    Workspace,
    Workspaces,
    group_files,
)
from maniple.workspace.mirrors import is_mirror
from maniple.workspace.safe_open import split_path

READ_FILE = "read_file"
_LISTED_FILES = 200


def build_file_check(workspaces: Workspaces) -> Callable[[], Awaitable[bool]]:
    """Return a function that returns whether the current thread's workspace has any files."""

    async def has_files() -> bool:
        try:
            files = await asyncio.to_thread(workspaces.files, thread_key(), 1)
        except FileError:
            return True  # the tools report the error
        return bool(files.found)

    return has_files


_READERS = ("file_manager", "coder")


async def _workspace(workspaces: Workspaces) -> Workspace:
    return await asyncio.to_thread(workspaces.open, thread_key())


@define_tool(
    "write_file",
    "Write a text file, replacing an older one.",
    roles=_READERS,
    is_core=True,
    idempotent=True,
    writes_files=True,
    mode="ordered",
)
async def write_file(workspaces: Workspaces, /, path: str, content: str) -> str:
    """Raise `FileError` with what the model can do instead; so do the other tools of this module."""
    data = content.encode(errors="replace")
    place = await _workspace(workspaces)
    await asyncio.to_thread(EditHistory.of(workspaces, thread_key()).write, place, path, data)
    return f"Wrote {len(data)} bytes to {path}."


@define_tool(
    READ_FILE,
    "Read a file of the workspace as text (also PDF, Office, and the user's web pages; source=true: their "
    "markup), or lines of it (end_line 0: to its end; start_character: where to begin in start_line). Shows "
    "pictures, and a PDF's page as one.",
    roles=_READERS,
    is_core=True,
    idempotent=True,
    mode="ordered",
    response_format="content_and_artifact",
)
async def read_file(  # noqa: PLR0913 - the arguments of the tool
    workspaces: Workspaces,
    documents: WorkspaceDocuments,
    web: WebPictures | None,
    /,
    path: str,
    start_line: int = 1,
    end_line: int = 0,
    start_character: int = 1,
    source: bool = False,
    page: int = 0,
) -> tuple[str, dict[str, Any] | None]:
    """Return the lines and how to read on; of a document, those of its text; and the pictures to show.

    Pages that the team itself writes are shown as their markup, which it may have to change.
    """
    if web is not None and is_address(path):
        return (await web.open(path)).as_result()
    wanted = LineRange(start_line, end_line, start_character)
    workspace = await _workspace(workspaces)
    is_upload = await asyncio.to_thread(_is_upload, workspaces, path)
    opened = await documents.open(workspace, path, wanted, is_source=source or not is_upload, page=page)
    if is_upload:
        opened = await documents.cite(workspace, "/".join(split_path(path)), opened)
    return opened.as_result()


def _is_upload(workspaces: Workspaces, path: str) -> bool:
    name = "/".join(split_path(path))
    return any(one.path == name for one in workspaces.uploads(thread_key()).list_uploads())


@define_tool(
    "list_files",
    "List the files of the workspace, or of a directory in it, with their sizes.",
    roles=_READERS,
    is_core=True,
    idempotent=True,
    mode="ordered",
)
async def list_files(workspaces: Workspaces, /, path: str = "") -> str:
    """Return one file a line."""
    return await asyncio.to_thread(listing, await _workspace(workspaces), path)


def listing(workspace: Workspace, path: str) -> str:
    """Return the files of a directory, one per line, with unprintable characters of names escaped.

    Escaping prevents a name from imitating several lines. Blocks on disk. Raises `FileError` if `path` is not
    a directory.
    """
    if not workspace.is_directory(path):
        raise FileError(f"{path!r} is no directory in the workspace.")
    files = workspace.files(_LISTED_FILES, path)
    lines = [f"{escape_unprintable(name)} ({size} bytes)" for name, size in files]
    if len(files) == _LISTED_FILES:
        lines.append(f"[only the first {_LISTED_FILES} files are listed]")
    empty = "[no files]" if path else "[the workspace is empty]"
    return "\n".join(lines) or empty


SEARCH_SECONDS = 5.0
_NAMED_FILES = 20_000
# Files above this size are searched last, so that the time suffices for the small ones.
_LARGE_BYTES = 1_000_000
_FOUND = 100
_LINE_CHARACTERS = 200
# The overlap of two parts of a long line: matches up to this length are found across the border.
_OVERLAP_CHARACTERS = 1_000
_PATTERN_MEMORY_BYTES = 8_000_000

Place = Callable[[str], int | None]
"""Returns the position of the first match in a text, in characters; None without a match."""


@define_tool(
    "search_files",
    "Search names and lines of files in the workspace by a regular expression; path is a "
    "directory or a file, glob such as *.py.",
    roles=_READERS,
    is_core=True,
    idempotent=True,
    mode="ordered",
)
async def search_files(workspaces: Workspaces, /, pattern: str, path: str = "", glob: str = "") -> str:
    """Return the places that match; raise `FileError` for an invalid pattern."""
    return await asyncio.to_thread(_search_files, await _workspace(workspaces), pattern, path, glob)


@dataclass(slots=True)
class _Search:
    """One search, with limits for matches and time; its result names what was not searched."""

    place: Place
    deadline: float
    matches: int = 0
    ended: str = ""
    files: int = 0
    binary: int = 0
    in_parts: bool = False
    found: list[str] = field(default_factory=list[str])
    """Matching lines."""
    names: list[str] = field(default_factory=list[str])
    """Files that match by name only."""

    def search_file(self, workspace: Workspace, path: str) -> None:
        """Search the name and the lines of a file."""
        self.files += 1
        before = self.matches
        self._search_lines(workspace, path)
        if self.matches == before and self.place(path) is not None:
            self.names.append(escape_unprintable(path))

    def _search_lines(self, workspace: Workspace, path: str) -> None:
        try:
            with workspace.open(path) as source:
                pieces = open_pieces(source)
                if pieces is None:
                    self.binary += 1
                else:
                    self._read(escape_unprintable(path), pieces)
        except FileError:
            return  # it was removed or cannot be read, so it has no matches

    def _read(self, name: str, pieces: TextPieces) -> None:
        before, found_in = "", 0
        for piece in pieces:
            self._check_time()
            if self.ended:
                return
            text = before[-_OVERLAP_CHARACTERS:] + piece.text if piece.start else piece.text
            before = text
            self.in_parts = self.in_parts or piece.start > 0
            line = text.removesuffix("\n").removesuffix("\r")
            if piece.line != found_in and (at := self.place(line)) is not None:
                found_in = piece.line
                place = piece.start + len(piece.text) - len(text) + at
                self._add_match(f"{name}:{piece.line}: {_excerpt(line, at, place)}")

    def format_result(self) -> str:
        """Return the matches, one per line, and a note about what was not searched."""
        binary = f", {self.binary} of them binary" if self.binary else ""
        names = self.names[:_FOUND]
        if len(self.names) > _FOUND:
            names.append(f"[and {len(self.names) - _FOUND} more names]")
        lines = [*names, *self.found] or [f"[nothing found in {self.files} files{binary}]"]
        if self.names and not self.found:
            lines.append("[names of files; no line matches]")
        if self.matches > _FOUND:
            known = "at least " if self.ended else ""
            shown = f"only the first {_FOUND} of {known}{self.matches} lines are shown"
            lines.append(f"[{shown}; narrow the pattern]")
        if self.in_parts:
            parts = f"[lines over {PIECE_CHARACTERS} characters were searched in parts of that length]"
            lines = [*lines, parts]
        return "\n".join([*lines, f"[{self.ended}]"] if self.ended else lines)

    def _check_time(self) -> None:
        if not self.ended and time.monotonic() > self.deadline:
            late = f"not searched: what comes after the first {SEARCH_SECONDS:.0f} seconds"
            self.ended = f"{late}; narrow it by path or glob"

    def _add_match(self, line: str) -> None:
        self.matches += 1
        if self.matches <= _FOUND:
            self.found.append(line)


def _search_files(workspace: Workspace, pattern: str, path: str, glob: str) -> str:
    search = _Search(_compile(pattern), time.monotonic() + SEARCH_SECONDS)
    for name in _select_files(workspace, path, glob, search):
        search.search_file(workspace, name)
        if search.ended:
            break
    return search.format_result()


def _select_files(workspace: Workspace, path: str, glob: str, search: _Search) -> Iterator[str]:
    if not workspace.is_directory(path):
        if workspace.size(path) is None:
            raise FileError(f"There is no file and no directory {path!r} in the workspace.")
        yield path
        return
    shape = glob.removeprefix("**/").removeprefix("./")
    files = workspace.files(_NAMED_FILES, path)
    for name, _ in sorted(files, key=lambda file: file[1] > _LARGE_BYTES):
        if not shape or fnmatchcase(name if "/" in shape else name.rpartition("/")[2], shape):
            yield name
    if len(files) == _NAMED_FILES:
        search.ended = f"not searched: more than {_NAMED_FILES} files; narrow it by path"


def _excerpt(line: str, at: int, place: int) -> str:
    """Return the shown part of a line: its beginning, or the text around a match far inside."""
    shown = line.strip()[:_LINE_CHARACTERS]
    if place < _LINE_CHARACTERS:
        return escape_unprintable(shown)
    first = max(0, at - _LINE_CHARACTERS // 4)
    return f"[at character {place + 1}] {escape_unprintable(line[first : first + _LINE_CHARACTERS].strip())}"


def _compile(pattern: str) -> Place:
    """Return a function that finds the pattern in a line.

    RE2 takes time linear in the line for every pattern. With Python's `re`, a pattern can take exponential
    time and block the whole process.
    """
    re2: Any = import_module("re2")  # it has no types
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY_BYTES
    try:
        found = re2.compile(pattern.encode(errors="replace"), options).search
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "it cannot be read"
        raise FileError(
            f"The pattern does not work here: {reason}. It is RE2's kind of regular expression, without "
            "look-around and back-references; \\ makes a special character ordinary."
        ) from None

    def place(text: str) -> int | None:
        data = text.encode(errors="replace")
        match = found(data)
        return None if match is None else len(data[: match.start()].decode(errors="ignore"))

    return place


NAMED_FILES = 20

NamedFiles = Callable[[], Awaitable[list[str]]]
"""Returns `name (size bytes)` of the user's files in the current thread's workspace."""


def uploaded_files(workspaces: Workspaces) -> NamedFiles:
    """Return a function that lists the uploads of the current thread.

    Of many, the files of a folder are one line, and only the newest of the others are named.
    """

    def read(key: str) -> list[str]:
        return _name_uploads(workspaces.uploads(key).list_uploads())

    async def named() -> list[str]:
        return await asyncio.to_thread(read, thread_key())

    return named


def _name_uploads(uploads: Sequence[Upload]) -> list[str]:
    groups = group_files([(one.path, one.size) for one in uploads], NAMED_FILES)
    inside = [one for one in groups if "/" in one.path]
    outside = [one for one in groups if "/" not in one.path]
    named = inside[:NAMED_FILES]
    shown = [*named, *outside[max(len(outside) - (NAMED_FILES - len(named)), 0) :]]
    others = len(uploads) - sum(one.files for one in shown)
    lines = [_describe_group(one) for one in shown]
    return [*lines, f"and {others} more"] if others else lines


def _describe_group(group: FileGroup) -> str:
    counted = f"{group.files} files, " if group.is_folder else ""
    return f"{escape_unprintable(group.path)} ({counted}{group.size} bytes)"


_MANAGERS = ("file_manager",)
_MAX_OPERATIONS = 500
_NAMED_OPERATIONS = 40
_TREE_LINES = 300
_NOT_BY_CODE = "Changes that code made (coder, bash) are not recorded and not undone."


@define_tool(
    "move_file",
    "Move or rename a file or a folder. An existing folder as destination, or one ending with /, means a "
    "place in it; missing folders are made.",
    roles=_MANAGERS,
    is_core=True,
    mode="ordered",
)
async def move_file(workspaces: Workspaces, /, source: str, destination: str, overwrite: bool = False) -> str:
    """Return what was done; raise `FileError` for why not, and then nothing is changed."""
    return await _carry_out(workspaces, [FileOperation("move", source, destination, overwrite)])


@define_tool(
    "copy_file",
    "Copy a file or a folder; destination as for move_file.",
    roles=_MANAGERS,
    is_core=True,
    writes_files=True,
    mode="ordered",
)
async def copy_file(workspaces: Workspaces, /, source: str, destination: str, overwrite: bool = False) -> str:
    """Do what `move_file` does, but the source stays."""
    return await _carry_out(workspaces, [FileOperation("copy", source, destination, overwrite)])


@define_tool(
    "delete_file",
    "Delete a file, or a folder with all in it.",
    roles=_MANAGERS,
    is_core=True,
    mode="ordered",
)
async def delete_file(workspaces: Workspaces, /, path: str) -> str:
    """Return what was deleted, and whether that cannot be undone."""
    return await _carry_out(workspaces, [FileOperation("delete", path)])


@define_tool(
    "create_directory",
    "Make a folder, with those above it.",
    roles=_MANAGERS,
    is_core=True,
    mode="ordered",
    idempotent=True,
)
async def create_directory(workspaces: Workspaces, /, path: str) -> str:
    """Return what was made; a folder that exists is no error."""
    return await _carry_out(workspaces, [FileOperation("create_directory", path)])


class RequestedOperation(BaseModel):
    """One operation; only move and copy have a destination."""

    action: Literal["move", "copy", "delete", "create_directory"]
    path: str
    destination: str = ""
    overwrite: bool = False


class OperationList(BaseModel):
    """The arguments of `file_operations`."""

    operations: list[RequestedOperation] = Field(min_length=1, max_length=_MAX_OPERATIONS)


@define_tool(
    "file_operations",
    "Move, rename, copy, delete files and make folders, many at a time, in their order. An existing folder "
    "as destination, or one ending with /, means a place in it; missing folders are made. All are checked "
    "first: if one cannot be done, nothing is changed, and each reason is given. Undone as one.",
    roles=_MANAGERS,
    is_core=True,
    args_schema=OperationList,
    mode="ordered",
    includes={
        "move": "move_file",
        "copy": ("copy_file", FILE_WRITER),
        "delete": "delete_file",
        "create_directory": "create_directory",
    },
)
async def run_file_operations(workspaces: Workspaces, /, operations: list[RequestedOperation]) -> str:
    """Return what was done, one line each; raise `FileError` that names each operation that cannot be."""
    requested = [FileOperation(one.action, one.path, one.destination, one.overwrite) for one in operations]
    return await _carry_out(workspaces, requested)


@define_tool(
    "undo_file_operations",
    "Undo the newest changes that the file tools made here, newest first: file operations (those of one "
    "call as one) and edits; not what code changed.",
    roles=_MANAGERS,
    is_core=True,
    writes_files=True,
    mode="ordered",
)
async def undo_file_operations(workspaces: Workspaces, /, steps: int = 1) -> str:
    """Return what was undone; raise `FileError` if nothing was."""
    key = thread_key()

    def work() -> OperationReport:
        report = EditHistory.of(workspaces, key).undo_newest(workspaces.open(key), max(1, steps))
        workspaces.uploads(key).follow(report.moves)
        return report

    return f"{_format_report(await asyncio.to_thread(work))}\n{_NOT_BY_CODE}"


async def _carry_out(workspaces: Workspaces, operations: list[FileOperation]) -> str:
    key = thread_key()

    def work() -> OperationReport:
        report = EditHistory.of(workspaces, key).carry_out(workspaces.open(key), operations, is_mirror)
        # An upload stays the user's file under its new name.
        workspaces.uploads(key).follow(report.moves)
        return report

    return _format_report(await asyncio.to_thread(work))


def _format_report(report: OperationReport) -> str:
    lines = [f"{escape_unprintable(one)}." for one in report.done[:_NAMED_OPERATIONS]]
    more = len(report.done) - len(lines)
    lines += [f"And {more} more."] if more else []
    lines += (
        [f"This cannot be undone: {escape_unprintable(report.not_undoable)}"] if report.not_undoable else []
    )
    if left := report.remaining:
        lines.append(
            f"Not undone: {left} earlier changes. If they are meant, too, call this with steps={left}."
        )
    return "\n".join(lines)


@define_tool(
    "directory_tree",
    "Show the folders and files of the workspace, or of a folder in it, as a tree.",
    roles=_MANAGERS,
    is_core=True,
    idempotent=True,
    mode="ordered",
)
async def show_directory_tree(workspaces: Workspaces, /, path: str = "") -> str:
    """Return one line for each folder and file, indented."""
    return await asyncio.to_thread(_format_tree, await _workspace(workspaces), path)


def _format_tree(workspace: Workspace, path: str) -> str:
    if not workspace.is_directory(path):
        raise FileError(f"{path!r} is no directory in the workspace.")
    entries = workspace.tree(path)
    lines = [_format_entry(entry, entries) for entry in entries[:_TREE_LINES]]
    if len(entries) > len(lines):
        lines.append(f"[{len(entries) - len(lines)} more are not shown; name a folder to see it]")
    return "\n".join(lines) or "[empty]"


def _format_entry(entry: TreeEntry, entries: list[TreeEntry]) -> str:
    depth = entry.path.count("/")
    name = escape_unprintable(entry.path.rpartition("/")[2])
    if entry.kind == "folder":
        inside = sum(one.kind != "folder" and one.path.startswith(f"{entry.path}/") for one in entries)
        described = f"{name}/ ({inside} files)"
    else:
        described = f"{name} ({entry.size} bytes)" if entry.kind == "file" else f"{name} [{entry.kind}]"
    return "  " * depth + described
