"""`python_repl_tool` and `bash_tool`: a model's code, run in the sandbox in its thread's workspace."""

import asyncio
from collections.abc import Awaitable, Callable

from langchain_core.tools import BaseTool, StructuredTool

from maniple.sandbox import Completed, Sandbox, Workspaces
from maniple.sandbox.backend import SILENCE
from maniple.tools.live_output import LiveOutput
from maniple.tools.scope import thread_key
from maniple.tools.written import Writes, written

_PNG = b"\x89PNG\r\n\x1a\n"
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
        figures = f"[figures drawn: {', '.join(completed.images)}]" if completed.images else ""
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
        )
        for name, description in descriptions.items()
    ]


def figure_reader(workspaces: Workspaces) -> Callable[[str], Awaitable[bytes]]:
    """Read a figure of the thread that is being worked for; nothing for what is no picture of sensible size.

    Raises `FileError`.
    """

    async def read(path: str) -> bytes:
        place = await asyncio.to_thread(workspaces.open, thread_key())
        head = await asyncio.to_thread(place.read, path, _MAX_PICTURE_BYTES)
        is_picture = head.content.startswith(_PNG) and head.size <= _MAX_PICTURE_BYTES
        return head.content if is_picture else b""

    return read
