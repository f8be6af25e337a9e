"""What is kept of threads' browsers: cookies and local storage, a file for each thread."""

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

_MAX_BYTES = 5_000_000


class Storage:
    """Files in `folder`, for their owner alone. Every method blocks on disk; any text is a valid thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, thread: str) -> Mapping[str, Any] | None:
        """What was saved of a thread, in Playwright's form; None for nothing that can be read."""
        try:
            with self._file(thread).open("rb") as file:
                state = json.loads(file.read(_MAX_BYTES + 1))
        except (OSError, ValueError):
            return None
        is_whole = isinstance(state, dict) and all(
            isinstance(state.get(key), list) for key in ("cookies", "origins")
        )
        return state if is_whole else None

    def save(self, thread: str, state: Mapping[str, Any]) -> None:
        """Replace what is kept of a thread; of more than 5 MB, nothing.

        Raises:
            OSError: it cannot be written.
        """
        content = json.dumps(state).encode()
        if len(content) > _MAX_BYTES:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A temporary file is its owner's alone.
        descriptor, draft = tempfile.mkstemp(dir=self._folder, prefix=".")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(draft).replace(self._file(thread))
        except OSError:
            Path(draft).unlink(missing_ok=True)
            raise

    def remove(self, thread: str) -> None:
        """Forget a thread."""
        with suppress(OSError):
            self._file(thread).unlink()

    def _file(self, thread: str) -> Path:
        name = hashlib.sha256(thread.encode(errors="surrogatepass")).hexdigest()
        return self._folder / f"{name}.json"
