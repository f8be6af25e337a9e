"""The programs `main.py`, `server.py` and `maniple`, forked from a Python that has imported what they need.

Importing the frameworks is most of a start. So each worker of the tests has a fork server, which imports them
once and then forks. What it forks is a real process with its own id, files, signals and end, a child of
the test's process like any other; it differs from `python main.py` in what was imported before, in that it
leaves the probes to the first process with the same kind of sandbox, and in that its memory is not freed at
its end. Starts that mean the very command (in a shell, as another user, with other settings of Python) go
the usual way.
"""

import atexit
import fcntl
import functools
import gc
import importlib
import io
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import CDLL, byref, c_int
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from tests.probes import FolderOfKinds, probing_each_kind_once

__all__ = ["Forked", "forking"]

ROOT = Path(__file__).parents[1]
PROGRAMS = {str(ROOT / "main.py"), str(ROOT / "server.py"), str(Path(sys.executable).with_name("maniple"))}
_ON_TERMINAL = ["setsid", "--ctty"]
_IMPORTED = (
    *("maniple.cli.app", "maniple.cli.chat", "maniple.cli.services", "maniple.api", "maniple.app"),
    *("maniple.llms.chat", "maniple.llms.streams", "maniple.store.sqlite.store", "maniple.telemetry.metrics"),
    *("maniple.cli.chat.session", "maniple.cli.chat.answers", "maniple.tools.text_editor"),
    *("uvicorn.loops.auto", "uvicorn.protocols.http.auto", "uvicorn.lifespan.on", "prompt_toolkit"),
    *("openai.resources.chat.completions.completions", "openai.lib.streaming.chat"),
    *("langchain_core.tracers.run_collector", "langchain_core.tracers.stdout", "webbrowser"),
    *("langchain_core.messages.block_translators.langchain_v0", "encodings.unicode_escape"),
    "typer._click.decorators",
    *("httpcore", "httpcore2", "anyio._backends._asyncio", "uvloop"),
)
"""What each start imports, and what the first run of each process imports inside of functions."""
_SET_SUBREAPER, _GET_SUBREAPER = 36, 37
_LONGEST = 1 << 17


