"""The programs of `examples/`, run as their first lines say."""

import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.serving import ROOT

EXAMPLES = ROOT / "examples"
LIGHT = {"MANIPLE_SANDBOX__BACKEND": "off", "MANIPLE_BROWSER__ENABLED": "false"}
SECONDS = 120


def run_example(name: str, *arguments: str, **options: Any) -> str:
    """Run the program `examples/NAME` of Python; the options are those of `run_command`."""
    return run_command([sys.executable, str(EXAMPLES / name), *arguments], **options)


def run_command(
    command: list[str], folder: Path, env: Mapping[str, str], answers: str = "", status: int = 0
) -> str:
    """Run a command that must end with `status` and return what it printed."""
    done = subprocess.run(
        command, cwd=folder, env=env, input=answers, capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@contextmanager
def cut_once(url: str, size: int) -> Iterator[tuple[str, list[bytes]]]:
    """Yield the address of a proxy to `url`, and the heads of the requests that it got.

    It drops the first connection after `size` bytes of the answer; the others are whole.
    """
    heads: list[bytes] = []
    target = urlsplit(url)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            left = 1 << 40 if heads else size
            heads.append(request := self.request.recv(1 << 16))
            with socket.create_connection((target.hostname, target.port), timeout=SECONDS) as upstream:
                upstream.sendall(request)
                pump = threading.Thread(target=_pump, args=(self.request, upstream))
                pump.start()
                with suppress(OSError):
                    while left > 0 and (data := upstream.recv(min(left, 1 << 16))):
                        self.request.sendall(data)
                        left -= len(data)
                    self.request.shutdown(socket.SHUT_RDWR)
                pump.join()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_address[1]}", heads
        finally:
            proxy.shutdown()
            thread.join()


def _pump(client: socket.socket, upstream: socket.socket) -> None:
    """Send on what the client sends; when it has closed its connection, close that to the server."""
    with suppress(OSError):
        while data := client.recv(1 << 16):
            upstream.sendall(data)
    with suppress(OSError):
        upstream.shutdown(socket.SHUT_RDWR)
