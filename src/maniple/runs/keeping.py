"""Files that a run's tools make for its clients, such as pictures of the browser."""

import logging
from dataclasses import dataclass

from maniple.errors import FileError, StoreError
from maniple.store import RunRecord, Store

MOST_FILES = 200
MOST_BYTES = 50_000_000
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Keeping:
    """Keeps files as artifacts of one run, within its share; no run depends on it."""

    store: Store
    run: RunRecord
    _files: int = MOST_FILES
    _bytes: int = MOST_BYTES

    async def __call__(self, name: str, media_type: str, content: bytes) -> str | None:
        """Keep a file; return the artifact's id, or None when it could not be kept."""
        if self._files < 1 or len(content) > self._bytes:
            return None
        self._files, self._bytes = self._files - 1, self._bytes - len(content)
        try:
            return (await self.store.artifacts.add(self.run, name, media_type, content)).artifact_id
        except (FileError, StoreError) as error:
            _LOG.warning("A file of the run could not be kept: %s", error)
            return None
