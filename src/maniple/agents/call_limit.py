"""Bound how often an agent may ask its model for one step."""

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AIMessage

from maniple.agents.task import StepFailed
from maniple.agents.wrapping import ModelHandler


class Answers(AgentState[Any]):
    """An agent's messages, and how many answers and results of calls are not among them any more."""

    given: NotRequired[int]
    """How many messages were there before the step began: they may hold answers to earlier requests."""
    answers_left_out: NotRequired[Annotated[int, PrivateStateAttr]]
    calls_left_out: NotRequired[Annotated[int, PrivateStateAttr]]


def answers_in(state: Mapping[str, Any]) -> int:
    """Return how often the model has answered in this step, shortened records included."""
    own = state["messages"][state.get("given", 0) :]
    kept = sum(isinstance(message, AIMessage) for message in own)
    return kept + state.get("answers_left_out", 0)


class ModelCallLimit(AgentMiddleware[Any, Any]):
    """End the step after `most` answers of the model.

    LangChain's own middleware counts in two nodes of its own, before and after each call: that is two steps
    of the graph more, each with a checkpoint. The answers are in the agent's state anyway.
    """

    state_schema = Answers

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        if answers_in(request.state) >= self._most:
            raise StepFailed(f"the limit of {self._most} model calls for one step was reached")
        return await handler(request)
