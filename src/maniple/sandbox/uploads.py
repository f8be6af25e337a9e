"""The records of uploads, and what the user is told about those that are not stored."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from maniple.errors import FileError
from maniple.text import counted, file_size, shorten

_NAMED_FILES = 3
_NAME_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file: its path in the workspace, bytes, and SHA-256 in hex."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredUpload:
    """An upload, and whether it replaced a file of the same name."""

    upload: Upload
    replaced: bool


def describe_excess(sizes: Mapping[str, int], room: int) -> str:
    """Return which files do not fit into `room` bytes: those that no other is to blame for, else all."""
    largest = sorted(sizes, key=lambda path: -sizes[path])
    too_large = [path for path in largest if sizes[path] > room]
    shown = (too_large or largest)[:_NAMED_FILES]
    named = ", ".join(f"{_quoted(path)} ({file_size(sizes[path])})" for path in shown)
    if too_large:
        more = len(too_large) - len(shown)
        others = f" and {counted(more, 'more file')}" if more else ""
        verb = "does" if len(too_large) == 1 else "do"
        return f"{named}{others} {verb} not fit: there is room for {file_size(room)}."
    together = f"The {counted(len(sizes), 'file')} have {file_size(sum(sizes.values()))} together"
    return f"{together}, and there is room for {file_size(room)}. The largest: {named}."


@contextmanager
def naming_stored(stored: Sequence[StoredUpload], count: int) -> Iterator[None]:
    """Add to the error of one of `count` files which of them were stored before it."""
    try:
        yield
    except FileError as error:
        if count == 1:
            raise
        if not stored:
            raise type(error)(f"{error} None of the {count} files was stored.") from error
        named = ", ".join(_quoted(one.upload.path) for one in stored[:_NAMED_FILES])
        more = f" and {len(stored) - _NAMED_FILES} more" if len(stored) > _NAMED_FILES else ""
        raise type(error)(
            f"{error} Of the {count} files, {len(stored)} are stored: {named}{more}. The others are not."
        ) from error


def _quoted(path: str) -> str:
    return repr(shorten(path, _NAME_CHARACTERS))
