"""Sessions on another machine: mirrored files, limited output and time, and no leftovers at the end.

`RemoteMachine` is what differs between services. The data that a machine reports about its files is
untrusted: names, sizes and contents go through the workspace, which checks each path, and both directions are
limited in number and bytes.
"""

import asyncio
import base64
import binascii
import shlex
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox.backend import ExecutionResult, OnOutput
from maniple.sandbox.processes import TruncatedBuffer
from maniple.workspace.files import FileHead, Workspace
from maniple.workspace.safe_open import MAX_DEPTH, split_path

MAX_FILES = 1000
"""The number of mirrored files per workspace; further files stay where they are."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Identifies a state of a file: its bytes and its modification time."""

    size: int
    changed: str


class RemoteFiles(Protocol):
    """The files of the working directory on another machine. Raises `SandboxError` when it is lost."""

    async def stamps(self, limit: int) -> Mapping[str, FileStamp]:
        """Return up to `limit` regular files by path."""
        ...

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """Return a whole file; raises `FileError` if it is larger, missing or unreadable."""
        ...

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None: ...

    async def remove(self, paths: Sequence[str]) -> None: ...


class WorkspaceMirror:
    """Uploads changed files before a call and downloads them after it."""

    def __init__(self, workspace: Workspace, remote: RemoteFiles, limit_bytes: int) -> None:
        """`limit_bytes` is the limit for all files of one transfer in one direction."""
        self._workspace = workspace
        self._remote = remote
        self._limit_bytes = limit_bytes
        self._here: dict[str, FileStamp] = {}
        self._there: dict[str, FileStamp] = {}

    async def up(self) -> str:
        """Upload what changed on the host; return a sentence about skipped files, or ""."""
        now = await self._host_stamps()
        gone = [path for path in self._here if path not in now and path in self._there]
        if gone:
            await self._remote.remove(gone)
        left = _SkippedFiles("not in the sandbox")
        if len(now) > MAX_FILES:
            left.add(f"all but {MAX_FILES} files")
        changed = [path for path, stamp in now.items() if self._here.get(path) != stamp][:MAX_FILES]
        sent = await asyncio.to_thread(self._read, changed, left)
        if sent:
            await self._remote.put(sent)
        self._here = now
        if sent or gone:
            there = await self._remote.stamps(MAX_FILES)
            known = {path for path in self._there if path not in gone} | {path for path, _ in sent}
            # Other changes there, by background processes, are left for the download.
            fresh = {path for path, _ in sent}
            self._there = {
                path: there[path] if path in fresh else self._there[path] for path in known if path in there
            }
        return str(left)

    async def down(self) -> str:
        """Download what changed on the machine; return a sentence about skipped files, or ""."""
        now = await self._remote.stamps(MAX_FILES + 1)
        left = _SkippedFiles("not brought out of the sandbox")
        if len(now) > MAX_FILES:
            left.add(f"all but {MAX_FILES} files")
        changed = [path for path, stamp in now.items() if self._there.get(path) != stamp][:MAX_FILES]
        written: list[str] = []
        room = self._limit_bytes
        for path in changed:
            most = min(room, self._workspace.max_file_bytes)
            size = await self._download(path, now[path].size, most, left)
            if size is not None:
                room -= size
                written.append(path)
        if len(now) <= MAX_FILES:
            await self._remove_deleted([path for path in self._there if path not in now])
        self._there = dict(now)
        if written:
            here = await self._host_stamps()
            self._here |= {path: here[path] for path in written if path in here}
        return str(left)

    def _read(self, paths: Sequence[str], left: "_SkippedFiles") -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        room = self._limit_bytes
        for path in paths:
            try:
                head = self._workspace.read(path, room + 1)
            except FileError as error:
                left.add(str(error))
                continue
            if head.size > room or len(head.content) != head.size:
                left.add(f"{path!r} ({head.size} bytes; {self._limit_bytes} go over at once)")
                continue
            room -= head.size
            found.append((path, head.content))
        return found

    async def _download(
        self, path: str, reported_bytes: int, limit_bytes: int, left: "_SkippedFiles"
    ) -> int | None:
        if reported_bytes > limit_bytes:
            left.add(f"{path!r} has more than the {limit_bytes} bytes that can be stored.")
            return None
        try:
            split_path(path)
            # Some services do not distinguish an empty file from a missing one.
            content = await self._remote.fetch(path, limit_bytes) if reported_bytes else b""
            await asyncio.to_thread(self._workspace.write, path, content)
        except FileError as error:
            self._here.pop(path, None)  # what code changed and may not change is uploaded again
            left.add(str(error))
            return None
        return len(content)

    async def _remove_deleted(self, gone: Sequence[str]) -> None:
        """Remove on the host the files that code removed on the machine, unless the host changed them."""
        if not gone:
            return
        now = await self._host_stamps()
        for path in gone:
            if path in self._here and self._here.pop(path) == now.get(path):
                with suppress(FileError):  # it may not be removed, and is uploaded again
                    await asyncio.to_thread(self._workspace.delete, path)

    async def _host_stamps(self) -> dict[str, FileStamp]:
        stamps = await asyncio.to_thread(self._workspace.stamps, MAX_FILES + 1)
        return {path: FileStamp(size, str(changed)) for path, size, changed in sorted(stamps)}


