"""A scripted endpoint that goes away and comes back at the same address."""

import asyncio
import socket
from contextlib import ExitStack
from typing import Any, Self

from tests.openai_server import OpenAIServer, serving


class LeavingEndpoint:
    """Nothing listens at `base_url` until `start`, and after `stop`. The script goes by the history."""

    def __init__(self, script: dict[str, Any]) -> None:
        self._script = {**script, "by_history": True}
        self._stack = ExitStack()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port: int = free.getsockname()[1]
        self.base_url = f"http://127.0.0.1:{self._port}/v1"
        self.settings = {"base_url": self.base_url}
        self.server: OpenAIServer | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, script: dict[str, Any] | None = None) -> OpenAIServer:
        """Listen, with another script if one is given."""
        begun = serving({**(script or self._script), "by_history": True}, self._port)
        self.server = await asyncio.to_thread(self._stack.enter_context, begun)
        return self.server

    async def stop(self) -> None:
        """Break off every answer and listen no more."""
        await asyncio.to_thread(self._stack.close)
