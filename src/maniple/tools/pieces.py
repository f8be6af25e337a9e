"""The lines of a text file, however large it is and however long they are."""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from maniple.tools.text_file import decoded

PIECE_CHARACTERS = 20_000
# What a file is, its beginning tells.
_HEAD_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Piece:
    """A line with its end, or, of one that is longer than a piece, the part that begins at `start`.

    `line` counts from 1, `start` is the number of characters before the piece in its line.
    """

    line: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Pieces:
    """An open text file, read once from its beginning; what its encoding cannot mean is U+FFFD. Blocks."""

    encoding: str
    source: io.TextIOWrapper

    def __iter__(self) -> Iterator[Piece]:
        line, start = 1, 0
        while text := self.source.readline(PIECE_CHARACTERS):
            yield Piece(line, start, text)
            line, start = (line + 1, 0) if text.endswith("\n") else (line, start + len(text))


def pieces_of(source: BinaryIO) -> Pieces | None:
    """Return what is in an open file, which is the caller's to close; None for a binary one."""
    head = source.read(_HEAD_BYTES)
    file = decoded(head, is_cut=os.fstat(source.fileno()).st_size > len(head))
    if file is None:
        return None
    source.seek(len(file.bom))
    return Pieces(file.encoding, io.TextIOWrapper(source, file.encoding, errors="replace", newline="\n"))
