"""The fork server's process: it imports the parsing libraries once and forks a reader for each document.

`python -m maniple.reading.fork_server_process` receives requests on the socket that is its standard input.
Each byte carries two file descriptors: the socket of a document and the lifeline of its reader. The reader
receives a line of JSON (`kind`, `url`, `charset`, `bytes`) and the document, and answers with the fields of a
`MarkdownDocument` as JSON, or with `{"error": …}`. With `RENDER` as `kind` and a `page` (0: the file is a
picture), it answers with the fields of a `RenderedPicture`, its content in Base64. With `LOADER` and `use`,
`options` and `path`, a loader of LangChain reads the file at that path. Data or end of file on the
lifeline ends the reader; the lifeline is closed after the reader has ended. Each document has its own reader,
so that memory corrupted by one document does not affect the next.
"""

import base64
import ctypes
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
from dataclasses import asdict
from typing import Any, NamedTuple, NoReturn

from maniple.reading import UnreadableDocument
from maniple.reading.formats import read_document
from maniple.reading.loaders import LOADER, load_document
from maniple.reading.rendering import render_page, render_picture

RENDER = "render"
"""The `kind` of a request for a picture."""

_MAX_MEMORY_BYTES = 1_000_000_000
_MAX_CPU_SECONDS = 20
_GRACE_SECONDS = 2
"""Of CPU, for a library that cannot be interrupted; then the system kills the reader."""
_PR_SET_PDEATHSIG = 1
# What nearly every reader imports; together they take 0.5 s. Those that render a page import pypdfium2 (60
# ms, 10 MB) themselves.
_LIBRARIES = (
    "lxml.html",
    "markdownify",
    "bs4.dammit",
    "charset_normalizer",
    "pypdf",
    "pypdf.filters",
    "python_calamine",
    "maniple.reading.pdf",
    "maniple.reading.spreadsheets",
    "maniple.reading.word",
    "mammoth",
    "feedparser",
    "PIL.Image",
    "PIL.ImageOps",
)


class _Reader(NamedTuple):
    process: int
    lifeline: socket.socket

    def end(self) -> None:
        """Kill the reader and close its lifeline."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        self.lifeline.close()


def main() -> None:
    """Fork readers until standard input ends."""
    # Ctrl-C reaches the whole process group; the parent decides what is still read.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for library in _LIBRARIES:
        importlib.import_module(library)
    # Without it, the first garbage collection in a reader would write to every page of memory and copy it.
    gc.collect()
    gc.freeze()
    control = socket.socket(fileno=sys.stdin.fileno())
    readers: dict[int, _Reader] = {}
    poll = select.poll()
    poll.register(control, select.POLLIN)
    while True:
        for number, _ in poll.poll():
            if number != control.fileno():
                poll.unregister(number)
                readers.pop(number).end()
                continue
            request, ends, _, _ = socket.recv_fds(control, 1, 2)
            if not request:
                for reader in readers.values():
                    reader.end()
                return
            others = [control, *(reader.lifeline for reader in readers.values())]
            if started := _start([socket.socket(fileno=end) for end in ends], others):
                readers[started.lifeline.fileno()] = started
                poll.register(started.lifeline, select.POLLIN)


def _start(ends: list[socket.socket], others: list[socket.socket]) -> _Reader | None:
    """Fork a reader; `ends` are the sockets of its document and its lifeline.

    Return None if the fork fails.
    """
    server_pid = os.getpid()
    try:
        document, lifeline = ends
        process = os.fork()
    except (OSError, ValueError):
        for end in ends:
            end.close()
        return None
    if process == 0:
        try:
            # A compromised reader must not receive other documents or hold other lifelines open.
            for other in others:
                other.close()
            _read(document, server_pid)
        finally:
            os._exit(0)
    document.close()
    return _Reader(process, lifeline)


def _read(document: socket.socket, server_pid: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != server_pid:
            return
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    signal.signal(signal.SIGXCPU, _take_too_long)
    resource.setrlimit(resource.RLIMIT_CPU, (_MAX_CPU_SECONDS, _MAX_CPU_SECONDS + _GRACE_SECONDS))
    with document.makefile("rwb") as stream:
        head = json.loads(stream.readline())
        body = stream.read(head["bytes"])
        try:
            answer = _answer(head, body)
        except UnreadableDocument as error:
            answer = {"error": str(error)}
        except MemoryError:
            answer = {"error": "takes too much memory to be read"}
        stream.write(json.dumps(answer).encode())


def _take_too_long(number: int, frame: object) -> NoReturn:
    raise UnreadableDocument("takes too long to be read")


def _answer(head: dict[str, Any], body: bytes) -> dict[str, Any]:
    if head["kind"] == LOADER:
        return asdict(load_document(head["use"], head["options"], head["path"]))
    if head["kind"] != RENDER:
        return asdict(read_document(head["kind"], body, head["url"], head["charset"]))
    rendered = asdict(render_page(body, head["page"]) if head["page"] else render_picture(body))
    return {**rendered, "content": base64.b64encode(rendered["content"]).decode()}


if __name__ == "__main__":
    main()
