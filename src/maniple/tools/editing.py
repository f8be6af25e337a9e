"""Changes of a text: what stands exactly there is replaced, or lines are put in between."""

import difflib
import re
from dataclasses import dataclass

from maniple.errors import FileError
from maniple.tools.text_file import TextFile, numbered

_CONTEXT_LINES = 3
_NAMED_LINES = 10
_COMPARED_LINES = 2_000
_COMPARED_CHARACTERS = 200
_LEAST_LIKENESS = 0.6
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, slots=True)
class Edited:
    """The file after an edit, and which of its lines are new: from `first`, `count` of them."""

    file: TextFile
    first: int
    count: int

    def shown(self) -> str:
        """Return the new lines with those around them, numbered."""
        start = max(1, self.first - _CONTEXT_LINES)
        end = self.first + self.count - 1 + _CONTEXT_LINES
        return numbered(self.file.lines[start - 1 : end], start, 4_000)


def with_replaced(path: str, file: TextFile, old: str, new: str) -> Edited:
    """Replace the one place where `old` stands; raises `FileError` for none, several, or no change.

    A line end in `old` stands for whichever the file has there.
    """
    old = old.replace("\r\n", "\n")
    if not old:
        raise FileError("old_str is empty: give the exact text to be replaced, or use insert.")
    if old == new.replace("\r\n", "\n"):
        raise FileError("old_str and new_str are the same: nothing would change.")
    places = list(re.finditer(_pattern(old), file.text))
    if not places:
        raise FileError(f"old_str does not stand in {path}, character by character. {_near(file, old)}")
    first_lines = [file.text.count("\n", 0, place.start()) + 1 for place in places[: _NAMED_LINES + 1]]
    if len(places) > 1:
        named = ", ".join(map(str, first_lines[:_NAMED_LINES])) + (
            ", …" if len(places) > _NAMED_LINES else ""
        )
        raise FileError(
            f"old_str stands in {path} {len(places)} times, at lines {named}: give more of the lines around "
            "the place that is meant."
        )
    place, put = places[0], file.ended_alike(new)
    text = file.text[: place.start()] + put + file.text[place.end() :]
    return Edited(file.saying(text), first_lines[0], put.count("\n") + 1)


def _pattern(old: str) -> str:
    """An expression for `old` with line ends of either kind; nothing in it is repeated: one pass finds it."""
    *lines, last = old.split("\n")
    # A carriage return that is none of a line end is not to be found in one.
    ended = (re.escape(line) + ("\r\n" if line.endswith("\r") else "\r?\n") for line in lines)
    return "".join(ended) + re.escape(last) + ("(?!\n)" if last.endswith("\r") else "")


def with_inserted(path: str, file: TextFile, after_line: int, new: str) -> Edited:
    """Put lines after a line, 0 for the beginning; raises `FileError` for a line that is not there."""
    lines = _LINE.findall(file.text)
    if not 0 <= after_line <= len(lines):
        raise FileError(
            f"insert_line is {after_line}, but {path} has the lines 1 to {len(lines)}; 0 is before."
        )
    put = file.ended_alike(new)
    if not put.endswith("\n"):
        put += file.newline
    above = "".join(lines[:after_line])
    if above and not above.endswith("\n"):
        above, put = above + file.newline, put.removesuffix(file.newline)
    text = above + put + "".join(lines[after_line:])
    return Edited(file.saying(text), after_line + 1, new.removesuffix("\n").count("\n") + 1)


def first_difference(before: TextFile, after: TextFile) -> Edited:
    """Return where `after` first differs from `before`, as one line that is new."""
    old, new = before.lines, after.lines
    pairs = zip(old, new, strict=False)
    same = next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(old), len(new)))
    return Edited(after, min(same + 1, max(1, len(new))), 1)


def _near(file: TextFile, old: str) -> str:
    """Say what stands there instead, as far as that shows quickly."""
    wanted = next((line for line in old.split("\n") if line.strip()), "")
    lines = file.lines[:_COMPARED_LINES]
    squeezed = "".join(wanted.split())
    for number, line in enumerate(lines, start=1):
        if squeezed and squeezed in "".join(line.split()):
            return f"Nearest is (check the blanks, and what follows):\n{_around(file, number)}"
    short = [line.strip()[:_COMPARED_CHARACTERS] for line in lines]
    close = difflib.get_close_matches(wanted.strip()[:_COMPARED_CHARACTERS], short, 1, _LEAST_LIKENESS)
    if close:
        return f"Nearest is:\n{_around(file, short.index(close[0]) + 1)}"
    return "Nothing there is like it: view the file first."


def _around(file: TextFile, line: int) -> str:
    start = max(1, line - 1)
    return numbered(file.lines[start - 1 : line + _CONTEXT_LINES], start, 2_000)
