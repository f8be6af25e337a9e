"""The log. All `logging` records and structlog events pass one pipeline, which masks secrets at its end."""

import logging
import os
import queue
import re
import sys
import threading
import time
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager, suppress
from io import TextIOWrapper
from logging.handlers import QueueHandler, QueueListener, RotatingFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TextIO

import structlog

from maniple.redaction import Redactor

QUEUE_RECORDS = 10_000
FLUSH_SECONDS = 2.0
FULL_BYTES = 1_000_000
EARLIER_FILES = 1

LogFormat = Literal["console", "json"]

_CHATTY = ("httpcore", "httpx", "httpx2", "hpack", "openai", "urllib3", "asyncio", "aiosqlite", "watchfiles")
"""Libraries that log each request at INFO or below. They are logged from WARNING on, or at level DEBUG."""
_UVICORN = ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi")
_REPEATING = ("asyncio", "uvicorn.error", "maniple.cli.connection_limits")
"""Loggers whose records clients can cause as often as they like."""
REPEATS = 10
REPEAT_SECONDS = 60.0
_KINDS = 1_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class LogQueue(QueueHandler):
    """Formats records in the calling thread, and writes them to a stream in a separate thread.

    Lines that do not fit into the queue are dropped. Their number is logged when the stream accepts lines
    again. `formatter` must mask secrets: its result is written unchanged.
    """

    def __init__(self, stream: TextIO, formatter: logging.Formatter, *, records: int = QUEUE_RECORDS) -> None:
        self._lines: queue.Queue[logging.LogRecord] = queue.Queue(records)
        super().__init__(self._lines)
        self.setFormatter(formatter)
        self._stream = stream
        self._stuck = False
        self._dropped = 0
        self._counting = threading.Lock()
        self._listener = _Listener(self._lines, self._write)
        self._listener.start()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return a record that contains only the formatted line."""
        return logging.LogRecord(record.name, record.levelno, "", 0, self.format(record), None, None)

    def enqueue(self, record: logging.LogRecord) -> None:
        """Add a line to the queue, or count it as lost if the queue is full."""
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            with self._counting:
                self._dropped += 1

    def flush(self) -> None:
        """Wait until all lines are written, for at most `FLUSH_SECONDS`."""
        done = self._lines.all_tasks_done
        with done:
            self._stuck = not done.wait_for(lambda: not self._lines.unfinished_tasks, FLUSH_SECONDS)

    def close(self) -> None:
        """Write the remaining lines and end the thread, unless the stream blocks for too long."""
        if not self._stuck:  # `logging.shutdown` has already flushed and waited
            self.flush()
        self._listener.end()
        super().close()

    def _write(self, line: str) -> None:
        _write(self._stream, line)
        with self._counting:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            error = "%d log records were dropped: nobody read the log in time."
            record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, error, (dropped,), None)
            _write(self._stream, self.format(record))


class RepeatFilter(logging.Filter):
    """Lets `REPEATS` records of a kind pass in `REPEAT_SECONDS`.

    The next one that passes has the number of those that were left out. A kind is the beginning of a message
    without its arguments.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        self._kinds: dict[tuple[str, str], tuple[float, int]] = {}
        self._counting = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record passes, and add the number of those before it that did not."""
        kind = record.name, str(record.msg)[:80]
        with self._counting:
            began, seen = self._kinds.get(kind, (float("-inf"), 0))
            if self._now() - began < REPEAT_SECONDS:
                self._kinds[kind] = began, seen + 1
                return seen < REPEATS
            if len(self._kinds) >= _KINDS:
                self._kinds.clear()
            self._kinds[kind] = self._now(), 1
        if seen > REPEATS:
            text, left_out = record.getMessage(), seen - REPEATS
            record.msg, record.args = "%s (%d more of these were left out)", (text, left_out)
        return True


class LogFile(RotatingFileHandler):
    """Appends to a file, which is created at the first line and rotated when it is full."""

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
        # Only the owner may read it, because errors may contain the users' requests.
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return os.fdopen(descriptor, "a", encoding=self.encoding, errors=self.errors)


def configure_logs(
    level: str, format: LogFormat, redactor: Redactor, *, stream: TextIO | Path | None = None
) -> None:
    """Send every log record of this process to `stream` (default: stderr), or to a file.

    `level` is a name such as `INFO`. The format `json` writes one object per line. Call it when the program
    starts; a later call replaces it. Uvicorn needs `log_config=None`, otherwise it replaces the log with its
    own. Exceptions that end the program or a thread are logged, too, because their texts may contain secrets.
    A stream that is not a terminal is written by a thread, so that a pipe without a reader blocks nothing
    (see `LogQueue`).
    """
    handler = _make_handler(stream or sys.stderr, format, redactor)
    root = logging.getLogger()
    for old in root.handlers[:]:
        if isinstance(old, _TerminalHandler | _PipeHandler | _FileHandler):
            root.removeHandler(old)
            old.close()
    root.addHandler(handler)
    root.setLevel(level)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.NOTSET if root.level <= logging.DEBUG else logging.WARNING)
    for name in _UVICORN:
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name in _REPEATING:
        logger = logging.getLogger(name)
        logger.filters[:] = [one for one in logger.filters if not isinstance(one, RepeatFilter)]
        logger.addFilter(RepeatFilter())
    logging.captureWarnings(True)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_shared_processors(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )
    sys.excepthook = _log_uncaught_error
    threading.excepthook = _log_thread_error


def log_context(
    *, run_id: str | None = None, thread_id: str | None = None, key_id: str | None = None
) -> AbstractContextManager[Any]:
    """Return a context whose log records have run, thread and API key, also in tasks started within it."""
    ids = {"run_id": run_id, "thread_id": thread_id, "key_id": key_id}
    return structlog.contextvars.bound_contextvars(**{name: one for name, one in ids.items() if one})


def flush_logs() -> None:
    """Wait until all records are written; a blocked stream is waited for briefly."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _TerminalHandler | _PipeHandler):
            handler.flush()