class _SkippedFiles:
    """Collects the files that were not transferred, for one sentence."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._what: list[str] = []

    def add(self, what: str) -> None:
        self._what.append(what)

    def __str__(self) -> str:
        if not self._what:
            return ""
        more = len(self._what) - _NAMED
        named = "; ".join(self._what[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
        return f"[{self._where}: {named}]"


MAX_FIGURES = 10
MAX_FIGURE_BYTES = 5_000_000
# An SDK's work per piece occupies the event loop, and so much output would be dropped anyway.
_FLOOD_BYTES = 4_000_000
_STOP_SECONDS = 10
_FIGURES_LOOKED_AT = 1000
LOST = "The Python process was ended, so variables and imports are gone; the files are still there."


class OutputFloodError(Exception):
    """A call printed more than the host accepts; raised by `CallOutput.add`."""


class CallOutput:
    """The output of one call, as it arrives."""

    def __init__(self, limit_bytes: int, on_output: OnOutput | None) -> None:
        self._captures = {"stdout": TruncatedBuffer(limit_bytes), "stderr": TruncatedBuffer(limit_bytes)}
        self._on_output = on_output
        self._total_bytes = 0

    @property
    def is_flooded(self) -> bool:
        """Whether the total output is too large."""
        return self._total_bytes > _FLOOD_BYTES

    def add(self, stream: Literal["stdout", "stderr"], text: str) -> None:
        """Add a piece of text; raises `OutputFloodError` if the total output is too large."""
        data = text.encode(errors="replace")
        self._total_bytes += len(data)
        self._captures[stream].data_received(data)
        if self._on_output is not None:
            self._on_output(stream, text)
        if self.is_flooded:
            raise OutputFloodError

    def text(self, stream: Literal["stdout", "stderr"]) -> str:
        """Return the output of a stream; the middle of a long one is cut."""
        return self._captures[stream].text()


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """The result of a call that was not interrupted. `figures` are PNG files."""

    exit_code: int
    value: str = ""
    figures: tuple[bytes, ...] = ()


class RemoteMachine(RemoteFiles, Protocol):
    """One sandbox of a service. Raises `SandboxError` with what to do when it fails or has ended."""

    async def python(self, code: str, output: CallOutput) -> CallOutcome:
        """Run code with the variables of the calls before."""
        ...

    async def bash(self, command: str, output: CallOutput) -> CallOutcome:
        """Run a command; when cancelled, it is killed before this returns."""
        ...

    async def restart_python(self) -> None:
        """End the Python process with its variables."""
        ...

    async def extend_lifetime(self) -> None:
        """Postpone the time at which the service ends an idle machine."""
        ...

    async def close(self) -> None:
        """End the machine with all its processes; a machine that has ended already is no error."""
        ...


class RemoteSession:
    """A thread's session on a machine of a service."""

    def __init__(self, machine: RemoteMachine, workspace: Workspace, settings: SandboxSettings) -> None:
        self._machine = machine
        self._workspace = workspace
        self._settings = settings
        self._mirror = WorkspaceMirror(workspace, machine, settings.disk_mb * 1_000_000)
        self._stopping: asyncio.Task[None] | None = None
        self.background = None

    @property
    def is_alive(self) -> bool:
        """Whether it can take another call."""
        return self._stopping is None

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> ExecutionResult:
        """Run Python code where its variables are."""
        return await self._run(lambda output: self._machine.python(code, output), on_output, python=True)

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> ExecutionResult:
        """Run a command of bash in a process of its own."""
        return await self._run(lambda output: self._machine.bash(command, output), on_output, python=False)

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        """The first bytes of a file, as the last call left it."""
        return await asyncio.to_thread(self._workspace.read, path, limit_bytes)

    async def write(self, path: str, content: bytes) -> None:
        """Make or replace a file; the next call sees it."""
        await asyncio.to_thread(self._workspace.write, path, content)

    async def list(self, limit: int) -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` files."""
        return await asyncio.to_thread(self._workspace.files, limit)

    async def stop(self) -> None:
        """End the machine, and wait for that; a second time does nothing."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._close())
        await asyncio.shield(self._stopping)

    async def _run(
        self,
        work: Callable[[CallOutput], Coroutine[Any, Any, CallOutcome]],
        on_output: OnOutput | None,
        *,
        python: bool,
    ) -> ExecutionResult:
        if not self.is_alive:
            raise SandboxError("The sandbox has ended; run the code again for a new one.")
        try:
            return await self._mirrored(work, CallOutput(self._settings.output_bytes, on_output), python)
        except BaseException:  # the state there is unknown, so the machine is ended
            await self.stop()
            raise

    async def _mirrored(
        self, work: Callable[[CallOutput], Coroutine[Any, Any, CallOutcome]], output: CallOutput, python: bool
    ) -> ExecutionResult:
        await self._machine.extend_lifetime()
        left = [await self._mirror.up()]
        started = time.monotonic()
        end, why = await self._ended(work(output))
        seconds = time.monotonic() - started
        if end is None and python:
            await self._machine.restart_python()
        left.append(await self._mirror.down())
        images = await self._store_figures(end.figures) if end is not None else ()
        return ExecutionResult(
            exit_code=137 if end is None else end.exit_code,
            stdout=output.text("stdout"),
            stderr="\n".join(filter(None, (output.text("stderr"), why if why != "timeout" else "", *left))),
            seconds=seconds,
            timed_out=why == "timeout",
            value=end.value if end is not None else "",
            images=images,
            lost=LOST if end is None and python else "",
        )

    async def _ended(self, work: Coroutine[Any, Any, CallOutcome]) -> tuple[CallOutcome | None, str]:
        """Return the outcome, or None and why the work was interrupted."""
        # Not asyncio.timeout: some SDKs translate a cancellation into an error.
        task = asyncio.create_task(work)
        try:
            await asyncio.wait({task}, timeout=self._settings.timeout_seconds)
            if task.done():
                return task.result(), ""
        except OutputFloodError:
            return None, f"[stopped: it printed more than {_FLOOD_BYTES} bytes]"
        finally:
            await _cancel(task)
        return None, "timeout"

    async def _store_figures(self, figures: tuple[bytes, ...]) -> tuple[str, ...]:
        """Write figures beside the existing ones; figures that do not fit are omitted."""
        if not figures:
            return ()
        taken = {path for path, _ in await self.list(_FIGURES_LOOKED_AT)}
        free = (name for number in range(1, 10_000) if (name := f"figures/figure-{number}.png") not in taken)
        stored: list[str] = []
        for name, figure in zip(free, figures[:MAX_FIGURES], strict=False):
            try:
                await self.write(name, figure)
            except FileError:
                continue
            stored.append(name)
        return tuple(stored)

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await self._machine.close()
        except TimeoutError:
            # The service itself ends an idle machine.
            return


async def _cancel(task: asyncio.Task[CallOutcome]) -> None:
    task.cancel()
    await asyncio.wait({task}, timeout=_STOP_SECONDS)
    if task.done() and not task.cancelled():
        task.exception()  # retrieved: a failure during the interruption is irrelevant


@asynccontextmanager
async def close_on_failure(end: Callable[[], Awaitable[Any]]) -> AsyncIterator[None]:
    """Call `end` for a new machine that cannot be prepared."""
    try:
        yield
    except BaseException:  # a cancelled start must not leave a machine that costs money
        await asyncio.shield(end())
        raise


CALL_MARK = "MANIPLE_CALL"
"""The environment variable that marks the processes of one call."""
LISTING_BYTES = 2_000_000
_AT_ONCE = 20


def make_workspace() -> str:
    """Return a command that creates a working directory and prints it: /workspace, else one at home."""
    return (
        "mkdir -p /workspace 2>/dev/null && chmod 0777 /workspace 2>/dev/null "
        "|| sudo -n install -d -m 0777 /workspace 2>/dev/null; "
        'cd /workspace 2>/dev/null && test -w . || { mkdir -p "$HOME/workspace" && cd "$HOME/workspace"; }; '
        "pwd"
    )


def list_files(directory: str, limit: int) -> str:
    """Return a command that prints up to `limit` regular files as base64: bytes, modification time, path."""
    found = f"find . -xdev -maxdepth {MAX_DEPTH} -type f -links 1 -printf '%s %T@ %P\\0' 2>/dev/null"
    bounded = f"head -z -n {limit} | head -c {LISTING_BYTES} | base64 -w 0"
    return f"cd {shlex.quote(directory)} && {found} | {bounded}"


def read_listing(printed: str) -> dict[str, FileStamp]:
    """Parse the output of `list_files`; invalid entries are omitted."""
    try:
        entries = base64.b64decode(printed, validate=True).split(b"\0")
    except (binascii.Error, ValueError):
        return {}
    files: dict[str, FileStamp] = {}
    for entry in entries[:-1]:  # the last is empty, or cut
        size, _, rest = entry.decode(errors="replace").partition(" ")
        changed, _, path = rest.partition(" ")
        if path and size.isascii() and size.isdecimal():
            files[path] = FileStamp(int(size[:18]), changed[:40])
    return files


def print_file(directory: str, path: str, limit_bytes: int) -> str:
    """Return a command that prints a plus and the beginning of a file; nothing for a missing file."""
    name = shlex.quote(f"{directory}/{path}")
    return f"test -f {name} && printf + && head -c {limit_bytes} -- {name}"


def remove_files(directory: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield commands that remove files; the paths come from the host."""
    for start in range(0, len(paths), _AT_ONCE):
        names = shlex.join(f"./{path}" for path in paths[start : start + _AT_ONCE])
        yield f"cd {shlex.quote(directory)} && rm -f -- {names}"


def kill_call(mark: str) -> str:
    """Return a command that kills every process with this mark, in any process group."""
    marked = f"grep -lzsx {shlex.quote(f'{CALL_MARK}={mark}')} /proc/[0-9]*/environ"
    return f"for e in $({marked}); do p=${{e#/proc/}}; kill -KILL ${{p%%/*}}; done 2>/dev/null; true"
