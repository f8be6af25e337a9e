"""Log lines on their way to a stream that may not be read: nobody waits for it but a thread."""

import logging
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener
from typing import TextIO

QUEUE_RECORDS = 10_000
FLUSH_SECONDS = 2.0


class LogQueue(QueueHandler):
    """Formats records where they are made, and writes them to a stream in a thread of its own.

    What does not fit into the queue is dropped; how much it was is told when the stream takes lines again.
    `formatter` must have taken the secrets out: what it returns is what is written.
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
        """Return a record that holds nothing but the line to be written."""
        return logging.LogRecord(record.name, record.levelno, "", 0, self.format(record), None, None)

    def enqueue(self, record: logging.LogRecord) -> None:
        """Add a line, or count it when the queue is full."""
        try:
            self._lines.put_nowait(record)
        except queue.Full:
            with self._counting:
                self._dropped += 1

    def flush(self) -> None:
        """Wait until all is written, for at most `FLUSH_SECONDS` seconds."""
        done = self._lines.all_tasks_done
        with done:
            self._stuck = not done.wait_for(lambda: not self._lines.unfinished_tasks, FLUSH_SECONDS)

    def close(self) -> None:
        """Write what is left and end the thread, unless the stream does not take it in time."""
        if not self._stuck:  # `logging.shutdown` has flushed before: once is long enough
            self.flush()
        self._listener.end()
        super().close()

    def _write(self, line: str) -> None:
        _write(self._stream, line)
        with self._counting:
            dropped, self._dropped = self._dropped, 0
        if dropped:
            words = "%d log records were dropped: nobody read the log in time."
            record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, words, (dropped,), None)
            _write(self._stream, self.format(record))


class _Listener(QueueListener):
    """Writes without a handler: `logging.shutdown` would wait for the lock of one whose stream is stuck."""

    def __init__(self, lines: "queue.Queue[logging.LogRecord]", write: Callable[[str], None]) -> None:
        super().__init__(lines)
        self._write = write

    def handle(self, record: logging.LogRecord) -> None:
        # A stream that is closed or broken has no reader any more, and there is no other place to tell.
        with suppress(OSError, ValueError):
            self._write(str(record.msg))

    def end(self) -> None:
        """Let the thread end when it has written what is there; it is not waited for."""
        with suppress(queue.Full):
            self.enqueue_sentinel()


def _write(stream: TextIO, line: str) -> None:
    """Write a line, to the file itself if there is one.

    A thread that is stuck in a buffered stream holds its lock, and Python could not end any more.
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
