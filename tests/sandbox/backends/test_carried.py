"""A worker over one stream whose other end sends messages that no relay sends."""

import asyncio
import struct
from pathlib import Path

import pytest

from maniple.config import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.backends.docker import start_relayed_worker
from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import Workspaces

pytestmark = pytest.mark.anyio
READY = b'{"ready": true}'


def frame(channel: int, content: bytes) -> bytes:
    return struct.pack(">BI", channel, len(content)) + content


def word(content: bytes) -> bytes:
    return frame(0, struct.pack(">I", len(content)) + content)


class Stream:
    """Says what it is given at once, and `answer` when a call has come; then nothing until it is closed."""

    def __init__(self, *said: bytes, answer: bytes = b"", complaint: bytes = b"", ends: bool = False) -> None:
        self._saying: asyncio.Queue[tuple[bytes, bytes]] = asyncio.Queue()
        for one in said:
            self._saying.put_nowait((one, b""))
        if complaint:
            self._saying.put_nowait((b"", complaint))
        if ends:
            self._saying.put_nowait((b"", b""))
        self._answer = answer
        self._heard = 0
        self.ended = 0

    async def receive(self) -> tuple[bytes, bytes]:
        return await self._saying.get()

    async def send(self, data: bytes) -> None:
        self._heard += 1
        if self._heard == 2 and self._answer:  # the first are the texts of the programs
            self._saying.put_nowait((self._answer, b""))

    async def close(self) -> None:
        self._saying.put_nowait((b"", b""))

    async def end(self) -> None:
        self.ended += 1


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces").open("thread")


@pytest.fixture
def settings() -> SandboxSettings:
    return SandboxSettings(backend="docker", timeout_seconds=5)


@pytest.mark.parametrize(
    "said",
    [
        frame(4, b"x"),
        struct.pack(">BI", 2, 2**32 - 1),
        struct.pack(">BI", 0, 65_537),
        word(b"no JSON"),
        word(b'{"id": "x", "exit_code": 0}'),
        frame(1, struct.pack(">I", 2**31)),
        b"\xff" * 100,
    ],
)
async def test_an_invalid_relay_message_ends_only_its_session(workspace, settings, said):
    stream = Stream(word(READY), answer=said)
    async with asyncio.timeout(60):
        session = await start_relayed_worker(stream, stream.end, settings, workspace)
        told = await session.run_bash("true")
    assert "are gone" in told.lost
    assert not told.timed_out
    assert not session.is_alive
    assert stream.ended == 1


async def test_frames_come_in_pieces_of_any_size(workspace, settings):
    said = word(READY) + frame(2, b"printed")
    stream = Stream(*(said[at : at + 1] for at in range(len(said))))
    session = await start_relayed_worker(stream, stream.end, settings, workspace)
    assert session.is_alive
    await session.stop()


async def test_a_machine_that_ends_at_once_is_reported_with_its_last_words(workspace, settings):
    stream = Stream(complaint=b"python3: not found", ends=True)
    with pytest.raises(SandboxError, match=r"did not start .*: python3: not found"):
        await start_relayed_worker(stream, stream.end, settings, workspace)


async def test_unread_output_does_not_delay_the_end(workspace, settings):
    stream = Stream(word(READY), *(frame(2, b"x" * 60_000) for _ in range(1000)))
    session = await start_relayed_worker(stream, stream.end, settings, workspace)
    async with asyncio.timeout(60):
        await session.stop()
    assert stream.ended == 1
