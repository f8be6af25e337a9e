"""The files of a folder of documents, and the place of the database of its index."""

import os
import re
import stat
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from maniple.reading import MAX_DOCUMENT_BYTES
from maniple.search.folder_index import IndexStamp, database_name

MAX_FILES = 50_000
MAX_FILE_BYTES = MAX_DOCUMENT_BYTES
_LOCK = "lock"
_NAMED = 3


@dataclass(slots=True)
class FolderListing:
    """The documents below a folder by relative POSIX path, and what is left out."""

    files: dict[str, IndexStamp] = field(default_factory=dict)
    too_large: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    """Symbolic links to files and folders, which are never followed."""
    beyond: int = 0
    """The documents after the first `MAX_FILES`."""
    others: Counter[str] = field(default_factory=Counter)
    """The number of files by suffix that are of no format that is read."""

    def describe_left_out(self) -> str:
        """Return sentences about what is left out; "" for nothing. Hidden files are not mentioned."""
        parts = list[str]()
        if self.beyond:
            parts.append(f"{self.beyond:,} files after the first {MAX_FILES:,} are left out.")
        if self.too_large:
            parts.append(f"Over {MAX_FILE_BYTES / 1e6:.0f} MB and left out: {name_some(self.too_large)}.")
        if self.links:
            parts.append(f"Symbolic links are not followed: {name_some(self.links)}.")
        if self.others:
            named = ", ".join(
                f"{suffix or 'no suffix'} ({count:,})" for suffix, count in self.others.most_common(_NAMED)
            )
            more = f" and {len(self.others) - _NAMED} more" if len(self.others) > _NAMED else ""
            parts.append(f"Files of other formats are left out: {named}{more}.")
        return " ".join(parts)


def name_some(names: list[str], most: int = _NAMED) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def list_folder(folder: Path, suffixes: frozenset[str]) -> FolderListing:
    """Return the regular files with these suffixes. Blocks on disk.

    Hidden files and folders, symbolic links, other suffixes, files over `MAX_FILE_BYTES` and those after the
    first `MAX_FILES` are left out.
    """
    listing = FolderListing()
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        place = Path(parent)
        for name in folders:
            if (place / name).is_symlink():
                listing.links.append((place / name).relative_to(folder).as_posix())
        for name in sorted(names):
            if not name.startswith("."):
                _list_file(listing, folder, place / name, suffixes)
    return listing


def _list_file(listing: FolderListing, folder: Path, path: Path, suffixes: frozenset[str]) -> None:
    suffix, name = path.suffix.lower(), path.relative_to(folder).as_posix()
    if suffix not in suffixes:
        listing.others[suffix] += 1
        return
    try:
        status = path.lstat()
    except OSError:
        return  # it was deleted meanwhile
    if stat.S_ISLNK(status.st_mode):
        listing.links.append(name)
    elif not stat.S_ISREG(status.st_mode):
        listing.others[suffix] += 1
    elif status.st_size > MAX_FILE_BYTES:
        listing.too_large.append(name)
    elif len(listing.files) == MAX_FILES:
        listing.beyond += 1
    else:
        listing.files[name] = IndexStamp(status.st_mtime_ns, status.st_size)


def read_file_below(folder: Path, name: str) -> bytes:
    """Return the content of the regular file `name`; raises `OSError`. Blocks on disk.

    No component of the path may be a symbolic link: each folder is opened relative to its parent.
    """
    *folders, last = name.split("/")
    if not all((*folders, last)) or any(part in (".", "..") for part in (*folders, last)):
        raise FileNotFoundError(name)
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in folders:
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
            os.close(parent)
            parent = below
        # Without O_NONBLOCK, opening a named pipe would block.
        file = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=parent)
    finally:
        os.close(parent)
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise FileNotFoundError(name)
        return opened.read(MAX_FILE_BYTES)


class IndexFiles:
    """The databases of an index in a folder of their own. Every method blocks on disk.

    A damaged database is never written again nor deleted while it is the newest: other processes may have it
    open. The next number takes its place, which they notice by `newest`.
    """

    def __init__(self, folder: Path | None) -> None:
        """Without a folder, or where it cannot be written, use a temporary one; `notice` says why."""
        self.notice = ""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        try:
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    pass
        except OSError as error:
            self.notice = (
                f"The index cannot be stored in {folder} ({error.strerror}): it is made again each time."
            )
            folder = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="maniple-folder-")
            folder = Path(self._temporary.name)
        self._folder = folder
        self._pattern = re.compile(rf"{re.escape(database_name())}-(\d+)\.db")

    @property
    def lock(self) -> Path:
        """The file that a process locks while it changes the index."""
        return self._folder / _LOCK

    def newest(self) -> Path:
        """Return the database to use; it may not exist yet."""
        return self._path(max(self._numbers(), default=1))

    def replace(self, damaged: Path) -> None:
        """Use another database from now on, unless another process has done so already. Needs the lock."""
        number = max(self._numbers(), default=1)
        if self._path(number) != damaged:
            return
        self._path(number + 1).touch(mode=0o600)
        for suffix in ("", "-wal", "-shm"):
            damaged.with_name(damaged.name + suffix).unlink(missing_ok=True)

    def close(self) -> None:
        """Delete a temporary folder."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _numbers(self) -> list[int]:
        found = (self._pattern.fullmatch(path.name) for path in self._folder.iterdir())
        return [int(one[1]) for one in found if one]

    def _path(self, number: int) -> Path:
        return self._folder / f"{database_name()}-{number}.db"
