"""Reading in a process that can be ended.

Large libraries may take for ever over a hostile file, and a page of 5 MB may take half a gigabyte.
"""

import asyncio
import json
import socket
import subprocess
import sys
import weakref
from contextlib import ExitStack, suppress
from typing import Any

from maniple.reading.result import Reading, Unreadable

_TIMEOUT_SECONDS = 20
_END_SECONDS = 5
_CHUNK_BYTES = 1 << 16


class Nursery:
    """Has each document read in a process of its own, forked from one that has imported the libraries.

    That one is started with the first document. It ends with `close`, with this object and with the program,
    however that ends, and takes its readers with it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._end: weakref.finalize | None = None

    async def read(self, kind: str, body: bytes, url: str, charset: str | None) -> Reading:
        """What `read_as` makes of the document; its process is gone when this returns or raises.

        Raises:
            Unreadable: nothing can be made of it in twenty seconds and 1 GB.
        """
        head = {"kind": kind, "url": url, "charset": charset, "bytes": len(body)}
        with ExitStack() as stack:
            document, leash = self._begin(stack)
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    answer = await _answer(document, json.dumps(head).encode() + b"\n", body)
            except TimeoutError as error:
                raise Unreadable("takes too long to be read") from error
            finally:
                await _ended(leash)
        if "error" in answer:
            raise Unreadable(answer["error"])
        return Reading(**answer)

    def close(self) -> None:
        """End the process and the readers; a later document starts another."""
        if self._end is not None:
            self._end()
        self._process = self._control = self._end = None

    def _begin(self, stack: ExitStack) -> tuple[socket.socket, socket.socket]:
        """Start a reader; what it reads from and answers to, and what it lives as long as."""
        document, reader = map(stack.enter_context, socket.socketpair())
        leash, collar = map(stack.enter_context, socket.socketpair())
        for end in (document, leash):
            end.setblocking(False)
        with reader, collar:
            ends = [reader.fileno(), collar.fileno()]
            try:
                socket.send_fds(self._open_control(), [b"d"], ends)
            except OSError:  # it has ended just now
                self.close()
                socket.send_fds(self._open_control(), [b"d"], ends)
        return document, leash

    def _open_control(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self.close()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-I", "-m", "maniple.reading.worker"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
            )
        self._end = weakref.finalize(self, _end, self._process, self._control)
        return self._control


def _end(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    process.kill()
    process.wait()


async def _answer(document: socket.socket, head: bytes, body: bytes) -> dict[str, Any]:
    """What the reader says of the document: a `Reading` or an `error`."""
    loop = asyncio.get_running_loop()
    printed = bytearray()
    try:
        await loop.sock_sendall(document, head)
        await loop.sock_sendall(document, body)
        while chunk := await loop.sock_recv(document, _CHUNK_BYTES):
            printed += chunk
        return json.loads(printed)
    except TimeoutError:
        raise
    except (OSError, ValueError):
        return {"error": "cannot be read; it may be damaged"}


async def _ended(leash: socket.socket) -> None:
    """End the reader if it still reads, and wait until it is gone."""
    with suppress(OSError):  # of the nursery, which may be gone itself
        leash.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.get_running_loop().sock_recv(leash, 1)
