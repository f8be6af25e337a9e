"""Middleware: each answer and its action is a step of the course that is under way."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from maniple.agents.browsing.course import COURSE, Course
from maniple.agents.call_limit import answers_in
from maniple.agents.fencing import between_marks
from maniple.agents.wrapping import ModelHandler, ToolAnswer, ToolHandler
from maniple.text import without_thoughts
from maniple.tools.browser_use import NAME
from maniple.tools.discreet import told_arguments

_KEPT = "[From maniple] What you extracted earlier, kept while the conversation was shortened:\n"


class Stepping(AgentMiddleware[Any, Any]):
    """Notes thought, action and observation; shows again what was extracted and is no longer said."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        course = COURSE.get()
        if course is None:
            return await handler(request)
        await course.think(answers_in(request.state))
        response = await handler(_reminded(request, course))
        answer = response.result[0] if response.result else None
        if isinstance(answer, AIMessage):
            thought = without_thoughts(answer.text) or str(
                answer.additional_kwargs.get("reasoning_content", "")
            )
            course.note(thought)
        return response

    async def awrap_tool_call(self, request: ToolCallRequest, handler: ToolHandler) -> ToolAnswer:
        course = COURSE.get()
        if course is None:
            return await handler(request)
        name = request.tool_call["name"]
        given = told_arguments(request.tool, request.tool_call["args"])
        action = str(given.pop("action", "")) if name == NAME else name
        await course.act(action, given)
        answer = await handler(request)
        if isinstance(answer, ToolMessage):
            succeeded = answer.status != "error"
            await course.observe(answer.text, success=succeeded)
            if succeeded and action == "extract_content":
                course.keep(answer.text)
        return answer


def _reminded(request: ModelRequest, course: Course) -> ModelRequest:
    said = "\n".join(message.text for message in request.messages if isinstance(message, ToolMessage))
    lost = [one for one in course.kept if one not in said]
    if not lost:
        return request
    reminder = HumanMessage(_KEPT + between_marks("\n".join(lost)))
    return request.override(messages=[*request.messages, reminder])
