"""A call whose run waits for a person: asked by a form at the client, where the client shows forms."""

import logging
from dataclasses import dataclass
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, ElicitRequest, ElicitResult, InputRequests, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from maniple.api.schemas import InterruptView
from maniple.mcp_server.arguments import GetRun, read
from maniple.mcp_server.pauses import answer_in, can_ask, form_of
from maniple.mcp_server.results import RunResult
from maniple.mcp_server.team import Caller, Team

Context = ServerRequestContext[Any, Any]
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One call and its questions.

    A client of the newest protocol is answered with the form, and calls again with what was filled in; of
    older ones the form is asked for while the call waits.
    """

    context: Context
    tool: str
    team: Team
    caller: Caller

    async def until_answered(self, result: RunResult) -> RunResult | InputRequiredResult:
        """Ask while the run waits, and return how it stands in the end, or the form to be filled in."""
        while (pause := self._pause(result)) is not None:
            if self.context.protocol_version in MODERN_PROTOCOL_VERSIONS:
                asks: InputRequests = {pause.interrupt_id: ElicitRequest(params=form_of(pause))}
                return InputRequiredResult(input_requests=asks, request_state=result.run_id)
            async with self.team.cancelling(result.run_id, self.caller):
                answer = await self._elicited(pause)
            if answer is None:
                break
            result = await self.team.answer(result.run_id, pause.interrupt_id, answer, self.caller)
        return result

    async def go_on(self, params: CallToolRequestParams) -> RunResult | InputRequiredResult:
        """Go on with the run that the last round was about; without an answer it waits on."""
        run: GetRun = read(GetRun, {"run_id": params.request_state})
        for pause_id, given in (params.input_responses or {}).items():
            answer = answer_in(given) if isinstance(given, ElicitResult) else None
            if answer is not None:
                result = await self.team.answer(run.run_id, pause_id, answer, self.caller)
                return await self.until_answered(result)
        return await self.team.get(run, self.caller)

    def _pause(self, result: RunResult) -> InterruptView | None:
        """Return what is to be asked now: nothing of a run that is only looked at, or is to be a plan."""
        if not result.waits_for or self.tool == "get_run" or not can_ask(self.context):
            return None
        pause = result.waits_for[0]
        return None if self.tool == "plan" and pause.kind == "plan_review" else pause

    async def _elicited(self, pause: InterruptView) -> str | None:
        form, session = form_of(pause), self.context.session
        try:
            return answer_in(
                await session.elicit_form(form.message, form.requested_schema, self.context.request_id)
            )
        except (MCPError, ValidationError) as error:
            _LOG.info("The client did not ask its user: %s", type(error).__name__)
            return None
