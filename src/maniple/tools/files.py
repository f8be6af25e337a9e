"""`write_file`, `read_file` and `list_files` in the workspace of the thread."""

import asyncio

from langchain_core.tools import BaseTool, StructuredTool

from maniple.sandbox import FileHead, Workspace, Workspaces
from maniple.tools.scope import thread_key
from maniple.tools.written import printable

_SHOWN_BYTES = 20_000
_LISTED_FILES = 200


def file_tools(workspaces: Workspaces) -> list[BaseTool]:
    """The three tools; each raises `FileError` with what the model can do instead."""

    async def workspace() -> Workspace:
        return await asyncio.to_thread(workspaces.open, thread_key())

    async def write_file(path: str, content: str) -> str:
        data = content.encode(errors="replace")
        place = await workspace()
        await asyncio.to_thread(place.write, path, data)
        return f"Wrote {len(data)} bytes to {path}; the user finds it in {place.path}."

    async def read_file(path: str) -> str:
        return _shown(path, await asyncio.to_thread((await workspace()).read, path, _SHOWN_BYTES))

    async def list_files() -> str:
        return _listing(await asyncio.to_thread((await workspace()).files, _LISTED_FILES))

    descriptions = {
        write_file: "Write a text file in the workspace, replacing an older one.",
        read_file: "Read a text file of the workspace.",
        list_files: "List the files of the workspace with their sizes.",
    }
    return [
        StructuredTool.from_function(
            coroutine=function,
            name=function.__name__,
            description=description,
            metadata={"idempotent": True},
        )
        for function, description in descriptions.items()
    ]


def _shown(path: str, head: FileHead) -> str:
    text = _decoded(head)
    if text is None:
        return f"[{path} is a binary file of {head.size} bytes; work on it with Python instead]"
    if head.size > len(head.content):
        return f"{text}\n[cut: the first {len(head.content)} of {head.size} bytes]"
    return text or f"[{path} is empty]"


def _decoded(head: FileHead) -> str | None:
    """The text, or None for bytes that are none; a character that the cut went through is dropped."""
    text = head.content.decode(errors="ignore")
    whole = len(text.encode()) == len(head.content)
    cut_character = len(head.content) < head.size and len(head.content) - len(text.encode()) < 4
    return text if "\0" not in text and (whole or cut_character) else None


def _listing(files: list[tuple[str, int]]) -> str:
    """One file a line; a name's unprintable characters are escaped, so that it cannot pose as a line."""
    lines = [f"{printable(path)} ({size} bytes)" for path, size in files]
    if len(files) == _LISTED_FILES:
        lines.append(f"[only the first {_LISTED_FILES} files are listed]")
    return "\n".join(lines) or "[the workspace is empty]"
