"""`python_repl_tool` and `bash_tool`: a model's code, run in the sandbox in its thread's workspace."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.reading.pictures import picture_of
from maniple.sandbox import Completed, Sandbox, Workspace, Workspaces
from maniple.sandbox.backend import SILENCE
from maniple.tools.live_output import LiveOutput
from maniple.tools.run_context import thread_key
from maniple.tools.written import Writes, written

_MAX_PICTURE_BYTES = 2_000_000

Result = tuple[str, list[str]]
"""What the model reads, and the workspace paths of the figures that were drawn."""


def code_tools(
    sandbox: Sandbox, workspaces: Workspaces, *, packages: str = "", network: str = "No network."
) -> list[BaseTool]:
    """Both tools. A result names the files that the code wrote; code that fails is a result, too.

    What is printed is told while the code runs (`live_output.py`).

    `packages` is a sentence on what can be imported beside the standard library, `network` one on what can be
    reached. Figures are the message's artifact, a list of paths. Raises `SandboxError` when nothing could be
    run.
    """

    async def run(code: str, call: Callable[..., Awaitable[Completed]]) -> Result:
        key = thread_key()
        place = await asyncio.to_thread(workspaces.open, key)
        writes = Writes(place)
        async with LiveOutput(sandbox.output_bytes) as live:
            completed = await call(code, key=key, workspace=place, during=writes, on_output=live)
        files = written(writes.paths)
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
        is_picture = head.size <= _MAX_PICTURE_BYTES and picture_of(head.content) is not None
        return head.content if is_picture else b""

    return read
