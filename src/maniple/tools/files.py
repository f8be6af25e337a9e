"""`write_file`, `read_file` and `list_files` in the workspace of the thread."""

import asyncio

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.sandbox import FileHead, Workspace, Workspaces
from maniple.tools.scope import thread_key
from maniple.tools.text_file import decoded
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
        await asyncio.to_thread(workspaces.history(thread_key()).write, place, path, data)
        return f"Wrote {len(data)} bytes to {path}."

    async def read_file(path: str, start_line: int = 1, end_line: int = 0) -> str:
        return await asyncio.to_thread(_shown, await workspace(), path, start_line, end_line)

    async def list_files(path: str = "") -> str:
        return await asyncio.to_thread(listing, await workspace(), path)

    descriptions = {
        write_file: "Write a text file in the workspace, replacing an older one.",
        read_file: "Read a text file of the workspace, or lines of it (end_line 0: to its end).",
        list_files: "List the files of the workspace, or of a directory in it, with their sizes.",
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


def _shown(workspace: Workspace, path: str, start_line: int, end_line: int) -> str:
    if start_line <= 1 and end_line <= 0:
        return _beginning(path, workspace.read(path, _SHOWN_BYTES))
    head = workspace.read(path, workspace.max_file_bytes)
    file = decoded(head.content, is_cut=head.size > len(head.content))
    if file is None:
        return _is_binary(path, head)
    lines, first = file.lines, max(1, start_line)
    last = len(lines) if end_line <= 0 else min(end_line, len(lines))
    if first > last:
        raise FileError(f"{path!r} has {len(lines)} lines; there is nothing from {first} to {end_line}.")
    text = "\n".join(lines[first - 1 : last])
    if len(text) > _SHOWN_BYTES:
        return (
            f"{text[:_SHOWN_BYTES]}\n[cut: {len(text) - _SHOWN_BYTES} more characters; ask for fewer lines]"
        )
    return text


def _beginning(path: str, head: FileHead) -> str:
    is_cut = head.size > len(head.content)
    file = decoded(head.content, is_cut=is_cut)
    if file is None:
        return _is_binary(path, head)
    if is_cut:
        lines = file.text.count("\n")
        return (
            f"{file.text}\n[cut: the first {len(head.content)} of {head.size} bytes, {lines} whole lines; "
            f"read on with start_line={lines + 1}]"
        )
    if file.encoding != "utf-8":
        return f"{file.text}\n[the file's encoding is {file.encoding}]"
    return file.text or f"[{path} is empty]"


def _is_binary(path: str, head: FileHead) -> str:
    return f"[{path} is a binary file of {head.size} bytes; work on it with Python instead]"
