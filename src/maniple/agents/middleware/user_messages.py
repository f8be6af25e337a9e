"""Middleware that adds the user's messages to the conversation of a working agent."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage

from maniple.agents.middleware.base import ModelHandler
from maniple.agents.task import WRITTEN_MEANWHILE, current_task
from maniple.scope.inputs import UserMessage
from maniple.scope.run_scope import run_scope


class PassedOnMessages(AgentMiddleware[Any, Any]):
    """Adds messages that the user sent to the run to an agent's next model call, as human messages.

    The messages become part of the agent's conversation. If one arrives during the agent's last model call,
    the model is called again.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        inbox = run_scope().inbox
        if not inbox.is_reachable:
            return await handler(request)
        step_id = current_task().step
        added: list[BaseMessage] = []
        while True:
            new = [one for one in inbox.take_messages(step_id) if not _is_known(one, request.messages)]
            added += [as_prompt(one) for one in new]
            shown = cast("list[AnyMessage]", [*request.messages, *added])
            response = await handler(request.override(messages=shown))
            if not added and not inbox.new_messages(step_id):
                return response
            added += response.result
            if _calls_tools(response) or not inbox.new_messages(step_id):
                return replace(response, result=list(added))


def _is_known(message: UserMessage, conversation: Sequence[BaseMessage]) -> bool:
    """Return whether an agent's conversation contains a message already, alone or in its step's prompt."""
    return any(
        one.id == message.message_id or _is_in(one.text, message.text)
        for one in conversation
        if isinstance(one, HumanMessage)
    )


def _is_in(prompt: str, message: str) -> bool:
    """Return whether a step's prompt gives the message; the same words elsewhere in it do not count."""
    written = prompt.partition(WRITTEN_MEANWHILE)[2]
    return f"\n{message}\n" in f"{written}\n"


def as_prompt(message: UserMessage) -> HumanMessage:
    """Return a message as a prompt for a working member."""
    return HumanMessage(f"{WRITTEN_MEANWHILE}\n{message.text}", id=message.message_id)


def _calls_tools(response: ModelResponse) -> bool:
    return any(isinstance(one, AIMessage) and one.tool_calls for one in response.result)
