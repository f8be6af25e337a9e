"""The Tasks extension: a run as a task, which the client polls instead of waiting for the end of a call.

A task is a view of a stored run and has its id, so that it survives a restart and any process can answer.
Source: https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    ElicitRequest,
    ElicitResult,
    InputResponses,
    RequestParams,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field

from maniple.errors import ManipleError
from maniple.mcp_server.schemas import (
    RUN_ID,
    AskTeam,
    CancelRun,
    RunResult,
    build_call_result,
    build_form,
    can_ask,
    parse_answer,
    read_run_result,
)
from maniple.mcp_server.team import Answer, TeamCalls, ToolCaller
from maniple.runs import NotFound, RunNotWaiting
from maniple.service.views import InterruptView
from maniple.store import RunRecord

EXTENSION = "io.modelcontextprotocol/tasks"
POLL_MILLISECONDS = 2_000
_DECLINED_QUESTION = "The user does not want to answer this question."
_LOG = logging.getLogger(__name__)
_Context = ServerRequestContext[Any, Any]
_TaskId = Annotated[str, Field(min_length=1, pattern=RUN_ID)]


class TaskParams(RequestParams):
    """The parameters of `tasks/get` and `tasks/cancel`."""

    task_id: _TaskId


class TaskUpdateParams(TaskParams):
    """The parameters of `tasks/update`: the filled forms by the id of the pause that each answers."""

    input_responses: InputResponses


class TeamTasks:
    """Creates tasks for `ask_team`, and serves the extension's methods on `protocol`."""

    def __init__(self, team: TeamCalls, protocol: Server[Any]) -> None:
        self._team = team
        protocol.extensions[EXTENSION] = {}
        protocol.add_request_handler("tasks/get", TaskParams, self._get)
        protocol.add_request_handler("tasks/update", TaskUpdateParams, self._update)
        protocol.add_request_handler("tasks/cancel", TaskParams, self._cancel)

    async def ask(self, context: _Context, given: AskTeam, caller: ToolCaller) -> RunResult | dict[str, Any]:
        """Start or answer a run; return its task, or its result if it has ended within the call.

        The call waits only for `wait_seconds` that the client has named itself.
        """
        waits = given.wait_seconds if "wait_seconds" in given.model_fields_set else 0
        result = await self._team.ask(given.model_copy(update={"wait_seconds": waits}), caller)
        if result.status not in ("queued", "running", "interrupted"):
            return result
        return {**await self._describe(context, result.run_id, caller.owner), "resultType": "task"}

    async def _get(self, context: _Context, params: TaskParams) -> dict[str, Any]:
        _check_capability(context)
        with _translated_errors():
            return await self._describe(context, params.task_id, ToolCaller.of(context).owner)

    async def _update(self, context: _Context, params: TaskUpdateParams) -> dict[str, Any]:
        """Answer what the run waits for; as the extension says, answers to anything else are ignored."""
        _check_capability(context)
        with _translated_errors():
            caller = ToolCaller.of(context)
            result = await self._read(params.task_id, caller.owner)
            waiting = {pause.interrupt_id: pause for pause in result.waits_for}
            for pause_id, given in params.input_responses.items():
                if pause_id in waiting and isinstance(given, ElicitResult):
                    await self._answer(params.task_id, waiting[pause_id], given, caller)
                else:
                    _LOG.info("The task %s does not wait for the answer %.100r.", params.task_id, pause_id)
            return {}

    async def _cancel(self, context: _Context, params: TaskParams) -> dict[str, Any]:
        _check_capability(context)
        with _translated_errors():
            await self._team.cancel(CancelRun(run_id=params.task_id), ToolCaller.of(context))
            return {}

    async def _answer(
        self, run_id: str, pause: InterruptView, given: ElicitResult, caller: ToolCaller
    ) -> None:
        """Pass on the user's decision. A form that was closed without one leaves the run waiting."""
        declined = given.action == "decline"
        if declined and pause.kind == "plan_review":
            await self._team.cancel(CancelRun(run_id=run_id), caller)
            return
        text = _decline(pause) if declined else parse_answer(given)
        if text is None:
            return
        try:
            await self._team.resume(Answer(run_id, pause.interrupt_id, text, 0), caller)
        except RunNotWaiting:
            _LOG.info("The question %s of the task %s was answered already.", pause.interrupt_id, run_id)

    async def _read(self, run_id: str, owner: str) -> RunResult:
        service = await self._team.service()
        return await read_run_result(service, await service.engine.status(run_id, owner))

    async def _describe(self, context: _Context, run_id: str, owner: str) -> dict[str, Any]:
        """Return a run as the extension's `DetailedTask`; raises `NotFound`."""
        service = await self._team.service()
        run = await service.engine.status(run_id, owner)
        result = await read_run_result(service, run)
        last = await service.store.events.last(run_id)
        updated = run.ended_at or (last.at if last is not None else None) or run.created_at
        return {
            "taskId": run_id,
            "createdAt": _as_iso(run.created_at),
            "lastUpdatedAt": _as_iso(updated),
            "ttlMs": None,
            "pollIntervalMs": POLL_MILLISECONDS,
            **_describe_status(run, result, has_forms=can_ask(context)),
        }


