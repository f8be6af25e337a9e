"""`python_repl_tool` and `bash_tool`: a model's code, run in the sandbox in its thread's workspace."""

import asyncio
import re
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from langchain_core.callbacks import adispatch_custom_event

from maniple.errors import FileError
from maniple.reading.pictures import identify_picture
from maniple.sandbox import ExecutionResult, Sandbox
from maniple.sandbox.notes import SILENCE
from maniple.scope.effects import begin_effect
from maniple.scope.run_scope import thread_key
from maniple.tools.registry import define_tool
from maniple.tools.text_file import escape_unprintable
from maniple.types import TOOL_OUTPUT
from maniple.workspace import Workspace, Workspaces, is_cache
from maniple.workspace.mirrors import MIRROR_FOLDERS

_MAX_PICTURE_BYTES = 2_000_000
_FENCE = re.compile(r"(?P<indentation>[ \t]*)(?P<mark>`{3,}|~{3,})[^`]*")

Result = tuple[str, list[str]]
"""The text for the model, and the workspace paths of the figures."""


@dataclass(frozen=True, slots=True)
class CodeEnvironment:
    """What the team's code can use, in sentences for the model; "" for nothing to mention."""

    packages: str = ""
    """What can be imported beside the standard library."""
    network: str = "No network."
    """What can be reached."""


def _describe_python(environment: CodeEnvironment, /) -> str:
    return _join(
        "Run Python code. Variables stay; matplotlib figures are kept.",
        "Print what you want to see.",
        environment.packages,
        environment.network,
    )


def _describe_bash(environment: CodeEnvironment, /) -> str:
    return _join("Run a bash command in Python's folder.", environment.network)


def _join(*sentences: str) -> str:
    return " ".join(" ".join(sentences).split())


async def _prepare(sandbox: Sandbox, workspaces: Workspaces, /) -> None:
    """Start the thread's sandbox."""
    key = thread_key()
    await sandbox.prepare(key, await asyncio.to_thread(workspaces.open, key))


# The sandbox has its own time limit, which excludes the wait for a session slot.
@define_tool(
    "python_repl_tool",
    _describe_python,
    roles=("coder",),
    is_core=True,
    response_format="content_and_artifact",
    prepare=_prepare,
    timeout_seconds=None,
    marks_effect=True,
)
async def run_python(sandbox: Sandbox, workspaces: Workspaces, /, code: str) -> Result:
    """Run code in the thread's workspace; code that fails is a result, too.

    What is printed is sent while the code runs (see `LiveOutput`). The result names the files that the code
    wrote; figures are the message's artifact. Raises `SandboxError` when nothing could be run.
    """
    return await _run(sandbox, workspaces, unwrap_code(code), sandbox.run_python)


@define_tool(
    "bash_tool",
    _describe_bash,
    roles=("coder",),
    is_core=True,
    response_format="content_and_artifact",
    prepare=_prepare,
    timeout_seconds=None,
    marks_effect=True,
)
async def run_bash(sandbox: Sandbox, workspaces: Workspaces, /, cmd: str) -> Result:
    """Run a command as `run_python` runs code."""
    return await _run(sandbox, workspaces, unwrap_code(cmd), sandbox.run_bash)


def unwrap_code(text: str) -> str:
    """Return code without what models write around it: fences, CR line ends, a common indentation.

    No program begins with a fence, so one around it can only be Markdown; several blocks are one program. A
    Python program whose first line is indented is not valid.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    lines = text.strip("\n").split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    if lines and (opening := _FENCE.fullmatch(lines[0])):
        indentation = opening["indentation"]
        lines = _fenced_lines([line.removeprefix(indentation) for line in lines], opening["mark"])
        text = "\n".join(lines)
    return textwrap.dedent(text) if lines and lines[0][:1].isspace() else text


def _fenced_lines(lines: Sequence[str], mark: str) -> list[str]:
    """Return the lines in the fences of a text that begins with one; the program may print fences, too."""
    bare = [line.rstrip() for line in lines]
    opening, closings = bare[0], [n for n, line in enumerate(bare) if n and line == mark]
    marks = [line for line in bare if line in (opening, mark)]
    are_blocks = opening != mark and marks == [opening, mark] * (len(marks) // 2)
    if not are_blocks or len(marks) == 2:  # one block, to its last closing mark
        if not closings and bare[-1].strip(f"{mark[0]} \t") == "":
            closings = [len(bare) - 1]
        return list(lines[1 : closings[-1] if closings else None])
    found, is_inside = list[str](), False
    for line in lines:
        if line.rstrip() in (opening, mark):
            is_inside = line.rstrip() == opening
        elif is_inside:
            found.append(line)
    return found


async def _run(
    sandbox: Sandbox, workspaces: Workspaces, code: str, call: Callable[..., Awaitable[ExecutionResult]]
) -> Result:
    key = thread_key()
    workspace = await asyncio.to_thread(workspaces.open, key)
    writes = WorkspaceWrites(workspace)
    async with LiveOutput(sandbox.output_bytes) as live:
        completed = await call(code, key=key, workspace=workspace, during=writes, on_output=live)
    files = "\n".join(filter(None, (format_written(writes.paths), _explain_read_only(completed))))
    # Code that wrote a file is not expected to print.
    text = completed.text(silence="" if files else SILENCE)
    figures = await asyncio.to_thread(_describe_figures, workspace, completed.images)
    return "\n".join(filter(None, (text, figures, files))), list(completed.images)


_READ_ONLY = re.compile(rf"Read-only file system.{{0,200}}?\b({'|'.join(MIRROR_FOLDERS)})\b", re.DOTALL)
_READ_ONLY_IN_BASH = re.compile(rf"\b({'|'.join(MIRROR_FOLDERS)})\b[^\n]{{0,200}}Read-only file system")


def _explain_read_only(completed: ExecutionResult) -> str:
    """Return what to do for code that could not write among the team's own records; "" for other code."""
    said = completed.text(silence="")
    if (found := _READ_ONLY.search(said) or _READ_ONLY_IN_BASH.search(said)) is None:
        return ""
    return f"[{found[1]}/ holds the team's own records and is read-only to code: write to another folder]"