class _TerminalHandler(logging.StreamHandler[TextIO]):
    """Writes immediately.

    A record that cannot be written is reported without its text, which may have secrets.
    """

    def __init__(self, stream: TextIO, redactor: Redactor) -> None:
        super().__init__(stream)
        self._redactor = redactor

    def handleError(self, record: logging.LogRecord) -> None:
        if not self.stream.closed:
            _report_unwritten(record, self._redactor)


class _PipeHandler(LogQueue):
    """Writes in a thread; reports records that cannot be formatted like `_TerminalHandler`."""

    def __init__(self, stream: TextIO, formatter: logging.Formatter, redactor: Redactor) -> None:
        super().__init__(stream, formatter)
        self._redactor = redactor

    def handleError(self, record: logging.LogRecord) -> None:
        _report_unwritten(record, self._redactor)


class _FileHandler(LogFile):
    """Writes to a file; drops records that cannot be written, because the terminal must stay clean."""

    def __init__(self, path: Path, formatter: logging.Formatter, redactor: Redactor) -> None:
        super().__init__(path, formatter)
        self._redactor = redactor

    def handleError(self, record: logging.LogRecord) -> None:
        if not isinstance(sys.exc_info()[1], OSError):
            _report_unwritten(record, self._redactor)


def _report_unwritten(record: logging.LogRecord, redactor: Redactor) -> None:
    error = redactor.text(repr(sys.exc_info()[1]))
    location = f"{record.name}, {record.pathname}:{record.lineno}"
    if sys.__stderr__ is not None:
        sys.__stderr__.write(f"A log record could not be written ({location}): {error}\n")


def _make_handler(stream: TextIO | Path, format: LogFormat, redactor: Redactor) -> logging.Handler:
    if isinstance(stream, Path):
        return _FileHandler(stream, _make_formatter(format, redactor, colors=False), redactor)
    formatter = _make_formatter(format, redactor, colors=stream.isatty())
    if not stream.isatty():
        return _PipeHandler(stream, formatter, redactor)
    handler = _TerminalHandler(stream, redactor)
    handler.setFormatter(formatter)
    return handler


class _Redacting(structlog.stdlib.ProcessorFormatter):
    """Formats a record and masks all secrets in the result."""

    def __init__(self, redactor: Redactor, **options: Any) -> None:
        super().__init__(**options)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        return self._redactor.text(super().format(record))


def _make_formatter(format: LogFormat, redactor: Redactor, *, colors: bool) -> logging.Formatter:
    if format == "json":
        renderers = [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
        ]
    else:
        # Plain tracebacks, because rich ones show the values of variables.
        plain = structlog.dev.plain_traceback
        renderers = [
            _escape_controls,
            structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain),
        ]
    return _Redacting(
        redactor,
        foreign_pre_chain=_shared_processors(),
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
    )


def _shared_processors() -> list[Any]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.PositionalArgumentsFormatter(),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]


def _escape_controls(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape control characters, so that a record cannot imitate others or control the terminal."""
    text = _CONTROL.sub(lambda found: repr(found[0])[1:-1], str(event.get("event", "")))
    return {**event, "event": text.replace("\n", "\n    ")}


def _log_uncaught_error(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
        return
    logging.getLogger("maniple").critical("The program ended.", exc_info=(kind, error, traceback))


def _log_thread_error(end: threading.ExceptHookArgs) -> None:
    if end.exc_value is not None and not isinstance(end.exc_value, SystemExit):
        error = (end.exc_type, end.exc_value, end.exc_traceback)
        name = end.thread.name if end.thread else "?"
        logging.getLogger("maniple").critical("Thread %s ended.", name, exc_info=error)


class _Listener(QueueListener):
    """Writes without a handler, because `logging.shutdown` would wait for the lock of a blocked one."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord]", write: Callable[[str], None]) -> None:
        super().__init__(lines)
        self._write = write

    def handle(self, record: logging.LogRecord) -> None:
        # A closed or broken stream cannot be reported anywhere.
        with suppress(OSError, ValueError):
            self._write(str(record.msg))

    def end(self) -> None:
        """End the thread after it has written the queued lines, without waiting for it."""
        with suppress(queue.Full):
            self.enqueue_sentinel()


def _write(stream: TextIO, line: str) -> None:
    """Write a line, directly to the file descriptor if there is one.

    A thread that is blocked in a buffered stream holds its lock, which would keep Python from exiting.
    """
    try:
        file = stream.fileno()
    except (OSError, ValueError):
        stream.write(f"{line}\n")
        stream.flush()
        return
    left = f"{line}\n".encode(getattr(stream, "encoding", None) or "utf-8", "backslashreplace")
    while left:
        left = left[os.write(file, left) :]
