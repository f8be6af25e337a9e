"""Lets code inside a sandbox try to get out, before the sandbox is handed to anybody."""

import asyncio
import fcntl
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path

from maniple.errors import FileError
from maniple.sandbox.account import sandbox_account
from maniple.sandbox.backend import Completed
from maniple.sandbox.beneath import open_directory, open_regular
from maniple.sandbox.usage import find_inside
from maniple.sandbox.watched import Watchable, WatchableBackend
from maniple.sandbox.workspace import Workspace
from maniple.sandbox.workspaces import Workspaces
from maniple.types import Unavailable

# What `escapes.py` makes in the workspace.
_DAEMONS_LOCK, _PLANTED = "daemon", ("planted", "planted-folder/canary")


async def find_escapes(
    backend: WatchableBackend, variables: set[str], processes: int
) -> list[str] | Unavailable:
    """What code could do that it must not, each completing "Code in the sandbox could …".

    `variables` and `processes` are what it may see in its environment and how many it may start. Costs one
    session. Raises `SandboxError` if nothing runs at all.
    """
    with ExitStack() as stack:
        try:
            code, workspace = await asyncio.to_thread(stack.enter_context, _baits(variables, processes))
        except (FileError, OSError) as error:
            return Unavailable(f"The sandbox could not be tried out: {error}", await _remedy())
        try:
            session = await backend.start(workspace)
            try:
                completed = await session.run_python(code)
                unseen = await asyncio.to_thread(_unseen, session)
            finally:
                await session.stop()
            remains = await asyncio.to_thread(_remains, workspace)
        finally:
            await asyncio.to_thread(stack.close)
    if (escapes := _told(completed)) is None:
        reason = f"The sandbox's own test did not finish: {completed.text()}"
        return Unavailable(reason, "check the limits and `sandbox.python` in the settings.")
    return [*escapes, *unseen, *remains]


def _told(completed: Completed) -> list[str] | None:
    *escapes, last = completed.stdout.splitlines() or [""]
    return escapes if last == "end of probes" else None


def _unseen(session: Watchable) -> list[str]:
    """Whether the watchdog would see the session."""
    inside = find_inside(session.pid)
    if inside is None:
        return [
            "share more memory than its limit among its processes, which the server may not look at "
            "(one that is root needs CAP_SYS_PTRACE, as `docker run --cap-add SYS_PTRACE` gives it)"
        ]
    inside.close()
    return []


def _remains(workspace: Workspace) -> list[str]:
    """Look at what the ended session left, as the host's tools do."""
    found = []
    for path in _PLANTED:
        try:
            workspace.read(path, 100)
        except FileError:
            continue
        found.append(f"lead the server's own eyes out of the workspace ({path})")
    with open_directory(workspace.path, ()) as directory, open_regular(_DAEMONS_LOCK, directory) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            found.append("leave a process behind that outlives it")
    return found


@contextmanager
def _baits(variables: set[str], processes: int) -> Iterator[tuple[str, Workspace]]:
    """Things on the host to reach for; yields the code that tries to, and where to run it."""
    with _folder() as outside, _listeners() as (tcp, abstract):
        # Not protected by anything but the sandbox.
        Path(outside).chmod(0o755)
        canary = Path(outside, "canary")
        canary.write_text("outside")
        arguments = (str(canary), tcp, abstract, variables, processes)
        source = resources.files("maniple.sandbox").joinpath("escapes.py").read_text()
        code = f"{source}\n\nprint_escapes({', '.join(map(repr, arguments))})\n"
        yield code, Workspaces(Path(outside, "workspaces")).open("probe")


@contextmanager
def _folder() -> Iterator[str]:
    """A temporary folder. Python 3.11's own never ends removing one that may not be entered."""
    folder = tempfile.mkdtemp(prefix="maniple-probe-")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def _remedy() -> str:
    """What helps where nothing can be put into the temporary folder."""
    if sandbox_account() is not None:
        # It may write there, and may not enter what it has given away.
        return "do not be root, or be one with all its rights (docker takes some with `--cap-drop`)."
    try:
        folder = await asyncio.to_thread(tempfile.gettempdir)
    except OSError:  # there is none
        folder = "one of these folders"
    return f"let this user write to {folder}, or `export TMPDIR=FOLDER` with a folder of its own."


@contextmanager
def _listeners() -> Iterator[tuple[tuple[str, int], str]]:
    """A TCP listener on loopback and one on an abstract unix address."""
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix,
    ):
        abstract = f"\0maniple-probe-{os.getpid()}-{tcp.getsockname()[1]}"
        unix.bind(abstract)
        unix.listen()
        yield tcp.getsockname(), abstract
