"""The MCP server: its tools, and each call from its arguments to its result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeVar

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitResult,
    InputRequests,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from maniple.config import Settings
from maniple.errors import ManipleError
from maniple.mcp_server.schemas import (
    Arguments,
    AskTeam,
    CancelRun,
    GetRun,
    MakePlan,
    RunResult,
    build_call_result,
    build_form,
    can_ask,
    parse_answer,
    parse_arguments,
)
from maniple.mcp_server.tasks import TeamTasks, declares_tasks
from maniple.mcp_server.team import Answer, TeamCalls, ToolCaller
from maniple.service import Service
from maniple.service.views import InterruptView
from maniple.types import GENERAL

_INSTRUCTIONS = (
    "A team of agents that searches the web, reads pages, runs code and writes reports with their sources. "
    "A question may take minutes. Runs go on when a call ends or times out, and survive a restart of this "
    "server: get_run returns a run, and waits for it; cancel_run ends it."
)
_ASK = (
    "Ask the team: it plans, searches, computes and writes the answer. Takes minutes: after wait_seconds the "
    "result is the run_id of the run, which goes on; get_run waits for its answer. With a thread_id, the "
    "question continues a conversation, or answers what the conversation's run waits for."
)
_PLAN = (
    "Make a plan for a question without executing it. Call ask_team with its thread_id and the question "
    '"accept" to execute it; any other question changes the plan.'
)
_GET = (
    "Return a run of ask_team or plan: status, answer, plan with the status of each step, usage and sources. "
    "With wait_seconds, wait until it has ended or waits for an answer. Without a run_id: the newest run."
)
_CANCEL = "Cancel a run. Its partial work stays. Nothing else cancels a run, also not the end of a call."
_SILENT_TOOLS = ("get_run", "cancel_run")
"""Tools that ask the user nothing."""
_LOG = logging.getLogger(__name__)
Context = ServerRequestContext[Any, Any]


@dataclass(frozen=True, slots=True)
class _ToolDefinition:
    """A tool: the type of its arguments, its implementation, and what clients see of it."""

    arguments: type[Arguments]
    run: Callable[[Any, ToolCaller], Awaitable[RunResult]]
    description: str
    annotations: ToolAnnotations


class TeamServer:
    """The team as an MCP server; the SDK's transports serve `protocol`.

    It answers before the service is `opened`. Only tool calls wait, because loading a model takes long.
    """

    def __init__(self, settings: Settings, opened: asyncio.Future[Service]) -> None:
        self._alone = [GENERAL] if GENERAL in settings.team.members else []
        self._team = TeamCalls(opened)
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=True)
        looks = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
        stops = ToolAnnotations(read_only_hint=False, idempotent_hint=True, open_world_hint=False)
        works = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=True)
        self._tools = {
            "ask_team": _ToolDefinition(AskTeam, self._team.ask, _ASK, works),
            "plan": _ToolDefinition(MakePlan, self._team.plan, _PLAN, reads),
            "get_run": _ToolDefinition(GetRun, self._team.get, _GET, looks),
            "cancel_run": _ToolDefinition(CancelRun, self._team.cancel, _CANCEL, stops),
        }
        self.protocol: Server[Any] = Server(
            "maniple",
            version=version("maniple"),
            title="maniple, a team of agents",
            instructions=_INSTRUCTIONS,
            on_list_tools=self._list,
        )
        # The SDK's type of `on_call_tool` has no tasks.
        self.protocol.add_request_handler("tools/call", CallToolRequestParams, self._call)
        self._tasks = TeamTasks(self._team, self.protocol)

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        result = RunResult.model_json_schema(mode="serialization")
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    description=tool.description,
                    input_schema=self._arguments(tool),
                    output_schema=result,
                    annotations=tool.annotations,
                )
                for name, tool in self._tools.items()
            ]
        )

    def _arguments(self, tool: _ToolDefinition) -> dict[str, Any]:
        """Return the schema of the arguments; `agent` lists the agents that work alone, if there are any."""
        schema = tool.arguments.model_json_schema()
        if "agent" in schema["properties"]:
            if self._alone:
                schema["properties"]["agent"]["enum"] = ["", *self._alone]
            else:
                del schema["properties"]["agent"]
        return schema

    async def _call(
        self, context: Context, params: CallToolRequestParams
    ) -> CallToolResult | InputRequiredResult | dict[str, Any]:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(
                INVALID_PARAMS, f"There is no such tool. Available tools: {', '.join(self._tools)}."
            )
        caller = ToolCaller.of(context)
        try:
            given = parse_arguments(tool.arguments, params.arguments or {})
            if isinstance(given, AskTeam) and params.input_responses is None and declares_tasks(context):
                return _finish(await self._tasks.ask(context, given, caller), params.name)
            waits = getattr(given, "wait_seconds", 0.0)
            dialogue = Dialogue(context, params.name, self._team, caller, waits)
            if params.input_responses is not None:
                result = await dialogue.continue_run(params)
            else:
                result = await dialogue.until_answered(await tool.run(given, caller))
        except ManipleError as error:
            return _call_error(str(error))
        except Exception:  # noqa: BLE001 - the log has the error; clients must not see it
            _LOG.exception("A call of %s failed.", params.name)
            return _call_error("The call failed with an internal error. See the server's log.")
        return _finish(result, params.name)


_ResultT = TypeVar("_ResultT", InputRequiredResult, dict[str, Any])


def _finish(result: RunResult | _ResultT, tool: str) -> CallToolResult | _ResultT:
    """Return the result of a call; a form and a task are results already."""
    if not isinstance(result, RunResult):
        return result
    return build_call_result(result, is_error=tool not in _SILENT_TOOLS and result.status == "failed")


def _call_error(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=True)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One call, and the questions that its run asks.

    A client of the newest protocol receives the form as the result and calls again with the filled form. For
    an older protocol the call waits while the client shows the form.
    """

    context: Context
    tool: str
    team: TeamCalls
    caller: ToolCaller
    wait_seconds: float
    """How long to wait for the run after an answer; for the user, it is as long as the client waits."""

    async def until_answered(self, result: RunResult) -> RunResult | InputRequiredResult:
        """Ask while the run waits; return the result in the end, or the form to fill in."""
        while (pause := self._pause(result)) is not None:
            if self.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                asks: InputRequests = {pause.interrupt_id: ElicitRequest(params=build_form(pause))}
                return InputRequiredResult(input_requests=asks, request_state=result.run_id)
            answer = await self._elicited(pause)
            if answer is None:
                break
            answered = Answer(result.run_id, pause.interrupt_id, answer, self.wait_seconds)
            result = await self.team.answer(answered, self.caller)
        return result

    async def continue_run(self, params: CallToolRequestParams) -> RunResult | InputRequiredResult:
        """Continue the run of the previous call; without an answer it keeps waiting."""
        run = parse_arguments(GetRun, {"run_id": params.request_state})
        for pause_id, given in (params.input_responses or {}).items():
            answer = parse_answer(given) if isinstance(given, ElicitResult) else None
            if answer is not None:
                answered = Answer(run.run_id, pause_id, answer, self.wait_seconds)
                result = await self.team.answer(answered, self.caller)
                return await self.until_answered(result)
        return await self.team.get(run, self.caller)

    def _pause(self, result: RunResult) -> InterruptView | None:
        """Return the pause to ask about; None for tools that ask nothing, and for the review of `plan`."""
        if not result.waits_for or self.tool in _SILENT_TOOLS or not can_ask(self.context):
            return None
        pause = result.waits_for[0]
        return None if self.tool == "plan" and pause.kind == "plan_review" else pause

    async def _elicited(self, pause: InterruptView) -> str | None:
        form, session = build_form(pause), self.context.session
        try:
            return parse_answer(
                await session.elicit_form(form.message, form.requested_schema, self.context.request_id)
            )
        except (MCPError, ValidationError) as error:
            _LOG.info("The client did not ask its user: %s", type(error).__name__)
            return None
