"""What a tool returned, kept as a file of the thread's workspace."""

import asyncio
import hashlib
import re
from collections.abc import Awaitable, Callable

from maniple.sandbox import Workspaces
from maniple.tools.scope import thread_key

FOLDER = "tool-results"
_ODD = re.compile(r"[^A-Za-z0-9_-]+")


def result_keeper(workspaces: Workspaces) -> Callable[[str, str], Awaitable[str]]:
    """Return what keeps a text under the name of its tool and returns its path; the same text has one file.

    Raises `FileError` when there is no room for it.
    """

    async def keep(tool_name: str, text: str) -> str:
        content = text.encode(errors="replace")
        digest = hashlib.blake2s(content, digest_size=4).hexdigest()
        path = f"{FOLDER}/{_ODD.sub('-', tool_name)[:60]}-{digest}.txt"
        place = await asyncio.to_thread(workspaces.open, thread_key())
        await asyncio.to_thread(place.write, path, content)
        return path

    return keep
