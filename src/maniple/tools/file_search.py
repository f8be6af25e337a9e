"""`search_files`: which files of the workspace have a name or a line that fits a pattern."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.sandbox import Workspace, Workspaces
from maniple.tools.pieces import PIECE_CHARACTERS, Pieces, pieces_of
from maniple.tools.run_context import thread_key
from maniple.tools.written import printable

SEARCH_SECONDS = 5.0
_NAMED_FILES = 20_000
# Large files come last: the time must not be over before the small ones are searched.
_LARGE_BYTES = 1_000_000
_FOUND = 100
_LINE_CHARACTERS = 200
# What begins before the seam of two parts of a line is found if it is not longer.
_OVERLAP_CHARACTERS = 1_000
_PATTERN_MEMORY_BYTES = 8_000_000

Place = Callable[[str], int | None]
"""Where in a text that which is looked for begins, in characters; None if it is not there."""


def file_search_tool(workspaces: Workspaces) -> BaseTool:
    """The tool; it raises `FileError` for a pattern that is none."""

    async def search_files(pattern: str, path: str = "", glob: str = "") -> str:
        place = await asyncio.to_thread(workspaces.open, thread_key())
        return await asyncio.to_thread(_searched, place, pattern, path, glob)

    return StructuredTool.from_function(
        coroutine=search_files,
        name="search_files",
        description="Search names and lines of files in the workspace by a regular expression; path is a "
        "directory or a file, glob such as *.py.",
        metadata={"idempotent": True, "mode": "ordered"},
    )


@dataclass(slots=True)
class _Search:
    """One search: at most so many finds, and so much time. What it did not look at, it says."""

    place: Place
    deadline: float
    left: int = _FOUND
    ended: str = ""
    files: int = 0
    binary: int = 0
    in_parts: bool = False
    found: list[str] = field(default_factory=list)

    def look(self, workspace: Workspace, path: str) -> None:
        """Note the file's name and lines that fit."""
        self.files += 1
        if self.place(path) is not None:
            self._note(printable(path))
        try:
            with workspace.open(path) as source:
                pieces = pieces_of(source)
                if pieces is None:
                    self.binary += 1
                else:
                    self._read(printable(path), pieces)
        except FileError:
            return  # it has gone, or cannot be read, and then nothing is found in it

    def _read(self, name: str, pieces: Pieces) -> None:
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
                self._note(f"{name}:{piece.line}: {_around(line, at, place)}")

    def said(self) -> str:
        """Return what was found, one place a line, and what was not looked at."""
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

    def _note(self, line: str) -> None:
        self.found.append(line)
        self.left -= 1
        if self.left == 0:
            self.ended = f"only the first {_FOUND} are shown; narrow the pattern"


def _searched(workspace: Workspace, pattern: str, path: str, glob: str) -> str:
    search = _Search(_compiled(pattern), time.monotonic() + SEARCH_SECONDS)
    for name in _named(workspace, path, glob, search):
        search.look(workspace, name)
        if search.ended:
            break
    return search.said()


def _named(workspace: Workspace, path: str, glob: str, search: _Search) -> Iterator[str]:
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


def _around(line: str, at: int, place: int) -> str:
    """Return as much of a line as is shown: its beginning, or what stands around a place far in it."""
    shown = line.strip()[:_LINE_CHARACTERS]
    if place < _LINE_CHARACTERS:
        return printable(shown)
    first = max(0, at - _LINE_CHARACTERS // 4)
    return f"[at character {place + 1}] {printable(line[first : first + _LINE_CHARACTERS].strip())}"


def _compiled(pattern: str) -> Place:
    """Return what finds the pattern in a line.

    RE2 takes time in proportion to the line whatever the pattern; Python's own `re` can be made to take for
    ever, and holds up the whole program meanwhile.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _PATTERN_MEMORY_BYTES
    try:
        found = re2.compile(pattern.encode(errors="replace"), options).search
    except re2.error as error:
        words = error.args[0].decode(errors="replace") if error.args else "it cannot be read"
        raise FileError(
            f"The pattern does not work here: {words}. It is RE2's kind of regular expression, without "
            "look-around and back-references; \\ makes a special character ordinary."
        ) from None

    def place(text: str) -> int | None:
        data = text.encode(errors="replace")
        match = found(data)
        return None if match is None else len(data[: match.start()].decode(errors="ignore"))

    return place
