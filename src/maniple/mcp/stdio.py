"""The stdio transport: a line of JSON for each message, through the pipes of a program that others started.

Not the SDK's own, which starts programs without walls, and takes lines of any length.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import PurePath
from types import TracebackType
from typing import Any, Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import ReadStream, TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from maniple.config.mcp_settings import McpServerSettings
from maniple.errors import ManipleError, McpError

_LOG = logging.getLogger(__name__)


class ProgramPipes(Protocol):
    """A program's input and output; `reason` is why it was stopped for a limit's sake."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    reason: str

    def take_errors(self) -> str: ...

    async def stop(self) -> None: ...


StartProgram = Callable[[str, McpServerSettings], Awaitable[ProgramPipes]]
"""Starts the command of the server of a name, where the settings say; raises `ToolFailure`."""


@asynccontextmanager
async def stdio_transport(pipes: ProgramPipes) -> AsyncIterator[TransportStreams]:
    """Speak with a program, and stop it in the end.

    Raises `McpError` with its last words when it ends first, or when what is done within fails.
    """
    read_writer, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write, write_reader = anyio.create_memory_object_stream[SessionMessage](0)
    ended = ""
    failure: Exception | None = None

    async def reading() -> None:
        nonlocal ended
        async with read_writer:
            ended = await read_messages(pipes.reader, read_writer)

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(reading)
            tasks.start_soon(write_messages, pipes.writer, write_reader)
            try:
                yield read, write
            finally:
                tasks.cancel_scope.cancel()
    except Exception as error:  # noqa: BLE001 - told below, by its cause where that is known
        failure = error
    finally:
        for stream in (read, write, read_writer, write_reader):
            stream.close()
        with anyio.CancelScope(shield=True):
            await pipes.stop()
    said = pipes.take_errors()
    if ended:
        raise McpError(pipes.reason or f"{ended}{_last(said)}")
    if failure is not None:
        raise McpError(f"{describe_error(failure)}{_last(said)}") if said else failure


def _last(said: str) -> str:
    return f", and said: {said[-500:]}" if said else ""


async def read_messages(
    reader: asyncio.StreamReader, messages: MemoryObjectSendStream[SessionMessage | Exception]
) -> str:
    """Hand each message of a program on until there is none; return why, for people."""
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            return "its program sent a longer message than any that is taken (8 MB)"
        except OSError as error:
            return f"its program cannot be read: {error.strerror}"
        if not line:
            return "its program ended"
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if line.strip():
                _LOG.debug("An MCP server wrote a line that is no message: %.200r", line)
            continue
        try:
            await messages.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return ""


async def write_messages(
    writer: asyncio.StreamWriter, messages: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    """Write each message as a line, until nobody reads them."""
    async with messages:
        async for message in messages:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                writer.write(line.encode() + b"\n")
                await writer.drain()
            except OSError:
                return  # it has ended: its output says so, too


MAX_MESSAGES_PER_SECOND = 2_000
"""In one second: a server that floods waits for the next one, and so do its pipe or its connection."""


class ThrottledStream:
    """The reading end of a transport, as the SDK wants it; `on_end` is called when nothing more comes."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], on_end: Callable[[], object]) -> None:
        self._stream = stream
        self._on_end = on_end
        self._since = 0.0
        self._number = 0

    @property
    def last_context(self) -> Any:
        """The context that the message was sent in, of streams that know it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        await self._keep_pace()
        try:
            return await self._stream.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end()
            raise

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> "ThrottledStream":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "ThrottledStream":
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _keep_pace(self) -> None:
        now = anyio.current_time()
        if now - self._since >= 1.0:
            self._since, self._number = now, 0
        self._number += 1
        if self._number > MAX_MESSAGES_PER_SECOND:
            await anyio.sleep(self._since + 1.0 - now)


_MOST_CHARACTERS = 1_000
_REGISTRIES = {
    **dict.fromkeys(("npx", "npm", "pnpm", "yarn", "bunx"), "registry.npmjs.org"),
    **dict.fromkeys(("uvx", "uv", "pipx"), "pypi.org, files.pythonhosted.org"),
}
"""What programs fetch from that run what is not installed."""


def describe_error(error: BaseException) -> str:
    """Return the first reason in `error`, also in a group of them, in at most 1,000 characters."""
    while isinstance(error, BaseExceptionGroup):
        # What the settings or the server said is worth more than that the connection closed.
        ours = next((one for one in error.exceptions if isinstance(one, ManipleError)), None)
        error = ours or error.exceptions[0]
    words = " ".join(str(error).split())[:_MOST_CHARACTERS]
    if isinstance(error, ManipleError) or type(error).__name__ == "MCPError":
        return words or "no further words"
    return f"{type(error).__name__}: {words}" if words else type(error).__name__


def missing_network_hint(server: McpServerSettings) -> str:
    """Return what to do for a command that fetches its server first, and is not allowed to; "" for others."""
    command = PurePath(server.command or "").name
    if command not in _REGISTRIES or server.sandbox == "unsafe" or server.allow_hosts:
        return ""
    return f" ({command} has no network: allow_hosts: [{_REGISTRIES[command]}], or install the server first)"
