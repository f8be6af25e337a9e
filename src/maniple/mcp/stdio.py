"""The stdio transport: a line of JSON for each message, through the pipes of a program that others started.

Not the SDK's own, which starts programs without walls, and takes lines of any length.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from maniple.config.mcp_settings import McpServerSettings
from maniple.errors import McpError
from maniple.mcp.words import reason_of

_LOG = logging.getLogger(__name__)


class Pipes(Protocol):
    """A program's input and output; `reason` is why it was stopped for a limit's sake."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    reason: str

    def take_errors(self) -> str: ...

    async def stop(self) -> None: ...


Start = Callable[[str, McpServerSettings], Awaitable[Pipes]]
"""Starts the command of the server of a name, where the settings say; raises `ToolFailure`."""


@asynccontextmanager
async def stdio_transport(pipes: Pipes) -> AsyncIterator[TransportStreams]:
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
        raise McpError(f"{reason_of(failure)}{_last(said)}") if said else failure


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
