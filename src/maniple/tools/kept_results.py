"""What a tool returned, kept as a file of the thread's workspace, and read again."""

import asyncio
import hashlib
import re
from dataclasses import dataclass, field

from langchain_core.tools import BaseTool, StructuredTool

from maniple.errors import FileError
from maniple.redaction import Redactor
from maniple.sandbox import Workspaces
from maniple.sandbox.safe_open import components
from maniple.tools.page import Wanted, page
from maniple.tools.run_context import thread_key

FOLDER = "tool-results"
READ_RESULT = "read_result"
WHOLE = "whole"
"""In the artifact of a result that its tool has cut: `where`, as `KeptResults.place` says it, and how many
`characters` the whole has."""
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class KeptResults:
    """Those of the current thread; what `redactor` masks is not in them."""

    workspaces: Workspaces
    redactor: Redactor = field(default_factory=Redactor)

    async def keep(self, tool_name: str, text: str) -> str:
        """Keep a text under the name of its tool and return its path; the same text has one file.

        Raises `FileError` when there is no room for it.
        """
        content = await asyncio.to_thread(self._content, text)
        digest = hashlib.blake2s(content, digest_size=4).hexdigest()
        path = f"{FOLDER}/{_ODD.sub('-', tool_name)[:60]}-{digest}.txt"
        place = await asyncio.to_thread(self.workspaces.open, thread_key())
        await asyncio.to_thread(place.write, path, content)
        return path

    async def place(self, tool_name: str, text: str) -> str:
        """Keep a text; say where it is, or why it is nowhere."""
        try:
            return f"the whole is the file {await self.keep(tool_name, text)}"
        except FileError as error:
            return f"they are not kept: {error}"

    def _content(self, text: str) -> bytes:
        return self.redactor.text(text).encode(errors="replace")

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
