"""Parse documents in processes that can be killed.

A parsing library may never return from a hostile file, and a page of 5 MB may take half a gigabyte.
"""

import asyncio
import base64
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import weakref
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from maniple.reading import MarkdownDocument, UnreadableDocument
from maniple.reading.loaders import LOADER, DocumentLoader, DocumentLoaders, suffix_of
from maniple.reading.rendering import RenderedPicture

_TIMEOUT_SECONDS = 60
"""By the clock, for a reader that waits. One that works is ended by its CPU time, on a busy machine too."""
_END_SECONDS = 5
_CHUNK_BYTES = 1 << 16


class ForkServer:
    """Parses each document in its own process, forked from one that has imported the libraries.

    That process starts with the first document. It ends with `close`, with this object, and with the program,
    even after a crash. Its readers end with it.
    """

    def __init__(self, loaders: DocumentLoaders | None = None) -> None:
        self.loaders = loaders or DocumentLoaders()
        """What reads files that the readers of `read` do not know, or that the settings name."""
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._finalizer: weakref.finalize | None = None

    async def read(self, kind: str, body: bytes, url: str, charset: str | None) -> MarkdownDocument:
        """Return the result of `read_document` for the document.

        The reader's process has ended when this returns or raises.

        Raises:
            UnreadableDocument: the document cannot be parsed in twenty seconds of CPU and 1 GB.
        """
        return _parse_document(await self._ask({"kind": kind, "url": url, "charset": charset}, body))

    async def load(self, loader: DocumentLoader, body: bytes, name: str) -> MarkdownDocument:
        """Return a document called `name` as `loader` reads it; the file has only the suffix of the name.

        Raises:
            UnreadableDocument: the loader fails, or takes more than twenty seconds of CPU, a minute or 1 GB.
        """
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="maniple-document-"))
        try:
            file = folder / f"document{suffix_of(name)}"
            await asyncio.to_thread(file.write_bytes, body)
            head = {"kind": LOADER, "use": loader.use, "options": loader.options, "path": str(file)}
            return _parse_document(await self._ask(head, b""))
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    async def render(self, body: bytes, page: int = 0) -> RenderedPicture:
        """Return a picture scaled for a model, or the page with this number (from 1) of a PDF.

        Raises:
            UnreadableDocument: it cannot be decoded in twenty seconds of CPU and 1 GB.
        """
        answer = await self._ask({"kind": "render", "page": page}, body)
        return RenderedPicture(**{**answer, "content": base64.b64decode(answer["content"])})

    async def _ask(self, head: dict[str, Any], body: bytes) -> dict[str, Any]:
        with ExitStack() as stack:
            document, lifeline = self._start_reader(stack)
            try:
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    line = json.dumps({**head, "bytes": len(body)}).encode() + b"\n"
                    answer = await _request(document, line, body)
            except TimeoutError as error:
                raise UnreadableDocument("takes too long to be read") from error
            finally:
                await _end_reader(lifeline)
        if "error" in answer:
            raise UnreadableDocument(answer["error"])
        return answer

    def close(self) -> None:
        """End the process and its readers. The next document starts a new one."""
        if self._finalizer is not None:
            self._finalizer()
        self._process = self._control = self._finalizer = None

    def _start_reader(self, stack: ExitStack) -> tuple[socket.socket, socket.socket]:
        """Start a reader; return the socket of its document and its lifeline."""
        document, reader = map(stack.enter_context, socket.socketpair())
        lifeline, reader_lifeline = map(stack.enter_context, socket.socketpair())
        for end in (document, lifeline):
            end.setblocking(False)
        with reader, reader_lifeline:
            ends = [reader.fileno(), reader_lifeline.fileno()]
            try:
                socket.send_fds(self._open_control(), [b"d"], ends)
            except OSError:  # the process has just ended
                self.close()
                socket.send_fds(self._open_control(), [b"d"], ends)
        return document, lifeline

    def _open_control(self) -> socket.socket:
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return self._control
        self.close()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-I", "-m", "maniple.reading.fork_server_process"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
            )
        self._finalizer = weakref.finalize(self, _stop_process, self._process, self._control)
        return self._control


def _parse_document(answer: dict[str, Any]) -> MarkdownDocument:
    return MarkdownDocument(**{**answer, "textless_pages": tuple(answer["textless_pages"])})


def _stop_process(process: subprocess.Popen[bytes], control: socket.socket) -> None:
    control.close()
    process.kill()
    process.wait()


async def _request(document: socket.socket, head: bytes, body: bytes) -> dict[str, Any]:
    """Send the document; return the fields of the answer, or an `error`."""
    loop = asyncio.get_running_loop()
    response = bytearray()
    try:
        await loop.sock_sendall(document, head)
        await loop.sock_sendall(document, body)
        while chunk := await loop.sock_recv(document, _CHUNK_BYTES):
            response += chunk
        return json.loads(response)
    except TimeoutError:
        raise
    except (OSError, ValueError):
        return {"error": "cannot be read; it may be damaged, or take too much memory or time"}


async def _end_reader(lifeline: socket.socket) -> None:
    """Kill the reader if it still runs, and wait until it is gone."""
    with suppress(OSError):  # the process may be gone itself
        lifeline.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(_END_SECONDS):
            await asyncio.get_running_loop().sock_recv(lifeline, 1)
