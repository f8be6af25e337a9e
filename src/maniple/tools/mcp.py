"""The tools of MCP servers as LangChain tools."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import ConfigDict, Field

from maniple.errors import FileError, McpError
from maniple.mcp import McpServers, RemoteTool, ToolOutcome, truncate_text
from maniple.mcp.results import MAX_RESULT_CHARACTERS
from maniple.outgoing import OutgoingGuard
from maniple.reading.pictures import identify_picture
from maniple.scope.run_scope import thread_key
from maniple.tools.items import WHOLE, StoredResults

_NOTHING = "[no output]"
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

Result = tuple[str, dict[str, Any]]
"""The text for the model, and the message's artifact: `server`; `pictures`, the workspace paths of pictures
that a model can see; and `WHOLE` if the text was cut."""


class McpToolSource:
    """The source of the tools of some servers, which change while the program runs.

    Pictures and the full text of long results are stored in the thread's workspace; without a workspace they
    are left out.
    """

    def __init__(
        self,
        servers: McpServers,
        names: Sequence[str],
        stored: StoredResults | None,
        guards: Mapping[str, OutgoingGuard] | None = None,
    ) -> None:
        """`guards` are those of the servers: each may be sent its own secrets."""
        self._guards = guards or {}
        self._servers = servers
        self._names = tuple(names)
        self._stored = stored
        self._make_tool: dict[str, tuple[RemoteTool, McpTool]] = {}

    def list_tools(self) -> list[BaseTool]:
        """Return the tools that can be called now."""
        return [self._tool(one) for one in self._servers.list_tools(self._names)]

    def find(self, name: str) -> BaseTool | None:
        """Return a tool by its name, also if it cannot be called now; its call then reports the reason."""
        found = self._servers.find(name, self._names)
        return self._tool(found) if found is not None else None

    def _tool(self, remote: RemoteTool) -> BaseTool:
        known = self._make_tool.get(remote.name)
        if known is None or known[0] != remote:
            known = remote, _make_tool(remote, self._servers, self._stored)
            known[1].guard = self._guards.get(remote.server, known[1].guard)
            self._make_tool[remote.name] = known
        return known[1]


class McpTool(BaseTool):
    """Calls one tool of a server; raises `McpError` if the call fails or its result is an error."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    remote: RemoteTool
    servers: McpServers
    stored: StoredResults | None
    guard: OutgoingGuard = Field(default_factory=OutgoingGuard, exclude=True)

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # Otherwise, a server could override LangChain's own arguments by their names.
        return (), {"arguments": dict(tool_input) if isinstance(tool_input, dict) else {}}

    def _run(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("MCP servers are only called asynchronously. Use ainvoke.")

    async def _arun(self, arguments: Mapping[str, Any]) -> Result:
        server = self.remote.server
        await asyncio.to_thread(
            self.guard.check, arguments, by=f"the MCP server {server}", thread=thread_key(), to=server
        )
        outcome = await self.servers.call(self.remote, arguments)
        text, whole = await self._cut_text(outcome.text)
        if outcome.is_error:
            raise McpError(text or "the server gave no reason")
        lines, pictures = await self._store_pictures(outcome)
        content = "\n".join([*([text] if text else []), *lines]) or _NOTHING
        return content, {"server": self.remote.server, "pictures": pictures, **whole}

    async def _store_pictures(self, outcome: ToolOutcome) -> tuple[list[str], list[str]]:
        """Return the lines about an outcome's pictures, and the paths of those that a model can see."""
        lines: list[str] = []
        shown: list[str] = []
        for picture in outcome.pictures:
            known = identify_picture(picture.content)
            media_type = known.media_type if known else picture.media_type
            path = await self._store_picture(picture.content, media_type)
            lines.append(f"[image: {path}]" if path else f"[an image was left out: {picture.media_type}]")
            if path and known:
                shown.append(path)
        return lines, shown

    async def _cut_text(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return a text, cut if it is too long, and the artifact fields that locate the whole text."""
        if len(text) <= MAX_RESULT_CHARACTERS:
            return text, {}
        where = (
            await self.stored.describe_location(self.remote.name, text)
            if self.stored
            else "they are not kept"
        )
        return truncate_text(text, where), {WHOLE: {"where": where, "characters": len(text)}}

    async def _store_picture(self, content: bytes, media_type: str) -> str:
        """Store a picture in the thread's workspace; return its path, or "" if there is no room.

        The path contains a digest, so that different pictures have different paths.
        """
        ending = _ENDINGS.get(media_type)
        if self.stored is None or ending is None:
            return ""
        digest = hashlib.blake2s(content, digest_size=4).hexdigest()
        path = f"{self.remote.name}-{digest}.{ending}"
        try:
            place = await asyncio.to_thread(self.stored.workspaces.open, thread_key())
            await asyncio.to_thread(place.write, path, content)
        except FileError:
            return ""
        return path


def _make_tool(remote: RemoteTool, servers: McpServers, stored: StoredResults | None) -> McpTool:
    return McpTool(
        name=remote.name,
        description=remote.definition.description or f"{remote.definition.name} of {remote.server}.",
        args_schema=remote.definition.schema,
        response_format="content_and_artifact",
        metadata={
            "mcp_server": remote.server,
            "approval": remote.approval,
            "only_reads": remote.definition.only_reads,
            "mode": "parallel" if remote.parallel else "ordered",
            "timeout_seconds": None,
        },
        remote=remote,
        servers=servers,
        stored=stored,
    )
