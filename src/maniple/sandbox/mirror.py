"""Keeps a thread's workspace on the host and its copy on another machine the same.

What a machine says of its files is the word of code that nobody vouches for: names, sizes and contents
go through the workspace, which judges each path, and both directions are bounded in number and bytes.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from maniple.errors import FileError
from maniple.sandbox.beneath import components
from maniple.sandbox.workspace import Workspace

MAX_FILES = 1000
"""In a workspace that is mirrored; the rest stays where it is."""
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells one state of a file from another: its bytes, and when it was last changed."""

    size: int
    changed: str


class RemoteFiles(Protocol):
    """The files of the working directory on another machine. Raises `SandboxError` when it is lost."""

    async def stamps(self, limit: int) -> Mapping[str, Stamp]:
        """Up to `limit` ordinary files by their path."""
        ...

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """The whole file; `FileError` when it has more bytes, is gone or cannot be read."""
        ...

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None: ...

    async def remove(self, paths: Sequence[str]) -> None: ...


class Mirror:
    """Takes changed files up before a call, and down after it."""

    def __init__(self, workspace: Workspace, remote: RemoteFiles, limit_bytes: int) -> None:
        """`limit_bytes`: of all files together, in one direction at a time."""
        self._workspace = workspace
        self._remote = remote
        self._limit_bytes = limit_bytes
        self._here: dict[str, Stamp] = {}
        self._there: dict[str, Stamp] = {}

    async def up(self) -> str:
        """Bring over what changed on the host; returns a sentence about what was left behind, or ""."""
        now = await self._host_stamps()
        gone = [path for path in self._here if path not in now and path in self._there]
        if gone:
            await self._remote.remove(gone)
        left = _Left("not in the sandbox")
        if len(now) > MAX_FILES:
            left.add(f"all but {MAX_FILES} files")
        changed = [path for path, stamp in now.items() if self._here.get(path) != stamp][:MAX_FILES]
        sent = await asyncio.to_thread(self._read, changed, left)
        if sent:
            await self._remote.put(sent)
        self._here = now
        if sent or gone:
            there = await self._remote.stamps(MAX_FILES)
            known = {path for path in self._there if path not in gone} | {path for path, _ in sent}
            # What else changed there, by a process in the background, is for the way down.
            fresh = {path for path, _ in sent}
            self._there = {
                path: there[path] if path in fresh else self._there[path] for path in known if path in there
            }
        return str(left)

    async def down(self) -> str:
        """Bring back what changed on the machine; returns a sentence about what was left there, or ""."""
        now = await self._remote.stamps(MAX_FILES + 1)
        left = _Left("not brought out of the sandbox")
        if len(now) > MAX_FILES:
            left.add(f"all but {MAX_FILES} files")
        changed = [path for path, stamp in now.items() if self._there.get(path) != stamp][:MAX_FILES]
        written: list[str] = []
        room = self._limit_bytes
        for path in changed:
            most = min(room, self._workspace.max_file_bytes)
            size = await self._bring(path, now[path].size, most, left)
            if size is not None:
                room -= size
                written.append(path)
        if len(now) <= MAX_FILES:
            await self._forget([path for path in self._there if path not in now])
        self._there = dict(now)
        if written:
            here = await self._host_stamps()
            self._here |= {path: here[path] for path in written if path in here}
        return str(left)

    def _read(self, paths: Sequence[str], left: "_Left") -> list[tuple[str, bytes]]:
        found: list[tuple[str, bytes]] = []
        room = self._limit_bytes
        for path in paths:
            try:
                head = self._workspace.read(path, room + 1)
            except FileError as error:
                left.add(str(error))
                continue
            if head.size > room or len(head.content) != head.size:
                left.add(f"{path!r} ({head.size} bytes; {self._limit_bytes} go over at once)")
                continue
            room -= head.size
            found.append((path, head.content))
        return found

    async def _bring(self, path: str, told_bytes: int, most_bytes: int, left: "_Left") -> int | None:
        if told_bytes > most_bytes:
            left.add(f"{path!r} has more than the {most_bytes} bytes that can be kept.")
            return None
        try:
            components(path)
            # Not every service can tell an empty file from none.
            content = await self._remote.fetch(path, most_bytes) if told_bytes else b""
            await asyncio.to_thread(self._workspace.write, path, content)
        except FileError as error:
            left.add(str(error))
            return None
        return len(content)

    async def _forget(self, gone: Sequence[str]) -> None:
        """Remove on the host what code removed on the machine, unless the host has changed it since."""
        if not gone:
            return
        now = await self._host_stamps()
        for path in gone:
            if path in self._here and self._here.pop(path) == now.get(path):
                await asyncio.to_thread(self._workspace.delete, path)

    async def _host_stamps(self) -> dict[str, Stamp]:
        stamps = await asyncio.to_thread(self._workspace.stamps, MAX_FILES + 1)
        return {path: Stamp(size, str(changed)) for path, size, changed in sorted(stamps)}


class _Left:
    """Collects what did not come over, for one sentence."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._what: list[str] = []

    def add(self, what: str) -> None:
        self._what.append(what)

    def __str__(self) -> str:
        if not self._what:
            return ""
        more = len(self._what) - _NAMED
        named = "; ".join(self._what[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
        return f"[{self._where}: {named}]"
