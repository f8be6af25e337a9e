"""The host's side of `relay.py`: a worker whose sockets and pipes are carried over one stream."""

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, cast

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import SandboxError
from maniple.sandbox.channel import Channel
from maniple.sandbox.output import Output
from maniple.sandbox.process import Tree
from maniple.sandbox.session import Lines, WorkerSession
from maniple.sandbox.workers import worker_sources
from maniple.sandbox.workspace import Workspace

_START_SECONDS = 30.0
_END_SECONDS = 10.0
_LAST_WORDS_BYTES = 4000
_LONGEST_FRAME_BYTES = 65_536
_FRAME_OVERHEAD_BYTES = 65_536
_HEAD = struct.Struct(">BI")


class Stream(Protocol):
    """A way into a machine and out of it. Raises `SandboxError`."""

    async def receive(self) -> tuple[bytes, bytes]:
        """What came on its standard output and its standard error; twice nothing at the end."""
        ...

    async def send(self, data: bytes) -> None: ...

    async def close(self) -> None: ...


class Carrier:
    """Carries frames between a session's ends and a stream; a `Tree` to its session.

    `end` makes an end of the machine, with everything that runs there.
    """

    pid = 0
    """No process of the host's."""

    def __init__(self, stream: Stream, end: Callable[[], Awaitable[None]]) -> None:
        loop = asyncio.get_running_loop()
        self._stream = stream
        self._end = end
        self._sending: asyncio.Queue[bytes] = asyncio.Queue()
        self._received = bytearray()
        self._complaints = bytearray()
        self._pairs = [socket.socketpair() for _ in range(2)]
        for _, writing in self._pairs:
            writing.setblocking(False)
        self._channels: list[Channel] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.ended: asyncio.Future[None] = loop.create_future()

    def outputs(self, limit_bytes: int) -> list[Output]:
        """What the worker prints."""
        return [Output(reading.detach(), limit_bytes) for reading, _ in self._pairs]

    def carry(self, channels: list[Channel]) -> None:
        """Begin, with the channels of control and calls."""
        self._channels = channels
        for number, channel in enumerate(channels):
            channel.connection_made(_Door(partial(self._put, number)))
        sources = {name: text.decode() for name, text in worker_sources().items()}
        self._put(0, json.dumps(sources).encode())
        self._tasks = [asyncio.create_task(self._hear()), asyncio.create_task(self._speak())]

    def complaints(self) -> str:
        """What came out of the machine that was no frame: why it did not start."""
        return self._complaints.decode(errors="replace").strip()

    async def kill(self) -> None:
        """End the machine; harmless afterwards."""
        for task in self._tasks:
            task.cancel()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._end()
                await self._stream.close()
        except TimeoutError:
            raise SandboxError("The machine of the sandbox did not end in time; look after it.") from None
        finally:
            for _, writing in self._pairs:
                writing.close()
            self._over()

    def _put(self, channel: int, content: bytes) -> None:
        self._sending.put_nowait(_HEAD.pack(channel, len(content)) + content)

    async def _speak(self) -> None:
        with suppress(SandboxError):  # its end is heard by the other one
            while True:
                await self._stream.send(await self._sending.get())

    async def _hear(self) -> None:
        try:
            while any(heard := await self._stream.receive()):
                self._received += heard[0]
                self._complaints += heard[1]
                del self._complaints[:-_LAST_WORDS_BYTES]
                await self._deal_out()
        except SandboxError as error:
            self._complaints += f"\n{error}".encode()
        finally:
            self._over()

    async def _deal_out(self) -> None:
        while len(self._received) >= _HEAD.size:
            channel, length = _HEAD.unpack_from(self._received)
            if channel > 3 or length > _LONGEST_FRAME_BYTES:
                raise SandboxError("The machine of the sandbox sent what is no frame.")
            end = _HEAD.size + length
            if len(self._received) < end:
                return
            content = bytes(self._received[_HEAD.size : end])
            del self._received[:end]
            if channel < 2:
                self._channels[channel].data_received(content)
            else:
                # A reader that has closed its end wants no more of it.
                with suppress(OSError):
                    await asyncio.get_running_loop().sock_sendall(self._pairs[channel - 2][1], content)

    def _over(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class _Door(asyncio.Transport):
    """What a channel writes to."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        super().__init__()
        self._put = put
        self._closed = False

    def write(self, data: Any) -> None:
        if not self._closed:
            self._put(bytes(data))

    def is_closing(self) -> bool:
        return self._closed

    def abort(self) -> None:
        self._closed = True


async def start_carried(
    stream: Stream, end: Callable[[], Awaitable[None]], settings: SandboxSettings, workspace: Workspace
) -> WorkerSession:
    """Speak with the `relay.py` at the other end; raises `SandboxError` when it does not answer."""
    carrier = Carrier(stream, end)
    outputs = carrier.outputs(settings.output_bytes)
    session = WorkerSession(cast(Tree, carrier), settings, workspace)
    limit_bytes = 6 * settings.output_bytes + _FRAME_OVERHEAD_BYTES
    control, calls = (Channel(limit_bytes, session.heard, session.broken) for _ in range(2))
    session.attach(Lines(control, calls, outputs[0], outputs[1]))
    try:
        carrier.carry([control, calls])
        ready = await session.wait_until_ready(_START_SECONDS)
    except BaseException:  # a cancelled start leaves nothing behind
        await session.stop()
        raise
    if not ready:
        words = f"{carrier.complaints()} {session.last_words()}".strip()
        await session.stop()
        raise SandboxError(f"Python did not start in the container: {words or 'it said nothing.'}")
    return session
