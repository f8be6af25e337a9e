"""The workspace of each thread, and the records beside it: edits and uploads, out of reach of its code."""

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from maniple.errors import FileError, WorkspaceFull
from maniple.sandbox.host import give_away
from maniple.sandbox.safe_open import (
    DRAFT,
    MAX_DEPTH,
    TO_CHANGE,
    allow_owner,
    open_directory,
    open_folder,
    open_regular,
    remove_tree,
    replace_file,
    split_path,
)
from maniple.types import Unavailable

_READABLE_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_UNIQUE_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
BESIDE = ".beside"
"""The folder of the records, next to the workspaces; no workspace's name begins with a dot."""
# A listing also passes directories, links and special files.
_ENTRIES_PER_FILE = 10
_COUNTED_ENTRIES = 50_000
MOST_UPLOADS = 1_000
NAME_BYTES = 200
_PIECE_BYTES = 1024 * 1024
_ENDS = re.compile(r"\A[\s.]+|[\s.]+\Z")
# Control characters, lone surrogates, and marks that reverse the text direction (`gpj.exe` as `exe.jpg`).
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
STEPS_OF_A_FILE = 20
STEPS = 500
STORED_BYTES = 20_000_000
EDITED_BYTES = 2_000_000
_GONE = "-"
_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class FileHead:
    """The first bytes of a file that has `size` bytes."""

    content: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Workspace:
    """A thread's directory. Every method blocks on disk and raises `FileError`; call them in a thread.

    Paths are relative to the workspace, or begin with /workspace as in sandboxed code. `max_bytes` limits all
    files together after each write of the host.
    """

    path: Path
    max_file_bytes: int
    max_bytes: int | None = None

    def read(self, path: str, max_bytes: int) -> FileHead:
        """Return the first `max_bytes` of a file."""
        with self.open(path) as file:
            return FileHead(file.read(max_bytes), os.fstat(file.fileno()).st_size)

    def open(self, path: str) -> BinaryIO:
        """Open a file for reading; the caller closes it."""
        parents, name = _split(path)
        with (
            _translate_errors(path, "read"),
            open_directory(self.path, parents) as directory,
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

    def write_read_only(self, path: str, content: bytes, *, executable: bool = False) -> None:
        """Write a file without write permission, so that code does not change it by mistake."""
        self._replace(path, [content], len(content), 0o555 if executable else 0o444)

    def is_read_only(self, path: str) -> bool:
        """Return whether this is a file without write permission."""
        with suppress(FileError), self.open(path) as file:
            return not os.fstat(file.fileno()).st_mode & 0o222
        return False

    def write_pieces(self, path: str, pieces: Iterable[bytes], size: int) -> None:
        """Write a file from pieces of `size` bytes together, which need not fit in memory."""
        self._replace(path, pieces, size, None)

    def _replace(self, path: str, pieces: Iterable[bytes], size: int, mode: int | None) -> None:
        parents, name = _split(path)
        self.check_room(size - (self.size(path) or 0))
        with _translate_errors(path, "written"), open_directory(self.path, parents, make=True) as directory:
            allow_owner(directory, TO_CHANGE)
            replace_file(name, directory, pieces, mode)

    def check_room(self, more: int) -> None:
        """Raise `WorkspaceFull` when the workspace cannot take `more` bytes."""
        if self.max_bytes is None or more <= 0:
            return
        used = sum(found.st_size for _, found in self._walk((), _COUNTED_ENTRIES))
        if used + more > self.max_bytes:
            raise WorkspaceFull(
                f"The workspace holds {used} bytes and may hold {self.max_bytes}: {more} more do not fit. "
                "Delete what is not needed, or write an empty text over it (sandbox.disk_mb is the limit)."
            )

    def delete(self, path: str) -> None:
        """Remove a file, or the link itself."""
        parents, name = _split(path)
        with _translate_errors(path, "deleted"), open_directory(self.path, parents) as directory:
            allow_owner(directory, TO_CHANGE)
            os.unlink(name, dir_fd=directory)

    def is_missing(self, path: str) -> bool:
        """Return whether nothing has this name."""
        parents, name = _split(path)
        try:
            with open_directory(self.path, parents) as directory:
                os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return True
        except OSError:
            pass  # something else is in the way; reading or writing reports it
        return False

    def is_directory(self, path: str) -> bool:
        """Return whether this is a directory that can be opened; the workspace itself is one."""
        with suppress(OSError), open_directory(self.path, split_path(path)):
            return True
        return False

    def files(self, limit: int, beneath: str = "") -> list[tuple[str, int]]:
        """Return (path, bytes) of up to `limit` regular files, sorted.

        Links and special files are omitted.
        """
        return sorted((path, found.st_size) for path, found in self._regular(limit, split_path(beneath)))

    def list_newest(self, limit: int) -> list[tuple[str, int, int]]:
        """Return (path, bytes, change time in nanoseconds) of up to `limit` regular files, newest first.

        It is the ctime of the kernel, which code cannot set.
        """
        found = sorted(self._regular(limit), key=lambda one: one[1].st_ctime_ns, reverse=True)
        return [(path, status.st_size, status.st_ctime_ns) for path, status in found]

    def stamps(self, limit: int) -> set[tuple[str, int, int]]:
        """Return (path, bytes, modification time in nanoseconds) of the files that `files` returns."""
        return {(path, found.st_size, found.st_mtime_ns) for path, found in self._regular(limit)}

    def _regular(self, limit: int, parts: tuple[str, ...] = ()) -> Iterator[tuple[str, os.stat_result]]:
        walked = self._walk(parts, _ENTRIES_PER_FILE * limit)
        whole = ((path, found) for path, found in walked if not path.rpartition("/")[2].startswith(DRAFT))
        return islice(whole, limit)

    def _walk(self, parts: tuple[str, ...], entries_left: int) -> Iterator[tuple[str, os.stat_result]]:
        """Walk breadth first with one open directory at a time: a deep tree must not use up descriptors."""
        pending: list[tuple[str, ...]] = [parts]
        for above in pending:
            entries = self._entries(above, entries_left)
            entries_left -= len(entries)
            for name, found in entries:
                inside = (*above, name)
                if stat.S_ISREG(found.st_mode):
                    yield "/".join(inside), found
                elif stat.S_ISDIR(found.st_mode) and len(inside) < MAX_DEPTH:
                    pending.append(inside)

    def _entries(self, parts: tuple[str, ...], limit: int) -> list[tuple[str, os.stat_result]]:
        found: list[tuple[str, os.stat_result]] = []
        # Files that vanish, and folders that are closed, meanwhile are not listed.
        with (
            suppress(OSError),
            open_directory(self.path, parts) as directory,
            os.scandir(directory) as entries,
        ):
            for entry in islice(entries, limit):
                with suppress(OSError):
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return found


@dataclass(frozen=True, slots=True)
class WorkspaceListing:
    """The content of a workspace: `found` are (path in `folder`, bytes), sorted."""

    folder: Path
    found: tuple[tuple[str, int], ...]


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


@dataclass(frozen=True, slots=True)
class UploadStore:
    """The uploads of one thread. Every method blocks on disk.

    `records` is a folder outside the workspace with one small file per upload.
    """

    workspace: Workspace
    records: Path

    def add(self, files: Iterable[tuple[str, BinaryIO]]) -> list[StoredUpload]:
        """Copy open files, from their beginnings, to the `file_name` of each.

        A file of that name is replaced.
        Raises `FileError`, and `WorkspaceFull` before the first is copied if there is no room for all.
        """
        named = [(clean_file_name(name), source, source.seek(0, os.SEEK_END)) for name, source in files]
        self.workspace.check_room(sum(size - (self.workspace.size(path) or 0) for path, _, size in named))
        return [self._add(path, source, size) for path, source, size in named]

    def _add(self, path: str, source: BinaryIO, size: int) -> StoredUpload:
        source.seek(0)
        replaced = self.workspace.size(path) is not None
        digest = hashlib.sha256()
        self.workspace.write_pieces(path, _pieces(source, size, digest), size)
        upload = Upload(path, self.workspace.size(path) or 0, digest.hexdigest())
        self._record(upload)
        return StoredUpload(upload, replaced)

    def list_uploads(self) -> list[Upload]:
        """Return the uploads that still have their name and size in the workspace, oldest first."""
        return [one for one in self._recorded() if self.workspace.size(one.path) == one.size]

    def forget(self, path: str) -> None:
        """Remove the record of an upload; the file itself stays."""
        self._file(path).unlink(missing_ok=True)

    def _recorded(self) -> list[Upload]:
        found: list[tuple[int, Upload]] = []
        # An unreadable record is ignored: its file counts as one that the team made.
        with suppress(OSError), os.scandir(self.records) as entries:
            for entry in entries:
                with suppress(OSError, ValueError, TypeError):
                    record = Upload(**json.loads(Path(entry.path).read_bytes()))
                    found.append((entry.stat().st_mtime_ns, record))
        return [record for _, record in sorted(found, key=lambda one: (one[0], one[1].path))]

    def _record(self, upload: Upload) -> None:
        draft = self.records / f"{DRAFT}{os.urandom(8).hex()}"
        try:
            self.records.mkdir(mode=0o700, parents=True, exist_ok=True)
            if sum(1 for _ in self.records.iterdir()) < MOST_UPLOADS:
                draft.write_text(json.dumps(asdict(upload)), encoding="utf-8")
                draft.rename(self._file(upload.path))
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise FileError(f"{upload.path!r} could not be recorded: {error.strerror}.") from error

    def _file(self, path: str) -> Path:
        return self.records / hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()[:32]


Edit = Callable[[bytes | None], bytes]
"""Returns the new content for the old one, which is None for a missing file."""


@dataclass(frozen=True, slots=True)
class EditStep:
    """One edit: the content before (None for a missing file) and the SHA-256 of the content after it."""

    file: Path
    before: bytes | None
    after: str


@dataclass(frozen=True, slots=True)
class EditHistory:
    """The edits of one thread, one file each; the oldest are dropped first. Every method blocks on disk.

    An edit is recorded before it is made. A crash in between leaves a step that changed nothing, and `undo`
    skips it. The records survive a restart.
    """

    folder: Path

    def change(self, workspace: Workspace, path: str, edit: Edit) -> bytes | None:
        """Edit a file and return its previous content; raises `FileError` without changing the file.

        Edits of one thread are serialized across processes.
        """
        with self._locked():
            _refuse_read_only(workspace, path)
            before = _read_content(workspace, path)
            self._make(workspace, path, before, edit(before))
            return before

    def write(self, workspace: Workspace, path: str, content: bytes) -> None:
        """Replace the file of this name; the replacement of a file that is too large cannot be undone."""
        with self._locked():
            _refuse_read_only(workspace, path)
            if workspace.is_missing(path):
                self._make(workspace, path, None, content)
            elif workspace.size(path) in range(EDITED_BYTES + 1):
                self._make(workspace, path, _read_content(workspace, path), content)
            else:
                workspace.write(path, content)
                for file in self._files(_mark(path)):
                    file.unlink(missing_ok=True)

    def undo(self, workspace: Workspace, path: str) -> tuple[bytes, bytes | None]:
        """Undo the newest edit of a file; return the content before and after the undo.

        Raises `FileError` when there is no edit, or when the file was changed by other means since.
        """
        with self._locked():
            held = _read_content(workspace, path)
            for step in self._steps(path):
                if _digest(held) == step.after and held is not None:
                    if step.before is None:
                        workspace.delete(path)
                    else:
                        workspace.write(path, step.before)
                    step.file.unlink(missing_ok=True)
                    return held, step.before
                if held != step.before:
                    raise FileError(
                        f"{path!r} was changed by other means since its newest edit, so that is not undone. "
                        "View it and change it as it is now."
                    )
                step.file.unlink(missing_ok=True)
        raise FileError(f"There is no edit of {path!r} to undo.")

    def _make(self, workspace: Workspace, path: str, before: bytes | None, after: bytes) -> None:
        record = self._record_step(path, before, after)
        try:
            workspace.write(path, after)
        except FileError:
            record.unlink(missing_ok=True)
            raise

    def _steps(self, path: str) -> Iterator[EditStep]:
        """Yield the steps of a file, newest first."""
        for file in reversed(self._files(_mark(path))):
            after, _, rest = file.read_bytes().partition(b"\n")
            existed, _, before = rest.partition(b"\n")
            yield EditStep(file, None if existed == _GONE.encode() else before, after.decode())

    def _record_step(self, path: str, before: bytes | None, after: bytes) -> Path:
        files = self._files()
        number = int(files[-1].name.partition("-")[0]) + 1 if files else 1
        file = self.folder / f"{number:012}-{_mark(path)}"
        draft = self.folder / f"{DRAFT}{os.urandom(8).hex()}"
        head = f"{_digest(after)}\n{_GONE if before is None else '+'}\n".encode()
        try:
            with draft.open("wb") as target:
                target.write(head + (before or b""))
                target.flush()
                os.fsync(target.fileno())
            draft.rename(file)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise FileError(
                f"{path!r} is unchanged because its undo cannot be stored: {error.strerror}."
            ) from error
        self._drop_oldest(path)
        return file

    def _drop_oldest(self, path: str) -> None:
        for file in self._files(_mark(path))[:-STEPS_OF_A_FILE]:
            file.unlink(missing_ok=True)
        left, count = STORED_BYTES, 0
        for file in reversed(self._files()):
            left, count = left - file.stat().st_size, count + 1
            if count > 1 and (left < 0 or count > STEPS):
                file.unlink(missing_ok=True)

    def _files(self, mark: str = "") -> list[Path]:
        return sorted(
            file for file in self.folder.iterdir() if file.name[0].isdigit() and file.name.endswith(mark)
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FileError(f"Nothing can be edited: {self.folder}: {error.strerror}.") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


class Workspaces:
    """Hands out the workspaces in `root`, which is created with the first of them.

    `earlier` is the folder that several databases shared in former versions. A workspace that exists only
    there is used there if its key is a unique id.
    """

    def __init__(
        self,
        root: Path,
        earlier: Path | None = None,
        *,
        max_file_bytes: int = 10_000_000,
        max_bytes: int | None = None,
    ) -> None:
        self._root = root.absolute()
        self._earlier = earlier.absolute() if earlier is not None else None
        self._max_file_bytes = max_file_bytes
        self._max_bytes = max_bytes

    def open(self, key: str) -> Workspace:
        """Return the workspace of a thread and create it if missing.

        Any text is a valid key. Blocks on disk.
        """
        workspace = self.locate(key)
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            workspace.path.mkdir(mode=0o700, exist_ok=True)
            give_away(workspace.path)
            # Code may have closed it to the next session.
            os.close(open_folder(workspace.path, needed=TO_CHANGE))
        except OSError as error:
            raise FileError(f"{workspace.path} could not be created: {error.strerror}.") from error
        return workspace

    def files(self, key: str, limit: int) -> WorkspaceListing:
        """List a thread's workspace without creating it. Blocks on disk."""
        workspace = self.locate(key)
        return WorkspaceListing(workspace.path, tuple(workspace.files(limit)))

    def history(self, key: str) -> EditHistory:
        """Return the edits of the text editor in a workspace."""
        return EditHistory(self._beside(key) / "edits")

    def uploads(self, key: str) -> UploadStore:
        """Return the uploads of a workspace without creating it."""
        return UploadStore(self.locate(key), self._beside(key) / "uploads")

    def discard_if_empty(self, key: str) -> None:
        """Remove an empty workspace; any other stays. Blocks on disk."""
        with suppress(OSError):
            self.locate(key).path.rmdir()
            shutil.rmtree(self._beside(key))
            self._beside(key).parent.rmdir()

    def remove(self, key: str) -> None:
        """Remove a workspace and its content; links are removed and not followed. Blocks on disk."""
        for folder in (self._beside(key), self.locate(key).path):
            try:
                remove_tree(folder)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise FileError(f"{folder} could not be removed: {error.strerror}.") from error

    def unavailable_reason(self) -> Unavailable | None:
        """Return why workspaces cannot be created, checked without creating one. Blocks on disk."""
        nearest = next(path for path in (self._root, *self._root.parents) if os.path.lexists(path))
        if os.access(f"{nearest}/.", os.W_OK | os.X_OK):  # the dot makes this fail for a file
            return None
        reason = f"{nearest} cannot be written, so there is no folder for the team's files."
        return Unavailable(
            reason, "set data_dir in conf.yaml, or MANIPLE_DATA_DIR, to a folder that you can write."
        )

    def locate(self, key: str) -> Workspace:
        """Return the workspace of a thread, which may not exist."""
        return Workspace(self._root_of(key) / _directory_name(key), self._max_file_bytes, self._max_bytes)

    def _beside(self, key: str) -> Path:
        # No directory of a key begins with a dot.
        return self._root_of(key) / BESIDE / _directory_name(key)

    def _root_of(self, key: str) -> Path:
        earlier = self._earlier
        if earlier is None or not _UNIQUE_KEY.fullmatch(key) or (self._root / key).exists():
            return self._root
        return earlier if (earlier / key).is_dir() else self._root


def _directory_name(key: str) -> str:
    """Return a safe key itself, else its hash behind a tilde, with which no safe key begins."""
    if _READABLE_KEY.fullmatch(key):
        return key
    return "~" + hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


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
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise FileError(f"{path!r} leads through a link or a file; neither is followed.") from error
        kind = WorkspaceFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else FileError
        raise kind(f"{path!r} could not be {done}: {error.strerror}.") from error


def clean_file_name(name: str) -> str:
    """Return the name of an upload in the workspace: the last part of `name`, visible and without tricks.

    Directories (Windows paths too), control characters, and dots and blanks at both ends are removed; a name
    over 200 bytes is cut before its extension.
    """
    last = _UNWANTED.sub("", name).replace("\\", "/").rstrip("/").rpartition("/")[2]
    clean = _ENDS.sub("", unicodedata.normalize("NFC", last)) or "upload"
    stem, dot, ending = clean.rpartition(".")
    if len(clean.encode()) <= NAME_BYTES:
        return clean
    if not dot or len(ending.encode()) > 20:
        stem, dot, ending = clean, "", ""
    room = NAME_BYTES - len((dot + ending).encode())
    return _ENDS.sub("", stem.encode()[:room].decode(errors="ignore")) + dot + ending


def _pieces(source: BinaryIO, size: int, digest: "hashlib._Hash") -> Iterator[bytes]:
    while size > 0 and (piece := source.read(min(size, _PIECE_BYTES))):
        digest.update(piece)
        size -= len(piece)
        yield piece


def _refuse_read_only(workspace: Workspace, path: str) -> None:
    if workspace.is_read_only(path):
        raise FileError(f"{path!r} is read-only, as the files of skills are; write to another name.")


def _read_content(workspace: Workspace, path: str) -> bytes | None:
    """Return a file's content, None for a missing file; raises `FileError` for any other."""
    if workspace.is_missing(path):
        return None
    head = workspace.read(path, EDITED_BYTES)
    if head.size > EDITED_BYTES:
        raise FileError(f"{path!r} has {head.size} bytes, too many to be edited; work on it with code.")
    return head.content


def _mark(path: str) -> str:
    return hashlib.sha256("/".join(split_path(path)).encode()).hexdigest()[:16]


def _digest(content: bytes | None) -> str:
    return hashlib.sha256(content or b"").hexdigest()