def _describe_figures(workspace: Workspace, paths: Sequence[str]) -> str:
    """Return a line that names the figures, and those that are too large to be shown to a model. Blocks."""
    if not paths:
        return ""
    large = [path for path in paths if _size(workspace, path) > _MAX_PICTURE_BYTES]
    named = f"[figures drawn: {', '.join(paths)}]"
    if not large:
        return named
    limit = f"{_MAX_PICTURE_BYTES // 1_000_000} MB"
    return (
        f"{named}\n[over {limit} and not shown to you: {', '.join(large)}; draw with a lower dpi to see it]"
    )


def _size(workspace: Workspace, path: str) -> int:
    try:
        return workspace.read(path, 0).size
    except FileError:  # background processes of the code may have removed it
        return 0


def figure_reader(workspaces: Workspaces) -> Callable[[str], Awaitable[bytes]]:
    """Return a function that reads a picture of the current thread; b"" if it is no picture or too large.

    It raises `FileError`.
    """

    async def read(path: str) -> bytes:
        workspace = await asyncio.to_thread(workspaces.open, thread_key())
        head = await asyncio.to_thread(workspace.read, path, _MAX_PICTURE_BYTES)
        is_picture = head.size <= _MAX_PICTURE_BYTES and identify_picture(head.content) is not None
        return head.content if is_picture else b""

    return read


# The interval of output events; a call that ends sooner sends all output with its result.
_EVERY_SECONDS = 0.3

_Stream = Literal["stdout", "stderr"]


class LiveOutput:
    """Dispatches the output of a running tool call as custom events of the call.

    An event is `TOOL_OUTPUT` with `{"stream", "text"}`, at most one per stream every 0.3 s, and at most
    `most_characters` in total. The result contains the whole output.
    """

    def __init__(self, most_characters: int) -> None:
        self._left = most_characters
        self._waiting: dict[_Stream, list[str]] = {}
        self._has_output = asyncio.Event()
        self._sender: asyncio.Task[None] | None = None

    def __call__(self, stream: _Stream, text: str) -> None:
        """Add a piece of output."""
        if piece := text[: self._left]:
            self._left -= len(piece)
            self._waiting.setdefault(stream, []).append(piece)
            self._has_output.set()

    async def __aenter__(self) -> "LiveOutput":
        # Created here, so that the task has the context of the call, to which LangChain assigns the events.
        self._sender = asyncio.create_task(self._send_output(), name="live output")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._sender is not None:
            self._sender.cancel()
            await asyncio.wait([self._sender])

    async def _send_output(self) -> None:
        while True:
            await self._has_output.wait()
            await asyncio.sleep(_EVERY_SECONDS)
            self._has_output.clear()
            waiting, self._waiting = self._waiting, {}
            for stream, pieces in waiting.items():
                await adispatch_custom_event(TOOL_OUTPUT, {"stream": stream, "text": "".join(pieces)})


WRITTEN = "[files written: "
"""The beginning of the line that names written files."""
# A scan of this many files takes 40 ms, before and after each call; one of 100 files takes less than 1 ms.
_WATCHED_FILES = 10_000
_NAMED_FILES = 10

Stamps = set[tuple[str, int, int]]
"""(path, bytes, time of the last change in nanoseconds) of each file."""


class WorkspaceWrites:
    """Records the files that are written in a workspace while the context is open.

    If there are more files than are watched, the scanned subset is arbitrary. Then only files that are in
    both scans count.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._before: Stamps = set()
        self.paths: list[str] = []
        """The sorted paths, without caches."""

    async def __aenter__(self) -> Callable[[], Awaitable[None]]:
        self._before = await self._stamps()
        return begin_effect

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.paths = changed_paths(self._before, await self._stamps(), _WATCHED_FILES)

    async def _stamps(self) -> Stamps:
        return await asyncio.to_thread(self._workspace.stamps, _WATCHED_FILES)


def changed_paths(before: Stamps, after: Stamps, most: int) -> list[str]:
    """Return the paths of files written between two scans of at most `most` files."""
    paths = {path for path, *_ in after - before if not is_cache(path)}
    if max(len(before), len(after)) >= most:
        paths &= {path for path, *_ in before}
    return sorted(paths)


def format_written(paths: Sequence[str]) -> str:
    """Return the line that names `paths`, which are relative to the workspace; "" if there are none."""
    if not paths:
        return ""
    named = ", ".join(escape_unprintable(path) for path in paths[:_NAMED_FILES])
    more = f" and {len(paths) - _NAMED_FILES} more" if len(paths) > _NAMED_FILES else ""
    return f"{WRITTEN}{named}{more}]"
