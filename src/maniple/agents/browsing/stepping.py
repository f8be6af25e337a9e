"""Middleware: each action of each answer is a step of the course that is under way."""

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ExtendedModelResponse, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import Command

from maniple.agents.browsing.course import COURSE
from maniple.agents.browsing.steps import Extracted, extracted_in, step_of, steps_in, thought_of, within
from maniple.agents.middleware.base import ModelHandler, ToolAnswer, ToolHandler
from maniple.agents.middleware.call_order import wait_for_turn
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.middleware.limits import count_answers
from maniple.tools.browser_use import NAME
from maniple.tools.registry import redact_arguments

_KEPT = "[From maniple] What you extracted earlier, kept while the conversation was shortened:\n"


class Stepping(AgentMiddleware[Any, Any]):
    """Notes thought, action and observation; shows again what was extracted and is no longer said."""

    state_schema = Extracted

    async def awrap_model_call(
        self, request: ModelRequest, handler: ModelHandler
    ) -> ModelResponse | ExtendedModelResponse:
        course = COURSE.get()
        if course is None:
            return await handler(request)
        course.answers = count_answers(request.state)
        await course.think(steps_in(request.state["messages"], request.state))
        extracted = extracted_in(request.state)
        course.kept = within([*course.kept_before, *extracted])
        response = await handler(_reminded(request, course.kept))
        answer = response.result[0] if response.result else None
        if isinstance(answer, AIMessage):
            course.answers += 1
            course.note(thought_of(answer))
        if extracted == request.state.get("extracted", []):
            return response
        # Before the conversation may be shortened: what is left out of it is nowhere else.
        return ExtendedModelResponse(response, Command(update={"extracted": extracted}))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        course = COURSE.get()
        if course is None:
            return await handler(request)
        course.answers = count_answers(request.state)
        # So that no step is told before the one that it waits for is over.
        await wait_for_turn(request, is_approved=True)
        name = request.tool_call["name"]
        given = redact_arguments(request.tool, request.tool_call["args"])
        action = str(given.pop("action", "")) if name == NAME else name
        place, thought = step_of(request.state, request.tool_call["id"])
        step = await course.act(place, thought, action, given)
        answer = await handler(request)
        if isinstance(answer, ToolMessage):
            succeeded = answer.status != "error"
            await course.observe(step, answer.text, success=succeeded)
            if succeeded and action == "extract_content":
                course.kept = within([*course.kept, answer.text])
        return answer


def _reminded(request: ModelRequest, kept: Sequence[str]) -> ModelRequest:
    said = "\n".join(message.text for message in request.messages if isinstance(message, ToolMessage))
    lost = [one for one in kept if one not in said]
    if not lost:
        return request
    reminder = HumanMessage(_KEPT + fence_untrusted("\n".join(lost)))
    return request.override(messages=[*request.messages, reminder])
