"""Bound how often an agent may ask its model for one step."""

from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage

from maniple.agents.task import StepFailed


class ModelCallLimit(AgentMiddleware[Any, Any]):
    """End the step after `most` answers of the model.

    LangChain's own middleware counts in two nodes of its own, before and after each call: that is two steps
    of the graph more, each with a checkpoint. The answers are in the agent's messages anyway.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def awrap_model_call(
        self, request: ModelRequest, handler: Callable[[ModelRequest], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        answers = sum(isinstance(message, AIMessage) for message in request.state["messages"])
        if answers >= self._most:
            raise StepFailed(f"the limit of {self._most} model calls for one step was reached")
        return await handler(request)
