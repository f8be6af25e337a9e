"""An answer that the endpoint cut at its limit of tokens says so."""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage

from maniple.agents.wrapping import ModelHandler
from maniple.text import without_thoughts

CUT_NOTE = "[This answer was cut at the model's output limit.]"


def is_cut(answer: BaseMessage) -> bool:
    """Say whether the model would have said more."""
    return answer.response_metadata.get("finish_reason") == "length"


def marked(answer: AIMessage) -> str:
    """Return the answer's text without thoughts, and with the note when it was cut."""
    text = without_thoughts(answer.text)
    return f"{text}\n\n{CUT_NOTE}" if text and is_cut(answer) else text


class CutAnswers(AgentMiddleware[Any, Any]):
    """Mark answers in words; a tool call that was cut is the affair of `TextToolCalls`."""

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        result = [_noted(message) for message in response.result]
        return ModelResponse(result=result, structured_response=response.structured_response)


def _noted(message: BaseMessage) -> Any:
    if not isinstance(message, AIMessage) or message.tool_calls or message.invalid_tool_calls:
        return message
    text = marked(message) if is_cut(message) else ""
    return message.model_copy(update={"content": text}) if text else message
