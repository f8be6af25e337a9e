"""Models on a scripted endpoint, one that refuses prompts over its window, and agents with what they tell."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from unittest import mock

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.tools import BaseTool

from maniple.agents import ROLES, ReactAgent, StepLimits, build_react_agent
from maniple.config import ModelsSettings
from maniple.llms import open_chat_models
from tests import openai_server
from tests.openai_server import Json, OpenAIServer, serving

REFUSAL = "This model's maximum context length is {window} tokens. Please reduce the length of the messages."


@contextmanager
def narrow(script: Json, characters: int, refusal: str = REFUSAL) -> Iterator[OpenAIServer]:
    """Serve `script`, but answer a prompt of more than `characters` with the error of a full window."""

    class Narrow(OpenAIServer):
        refused = 0

        def _next_reply(self, body: Json) -> tuple[Json, str]:
            shown = sum(
                len(str(m.get("content") or "")) + len(str(m.get("tool_calls") or ""))
                for m in body["messages"]
            )
            if shown > characters:
                Narrow.refused += 1
                words = refusal.format(window=characters // 4)
                return {"status": 400, "error": words, "code": "context_length_exceeded"}, ""
            return super()._next_reply(body)

    with mock.patch.object(openai_server, "OpenAIServer", Narrow), serving(script) as server:
        yield server


@asynccontextmanager
async def model_at(
    server: OpenAIServer, *, window: int | None = None, **settings: Any
) -> AsyncIterator[BaseChatModel]:
    """Open the chat model of `server`, which is known to have a `window` of so many tokens."""
    endpoint = {
        "model": "m",
        "base_url": server.base_url,
        "timeout_seconds": 60,
        "max_retries": 0,
        **settings,
    }
    async with open_chat_models(ModelsSettings.model_validate({"basic": endpoint})) as models:
        model = models.get("basic")
        if window is not None:
            model.profile = {"max_input_tokens": window}
        yield model


async def run_events(
    graph: Any, given: Any, config: dict[str, Any]
) -> tuple[list[dict[str, Any]], Exception | None]:
    """Run `graph` as the server does; return its raw events and what ended it."""
    events: list[dict[str, Any]] = []
    try:
        async for event in graph.astream_events(given, {"recursion_limit": 500, **config}, version="v2"):
            events.append(event)
    except Exception as error:  # noqa: BLE001 - it is what the tests look at
        return events, error
    return events, None


def kinds(events: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


def agent_with(
    model: BaseChatModel, tools: Sequence[BaseTool], *middleware: AgentMiddleware[Any, Any]
) -> ReactAgent:
    """Build a coder with `middleware` and nothing else."""
    return ReactAgent(ROLES["coder"], True, create_agent(model, list(tools), middleware=middleware), model)


@asynccontextmanager
async def coder_with(
    tools: Sequence[BaseTool], *replies: Json, **limits: float
) -> AsyncIterator[tuple[ReactAgent, OpenAIServer]]:
    """Open a whole coder, as the team has it, to whose model an endpoint gives `replies`."""
    with serving({"coder": list(replies)}) as server:
        async with model_at(server) as model:
            yield build_react_agent(ROLES["coder"], model, tools, limits=StepLimits(**limits)), server


def results_shown(server: OpenAIServer) -> list[str]:
    """Return the results of tools that the model was shown at last."""
    return [one["content"] for one in server.requests[-1]["messages"] if one["role"] == "tool"]


def shown(body: Json) -> str:
    return "\n".join(str(message.get("content")) for message in body["messages"])


def in_order(messages: Sequence[BaseMessage]) -> list[str]:
    return [message.type for message in messages]
