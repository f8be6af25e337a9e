"""A client for JavaScript in a conversation: `conversation.mjs` in a process of its own."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.serving import ROOT

WEB_MODULES = ROOT / "web/node_modules"
# Put there by `setup.sh dev`.
CLIENT_MODULES = Path(sys.prefix, "mcp-servers/node_modules")
SECONDS = 120
"""How long one line of the program may take on a loaded machine."""
_PROGRAM = Path(__file__).with_name("conversation.mjs")
_ENDED = '{"error": "The program has ended."}'
HAS_NODE = shutil.which("node") is not None


class ClientError(Exception):
    """The client has thrown an error."""


class JavaScriptClient:
    """The client `name` of the program, which is started at the first line; `close` ends it."""

    def __init__(
        self,
        name: str,
        *target: str,
        modules: Path = WEB_MODULES,
        folder: Path | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._command = ("node", str(_PROGRAM), name, str(modules), *target)
        self._options: Any = {"cwd": folder, "env": env}
        self._process: Process | None = None

    async def ask(self, text: str, *, review: bool = False) -> str:
        """Return the answer, or what the team asks."""
        return await self.send(ask=text, review=review)

    async def answer(self, given: Any) -> str:
        """Answer what the team asks, as `ask`."""
        return await self.send(answer=given)

    async def start(self, text: str) -> None:
        """Ask without waiting."""
        await self.send(start=text)

    async def cancel(self) -> str:
        """End what was started; return its status in the words of the protocol."""
        return await self.send(cancel=True)

    async def send(self, **line: Any) -> str:
        """Return the text that the program prints for a line; raises `ClientError`."""
        if self._process is None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdin=PIPE, stdout=PIPE, limit=2**24, **self._options
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(line).encode() + b"\n")
        async with asyncio.timeout(SECONDS):
            printed = json.loads(
                await self._process.stdout.readline() or '{"error": "The program has ended."}'
            )
        if "error" in printed:
            raise ClientError(printed["error"])
        return printed["text"]

    async def close(self) -> None:
        """End the program."""
        if self._process is None or self._process.returncode is not None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            await asyncio.wait_for(self._process.wait(), SECONDS)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()

    async def kill(self) -> None:
        """End the program as a page that is closed."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
