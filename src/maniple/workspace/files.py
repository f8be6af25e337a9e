"""The workspace of one thread: the files that its tools and its code work with."""

import errno
import os
import stat
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal

from maniple.errors import FileError, WorkspaceFull
from maniple.workspace.account import give_away
from maniple.workspace.mirrors import MIRROR_FOLDERS, Mirrors, ReadOnlyMount, is_team_record
from maniple.workspace.safe_open import (
    DRAFT,
    MAX_DEPTH,
    TO_CHANGE,
    allow_owner,
    open_directory,
    open_folder,
    open_regular,
    remove_tree,
    rename_to_free_name,
    replace_file,
    split_path,
)

# A listing also passes directories, links and special files.
_ENTRIES_PER_FILE = 10
_COUNTED_ENTRIES = 50_000
_PIECE_BYTES = 1024 * 1024
_MAX_TREE_ENTRIES = 20_000
"""The most files and folders of a folder that is copied or stored."""


EntryKind = Literal["file", "folder", "link", "other"]


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """A file, folder, link or special file; `path` is relative to the folder that was listed."""

    path: str
    kind: EntryKind
    size: int
    is_read_only: bool
    """Whether it is a file without write permission."""


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first bytes of a file that has `size` bytes."""

    content: bytes
    size: int


class NameTaken(FileError):
    """Something has the name that a new file should get."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A thread's directory. Every method blocks on disk and raises `FileError`; call them in a thread.

    Paths are relative to the workspace, or begin with /workspace as in sandboxed code. `max_bytes` limits all
    files together after each write of the host. What `mirrors` has is read there and only there.
    """

    path: Path
    max_file_bytes: int
    max_bytes: int | None = None
    mirrors: Mirrors | None = None

    def protect_mirrors(self) -> None:
        """Take the mirrors out of the reach of code; called before code runs. Raises `FileError`."""
        if self.mirrors is not None:
            with _translate_errors(str(self.mirrors.folder), "created"):
                self.mirrors.adopt(self.path)

    def mounts(self) -> list[ReadOnlyMount]:
        """Return the folders that a sandbox mounts over those of the workspace; raises `OSError`."""
        return list(self.mirrors.mounts(self.path)) if self.mirrors is not None else []

    def _root(self, parts: tuple[str, ...]) -> Path:
        """Return the folder in which a path is."""
        return self.mirrors.folder if self.mirrors is not None and self.mirrors.holds(parts) else self.path

    @contextmanager
    def _folder(self, parents: tuple[str, ...], name: str, *, make: bool = False) -> Iterator[int]:
        """Yield the descriptor of the folder that has, or will have, what is named; raises `OSError`."""
        with open_directory(self._root((*parents, name)), parents, make=make) as directory:
            yield directory

    def check_changeable(self, path: str) -> None:
        """Raise `FileError` for a path that only the team itself may write."""
        parts = split_path(path)
        if self.mirrors is None:
            return
        if is_team_record("/".join(parts)):
            raise FileError(f"{path!r} is a name of the team's own records, read-only; choose another name.")
        if len(parts) == 1 and self.mirrors.holds(parts):
            raise FileError(f"{path!r} is the folder of the team's own records, read-only; name files in it.")

    def read(self, path: str, max_bytes: int) -> FileHead:
        """Return the first `max_bytes` of a file."""
        with self.open(path) as file:
            return FileHead(file.read(max_bytes), os.fstat(file.fileno()).st_size)

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; the caller closes it."""
        parents, name = _split(path)
        with (
            _translate_errors(path, "read"),
            self._folder(parents, name) as directory,
            open_regular(name, directory) as descriptor,
        ):
            return os.fdopen(os.dup(descriptor), "rb")

    def size(self, path: str) -> int | None:
        """Return the bytes of a file; None when there is no readable one."""
        with suppress(FileError), self.open(path) as file:
            return os.fstat(file.fileno()).st_size
        return None

    def write(self, path: str, content: bytes) -> None:
        """Create or replace a file and its parent directories; on failure an old file is unchanged."""
        if len(content) > self.max_file_bytes:
            raise FileError(f"{path!r} would have {len(content)} bytes; the limit is {self.max_file_bytes}.")
        self.write_pieces(path, [content], len(content))

    def create(self, path: str, content: bytes) -> None:
        """Create a file and its parent directories; raises `NameTaken` if something has this name."""
        if len(content) > self.max_file_bytes:
            raise FileError(f"{path!r} would have {len(content)} bytes; the limit is {self.max_file_bytes}.")
        self.check_room(len(content))
        self._store(path, [content], None, is_new=True)

    def write_read_only(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Write a file without write permission, so that code does not change it by mistake.

        Mirrors are written where neither code nor file tools can change them.
        """
        parts, mode = split_path(path), 0o555 if executable else 0o444
        if self.mirrors is None or not is_team_record("/".join(parts)):
            self._replace(path, [content], len(content), mode)
            return
        self.check_room(len(content) - (self.size(path) or 0))
        self.protect_mirrors()
        with _translate_errors(path, "written"):
            self.mirrors.write(parts, content)
        if self.mirrors.copies:
            # Code may have put something in the way; nothing depends on the copy.
            with suppress(FileError, OSError), open_directory(self.path, parts[:-1], make=True) as directory:
                allow_owner(directory, TO_CHANGE)
                replace_file(parts[-1], directory, [content], mode)

    def is_read_only(self, path: str) -> bool:
        """Return whether this is a file without write permission."""
        with suppress(FileError), self.open(path) as file:
            return not os.fstat(file.fileno()).st_mode & 0o222
        return False

    def write_pieces(self, path: str, pieces: Iterable[bytes], size: int) -> None:
        """Write a file from pieces of `size` bytes together, which need not fit in memory."""
        self._replace(path, pieces, size, None)

    def write_checked(self, path: str, pieces: Iterable[bytes]) -> None:
        """Write a file from pieces for which the caller has checked the room."""
        self._store(path, pieces, None)

    def _replace(self, path: str, pieces: Iterable[bytes], size: int, mode: int | None) -> None:
        self.check_room(size - (self.size(path) or 0))
        self._store(path, pieces, mode)

    def _store(self, path: str, pieces: Iterable[bytes], mode: int | None, *, is_new: bool = False) -> None:
        self.check_changeable(path)
        parents, name = _split(path)
        root = self._root((*parents, name))
        with _translate_errors(path, "written"), open_directory(root, parents, make=True) as directory:
            allow_owner(directory, TO_CHANGE)
            replace_file(name, directory, pieces, mode, is_new=is_new)

    def check_room(self, more: int) -> None:
        """Raise `WorkspaceFull` when the workspace cannot take `more` bytes."""
        if self.max_bytes is None or more <= 0:
            return
        used = self.used_bytes()
        if used + more > self.max_bytes:
            raise WorkspaceFull(
                f"The workspace holds {used} bytes and may hold {self.max_bytes}: {more} more do not fit. "
                "Delete what is not needed, or write an empty text over it (sandbox.disk_mb is the limit)."
            )

    def used_bytes(self) -> int:
        """Return the bytes of all files together."""
        return sum(found.st_size for _, found in self._walk((), _COUNTED_ENTRIES))

    def delete(self, path: str) -> None:
        """Remove a file, or the link itself."""
        self.check_changeable(path)
        parents, name = _split(path)
        with _translate_errors(path, "deleted"), self._folder(parents, name) as directory:
            allow_owner(directory, TO_CHANGE)
            os.unlink(name, dir_fd=directory)

    def is_missing(self, path: str) -> bool:
        """Return whether nothing has this name."""
        parents, name = _split(path)
        try:
            with self._folder(parents, name) as directory:
                os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return True
        except OSError:
            pass  # something else is in the way; reading or writing reports it
        return False

    def is_directory(self, path: str) -> bool:
        """Return whether this is a directory that can be opened; the workspace itself is one."""
        parts = split_path(path)
        with suppress(OSError), open_directory(self._root(parts), parts):
            return True
        return self.mirrors is not None and self.mirrors.shows(parts)

    def kind(self, path: str) -> EntryKind | None:
        """Return what has this name, without following a link; None for nothing, and behind a link."""
        if not split_path(path):
            return "folder"
        found = self.entry(path)
        return found.kind if found is not None else None

    def entry(self, path: str) -> TreeEntry | None:
        """Return the file, folder, link or special file of this name; None as `kind`."""
        parents, name = _split(path)
        parts = (*parents, name)
        has_mirrors = self.mirrors is not None and self.mirrors.shows(parts)
        root = self.mirrors.folder if self.mirrors is not None and has_mirrors else self._root(parts)
        try:
            with open_directory(root, parents) as directory:
                return _describe(path, os.stat(name, dir_fd=directory, follow_symlinks=False))
        except OSError:
            return None

    def tree(self, path: str) -> list[TreeEntry]:
        """Return what is in a folder and in those below it, folders before their content, sorted.

        Files that are not complete are omitted. Raises `FileError` if there is too much to be listed in full.
        """
        found: list[TreeEntry] = []
        pending = [split_path(path)]
        first = len(pending[0])
        while pending:
            above = pending.pop()
            for name, status in self._entries(above, _MAX_TREE_ENTRIES + 1):
                if name.startswith(DRAFT):
                    continue
                child = (*above, name)
                found.append(_describe("/".join(child[first:]), status))
                if found[-1].kind == "folder":
                    pending.append(child)
            if len(found) > _MAX_TREE_ENTRIES or any(len(one) > MAX_DEPTH for one in pending):
                limits = f"{_MAX_TREE_ENTRIES} files and folders, or {MAX_DEPTH} levels"
                raise FileError(f"{path or 'The workspace'!r} has more than {limits}.")
        return sorted(found, key=lambda entry: entry.path.split("/"))

    def make_folder(self, path: str) -> None:
        """Create a folder; those above it must exist, and it must not."""
        self.check_changeable(path)
        parents, name = _split(path)
        with _translate_errors(path, "created"), self._folder(parents, name) as directory:
            allow_owner(directory, TO_CHANGE)
            os.mkdir(name, 0o755, dir_fd=directory)
            made = open_folder(name, directory)
            try:
                give_away(made)
            finally:
                os.close(made)

    def remove_folder(self, path: str) -> bool:
        """Remove a folder if it is empty; return whether it was."""
        self.check_changeable(path)
        parents, name = _split(path)
        try:
            with self._folder(parents, name) as directory:
                allow_owner(directory, TO_CHANGE)
                os.rmdir(name, dir_fd=directory)
        except OSError:
            return False
        return True

    def move(self, source: str, destination: str, *, make_parents: bool = False) -> None:
        """Rename a file, a folder, or the link itself; raises `FileError` if something has the new name.

        The folders above it must exist, or are made with `make_parents`.
        """
        old_parents, old_name = _split(source)
        new_parents, new_name = _split(destination)
        self.check_changeable(source)
        self.check_changeable(destination)
        with (
            _translate_errors(source, "moved"),
            self._folder(old_parents, old_name) as old,
            self._folder(new_parents, new_name, make=make_parents) as new,
        ):
            allow_owner(old, TO_CHANGE)
            allow_owner(new, TO_CHANGE)
            if _kind(os.stat(old_name, dir_fd=old, follow_symlinks=False)) == "folder":
                os.close(open_folder(old_name, old, TO_CHANGE))  # a closed folder cannot be moved
            try:
                rename_to_free_name(old_name, new_name, old, new)
            except FileExistsError:
                raise FileError(
                    f"{destination!r} exists, and is not replaced. Choose another name."
                ) from None

    def copy(self, source: str, destination: str) -> None:
        """Copy a file, or a folder with all in it, where links stay links. The caller checks the room.

        On failure a part of the copy may be left.
        """
        entries = self.tree(source) if self.kind(source) == "folder" else None
        if entries is None:
            self._copy_file(source, destination)
            return
        self.make_folder(destination)
        for entry in entries:
            below = f"{source}/{entry.path}", f"{destination}/{entry.path}"
            match entry.kind:
                case "folder":
                    self.make_folder(below[1])
                case "file":
                    self._copy_file(*below)
                case "link":
                    self._make_link(below[1], self._read_link(below[0]))
                case "other":
                    raise FileError(f"{below[0]!r} is not an ordinary file, so it is not copied.")

    def copy_into(self, other: "Workspace", entry: TreeEntry) -> None:
        """Copy an entry of `tree("")` to a workspace that no code has seen; a file keeps its times and mode.

        Raises `FileError` for what is no file, folder or link, and for what cannot be read.
        """
        match entry.kind:
            case "folder":
                other.make_folder(entry.path)
            case "link":
                other._make_link(entry.path, self._read_link(entry.path))
            case "file":
                with self.open(entry.path) as file:
                    found = os.fstat(file.fileno())
                    other._store(
                        entry.path, iter(lambda: file.read(_PIECE_BYTES), b""), found.st_mode & 0o777
                    )
                times = (found.st_atime_ns, found.st_mtime_ns)
                os.utime(other.path / entry.path, ns=times, follow_symlinks=False)
            case "other":
                raise FileError(f"{entry.path!r} is not an ordinary file, so it is not copied.")

    def _copy_file(self, source: str, destination: str) -> None:
        with self.open(source) as file:
            mode = 0o644 | os.fstat(file.fileno()).st_mode & 0o111
            self._store(destination, iter(lambda: file.read(_PIECE_BYTES), b""), mode)

    def _read_link(self, path: str) -> str:
        parents, name = _split(path)
        with _translate_errors(path, "read"), self._folder(parents, name) as directory:
            return os.readlink(name, dir_fd=directory)

    def _make_link(self, path: str, target: str) -> None:
        parents, name = _split(path)
        self.check_changeable(path)
        with _translate_errors(path, "written"), self._folder(parents, name) as directory:
            allow_owner(directory, TO_CHANGE)
            os.symlink(target, name, dir_fd=directory)

    def remove(self, path: str) -> None:
        """Remove a file, a link, or a top-level folder with its contents; nothing may write meanwhile."""
        if self.kind(path) != "folder":
            self.delete(path)
            return
        try:
            remove_tree(self.path / path)
        except OSError as error:
            raise FileError(f"{path!r} could not be deleted: {error.strerror}.") from error

    def pack(self, path: str, archive: tarfile.TarFile, *, most_bytes: int) -> None:
        """Add a file, a link, or a folder with all in it to an archive, below the name `.`.

        Raises `FileError` if it has more bytes, or something that cannot be read.
        """
        entries = self.tree(path) if self.kind(path) == "folder" else []
        if sum(entry.size for entry in entries if entry.kind == "file") > most_bytes:
            raise FileError(f"{path!r} has more than {most_bytes} bytes.")
        for name in (path, *(f"{path}/{entry.path}" for entry in entries)):
            self._pack_one(name, "." + name[len(path) :], archive, most_bytes)

    def _pack_one(self, path: str, name: str, archive: tarfile.TarFile, most_bytes: int) -> None:
        info = tarfile.TarInfo(name)
        match self.kind(path):
            case "folder":
                info.type, info.mode = tarfile.DIRTYPE, 0o755
                archive.addfile(info)
            case "link":
                info.type, info.linkname = tarfile.SYMTYPE, self._read_link(path)
                archive.addfile(info)
            case "file":
                with self.open(path) as file:
                    found = os.fstat(file.fileno())
                    if found.st_size > most_bytes:
                        raise FileError(f"{path!r} has more than {most_bytes} bytes.")
                    info.size, info.mode = found.st_size, 0o644 | found.st_mode & 0o111
                    archive.addfile(info, file)
            case _:
                raise FileError(f"{path!r} is not an ordinary file.")

    def unpack(self, archive: tarfile.TarFile, path: str) -> None:
        """Write what `pack` stored under a name that nothing has. The caller checks the room."""
        for info in archive:
            name = path + info.name.removeprefix(".")
            if info.isdir():
                self.make_folder(name)
            elif info.issym():
                self._make_link(name, info.linkname)
            elif (file := archive.extractfile(info)) is not None:
                self._store(name, iter(lambda file=file: file.read(_PIECE_BYTES), b""), info.mode)

    def files(self, limit: int, beneath: str = "") -> list[tuple[str, int]]:
        """Return (path, bytes) of up to `limit` regular files, sorted.

        Links and special files are omitted.
        """
        return sorted((path, found.st_size) for path, found in self._regular(limit, split_path(beneath)))

    def bytes_of(self, path: str) -> int:
        """Return the bytes of a file, or of all files below a folder."""
        if self.kind(path) == "folder":
            return sum(one.size for one in self.tree(path) if one.kind == "file")
        return self.size(path) or 0

    def list_newest(self, limit: int, beneath: str = "") -> list[tuple[str, int, int]]:
        """Return (path, bytes, change time in nanoseconds) of up to `limit` regular files, newest first.

        It is the ctime of the kernel, which code cannot set.
        """
        walked = self._regular(limit, split_path(beneath))
        found = sorted(walked, key=lambda one: one[1].st_ctime_ns, reverse=True)
        return [(path, status.st_size, status.st_ctime_ns) for path, status in found]

    def stamps(self, limit: int) -> set[tuple[str, int, int]]:
        """Return (path, bytes, modification time in nanoseconds) of the files that `files` returns."""
        return {(path, found.st_size, found.st_mtime_ns) for path, found in self._regular(limit)}

    def _regular(self, limit: int, parts: tuple[str, ...] = ()) -> Iterator[tuple[str, os.stat_result]]:
        walked = self._walk(parts, _ENTRIES_PER_FILE * limit)
        whole = (
            (path, found)
            for path, found in walked
            if not (path.startswith(DRAFT) or path.rpartition("/")[2].startswith(DRAFT))
        )
        return islice(whole, limit)

    def _walk(self, parts: tuple[str, ...], entries_left: int) -> Iterator[tuple[str, os.stat_result]]:
        """Walk breadth first with one open directory at a time: a deep tree must not use up descriptors."""
        pending: list[tuple[str, ...]] = [parts]
        for above in pending:
            entries = self._entries(above, entries_left)
            entries_left -= len(entries)
            for name, found in entries:
                child = (*above, name)
                if stat.S_ISREG(found.st_mode):
                    yield "/".join(child), found
                elif stat.S_ISDIR(found.st_mode) and len(child) < MAX_DEPTH:
                    pending.append(child)

    def _entries(self, parts: tuple[str, ...], limit: int) -> list[tuple[str, os.stat_result]]:
        mirrors = self.mirrors
        if mirrors is None or (parts and parts[0] not in MIRROR_FOLDERS):
            return _scan(self.path, parts, limit)
        own = {
            name: status
            for name, status in _scan(self.path, parts, limit)
            if not mirrors.holds((*parts, name))
        }
        mirrored = {
            name: status
            for name, status in _scan(mirrors.folder, parts, limit)
            if parts or mirrors.shows((name,))
        }
        return list((own | mirrored).items())[:limit]


def _scan(root: Path, parts: tuple[str, ...], limit: int) -> list[tuple[str, os.stat_result]]:
    found: list[tuple[str, os.stat_result]] = []
    # Files that vanish, and folders that are closed, meanwhile are not listed.
    with suppress(OSError), open_directory(root, parts) as directory, os.scandir(directory) as entries:
        for entry in islice(entries, limit):
            with suppress(OSError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return found


def list_archive(archive: Path) -> tuple[dict[str, EntryKind], int]:
    """Return what an archive of `Workspace.pack` holds, "" for its top, and the bytes of its files."""
    kinds: dict[str, EntryKind] = {}
    size = 0
    try:
        with tarfile.open(archive) as stored:
            for info in stored:
                kind: EntryKind = "folder" if info.isdir() else "link" if info.issym() else "file"
                kinds[info.name.removeprefix(".")] = kind
                size += info.size
    except (OSError, tarfile.TarError) as error:
        raise FileError(f"What was removed cannot be read back: {error}.") from error
    return kinds, size


def _kind(status: os.stat_result) -> EntryKind:
    if stat.S_ISREG(status.st_mode):
        return "file"
    if stat.S_ISDIR(status.st_mode):
        return "folder"
    return "link" if stat.S_ISLNK(status.st_mode) else "other"


def _describe(path: str, status: os.stat_result) -> TreeEntry:
    kind, is_read_only = _kind(status), not status.st_mode & 0o222
    return TreeEntry(path, kind, status.st_size, is_read_only and kind == "file")


def _split(path: str) -> tuple[tuple[str, ...], str]:
    parts = split_path(path)
    if not parts:
        raise FileError(f"{path!r} is the workspace itself; name a file in it.")
    return parts[:-1], parts[-1]


@contextmanager
def _translate_errors(path: str, done: str) -> Iterator[None]:
    """Raise a system error again as `FileError`, with a sentence that a model can act on."""
    try:
        yield
    except FileNotFoundError:
        raise FileError(f"There is no file {path!r} in the workspace.") from None
    except IsADirectoryError:
        raise FileError(f"{path!r} is a directory; name a file.") from None
    except FileExistsError:
        raise NameTaken(f"{path!r} exists. Read it first, then change or replace it.") from None
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise FileError(f"{path!r} leads through a link or a file; neither is followed.") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = f"{path!r} could not be {done}: the disk of the workspaces is full ({error.strerror})."
            raise WorkspaceFull(f"{reason} Free space on it and try again.") from error
        raise FileError(f"{path!r} could not be {done}: {error.strerror}.") from error
