"""What a tool returned, kept as a file of the thread's workspace, and read again."""

import asyncio
import hashlib
import re
from dataclasses import dataclass

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.sandbox import Workspaces
from maniple.sandbox.beneath import components
from maniple.tools.page import Wanted, page
from maniple.tools.scope import thread_key

FOLDER = "tool-results"
READ_RESULT = "read_result"
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class KeptResults:
    """Those of the current thread."""

    workspaces: Workspaces

    async def keep(self, tool_name: str, text: str) -> str:
        """Keep a text under the name of its tool and return its path; the same text has one file.

        Raises `FileError` when there is no room for it.
        """
        content = text.encode(errors="replace")
        digest = hashlib.blake2s(content, digest_size=4).hexdigest()
        path = f"{FOLDER}/{_ODD.sub('-', tool_name)[:60]}-{digest}.txt"
        place = await asyncio.to_thread(self.workspaces.open, thread_key())
        await asyncio.to_thread(place.write, path, content)
        return path

    async def are_there(self) -> bool:
        """Say whether anything was kept."""
        place = self.workspaces.of(thread_key())
        return bool(await asyncio.to_thread(place.files, 1, FOLDER))

    def reader(self) -> BaseTool:
        """`read_result`: reads what was kept, and no other file; for agents that read no files."""

        async def read_result(
            path: str, start_line: int = 1, end_line: int = 0, start_character: int = 1
        ) -> str:
            parts = components(path)
            if len(parts) != 2 or parts[0] != FOLDER:
                raise FileError(f"{path!r} is no kept result; name a file of {FOLDER}, as it was told.")
            place = self.workspaces.of(thread_key())
            wanted = Wanted(start_line, end_line, start_character)
            return await asyncio.to_thread(page, place, path, wanted)

        return StructuredTool.from_function(
            coroutine=read_result,
            name=READ_RESULT,
            description=f"Read a file of {FOLDER}, the whole of a result that was shortened, or lines of it "
            "(end_line 0: to its end; start_character: where to begin in start_line).",
            metadata={"idempotent": True},
        )
