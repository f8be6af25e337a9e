"""`search_files`: which files of the workspace have a name or a line that fits a pattern."""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.sandbox import Workspace, Workspaces
from maniple.tools.scope import thread_key
from maniple.tools.text_file import decoded
from maniple.tools.written import printable

SEARCH_SECONDS = 5.0
_SEARCHED_FILES = 2_000
_SEARCHED_BYTES = 2_000_000
_SEARCHED_CHARACTERS = 5_000
_FOUND = 100
_LINE_CHARACTERS = 200
_PATTERN_MEMORY_BYTES = 8_000_000

Fits = Callable[[str], bool]


def file_search_tool(workspaces: Workspaces) -> BaseTool:
    """The tool; it raises `FileError` for a pattern that is none."""

    async def search_files(pattern: str, path: str = "", glob: str = "") -> str:
        place = await asyncio.to_thread(workspaces.open, thread_key())
        return await asyncio.to_thread(_searched, place, pattern, path, glob)

    return StructuredTool.from_function(
        coroutine=search_files,
        name="search_files",
        description="Search names and lines of files in the workspace by a regular expression; path is a "
        "directory, glob such as *.py.",
        metadata={"idempotent": True},
    )


@dataclass(slots=True)
class _Search:
    """One search: at most so many finds, and so much time."""

    fits: Fits
    deadline: float
    left: int = _FOUND
    ended: str = ""
    files: int = 0
    found: list[str] = field(default_factory=list)

    def look(self, workspace: Workspace, path: str) -> None:
        """Note the file's name and lines that fit."""
        self.files += 1
        if self.fits(path):
            self._note(printable(path))
        try:
            head = workspace.read(path, _SEARCHED_BYTES)
        except FileError:
            return  # it has gone, or cannot be read, and then nothing is found in it
        file = decoded(head.content, is_cut=head.size > len(head.content))
        for number, line in enumerate(file.lines if file else (), start=1):
            if self.ended:
                return
            if number % 100 == 0:
                self.check_time()
            if self.fits(line[:_SEARCHED_CHARACTERS]):
                self._note(f"{printable(path)}:{number}: {printable(line.strip()[:_LINE_CHARACTERS])}")

    def check_time(self) -> None:
        """End when the time is over."""
        if time.monotonic() > self.deadline:
            self.ended = f"stopped after {SEARCH_SECONDS:.0f} seconds; narrow it by path or glob"

    def _note(self, line: str) -> None:
        self.found.append(line)
        self.left -= 1
        if self.left == 0:
            self.ended = f"only the first {_FOUND} are shown; narrow the pattern"


def _searched(workspace: Workspace, pattern: str, path: str, glob: str) -> str:
    if not workspace.is_directory(path):
        raise FileError(f"{path!r} is no directory in the workspace; name one, or leave path out.")
    search = _Search(_compiled(pattern), time.monotonic() + SEARCH_SECONDS)
    for name in _named(workspace, path, glob):
        search.look(workspace, name)
        search.check_time()
        if search.ended:
            break
    lines = search.found or [f"[nothing found in {search.files} files]"]
    return "\n".join([*lines, f"[{search.ended}]"] if search.ended else lines)


def _named(workspace: Workspace, path: str, glob: str) -> Iterator[str]:
    shape = glob.removeprefix("**/").removeprefix("./")
    for name, _ in workspace.files(_SEARCHED_FILES, path):
        if not shape or fnmatchcase(name if "/" in shape else name.rpartition("/")[2], shape):
            yield name


def _compiled(pattern: str) -> Fits:
    """Return what says whether a line fits.

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
    return lambda line: found(line.encode(errors="replace")) is not None
