"""Files of a container at an engine on another machine, which are mirrored through commands in it."""

import asyncio
import io
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError
from maniple.sandbox.backend import Completed, OnOutput
from maniple.sandbox.backends import shell
from maniple.sandbox.backends.engine import explained
from maniple.sandbox.mirror import Mirror, Stamp
from maniple.sandbox.session import WorkerSession
from maniple.sandbox.workspace import FileHead, Workspace

if TYPE_CHECKING:
    from aiodocker.containers import DockerContainer

WORKSPACE = "/workspace"
_TRANSFER_SECONDS = 60


class ContainerFiles:
    """The files in a container's working directory."""

    def __init__(self, container: "DockerContainer", settings: SandboxSettings) -> None:
        self._container = container
        self._settings = settings

    async def stamps(self, limit: int) -> Mapping[str, Stamp]:
        """The files as the container tells them."""
        printed = await self._run(shell.list_files(WORKSPACE, limit), limit_bytes=2 * shell.LISTING_BYTES)
        return shell.read_listing(printed.decode(errors="replace"))

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        """One file."""
        most = limit_bytes + 1
        printed = await self._run(shell.print_file(WORKSPACE, path, most), limit_bytes=1 + most)
        if not printed:
            raise FileError(f"{path!r} could not be read in the container.")
        if len(printed) > most:
            raise FileError(f"{path!r} has more than the {limit_bytes} bytes that can be kept.")
        return printed[1:]

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None:
        """Write files."""
        archive = _archive(files)
        await self._run(f"head -c {len(archive)} | tar -xf - --no-same-owner -C {WORKSPACE}", archive)

    async def remove(self, paths: Sequence[str]) -> None:
        """Remove files."""
        for command in shell.remove_files(WORKSPACE, paths):
            await self._run(command)

    async def _run(self, command: str, given: bytes = b"", limit_bytes: int = 65_536) -> bytes:
        """What a command prints, as far as the limit goes."""
        printed = bytearray()
        with explained(self._settings):
            async with asyncio.timeout(_TRANSFER_SECONDS):
                await self._exchange(command, given, printed, limit_bytes)
        return bytes(printed[:limit_bytes])

    async def _exchange(self, command: str, given: bytes, printed: bytearray, limit_bytes: int) -> None:
        execution = await self._container.exec(["bash", "-c", command], stdin=bool(given))
        async with execution.start(detach=False) as stream:
            if given:
                await stream.write_in(given)
            while len(printed) < limit_bytes and (message := await stream.read_out()) is not None:
                if message.stream == 1:
                    printed += message.data


class MirroredSession:
    """A session whose files are on another machine while a call runs, and here otherwise."""

    def __init__(self, session: WorkerSession, mirror: Mirror, workspace: Workspace) -> None:
        self._session = session
        self._mirror = mirror
        self._workspace = workspace
        self.pid = session.pid
        self.overrun = session.overrun
        self.at_end = session.at_end

    @property
    def is_alive(self) -> bool:
        """Whether it can take another call."""
        return self._session.is_alive

    @property
    def ending(self) -> str:
        """Why the session has ended, for the model."""
        return self._session.ending

    async def run_python(self, code: str, *, on_output: OnOutput | None = None) -> Completed:
        """Run Python code where its variables are."""
        left = await self._up()
        return await self._down(await self._session.run_python(code, on_output=on_output), left)

    async def run_bash(self, command: str, *, on_output: OnOutput | None = None) -> Completed:
        """Run a command of bash in a process of its own."""
        left = await self._up()
        return await self._down(await self._session.run_bash(command, on_output=on_output), left)

    async def read(self, path: str, limit_bytes: int) -> FileHead:
        """The first bytes of a file, as the last call left it."""
        return await self._session.read(path, limit_bytes)

    async def write(self, path: str, content: bytes) -> None:
        """Make or replace a file; the next call sees it."""
        await self._session.write(path, content)

    async def list(self, limit: int) -> list[tuple[str, int]]:
        """(path, bytes) of up to `limit` files."""
        return await self._session.list(limit)

    async def stop(self) -> None:
        """End the session; a second time does nothing."""
        await self._session.stop()

    async def _up(self) -> str:
        try:
            return await self._mirror.up()
        except BaseException:  # half of the files are there: better none
            await self.stop()
            raise

    async def _down(self, completed: Completed, left: str) -> Completed:
        if not self.is_alive:
            lost = "what the last call wrote could not be brought back."
            return replace(completed, lost=f"{completed.lost} Files: {lost}".strip())
        try:
            left = "\n".join(filter(None, (completed.stderr, left, await self._mirror.down())))
        except BaseException:  # what is there and what is here would not be the same
            await self.stop()
            raise
        return replace(completed, stderr=left)


def _archive(files: Sequence[tuple[str, bytes]]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in files:
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()
