"""Where pictures of a thread come from: a web address, or the browser in a step of a run."""

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from maniple.errors import FileError
from maniple.text import shorten
from maniple.workspace import Workspace

PictureKind = Literal["screenshot", "web"]
MAX_ORIGINS = 2_000
"""Of one thread; the pictures beyond are stored without."""
_FOLDER = "pictures"
_DRAFT = ".draft-"
_TITLE_CHARACTERS = 80
_ADDRESS_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class PictureOrigin:
    """Where a picture comes from. `run` and `step` are ids; "" and 0 outside of a run and of a plan."""

    kind: PictureKind
    address: str
    title: str = ""
    run: str = ""
    step: int = 0

    def describe(self, run: str) -> str:
        """Return it in a few words for a member of `run`."""
        words = [shorten(self.title, _TITLE_CHARACTERS), shorten(self.address, _ADDRESS_CHARACTERS)]
        if self.kind == "screenshot" and self.step:
            words.append(f"step {self.step}" if self.run == run else "in an earlier request")
        return ", ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class PictureOrigins:
    """The origins of a thread's pictures, in a folder that code cannot access. Every method blocks on disk.

    An origin belongs to the bytes of a picture: what replaces the file has none.
    """

    folder: Path
    workspace: Workspace

    @classmethod
    def beside(cls, records: Path, workspace: Workspace) -> "PictureOrigins":
        """Return the origins in the folder of the records of a workspace."""
        return cls(records / _FOLDER, workspace)

    def add(self, path: str, content: bytes, origin: PictureOrigin) -> None:
        """Record the origin of a picture; it is left out where it cannot be written."""
        data = {"path": path, "sha256": hashlib.sha256(content).hexdigest(), **asdict(origin)}
        draft = self.folder / f"{_DRAFT}{os.urandom(8).hex()}"
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if len(os.listdir(self.folder)) >= MAX_ORIGINS:  # noqa: PTH208
                return
            try:
                draft.write_text(json.dumps(data), encoding="utf-8")
                draft.rename(self._file(path))
            except OSError:
                draft.unlink(missing_ok=True)

    def find(self, path: str) -> PictureOrigin | None:
        """Return the origin of the picture that is at `path` now; None if it is not known."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            data: dict[str, Any] = json.loads(self._file(path).read_bytes())
            is_it = data.pop("path") == path and data.pop("sha256") == self._digest(path)
            return PictureOrigin(**data) if is_it else None
        return None

    def _digest(self, path: str) -> str:
        with suppress(FileError), self.workspace.open(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()  # pyright: ignore[reportArgumentType]
        return ""

    def _file(self, path: str) -> Path:
        return self.folder / hashlib.sha256(path.encode(errors="surrogatepass")).hexdigest()[:32]
