"""The process that is forked for each document that is large, or takes a large library to read.

`python -m maniple.reading.worker` is told of documents on the socket that is its standard input: with each
byte come the socket of a document and the collar of its reader. The reader gets a line of JSON (`kind`,
`url`, `charset`, `bytes`) and the document, and answers with the reading as JSON, or `{"error": …}`. The
other end of the collar ends the reader, and is closed when it is gone. The documents themselves are seen by
their readers only: what one makes of its memory, the next does not have.
"""

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
from typing import NamedTuple

from maniple.reading.formats import read_as
from maniple.reading.result import Unreadable

_MAX_MEMORY_BYTES = 1_000_000_000
_PR_SET_PDEATHSIG = 1
# All that the readers import; together they take 0.4 s.
_LIBRARIES = (
    "lxml.html",
    "markdownify",
    "bs4.dammit",
    "charset_normalizer",
    "pypdf",
    "pypdf.filters",
    "mammoth",
    "feedparser",
)


class _Reader(NamedTuple):
    process: int
    collar: socket.socket

    def end(self) -> None:
        """Kill it, and tell who holds the leash."""
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        self.collar.close()


def main() -> None:
    """Fork readers until standard input ends."""
    # Ctrl-C reaches the whole group; the program decides what is still read.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for library in _LIBRARIES:
        importlib.import_module(library)
    # Else the readers' first collection would write to, and so copy, every page of memory.
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
            told, ends, _, _ = socket.recv_fds(control, 1, 2)
            if not told:
                for reader in readers.values():
                    reader.end()
                return
            others = [control, *(reader.collar for reader in readers.values())]
            if started := _start([socket.socket(fileno=end) for end in ends], others):
                readers[started.collar.fileno()] = started
                poll.register(started.collar, select.POLLIN)


def _start(ends: list[socket.socket], others: list[socket.socket]) -> _Reader | None:
    """Fork the reader of `ends`, its document and its collar; None where there is no room for one."""
    nursery = os.getpid()
    try:
        document, collar = ends
        process = os.fork()
    except (OSError, ValueError):
        for end in ends:
            end.close()
        return None
    if process == 0:
        try:
            # Who reads a hostile document neither takes another's nor keeps another's collar open.
            for other in others:
                other.close()
            _read(document, nursery)
        finally:
            os._exit(0)
    document.close()
    return _Reader(process, collar)


def _read(document: socket.socket, nursery: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != nursery:
            return
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    with document.makefile("rwb") as stream:
        head = json.loads(stream.readline())
        body = stream.read(head["bytes"])
        try:
            answer = asdict(read_as(head["kind"], body, head["url"], head["charset"]))
        except Unreadable as error:
            answer = {"error": str(error)}
        except MemoryError:
            answer = {"error": "takes too much memory to be read"}
        stream.write(json.dumps(answer).encode())


if __name__ == "__main__":
    main()
