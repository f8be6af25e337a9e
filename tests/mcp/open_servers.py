"""Servers that are open, with what tests want to know of them."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from maniple.config import McpServerSettings, McpSettings
from maniple.config.mcp_settings import reveal_text
from maniple.mcp import LoginStore, McpServers, PinStore, ProgramPipes, RemoteTool, ToolOutcome, open_servers
from maniple.sandbox.backends.local import start_unprotected
from maniple.sandbox.bubblewrap import ServiceSpec
from maniple.shared_texts import TextFolder

MISBEHAVING = str(Path(__file__).with_name("misbehaving.py"))


def misbehaving(notes: Path | None = None, **more: Any) -> dict[str, Any]:
    """Return the settings of the server that misbehaves; it notes its starts and cancellations."""
    args = ["-I", "-S", MISBEHAVING, *([str(notes)] if notes else [])]
    return {"command": sys.executable, "args": args, "sandbox": "unsafe", **more}


class Opened:
    """Servers, and calls by the names of their tools."""

    def __init__(self, servers: McpServers, names: list[str]) -> None:
        self.servers = servers
        self.names = names

    def tool(self, name: str) -> RemoteTool:
        found = self.servers.find(name, self.names)
        assert found is not None, [tool.name for state in self.servers.states() for tool in state.tools]
        return found

    async def call(self, name: str, **arguments: Any) -> ToolOutcome:
        return await self.servers.call(self.tool(name), arguments)

    def list_tools(self) -> list[str]:
        return [tool.name for tool in self.servers.list_tools(self.names)]

    def obstacle(self, name: str) -> str:
        return next(state.unavailable_reason for state in self.servers.states() if state.name == name)


@asynccontextmanager
async def opened(
    folder: Path,
    servers: dict[str, Any],
    pins: PinStore | None = None,
    logins: LoginStore | None = None,
    **settings: Any,
) -> AsyncIterator[Opened]:
    """Open servers, whose programs run unprotected in `folder`."""

    async def start(name: str, server: McpServerSettings) -> ProgramPipes:
        given = {variable: reveal_text(value) for variable, value in server.env.items()}
        argv = [server.command or "", *map(reveal_text, server.args)]
        return await start_unprotected(ServiceSpec(argv, folder / name, given))

    mcp = McpSettings.model_validate({"servers": servers, "start_seconds": 20, **settings})
    places = (
        pins or PinStore(TextFolder(folder / "accepted")),
        start,
        logins or LoginStore(TextFolder(folder / "logins")),
    )
    async with open_servers(mcp, *places) as found:
        yield Opened(found, list(servers))


async def until(condition: Callable[[], bool]) -> None:
    """Poll for the effect of a separate program, which sends no notification, for at most 15 s."""
    for _ in range(1_500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("It did not happen within 15 s.")
