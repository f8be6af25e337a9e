"""Which files the user gave to the thread, in the words of a prompt."""

import asyncio
from collections.abc import Awaitable, Callable

from maniple.sandbox import Workspaces
from maniple.tools.run_context import thread_key
from maniple.tools.written import printable

NAMED_FILES = 20

NamedFiles = Callable[[], Awaitable[list[str]]]
"""Returns `name (size bytes)` of the user's files in the current thread's workspace."""


def uploaded_files(workspaces: Workspaces) -> NamedFiles:
    """Return what names the newest files that the user gave; a line for the others, when there are more."""

    def read(key: str) -> list[str]:
        known = workspaces.uploads(key).known()
        named = [f"{printable(one.path)} ({one.size} bytes)" for one in known[-NAMED_FILES:]]
        others = len(known) - len(named)
        return [*named, f"and {others} more"] if others else named

    async def named() -> list[str]:
        return await asyncio.to_thread(read, thread_key())

    return named
