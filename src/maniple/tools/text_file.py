"""Text files: detection of encodings, changes that preserve encoding and line ends, and paged reading."""

import codecs
import io
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import BinaryIO

from maniple.errors import FileError
from maniple.text import fix_surrogates
from maniple.workspace import Workspace

LINE_CHARACTERS = 1_000
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PDF_BYTES = 1_024
_ONE_BYTE = "windows-1252"
_TEXT_CONTROLS = b"\t\n\r\f\x1b"
_ASCII = bytes(range(32, 127)) + _TEXT_CONTROLS
_CONTROLS = bytes(set(range(32)) - set(_TEXT_CONTROLS))
# The minimal share of ASCII bytes in a text with Latin letters; binary files have fewer.
_LEAST_ASCII = 0.7
_CHINESE = "gb18030"
_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")
# GB 2312 has punctuation in rows A1 to A3 and common characters in B0 to D7, ordered by sound. Korean
# (EUC-KR) has its syllables in B0 to C8, so that Korean text has nothing in the later rows.
_COMMON = re.compile(rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]")
_LATER = re.compile(rb"[\xc9-\xd7][\xa1-\xfe]")
_SAMPLED_PAIRS = 1_000
_MIN_PAIRS = 20
_LEAST_COMMON, _LEAST_LATER = 0.8, 0.1


@dataclass(frozen=True, slots=True)
class TextFile:
    """The content of a text file: its `text` with line ends, its byte order mark and its encoding."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    @property
    def newline(self) -> str:
        """The line end of most lines."""
        return "\r\n" if self.text.count("\r\n") * 2 > self.text.count("\n") else "\n"

    @property
    def lines(self) -> list[str]:
        """The lines without line ends; a line end at the end of the file does not begin another line."""
        lines = self.text.split("\n")
        return [line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1])]

    def with_text(self, text: str) -> "TextFile":
        """Return a file with another text, and the same encoding and byte order mark."""
        return replace(self, text=text)

    def with_line_ends(self, text: str) -> str:
        """Return `text` with the line ends of this file."""
        return text.replace("\r\n", "\n").replace("\n", self.newline)

    def content(self) -> bytes:
        """Return the bytes of the file.

        Raises `FileError` for a character that its encoding cannot represent.
        """
        try:
            return self.bom + fix_surrogates(self.text).encode(self.encoding)
        except UnicodeEncodeError as error:
            missing = error.object[error.start]
            raise FileError(
                f"The file is written in {self.encoding}, which has no {missing!r}. Use other characters, or "
                "write the whole file again as UTF-8."
            ) from None


def decode_text(content: bytes, *, is_cut: bool = False) -> TextFile | None:
    """Return the text of a file, None if it is binary.

    Supported are UTF-8, UTF-16 with a byte order mark, windows-1252 and gb18030. If the content `is_cut`, an
    incomplete character at its end is left out.
    """
    if content[:_PDF_BYTES].lstrip().startswith(b"%PDF-"):
        return None  # some look like text, and are none that can be read or changed
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            text = _text(content[len(bom) :], encoding, is_cut)
            return None if text is None else TextFile(text, encoding, bom)
    text = _text(content, "utf-8", is_cut)
    if text is not None:
        return None if "\0" in text else TextFile(text)
    if any(control in content for control in _CONTROLS):
        return None
    looks = ((_CHINESE, _looks_chinese), (_ONE_BYTE, _looks_western))
    texts = ((encoding, _text(content, encoding, is_cut)) for encoding, is_so in looks if is_so(content))
    return next((TextFile(text, encoding) for encoding, text in texts if text is not None), None)


def number_lines(lines: list[str], first: int = 1, most_characters: int = 20_000) -> str:
    """Return `lines` with their numbers from `first` on, as many as fit into `most_characters`."""
    shown: list[str] = []
    for number, line in enumerate(lines, start=first):
        row = f"{number:>5}\t{_shorten_line(line)}"
        most_characters -= len(row) + 1
        if most_characters < 0:
            shown.append(f"[cut: lines {number} to {first + len(lines) - 1} are not shown]")
            break
        shown.append(row)
    return "\n".join(shown)


def _shorten_line(line: str) -> str:
    if len(line) <= LINE_CHARACTERS:
        return line
    return f"{line[:LINE_CHARACTERS]}… [{len(line) - LINE_CHARACTERS} more characters]"


def _text(content: bytes, encoding: str, is_cut: bool) -> str | None:
    try:
        return codecs.getincrementaldecoder(encoding)().decode(content, final=not is_cut)
    except UnicodeDecodeError:
        return None


def _looks_western(content: bytes) -> bool:
    return len(content.translate(None, _ASCII)) <= (1 - _LEAST_ASCII) * len(content)


def _looks_chinese(content: bytes) -> bool:
    pairs = [match[0] for match in islice(_PAIR.finditer(content), _SAMPLED_PAIRS)]
    common = sum(_COMMON.match(pair) is not None for pair in pairs)
    later = sum(_LATER.match(pair) is not None for pair in pairs)
    is_korean = len(pairs) >= _MIN_PAIRS and later < _LEAST_LATER * len(pairs)
    return 0 < _LEAST_COMMON * len(pairs) <= common and not is_korean


def escape_unprintable(path: str) -> str:
    """Return `path` with unprintable characters escaped, so that it cannot imitate several lines."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in path)


