"""`write_file`, `read_file`, `list_files` and `search_files` in the workspace of the thread."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from maniple.errors import FileError
from maniple.sandbox import Workspace, Workspaces
from maniple.tools.registry import define_tool
from maniple.tools.run_context import thread_key
from maniple.tools.text_file import (
    PIECE_CHARACTERS,
    LineRange,
    TextPieces,
    escape_unprintable,
    open_pieces,
    read_page,
)

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
    "Write a text file in the workspace, replacing an older one.",
    roles=_READERS,
    is_core=True,
    idempotent=True,
    mode="ordered",
)
async def write_file(workspaces: Workspaces, /, path: str, content: str) -> str:
    """Raise `FileError` with what the model can do instead; so do the other tools of this module."""
    data = content.encode(errors="replace")
    place = await _workspace(workspaces)
    await asyncio.to_thread(workspaces.history(thread_key()).write, place, path, data)
    return f"Wrote {len(data)} bytes to {path}."


@define_tool(
    "read_file",
    "Read a text file of the workspace, or lines of it (end_line 0: to its end; "
    "start_character: where to begin in start_line).",
    roles=_READERS,
    is_core=True,
    idempotent=True,
    mode="ordered",
)
async def read_file(
    workspaces: Workspaces, /, path: str, start_line: int = 1, end_line: int = 0, start_character: int = 1
) -> str:
    """Return the lines, numbered, and how to read on."""
    wanted = LineRange(start_line, end_line, start_character)
    return await asyncio.to_thread(read_page, await _workspace(workspaces), path, wanted)


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
    a
    directory.
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
    left: int = _FOUND
    ended: str = ""
    files: int = 0
    binary: int = 0
    in_parts: bool = False
    found: list[str] = field(default_factory=list)

    def search_file(self, workspace: Workspace, path: str) -> None:
        """Search the name and the lines of a file."""
        self.files += 1
        if self.place(path) is not None:
            self._add_match(escape_unprintable(path))
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
        lines = self.found or [f"[nothing found in {self.files} files{binary}]"]
        if self.in_parts:
            parts = f"[lines over {PIECE_CHARACTERS} characters were searched in parts of that length]"
            lines = [*lines, parts]
        return "\n".join([*lines, f"[{self.ended}]"] if self.ended else lines)

    def _check_time(self) -> None:
        if not self.ended and time.monotonic() > self.deadline:
            late = f"not searched: what comes after the first {SEARCH_SECONDS:.0f} seconds"
            self.ended = f"{late}; narrow it by path or glob"

    def _add_match(self, line: str) -> None:
        self.found.append(line)
        self.left -= 1
        if self.left == 0:
            self.ended = f"only the first {_FOUND} are shown; narrow the pattern"


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
    time
    and block the whole process.
    """
    import re2

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
    """Return a function that lists the newest uploads of the current thread, and a line with the number of
    others.
    """

    def read(key: str) -> list[str]:
        known = workspaces.uploads(key).list_uploads()
        named = [f"{escape_unprintable(one.path)} ({one.size} bytes)" for one in known[-NAMED_FILES:]]
        others = len(known) - len(named)
        return [*named, f"and {others} more"] if others else named

    async def named() -> list[str]:
        return await asyncio.to_thread(read, thread_key())

    return named
