"""Small texts that all processes of an installation share, by their names: here, files of a folder."""

from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from maniple.errors import StoreBusy, StoreError
from maniple.locks import file_lock_within
from maniple.private_files import private_draft

LOCK_SECONDS = 40.0
"""How long a process waits for another one that holds a lock."""
CAPABILITIES = "capabilities"
"""The name of the text with what calls have shown of all model endpoints."""
_SUFFIX = ".json"


class SharedTexts(Protocol):
    """The texts of one kind, which all processes of an installation see alike.

    Each method blocks, and raises `StoreError`.
    """

    def read(self, name: str) -> str | None:
        """Return a text; None if there is none."""
        ...

    def write(self, name: str, text: str) -> None:
        """Store a text in place of an earlier one."""
        ...

    def delete(self, name: str) -> None:
        """Delete a text, if there is one."""
        ...

    def stamp(self, name: str) -> Hashable:
        """Return what changes whenever a text is written."""
        ...

    def names(self) -> Sequence[str]:
        """Return the names of all texts, in alphabetical order."""
        ...

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Return a lock against all other threads and processes; raises `StoreBusy` after `LOCK_SECONDS`."""
        ...

    def describe(self, name: str) -> str:
        """Return where a text is, for messages."""
        ...


class TextFolder:
    """Texts in files of `folder`, which only their owner can read. See `SharedTexts`."""

    def __init__(self, folder: Path, lock_seconds: float = LOCK_SECONDS) -> None:
        self._folder = folder
        self._lock_seconds = lock_seconds

    def read(self, name: str) -> str | None:
        try:
            return self._file(name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self._file(name)} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise StoreError(f"{self._file(name)} cannot be read: it is not UTF-8 text.") from error

    def write(self, name: str, text: str) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with private_draft(self._file(name)) as draft:
                draft.write_text(text, encoding="utf-8")
        except OSError as error:
            raise StoreError(f"{self._file(name)} cannot be written: {error.strerror}") from error

    def delete(self, name: str) -> None:
        try:
            self._file(name).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._file(name)} cannot be deleted: {error.strerror}") from error

    def stamp(self, name: str) -> Hashable:
        try:
            found = self._file(name).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_ino

    def names(self) -> Sequence[str]:
        return sorted(one.name.removesuffix(_SUFFIX) for one in self._folder.glob(f"[!.]*{_SUFFIX}"))

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        lock = self._folder / f"{name}.lock"
        with ExitStack() as held:
            try:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                held.enter_context(file_lock_within(lock, self._lock_seconds))
            except TimeoutError as error:
                raise StoreBusy(
                    f"Another process holds the lock {lock}. Try again when it has ended."
                ) from error
            except OSError as error:
                raise StoreError(f"{lock} cannot be written: {error.strerror}") from error
            yield

    def describe(self, name: str) -> str:
        return str(self._file(name))

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}{_SUFFIX}"
