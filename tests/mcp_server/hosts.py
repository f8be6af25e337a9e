"""Hosts of the team: the official client, in this process or with a server process of its own."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult

from maniple.mcp_server import TeamServer
from maniple.service import Service, open_service
from tests.api.in_process import settings_of
from tests.openai_server import SIMPLE, call, reply
from tests.team import plan, step

QUESTION = {"question": "1+3=?"}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "0"},
    },
}
ERAS = ["legacy", "auto"]
"""Clients of the protocol with a handshake, and of the newest one."""
ASKING = {
    **SIMPLE,
    "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
    "researcher": [call("ask_human", question="Which year?", options=["2025", "2026"]), reply("It is so.")],
}
CRAWLING = {
    **ASKING,
    "researcher": [call("crawl_tool", url="http://127.0.0.1:9/secret"), reply("It cannot be read.")],
}
HANGING = {**SIMPLE, "coder": [{"hang": True}]}


@dataclass
class Person:
    """Fills in forms as `answers` say; without any more answers they are declined."""

    answers: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params.message)
        if not self.answers:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"answer": self.answers.pop(0)})


@dataclass
class Host:
    """A host's client."""

    client: Client
    service: Service | None = None
    told: list[str] = field(default_factory=list)

    async def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """Call a tool without progress notifications."""
        return await self.client.call_tool(tool, arguments)

    async def run(self, tool: str = "ask_team", **arguments: Any) -> dict[str, Any]:
        """Call a tool that must work, telling what happens meanwhile; return the run."""
        result = await self.client.call_tool(tool, arguments, progress_callback=self._hear)
        assert not result.is_error, words(result)
        assert result.structured_content is not None
        return result.structured_content

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        assert progress == len(self.told) + 1
        self.told.append(message or "")


def words(result: CallToolResult) -> str:
    """Return what a model reads of a result."""
    return "\n".join(one.text for one in result.content if one.type == "text")


def team_server(service: Service) -> TeamServer:
    """Return the server of a service that is open."""
    opened = asyncio.get_running_loop().create_future()
    opened.set_result(service)
    return TeamServer(service.settings, opened)


@asynccontextmanager
async def hosted(
    base_url: str, home: Path, *, mode: Any = "auto", person: Person | None = None, **sections: Any
) -> AsyncIterator[Host]:
    """Open the service and its MCP server in this process; `sections` are settings."""
    async with open_service(settings_of(base_url, home, **sections)) as service:
        server = team_server(service)
        async with Client(server.protocol, mode=mode, elicitation_callback=person) as client:
            yield Host(client, service)
