"""As much of a text file as a model is shown at once."""

import time
from dataclasses import dataclass, field

from maniple.errors import FileError
from maniple.sandbox import Workspace
from maniple.tools.pieces import Piece, Pieces, pieces_of

PAGE_BYTES = 20_000
READ_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Lines of a file, counted from 1: from a character of the first, to the end if `end_line` is 0."""

    start_line: int = 1
    end_line: int = 0
    start_character: int = 1

    def is_over(self, piece: Piece) -> bool:
        """Whether the piece comes after all that is wanted."""
        return 0 < self.end_line < piece.line

    def of(self, piece: Piece) -> str:
        """Return what of the piece is not before the beginning."""
        if piece.line != self.start_line:
            return piece.text if piece.line > self.start_line else ""
        return piece.text[max(0, self.start_character - 1 - piece.start) :]


@dataclass(slots=True)
class _Page:
    """What is shown so far, in at most `left` more bytes, and where it was cut."""

    left: int = PAGE_BYTES
    shown: list[str] = field(default_factory=list)
    cut: str = ""

    def add(self, piece: Piece, text: str) -> None:
        """Show what has room, whole lines if it is more than one."""
        size = len(text.encode())
        if size <= self.left:
            self.shown.append(text)
            self.left -= size
            return
        at = piece.start + len(piece.text) - len(text)
        begins_line = at == 0
        if not (begins_line and self.shown):
            part = text.encode()[: self.left].decode(errors="ignore")
            self.shown.append(part)
            at += len(part)
        place = f"start_line={piece.line}" + (f", start_character={at + 1}" if at else "")
        self.cut = f"[cut here; read on with {place}]"


def page(workspace: Workspace, path: str, wanted: Wanted) -> str:
    """Return what is wanted of a file, or its beginning and how to read on; blocks on disk.

    Raises `FileError` if nothing is there, or if it is too far in a large file to be come to in time.
    """
    wanted = Wanted(max(1, wanted.start_line), wanted.end_line, max(1, wanted.start_character))
    with workspace.open(path) as source:
        pieces = pieces_of(source)
        if pieces is None:
            size = workspace.size(path)
            return f"[{path} is a binary file of {size} bytes; work on it with Python instead]"
        shown, lines = _collected(pieces, wanted, path)
        encoding = pieces.encoding
    if not shown.shown and not shown.cut:
        if lines == 0:
            return f"[{path} is empty]"
        raise FileError(f"{path!r} has {lines} lines; nothing is there from {_named(wanted)}.")
    text = "".join(shown.shown)
    if wanted != Wanted():
        text = text.removesuffix("\n").removesuffix("\r")
    notes = [shown.cut] if shown.cut else []
    if encoding != "utf-8" and wanted.start_line == 1:
        notes.append(f"[the file's encoding is {encoding}]")
    return "\n".join([text, *notes])


def _collected(pieces: Pieces, wanted: Wanted, path: str) -> tuple[_Page, int]:
    """Return the page, and the number of the last line that was looked at for it."""
    shown, deadline, line = _Page(), time.monotonic() + READ_SECONDS, 0
    for piece in pieces:
        if wanted.is_over(piece) or shown.cut:
            break
        line = piece.line
        if time.monotonic() > deadline:
            reached = f"In {READ_SECONDS:.0f} seconds {path!r} was read up to line {line} only"
            raise FileError(f"{reached}; work on it with Python.")
        if text := wanted.of(piece):
            shown.add(piece, text)
    return shown, line


def _named(wanted: Wanted) -> str:
    character = f", character {wanted.start_character}," if wanted.start_character > 1 else ""
    return f"line {wanted.start_line}{character} to {wanted.end_line or 'the end'}"