PIECE_CHARACTERS = 20_000
# The beginning of a file determines its encoding.
_HEAD_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class LinePiece:
    """A line with its line end; of a line longer than a piece, the part from `start` on.

    `line` counts from 1, `start` is the number of characters before the piece in its line.
    """

    line: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class TextPieces:
    """The pieces of an open text file, read once from the beginning; invalid bytes become U+FFFD. Blocks."""

    encoding: str
    source: io.TextIOWrapper

    def __iter__(self) -> Iterator[LinePiece]:
        line, start = 1, 0
        while text := self.source.readline(PIECE_CHARACTERS):
            yield LinePiece(line, start, text)
            line, start = (line + 1, 0) if text.endswith("\n") else (line, start + len(text))


def open_pieces(source: BinaryIO) -> TextPieces | None:
    """Return the pieces of an open file, which the caller closes; None for a binary file."""
    head = source.read(_HEAD_BYTES)
    file = decode_text(head, is_cut=os.fstat(source.fileno()).st_size > len(head))
    if file is None:
        return None
    source.seek(len(file.bom))
    return TextPieces(file.encoding, io.TextIOWrapper(source, file.encoding, errors="replace", newline="\n"))


PAGE_BYTES = 20_000
READ_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class LineRange:
    """A range of lines, counted from 1; it starts at a character of the first line.

    `end_line` 0 is the last line.
    """

    start_line: int = 1
    end_line: int = 0
    start_character: int = 1

    def is_over(self, piece: LinePiece) -> bool:
        """Return whether the piece is after the range."""
        return 0 < self.end_line < piece.line

    def of(self, piece: LinePiece) -> str:
        """Return the part of the piece that is not before the range."""
        if piece.line != self.start_line:
            return piece.text if piece.line > self.start_line else ""
        return piece.text[max(0, self.start_character - 1 - piece.start) :]


@dataclass(slots=True)
class _Page:
    """A page of a file: the text so far, the remaining bytes, and where it was cut."""

    left: int = PAGE_BYTES
    shown: list[str] = field(default_factory=list[str])
    cut: str = ""

    def add(self, piece: LinePiece, text: str) -> None:
        """Add `text` if it fits; a line is cut only if it is the first of the page."""
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


def read_page(workspace: Workspace, path: str, wanted: LineRange) -> str:
    """Return the wanted lines of a file, cut to a page with a hint how to read on; blocks on disk.

    Raises `FileError` if the range is empty, or too far inside of a large file to be reached in time.
    """
    wanted = LineRange(max(1, wanted.start_line), wanted.end_line, max(1, wanted.start_character))
    with workspace.open(path) as source:
        pieces = open_pieces(source)
        if pieces is None:
            size = workspace.size(path)
            return f"[{path} is a binary file of {size} bytes; work on it with Python instead]"
        return _format_page(pieces, wanted, path)


def read_text_page(text: str, path: str, wanted: LineRange) -> str:
    """Return the wanted lines of a text, which was read from `path`, as `read_page` does."""
    wanted = LineRange(max(1, wanted.start_line), wanted.end_line, max(1, wanted.start_character))
    source = io.BytesIO(fix_surrogates(text).encode())
    return _format_page(TextPieces("utf-8", io.TextIOWrapper(source, "utf-8", newline="\n")), wanted, path)


def _format_page(pieces: TextPieces, wanted: LineRange, path: str) -> str:
    shown, lines = _collect_page(pieces, wanted, path)
    if not shown.shown and not shown.cut:
        if lines == 0:
            return f"[{path} is empty]"
        raise FileError(f"{path!r} has {lines} lines; nothing is there from {_describe_range(wanted)}.")
    text = "".join(shown.shown)
    if wanted != LineRange():
        text = text.removesuffix("\n").removesuffix("\r")
    notes = [shown.cut] if shown.cut else []
    if pieces.encoding != "utf-8" and wanted.start_line == 1:
        notes.append(f"[the file's encoding is {pieces.encoding}]")
    return "\n".join([text, *notes])


def _collect_page(pieces: TextPieces, wanted: LineRange, path: str) -> tuple[_Page, int]:
    """Return the page, and the number of the last line that was read."""
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


def _describe_range(wanted: LineRange) -> str:
    character = f", character {wanted.start_character}," if wanted.start_character > 1 else ""
    return f"line {wanted.start_line}{character} to {wanted.end_line or 'the end'}"
