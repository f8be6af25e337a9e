"""The address on this machine at which a person's browser comes back from a login."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from mcp.shared.auth import AuthorizationCodeResult

from maniple.errors import McpError

PATIENCE_SECONDS = 300.0
"""For a person to log in."""
_PATH = "/callback"
_LINE_SECONDS = 10.0
_LONGEST_LINE = 8_192
_DONE = "This is done here. You can close the page and go back to the terminal."


@dataclass(frozen=True, slots=True)
class Callback:
    """`url` is where the browser is sent back to."""

    url: str
    _answer: asyncio.Future[AuthorizationCodeResult]

    @property
    def refusal(self) -> str:
        """Why there was no login, in words; "" when that is not known here."""
        failed = self._answer.done() and not self._answer.cancelled() and self._answer.exception()
        return str(failed) if failed else ""

    async def result(self) -> AuthorizationCodeResult:
        """Wait for the browser; raises `McpError` when the login was refused, or nobody came."""
        try:
            return await asyncio.wait_for(self._answer, PATIENCE_SECONDS)
        except TimeoutError:
            raise McpError(f"Nobody logged in within {PATIENCE_SECONDS:.0f} seconds.") from None


@asynccontextmanager
async def open_callback() -> AsyncIterator[Callback]:
    """Listen on a free port of the loopback interface for one answer."""
    answer: asyncio.Future[AuthorizationCodeResult] = asyncio.get_running_loop().create_future()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_LINE_SECONDS):
                status = _taken(await reader.readline(), answer)
                writer.write(_page(status))
                await writer.drain()
        except (TimeoutError, ValueError, OSError):
            pass  # no browser, or one that has gone
        finally:
            writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0, limit=_LONGEST_LINE)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield Callback(f"http://127.0.0.1:{port}{_PATH}", answer)
    if answer.done() and not answer.cancelled():
        answer.exception()  # else asyncio complains that nobody looked


def _taken(line: bytes, answer: asyncio.Future[AuthorizationCodeResult]) -> str:
    """Read the first line of a request; return the status of its answer."""
    parts = line.decode("ascii", "replace").split()
    target = urlsplit(parts[1]) if len(parts) == 3 and parts[0] == "GET" else None
    if target is None or target.path != _PATH:
        return "404 Not Found"
    given = {name: values[0] for name, values in parse_qs(target.query).items()}
    if not answer.done() and "code" in given:
        result = AuthorizationCodeResult(code=given["code"], state=given.get("state"), iss=given.get("iss"))
        answer.set_result(result)
    elif not answer.done() and "error" in given:
        why = f"{given['error']} {given.get('error_description', '')}".strip()[:500]
        answer.set_exception(McpError(f"The login was refused: {why}"))
    return "200 OK"


def _page(status: str) -> bytes:
    body = _DONE if status.startswith("200") else "There is nothing here."
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {len(body)}\r\nconnection: close"
    )
    return f"{head}\r\n\r\n{body}".encode()