class Forked(subprocess.Popen[Any]):
    """A process like `subprocess.Popen` starts; one of the programs comes from the fork server."""

    def _execute_child(self, args: Any, *given: Any) -> None:
        _, _, _, _, cwd, env, _, _, _, *pipes = given[:15]
        words = [] if isinstance(args, str | bytes | os.PathLike) else [os.fspath(word) for word in args]
        on_terminal = words[:2] == _ON_TERMINAL
        python, *command = words[2 * on_terminal :] or [""]
        if python != sys.executable or not command or command[0] not in PROGRAMS or not _is_usual(env):
            start: Any = super()
            return start._execute_child(args, *given)
        # For input, output and errors there are two ends each, one to read and one to write.
        files = [own if end < 0 else end for own, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        asked = {"command": command, "cwd": os.fspath(cwd or "."), "env": env, "on_terminal": on_terminal}
        self.pid = _fork_server().fork(asked, files)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


@contextmanager
def forking() -> Iterator[None]:
    """Let asyncio start the programs from the fork server, too."""
    with mock.patch("asyncio.unix_events.subprocess", SimpleNamespace(Popen=Forked, PIPE=subprocess.PIPE)):
        yield


def _is_usual(env: Mapping[str, str] | None) -> bool:
    """Whether Python would be set up in it as the fork server is, but for where it imports from."""
    own = {name for name in env or {} if name.startswith(("PYTHON", "LC_")) and name != "PYTHONPATH"}
    return env is not None and not own and env.get("LANG") == "C.UTF-8"


class _ForkServer:
    """The process that forks, seen from the tests."""

    def __init__(self) -> None:
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        env = {"PATH": os.environ["PATH"], "HOME": os.devnull, "LANG": "C.UTF-8"}
        self._probed = tempfile.TemporaryDirectory(prefix="probed-")
        command = [sys.executable, "-m", __name__, str(theirs.fileno()), self._probed.name]
        self._process = subprocess.Popen(command, cwd=ROOT, env=env, pass_fds=[theirs.fileno()])
        theirs.close()
        self._asking = threading.Lock()

    def fork(self, asked: Mapping[str, Any], files: Sequence[int]) -> int:
        """Return the id of a process that has become this process's child."""
        with self._asking, _inheriting_orphans():
            socket.send_fds(self._channel, [json.dumps(asked).encode()], files)
            pid = int(self._channel.recv(100) or b"0")
            assert pid, "the fork server has ended"
            return pid

    def close(self) -> None:
        """End it; the processes that it has forked continue."""
        self._channel.close()
        self._process.wait(30)
        self._probed.cleanup()


@functools.cache
def _fork_server() -> _ForkServer:
    server = _ForkServer()
    atexit.register(server.close)
    return server


@contextmanager
def _inheriting_orphans() -> Iterator[None]:
    libc, before = CDLL(None), c_int()
    libc.prctl(_GET_SUBREAPER, byref(before), 0, 0, 0)
    libc.prctl(_SET_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(_SET_SUBREAPER, before.value, 0, 0, 0)


def _asked(channel: socket.socket) -> dict[str, Any] | None:
    """Fork for each request.

    Return the request in the new process, and None in the fork server at its end.
    """
    while True:
        message, files, *_ = socket.recv_fds(channel, _LONGEST, 3)
        if not message:
            return None
        reader, writer = os.pipe()
        between = os.fork()
        if not between:
            parent, program = os.getpid(), os.fork()
            if not program:
                os.close(reader)
                os.close(writer)
                channel.close()
                return {**json.loads(message), "files": files, "parent": parent}
            os.write(writer, b"%d" % program)
            os._exit(0)
        os.close(writer)
        for file in files:
            os.close(file)
        os.waitpid(between, 0)
        channel.send(os.read(reader, 100))
        os.close(reader)


def _become(asked: dict[str, Any]) -> None:
    """Be as if this process had been started so."""
    while os.getppid() == asked["parent"]:
        time.sleep(0.001)
    if asked["on_terminal"]:
        os.setsid()
    for number, file in enumerate(asked["files"]):
        os.dup2(file, number)
        os.close(file)
    if asked["on_terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    time.tzset()
    sys.argv = asked["command"]
    _open_streams()
    _import_from(asked["env"].get("PYTHONPATH", ""))


def _import_from(path: str) -> None:
    """Look for modules there first, and run its `sitecustomize`, as Python does when it starts."""
    folders = [folder for folder in path.split(os.pathsep) if folder and folder != str(ROOT)]
    sys.path[:0] = folders
    for folder in folders:
        if (Path(folder) / "sitecustomize.py").is_file():
            runpy.run_path(f"{folder}/sitecustomize.py")


def _open_streams() -> None:
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        binary = os.fdopen(number, "wb" if number else "rb")
        errors = "backslashreplace" if name == "stderr" else "surrogateescape"
        lines = name == "stderr" or binary.isatty()
        stream = io.TextIOWrapper(binary, "utf-8", errors, line_buffering=lines)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _build_shared_parts() -> None:
    """Build what a process builds once: the schemas of the tools, and the OpenAPI document."""
    from maniple.api import create_app
    from maniple.config import Settings
    from maniple.tools import registry

    create_app(Settings()).openapi()
    for tool in registry.load_tools().definitions:
        registry._infer_schema(tool.name, tool.function)


def main() -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    _build_shared_parts()
    assert threading.active_count() == 1, "what is forked would lack the other threads"
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as channel:
        asked = _asked(channel)
    if asked:
        probed = FolderOfKinds(Path(sys.argv[2]))
        _become(asked)
        with probing_each_kind_once(probed):
            _run_program(asked["command"][0])


def _run_program(path: str) -> None:
    """Run the program and exit without freeing what was imported.

    Freeing writes to each object, so the whole memory that is shared with the fork server would be copied.
    """
    status = 0
    try:
        runpy.run_path(path, run_name="__main__")
    except SystemExit as end:
        if not isinstance(end.code, int | None):
            raise
        status = end.code or 0
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(status)  # Python has its own status for output that is lost.
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
