"""The stdio transport: one line of JSON for each message, through the pipes of a sandboxed program.

The SDK's own transport starts programs without a sandbox and accepts lines of any length.
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
from maniple.egress import send_data
from maniple.egress.environment_transport import ProxyFailed
from maniple.errors import ManipleError, McpError

_LOG = logging.getLogger(__name__)


class ProgramPipes(Protocol):
    """A program's input and output; `reason` is the limit for which it was stopped, "" for none."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    reason: str

    def take_errors(self) -> str: ...

    async def stop(self) -> None: ...


StartProgram = Callable[[str, McpServerSettings], Awaitable[ProgramPipes]]
"""Starts the command of a server (name, settings) in its sandbox; raises `ToolFailure`."""


@asynccontextmanager
async def stdio_transport(pipes: ProgramPipes) -> AsyncIterator[TransportStreams]:
    """Exchange messages with a program, and stop it on leaving.

    Raises `McpError` with the end of its error output if the program ends first or the body fails.
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
    except Exception as error:  # noqa: BLE001 - raised below, with the cause if it is known
        failure = error
    finally:
        for stream in (read, write, read_writer, write_reader):
            stream.close()
        with anyio.CancelScope(shield=True):
            await pipes.stop()
    errors = pipes.take_errors()
    if ended:
        raise McpError(pipes.reason or f"{ended}{_format_errors(errors)}")
    if failure is not None:
        raise McpError(f"{describe_error(failure)}{_format_errors(errors)}") if errors else failure


def _format_errors(errors: str) -> str:
    return f"; its error output: {errors[-500:]}" if errors else ""


async def read_messages(
    reader: asyncio.StreamReader, messages: MemoryObjectSendStream[SessionMessage | Exception]
) -> str:
    """Pass on each message of a program until it ends; return the reason of the end, for messages."""
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            return "its program sent a message over the limit of 8 MB"
        except OSError as error:
            return f"its program cannot be read: {error.strerror}"
        if not line:
            return "its program ended"
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if line.strip():
                _LOG.debug("An MCP server wrote a line that is not a message: %.200r", line)
            continue
        try:
            await messages.send(SessionMessage(message))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return ""


async def write_messages(
    writer: asyncio.StreamWriter, messages: MemoryObjectReceiveStream[SessionMessage]
) -> None:
    """Write each message as a line, until the program has ended."""
    async with messages:
        async for message in messages:
            line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                await send_data(writer, line.encode() + b"\n")
            except OSError:
                return  # it has ended, which `read_messages` reports


MAX_MESSAGES_PER_SECOND = 2_000
"""The limit of messages read per second; further messages wait in the pipe or connection."""


class ThrottledStream:
    """The SDK's read stream of a transport with a rate limit; `on_end` is called at its end."""

    def __init__(
        self, stream: ReadStream[SessionMessage | Exception], on_end: Callable[[], object] = lambda: None
    ) -> None:
        self._stream = stream
        self._on_end = on_end
        self._since = 0.0
        self._number = 0

    @property
    def last_context(self) -> Any:
        """The sender's context of the last message, if the stream provides it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        await self._wait_for_rate()
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

    async def _wait_for_rate(self) -> None:
        now = anyio.current_time()
        if now - self._since >= 1.0:
            self._since, self._number = now, 0
        self._number += 1
        if self._number > MAX_MESSAGES_PER_SECOND:
            await anyio.sleep(self._since + 1.0 - now)


_MAX_CHARACTERS = 1_000
_REGISTRIES = {
    **dict.fromkeys(("npx", "npm", "pnpm", "yarn", "bunx"), "registry.npmjs.org"),
    **dict.fromkeys(("uvx", "uv", "pipx"), "pypi.org, files.pythonhosted.org"),
}
"""The registries from which package runners download servers."""


def describe_error(error: BaseException) -> str:
    """Return the first error of `error`, which may be a group, in at most 1,000 characters."""
    while isinstance(error, BaseExceptionGroup):
        # An error of the settings or the server explains more than a closed connection.
        ours = next((one for one in error.exceptions if isinstance(one, ManipleError)), None)
        error = ours or error.exceptions[0]
    message = " ".join(str(error).split())[:_MAX_CHARACTERS]
    if isinstance(error, ManipleError | ProxyFailed) or type(error).__name__ == "MCPError":
        return message or "no details"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def missing_network_hint(server: McpServerSettings) -> str:
    """Return what to do if a package runner must download its server but has no network.

    "" for other commands.
    """
    command = PurePath(server.command or "").name
    if command not in _REGISTRIES or server.sandbox == "unsafe" or server.allow_hosts:
        return ""
    return f" ({command} has no network: allow_hosts: [{_REGISTRIES[command]}], or install the server first)"
