"""Middleware: words without a call are no end of the work until the model has been asked about them."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage

from maniple.agents.browsing.loop import FAILED
from maniple.agents.middleware.base import ModelHandler
from maniple.llms import capabilities_of
from maniple.text import without_thoughts

_ASKED = (
    "[From maniple] You called no tool, so nothing was done. Call one to go on; if the work is over, or "
    "cannot be done, call `terminate` with status and result."
)
_SHOWN_CHARACTERS = 2_000


class Conclusion(AgentMiddleware[Any, Any]):
    """Asks once for a call instead of mere words; words for the second time are the answer.

    "I will now look for the price" is what models say that forget their call. One without tool calling says
    with each answer whether it is complete.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        answer = response.result[0] if response.result else None
        if not isinstance(answer, AIMessage) or answer.tool_calls:
            return response
        said = without_thoughts(answer.text)
        if said.startswith(FAILED) or not capabilities_of(request.model).has("tools"):
            return response
        # An empty message is refused by several endpoints.
        told = [AIMessage(said[:_SHOWN_CHARACTERS] or "(nothing)"), HumanMessage(_ASKED)]
        return await handler(request.override(messages=[*request.messages, *told]))
