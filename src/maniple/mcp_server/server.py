"""The MCP server: which tools there are, and each call from its arguments to its result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from mcp.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

from maniple.api.auth import Caller as Known
from maniple.api.state import Service
from maniple.config import Settings
from maniple.errors import ManipleError
from maniple.mcp_server.arguments import Arguments, AskTeam, GetRun, MakePlan, read
from maniple.mcp_server.dialogue import Context, Dialogue
from maniple.mcp_server.results import RunResult
from maniple.mcp_server.team import Caller, Team
from maniple.types import GENERAL

_INSTRUCTIONS = (
    "A team of agents that searches the web, reads pages, runs code and writes reports with their sources. "
    "A question may take minutes. Nothing is lost when this server stops: get_run tells how a run stands."
)
_ASK = (
    "Ask the team: it plans, searches, computes and writes the answer. Takes minutes. With a thread_id it "
    "goes on with a conversation, or answers what the conversation's run waits for."
)
_PLAN = (
    "Have the team make a plan for a question, with nothing of it carried out. ask_team with its thread_id "
    'and the question "accept" carries it out; other words change it.'
)
_GET = (
    "How a run of ask_team or plan stands: status, answer, plan with the status of each step, usage, sources."
)
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Offer:
    """A tool: what it takes, what it does, and what clients are told of it."""

    takes: type[Arguments]
    does: Callable[[Any, Caller], Awaitable[RunResult]]
    description: str
    annotations: ToolAnnotations


class TeamServer:
    """The team as an MCP server; `protocol` is what the SDK's transports serve.

    It speaks before the service is `opened`: only calls wait for that, which with a model to load takes long.
    """

    def __init__(self, settings: Settings, opened: asyncio.Future[Service]) -> None:
        self._alone = [GENERAL] if GENERAL in settings.team.members else []
        self._team = Team(opened)
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=True)
        looks = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
        works = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
        self._offers = {
            "ask_team": _Offer(AskTeam, self._team.ask, _ASK, works),
            "plan": _Offer(MakePlan, self._team.plan, _PLAN, reads),
            "get_run": _Offer(GetRun, self._team.get, _GET, looks),
        }
        self.protocol: Server[Any] = Server(
            "maniple",
            version=version("maniple"),
            title="maniple, a team of agents",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    def leave(self) -> None:
        """Have calls that end from now on leave their runs alone: this process is about to stop."""
        self._team.leaving = True

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        result = RunResult.model_json_schema(mode="serialization")
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description=offer.description,
                    input_schema=self._arguments(offer),
                    output_schema=result,
                    annotations=offer.annotations,
                )
                for name, offer in self._offers.items()
            ]
        )

    def _arguments(self, offer: _Offer) -> dict[str, Any]:
        """Describe the arguments, with those who answer alone here; where nobody does, without `agent`."""
        schema = offer.takes.model_json_schema()
        if "agent" in schema["properties"]:
            if self._alone:
                schema["properties"]["agent"]["enum"] = ["", *self._alone]
            else:
                del schema["properties"]["agent"]
        return schema

    async def _call(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult:
        offer = self._offers.get(params.name)
        if offer is None:
            raise MCPError(INVALID_PARAMS, f"There is no such tool; there are {', '.join(self._offers)}.")
        caller = Caller(_known(context).owner, _Lines(context).tell)
        dialogue = Dialogue(context, params.name, self._team, caller)
        try:
            if params.input_responses is not None:
                result = await dialogue.go_on(params)
            else:
                begun = await offer.does(read(offer.takes, params.arguments or {}), caller)
                result = await dialogue.until_answered(begun)
        except ManipleError as error:
            return _failed(str(error))
        except Exception:  # noqa: BLE001 - what it was is in the log, and no business of a client's
            _LOG.exception("A call of %s failed.", params.name)
            return _failed("Something went wrong here. The server's log has it.")
        if isinstance(result, InputRequiredResult):
            return result
        return _told(result, is_error=params.name != "get_run" and result.status == "failed")


class _Lines:
    """What a call tells while it lasts; clients that gave no token are told nothing."""

    def __init__(self, context: Context) -> None:
        self._session = context.session
        self._number = 0

    async def tell(self, line: str) -> None:
        self._number += 1
        await self._session.report_progress(self._number, message=line)


def _known(context: Context) -> Known:
    """Return who calls, as the door over HTTP found it; on stdio it is who started this program."""
    return context.request.state.caller if context.request is not None else Known()


def _told(result: RunResult, *, is_error: bool) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(text=text) for text in result.texts()],
        structured_content=result.model_dump(mode="json"),
        is_error=is_error,
    )


def _failed(words: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=words)], is_error=True)
