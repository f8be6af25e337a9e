"""Reads what processes print into bounded memory."""

import asyncio
import codecs
import fcntl
import os
import struct
import termios
from collections.abc import Callable

# An endless writer would keep the event loop reading: past the limit it gets a pipe (64 KiB) per pause.
_PAUSE_SECONDS = 0.005
_PIECE_BYTES = 65_536


class Capture:
    """The first and the last half of `limit_bytes`; what came between is counted and dropped."""

    def __init__(self, limit_bytes: int) -> None:
        self._half = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    @property
    def is_full(self) -> bool:
        return self._total > 2 * self._half

    def data_received(self, data: bytes) -> None:
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        del self._tail[: -self._half]

    def text(self) -> str:
        """Everything kept, with a line that says how much is missing in the middle."""
        missing = self._total - len(self._head) - len(self._tail)
        notice = f"\n[… {missing} bytes cut …]\n" if missing else ""
        # Decoded together, so that a character across the seam survives when nothing was cut.
        return (bytes(self._head) + notice.encode() + bytes(self._tail)).decode(errors="replace")


class Output:
    """The reading end of a pipe that many calls print into, one after the other.

    What is printed between two calls, by processes that the first left behind, belongs to the second.
    """

    def __init__(self, descriptor: int, limit_bytes: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._limit_bytes = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._capture = Capture(limit_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._heard: Callable[[str], None] | None = None
        self._resumption: asyncio.TimerHandle | None = None
        self._is_wanted = False
        self._is_reading = True
        self.ended: asyncio.Future[None] = self._loop.create_future()
        """Done when nobody holds the other end any more, or this one is closed."""
        self._loop.add_reader(descriptor, self._readable)

    def listen(self, heard: Callable[[str], None] | None) -> None:
        """Let `heard` have each piece from now on, as long as there is room within the limit.

        Until the next `take` whoever prints is never kept waiting for long.
        """
        self._heard = heard
        self._is_wanted = True
        self._resume()

    def take(self) -> str:
        """All that has been printed until now; the next text begins after it."""
        self._drain()
        text, self._capture = self._capture.text(), Capture(self._limit_bytes)
        self._heard = None
        self._is_wanted = False
        self._decoder.reset()
        return text

    def close(self) -> None:
        """Stop reading; a second time does nothing."""
        if self._descriptor < 0:
            return
        if self._resumption is not None:
            self._resumption.cancel()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = -1
        self.ended.set_result(None)

    def _drain(self) -> None:
        """Read what is there now, and not what a writer adds meanwhile."""
        if self._descriptor < 0:
            return
        waiting = fcntl.ioctl(self._descriptor, termios.FIONREAD, b"\0" * 4)
        left = struct.unpack("i", waiting)[0]
        while left > 0 and (data := self._read()):
            left -= len(data)

    def _readable(self) -> None:
        if not self._read() or not self._capture.is_full:
            return
        self._loop.remove_reader(self._descriptor)
        self._is_reading = False
        # Between calls nobody wants more than there is room for: the pipe fills, and its writers wait.
        if self._is_wanted:
            self._resumption = self._loop.call_later(_PAUSE_SECONDS, self._resume)

    def _resume(self) -> None:
        if not self._is_reading and self._descriptor >= 0:
            self._loop.add_reader(self._descriptor, self._readable)
            self._is_reading = True

    def _read(self) -> bytes:
        try:
            data = os.read(self._descriptor, _PIECE_BYTES)
        except BlockingIOError:
            return b""
        if not data:
            self.close()
        elif self._heard is not None and not self._capture.is_full:
            self._heard(self._decoder.decode(data))
        self._capture.data_received(data)
        return data
