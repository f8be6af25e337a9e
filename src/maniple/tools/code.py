"""`python_repl_tool` and `bash_tool`: a model's code, run in the sandbox in its thread's workspace."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from langchain_core.callbacks import adispatch_custom_event
from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.reading.pictures import identify_picture
from maniple.sandbox import ExecutionResult, Sandbox, Workspace, Workspaces
from maniple.sandbox.backend import SILENCE
from maniple.tools.run_context import thread_key
from maniple.tools.text_file import escape_unprintable
from maniple.types import TOOL_OUTPUT

_MAX_PICTURE_BYTES = 2_000_000

Result = tuple[str, list[str]]
"""What the model reads, and the workspace paths of the figures that were drawn."""


def code_tools(
    sandbox: Sandbox, workspaces: Workspaces, *, packages: str = "", network: str = "No network."
) -> list[BaseTool]:
    """Both tools. A result names the files that the code wrote; code that fails is a result, too.

    What is printed is sent while the code runs (see `LiveOutput`).

    `packages` is a sentence on what can be imported beside the standard library, `network` one on what can be
    reached. Figures are the message's artifact, a list of paths. Raises `SandboxError` when nothing could be
    run.
    """

    async def run(code: str, call: Callable[..., Awaitable[ExecutionResult]]) -> Result:
        key = thread_key()
        place = await asyncio.to_thread(workspaces.open, key)
        writes = WorkspaceWrites(place)
        async with LiveOutput(sandbox.output_bytes) as live:
            completed = await call(code, key=key, workspace=place, during=writes, on_output=live)
        files = format_written(writes.paths)
        # Whoever wrote a file need not print.
        said = completed.text(silence="" if files else SILENCE)
        figures = await asyncio.to_thread(_drawn, place, completed.images)
        return "\n".join(filter(None, (said, figures, files))), list(completed.images)

    async def run_python(code: str) -> Result:
        return await run(code, sandbox.run_python)

    async def run_bash(cmd: str) -> Result:
        return await run(cmd, sandbox.run_bash)

    descriptions = {
        "python_repl_tool": "Run Python code. Variables stay for the next call; matplotlib figures are kept. "
        f"Print what you want to see. {packages} {network}",
        "bash_tool": f"Run a bash command where Python's files are. {network}",
    }
    functions = {"python_repl_tool": run_python, "bash_tool": run_bash}
    return [
        StructuredTool.from_function(
            coroutine=functions[name],
            name=name,
            description=" ".join(description.split()),
            response_format="content_and_artifact",
            # The sandbox counts the seconds from when the code runs, and not while it waits for its place.
            metadata={"timeout_seconds": None},
        )
        for name, description in descriptions.items()
    ]


def _drawn(place: Workspace, paths: Sequence[str]) -> str:
    """Name the figures, and those that a model who can see is not shown. Blocks."""
    if not paths:
        return ""
    large = [path for path in paths if _size(place, path) > _MAX_PICTURE_BYTES]
    named = f"[figures drawn: {', '.join(paths)}]"
    if not large:
        return named
    limit = f"{_MAX_PICTURE_BYTES // 1_000_000} MB"
    return (
        f"{named}\n[over {limit} and not shown to you: {', '.join(large)}; draw with a lower dpi to see it]"
    )


def _size(place: Workspace, path: str) -> int:
    try:
        return place.read(path, 0).size
    except FileError:  # what the code left running may have removed it
        return 0


def figure_reader(workspaces: Workspaces) -> Callable[[str], Awaitable[bytes]]:
    """Read a picture of the thread that is being worked for; nothing for what is no picture of sensible size.

    Raises `FileError`.
    """

    async def read(path: str) -> bytes:
        place = await asyncio.to_thread(workspaces.open, thread_key())
        head = await asyncio.to_thread(place.read, path, _MAX_PICTURE_BYTES)
        is_picture = head.size <= _MAX_PICTURE_BYTES and identify_picture(head.content) is not None
        return head.content if is_picture else b""

    return read


# So old is what is told, and so often: a call that is over sooner says everything with its result.
_EVERY_SECONDS = 0.3

_Stream = Literal["stdout", "stderr"]


class LiveOutput:
    """Hears what a call prints, and dispatches it as custom events of the tool call that this is entered in.

    An event is `TOOL_OUTPUT` with `{"stream", "text"}`, at most one a stream every 0.3 s, and at most
    `most_characters` in all; the result tells the whole. Who listens is LangChain's matter: nobody, maybe.
    """

    def __init__(self, most_characters: int) -> None:
        self._left = most_characters
        self._waiting: dict[_Stream, list[str]] = {}
        self._heard = asyncio.Event()
        self._telling: asyncio.Task[None] | None = None

    def __call__(self, stream: _Stream, text: str) -> None:
        """Take a piece."""
        if piece := text[: self._left]:
            self._left -= len(piece)
            self._waiting.setdefault(stream, []).append(piece)
            self._heard.set()

    async def __aenter__(self) -> "LiveOutput":
        # Made in here, the task has the call's context, by which LangChain knows whose events these are.
        self._telling = asyncio.create_task(self._tell(), name="live output")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._telling is not None:
            self._telling.cancel()
            await asyncio.wait([self._telling])

    async def _tell(self) -> None:
        while True:
            await self._heard.wait()
            await asyncio.sleep(_EVERY_SECONDS)
            self._heard.clear()
            waiting, self._waiting = self._waiting, {}
            for stream, pieces in waiting.items():
                await adispatch_custom_event(TOOL_OUTPUT, {"stream": stream, "text": "".join(pieces)})


WRITTEN = "[files written: "
"""How the line begins that names them."""
# To look at so many takes 40 ms, before a call and after it; at 100, less than one.
_WATCHED_FILES = 10_000
_NAMED_FILES = 10

Stamps = set[tuple[str, int, int]]
"""(path, bytes, time of the last change in nanoseconds) of each file."""


class WorkspaceWrites:
    """What is written in a workspace from when this is entered until it is left.

    Of more files than are watched, which of them are seen is chance; then only those count that were seen
    before and after.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._before: Stamps = set()
        self.paths: list[str] = []
        """Sorted; what Python keeps for itself is left out."""

    async def __aenter__(self) -> None:
        self._before = await self._stamps()

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.paths = changed_paths(self._before, await self._stamps(), _WATCHED_FILES)

    async def _stamps(self) -> Stamps:
        return await asyncio.to_thread(self._workspace.stamps, _WATCHED_FILES)


def changed_paths(before: Stamps, after: Stamps, most: int) -> list[str]:
    """Return the paths of what was written in between, where at most `most` files were looked at."""
    paths = {path for path, *_ in after - before if "__pycache__" not in path.split("/")}
    if max(len(before), len(after)) >= most:
        paths &= {path for path, *_ in before}
    return sorted(paths)


def format_written(paths: Sequence[str]) -> str:
    """Return the line that names `paths`; "" for none. Where they lie is nobody's business but the host's."""
    if not paths:
        return ""
    named = ", ".join(escape_unprintable(path) for path in paths[:_NAMED_FILES])
    more = f" and {len(paths) - _NAMED_FILES} more" if len(paths) > _NAMED_FILES else ""
    return f"{WRITTEN}{named}{more}]"
