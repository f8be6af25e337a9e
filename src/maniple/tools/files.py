"""`write_file`, `read_file` and `list_files` in the workspace of the thread."""

import asyncio
from collections.abc import Awaitable, Callable

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.sandbox import Workspace, Workspaces
from maniple.tools.page import Wanted, page
from maniple.tools.run_context import thread_key
from maniple.tools.written import printable

_LISTED_FILES = 200


def presence(workspaces: Workspaces) -> Callable[[], Awaitable[bool]]:
    """Return what says whether there is any file in the current thread's workspace."""

    async def has_files() -> bool:
        try:
            files = await asyncio.to_thread(workspaces.files, thread_key(), 1)
        except FileError:
            return True  # the tools say what is wrong with it
        return bool(files.found)

    return has_files


def file_tools(workspaces: Workspaces) -> list[BaseTool]:
    """The three tools; each raises `FileError` with what the model can do instead."""

    async def workspace() -> Workspace:
        return await asyncio.to_thread(workspaces.open, thread_key())

    async def write_file(path: str, content: str) -> str:
        data = content.encode(errors="replace")
        place = await workspace()
        await asyncio.to_thread(workspaces.history(thread_key()).write, place, path, data)
        return f"Wrote {len(data)} bytes to {path}."

    async def read_file(path: str, start_line: int = 1, end_line: int = 0, start_character: int = 1) -> str:
        wanted = Wanted(start_line, end_line, start_character)
        return await asyncio.to_thread(page, await workspace(), path, wanted)

    async def list_files(path: str = "") -> str:
        return await asyncio.to_thread(listing, await workspace(), path)

    descriptions = {
        write_file: "Write a text file in the workspace, replacing an older one.",
        read_file: "Read a text file of the workspace, or lines of it (end_line 0: to its end; "
        "start_character: where to begin in start_line).",
        list_files: "List the files of the workspace, or of a directory in it, with their sizes.",
    }
    return [
        StructuredTool.from_function(
            coroutine=function,
            name=function.__name__,
            description=description,
            metadata={"idempotent": True, "mode": "ordered"},
        )
        for function, description in descriptions.items()
    ]


def listing(workspace: Workspace, path: str) -> str:
    """One file a line; a name's unprintable characters are escaped, so that it cannot pose as a line.

    Blocks on disk. Raises `FileError` for what is no directory.
    """
    if not workspace.is_directory(path):
        raise FileError(f"{path!r} is no directory in the workspace.")
    files = workspace.files(_LISTED_FILES, path)
    lines = [f"{printable(name)} ({size} bytes)" for name, size in files]
    if len(files) == _LISTED_FILES:
        lines.append(f"[only the first {_LISTED_FILES} files are listed]")
    empty = "[no files]" if path else "[the workspace is empty]"
    return "\n".join(lines) or empty