def declares_tasks(context: _Context) -> bool:
    """Return whether the client of this request takes tasks: the extension exists since 2026-07-28."""
    client = context.session.client_capabilities
    is_modern = context.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and client is not None and EXTENSION in (client.extensions or {})


def _check_capability(context: _Context) -> None:
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(METHOD_NOT_FOUND, "Tasks need version 2026-07-28 of the protocol.", context.method)
    if not declares_tasks(context):
        required = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        message = f"Declare the extension {EXTENSION} in the capabilities of the request."
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, message, required)


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Turn this program's errors into the protocol's."""
    try:
        yield
    except MCPError:
        raise
    except NotFound as error:
        raise MCPError(INVALID_PARAMS, "The task does not exist.") from error
    except ManipleError as error:
        raise MCPError(INTERNAL_ERROR, str(error), {"code": error.code}) from error
    except Exception as error:
        _LOG.exception("A request for a task failed.")
        raise MCPError(INTERNAL_ERROR, "The request failed. See the server's log.") from error


def _describe_status(run: RunRecord, result: RunResult, *, has_forms: bool) -> dict[str, Any]:
    """Return the status of a task, with what belongs to it.

    For a client without forms a run that waits is a result, which says how to answer with `ask_team`.
    """
    if result.waits_for and has_forms:
        requests = {
            pause.interrupt_id: ElicitRequest(params=build_form(pause)).model_dump(
                mode="json", by_alias=True, exclude_none=True
            )
            for pause in result.waits_for
        }
        message = f"The run waits for the user. thread_id: {result.thread_id}"
        return {"status": "input_required", "statusMessage": message, "inputRequests": requests}
    if run.is_unfinished:
        return {"status": "working", "statusMessage": _describe_work(result)}
    if run.status == "cancelled":
        message = "The run was cancelled. get_run returns its partial work."
        return {"status": "cancelled", "statusMessage": message}
    # A failed run is a result with an error: "failed" is for errors of JSON-RPC.
    content = build_call_result(result, is_error=run.status == "failed")
    return {
        "status": "completed",
        "result": content.model_dump(mode="json", by_alias=True, exclude_none=True),
    }


def _describe_work(result: RunResult) -> str:
    if result.outage:
        return f"The run waits and goes on by itself: {result.outage}"
    steps = result.plan.steps if result.plan is not None else []
    working = [
        f"step {number} of {len(steps)}, {step.agent_name}: {step.title}"
        for number, step in enumerate(steps, start=1)
        if step.status == "in_progress"
    ]
    return "; ".join(working) or f"The run is {result.status}."


def _decline(pause: InterruptView) -> str:
    """Return the answer of a user who declines the form of a question or an approval."""
    if pause.kind == "question":
        return _DECLINED_QUESTION
    return "skip" if pause.payload.get("reason") == "unknown_result" else "no"


def _as_iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
