"""A server process whose output is recorded."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.forking import Forked
from tests.serving import ROOT

_ADDRESS = re.compile(r"Serving on (http://127\.0\.0\.1:\d+)")


class LoggedServer:
    """A running server: its address, its process, and what it has written to stdout and stderr."""

    def __init__(self, command: Sequence[str], cwd: Path, env: dict[str, str]) -> None:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        self.process = Forked(command, cwd=cwd, env=env, text=True, encoding="utf-8", **pipes)
        self.url = ""
        self._lines: list[str] = []
        self._known = threading.Event()
        self._listening = threading.Thread(target=self._listen)
        self._listening.start()

    @property
    def output(self) -> str:
        return "".join(self._lines)

    def wait_until_it_serves(self) -> None:
        self._known.wait(60)
        assert self.url, f"the server ended at its start:\n{self.output}"

    def stop(self) -> None:
        """Stop it as an operator does; record its output until it ends."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._listening.join()
        if self.process.stdout:
            self.process.stdout.close()

    def _listen(self) -> None:
        for line in self.process.stdout or ():
            self._lines.append(line)
            if found := _ADDRESS.search(line):
                self.url = found[1]
                self._known.set()
        self._known.set()


@contextmanager
def open_server(env: dict[str, str], cwd: Path, *, before: Sequence[str] = ()) -> Iterator[LoggedServer]:
    """Start `server.py` on a free port, after the words `before`, and stop it in the end."""
    env = {**env, "PYTHONPATH": str(ROOT), "MANIPLE_SERVER__PORT": "0"}
    server = LoggedServer([*before, sys.executable, str(ROOT / "server.py")], cwd, env)
    try:
        server.wait_until_it_serves()
        yield server
    finally:
        server.stop()
