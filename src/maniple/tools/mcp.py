"""The tools of MCP servers, as they are at this moment."""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import ConfigDict

from maniple.errors import FileError, McpError
from maniple.mcp import McpServers, RemoteTool, ToolOutcome, truncate_text
from maniple.mcp.results import MAX_RESULT_CHARACTERS
from maniple.reading.pictures import identify_picture
from maniple.tools.files import WHOLE, StoredResults
from maniple.tools.run_context import thread_key

_NOTHING = "[no output]"
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}

Result = tuple[str, dict[str, Any]]
"""What the model reads, and the message's artifact: `server`; `pictures`, the workspace paths of those that a
model can be shown; and of a text that was cut, `WHOLE`."""


class McpToolSource:
    """What workers may call of some servers; tools come and go while the program runs.

    Pictures and the whole of long texts are kept as files of the thread's workspace, without one they are
    left out.
    """

    def __init__(self, servers: McpServers, names: Sequence[str], kept: StoredResults | None) -> None:
        self._servers = servers
        self._names = tuple(names)
        self._kept = kept
        self._made: dict[str, tuple[RemoteTool, BaseTool]] = {}

    def list_tools(self) -> list[BaseTool]:
        """Return the tools that can be called now."""
        return [self._tool(one) for one in self._servers.list_tools(self._names)]

    def find(self, name: str) -> BaseTool | None:
        """Return a tool by its name, also one that cannot be called now: calling it says why."""
        found = self._servers.find(name, self._names)
        return self._tool(found) if found is not None else None

    def _tool(self, remote: RemoteTool) -> BaseTool:
        known = self._made.get(remote.name)
        if known is None or known[0] != remote:
            known = remote, _made(remote, self._servers, self._kept)
            self._made[remote.name] = known
        return known[1]


class McpTool(BaseTool):
    """Calls one tool of a server; raises `McpError` when that fails, or says that it failed."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    remote: RemoteTool
    servers: McpServers
    kept: StoredResults | None

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        # By the names of its arguments a server could else take the place of LangChain's own.
        return (), {"arguments": dict(tool_input) if isinstance(tool_input, dict) else {}}

    def _run(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError("MCP servers are called asynchronously")

    async def _arun(self, arguments: Mapping[str, Any]) -> Result:
        outcome = await self.servers.call(self.remote, arguments)
        text, whole = await self._told(outcome.text)
        if outcome.is_error:
            raise McpError(text or "the server does not say why")
        words, pictures = await self._pictured(outcome)
        told = "\n".join([*([text] if text else []), *words]) or _NOTHING
        return told, {"server": self.remote.server, "pictures": pictures, **whole}

    async def _pictured(self, outcome: ToolOutcome) -> tuple[list[str], list[str]]:
        """Return what is said of its pictures, and the paths of those that a model can be shown."""
        words: list[str] = []
        shown: list[str] = []
        for picture in outcome.pictures:
            known = identify_picture(picture.content)
            media_type = known.media_type if known else picture.media_type
            path = await self._picture(picture.content, media_type)
            words.append(f"[image: {path}]" if path else f"[an image was left out: {picture.media_type}]")
            if path and known:
                shown.append(path)
        return words, shown

    async def _told(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return what is told of a text, and of one that is cut, where the whole is."""
        if len(text) <= MAX_RESULT_CHARACTERS:
            return text, {}
        where = (
            await self.kept.describe_location(self.remote.name, text) if self.kept else "they are not kept"
        )
        return truncate_text(text, where), {WHOLE: {"where": where, "characters": len(text)}}

    async def _picture(self, content: bytes, media_type: str) -> str:
        """Put a picture into the thread's workspace; return its path, or "" where there is no room.

        The same picture has one path, and another one another: a later one leaves the earlier, and what is
        said of both tells them apart.
        """
        ending = _ENDINGS.get(media_type)
        if self.kept is None or ending is None:
            return ""
        digest = hashlib.blake2s(content, digest_size=4).hexdigest()
        path = f"{self.remote.name}-{digest}.{ending}"
        try:
            place = await asyncio.to_thread(self.kept.workspaces.open, thread_key())
            await asyncio.to_thread(place.write, path, content)
        except FileError:
            return ""
        return path


def _made(remote: RemoteTool, servers: McpServers, kept: StoredResults | None) -> BaseTool:
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
        kept=kept,
    )
