"""Middleware that asks once more for an answer that lies wholly in the model's thoughts.

Endpoints whose parser of thoughts does not fit the model, and models that stop after they have thought, send
thoughts alone. Thoughts are never taken for the answer: they may say the opposite of it.
"""

from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, HumanMessage

from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.text_tools import is_truncated
from maniple.agents.task import StepFailed
from maniple.thoughts import split_thoughts

_ASKED = (
    "[From maniple, not from the user] Your answer was empty: you only thought. Write the answer itself now, "
    "or make the call."
)
_FAILED = (
    "The model only thought and gave no answer, also when it was asked again. Does the parser of thoughts "
    "of its endpoint fit the model? Turn its thinking off, or use another model."
)
_CUT = (
    "The model's thoughts took its whole output, so that no answer came. Raise models.*.max_output_tokens, "
    "or let it think less."
)


class EmptyAnswers(AgentMiddleware[Any, Any]):
    """Asks again for an answer with thoughts, but without text and calls.

    Raises `StepFailed` if the next one is no better, and for one that was cut at the model's output limit.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        if not _only_thinks(response):
            return response
        if is_truncated(response.result[-1]):
            raise StepFailed(_CUT)
        response = await handler(request.override(messages=[*request.messages, HumanMessage(_ASKED)]))
        if _only_thinks(response):
            raise StepFailed(_FAILED)
        return response


def _only_thinks(response: ModelResponse) -> bool:
    last = response.result[-1] if response.result else None
    if not isinstance(last, AIMessage) or last.tool_calls:
        return False
    thoughts, text = split_thoughts(last.text)
    return not text.strip() and bool(thoughts or last.additional_kwargs.get("reasoning_content"))
