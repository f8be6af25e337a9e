"""Editors: the protocol's own client, with the real program at the other end of its pipes."""

import asyncio
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acp import RequestError, connect_to_agent, text_block
from acp.client.connection import ClientSideConnection
from acp.connection import StreamEvent
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    DeniedOutcome,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
)

from tests.cli.processes import MANIPLE, environment, start
from tests.openai_server import OpenAIServer
from tests.serving import ROOT

SECONDS = 90
"""How long any one thing may take on a loaded machine."""


@dataclass
class Editor:
    """A client that keeps what it is sent, and answers permission requests as `choices` say."""

    choices: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    updates: list[Any] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    taken_back: list[int] = field(default_factory=list)
    """The ids of the requests that the agent has taken back."""
    agent: ClientSideConnection = None  # type: ignore[assignment]
    process: Process = None  # type: ignore[assignment]
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _undecided: list[asyncio.Future[None]] = field(default_factory=list)

    def on_connect(self, conn: Any) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self._changed.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self._changed.set()
        if not self.choices:
            undecided = asyncio.get_running_loop().create_future()
            self._undecided.append(undecided)
            await undecided
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        chosen = self.choices.pop(0)
        assert chosen in {one.option_id for one in options}
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        if path not in self.files:
            raise RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.files[path])

    def observe(self, event: StreamEvent) -> None:
        """Take back what the agent asks for no more; the package does not do so itself yet."""
        if event.message.get("method") == "$/cancel_request":
            self.taken_back.append(event.message["params"]["requestId"])
            self._changed.set()

    def dismiss(self) -> None:
        """Answer all open permission requests as an editor must at a cancellation."""
        for one in self._undecided:
            one.set_result(None)
        self._undecided.clear()

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until something holds of what was sent."""
        async with asyncio.timeout(SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    async def begin(self, folder: Path) -> str:
        """Return the id of a new session."""
        return (await self.agent.new_session(cwd=str(folder), mcp_servers=[])).session_id

    async def ask(self, session_id: str, *blocks: Any) -> str:
        """Return the stop reason of a prompt."""
        given = [text_block(one) if isinstance(one, str) else one for one in blocks]
        async with asyncio.timeout(SECONDS):
            return (await self.agent.prompt(session_id=session_id, prompt=given)).stop_reason

    def text(self, kind: str = "agent_message_chunk") -> str:
        """Return the text of all messages of the agent, or of another kind."""
        return "".join(
            one.content.text
            for one in self.updates
            if one.session_update == kind and one.content.type == "text"
        )

    def calls(self) -> dict[str, str]:
        """Return the newest status of each tool call by its id."""
        found: dict[str, str] = {}
        for one in self.updates:
            if one.session_update in ("tool_call", "tool_call_update") and one.status:
                found[one.tool_call_id] = one.status
        return found

    def plan(self) -> list[str]:
        """Return the statuses of the newest plan's entries."""
        plans = [one for one in self.updates if one.session_update == "plan"]
        return [entry.status for entry in plans[-1].entries] if plans else []


@asynccontextmanager
async def editing(
    model: OpenAIServer,
    home: Path,
    *choices: str,
    reads_files: bool = True,
    variables: Mapping[str, str] | None = None,
) -> AsyncIterator[Editor]:
    """Start `maniple acp` and connect an editor to it; killed or not, it has ended afterwards."""
    env = environment(home, model.base_url, PYTHONPATH=str(ROOT), **(variables or {}))
    process = await start(MANIPLE, "acp", folder=home, env=env, stdin=PIPE)
    editor = Editor([*choices], process=process)
    log = asyncio.create_task(process.stderr.read())  # type: ignore[union-attr] - a full pipe would stop it
    try:
        editor.agent = connect_to_agent(
            editor,  # type: ignore[arg-type]
            process.stdin,
            process.stdout,
            observers=[editor.observe],
        )
        files = FileSystemCapabilities(read_text_file=reads_files)
        await editor.agent.initialize(protocol_version=1, client_capabilities=ClientCapabilities(fs=files))
        yield editor
        await editor.agent.close()
    finally:
        if process.returncode is None:
            process.stdin.close()  # type: ignore[union-attr]
            try:
                await asyncio.wait_for(process.wait(), SECONDS)
            except TimeoutError:
                process.kill()
                await process.wait()
        print((await log).decode())
