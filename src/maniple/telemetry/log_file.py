"""A log on disk that does not grow for ever."""

import logging
import os
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path

FULL_BYTES = 1_000_000
EARLIER_FILES = 1


class LogFile(RotatingFileHandler):
    """Appends to a file that is made when there is something to write; a full one is set aside."""

    def __init__(self, path: Path, formatter: logging.Formatter) -> None:
        super().__init__(
            path,
            maxBytes=FULL_BYTES,
            backupCount=EARLIER_FILES,
            encoding="utf-8",
            delay=True,
            errors="replace",
        )
        self.setFormatter(formatter)

    def _open(self) -> TextIOWrapper:
        path = Path(self.baseFilename)
        path.parent.mkdir(parents=True, exist_ok=True)
        # What went wrong may show what was asked.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)
