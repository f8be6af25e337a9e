"""The slow part of a tool begins while the model still writes the call's arguments."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from maniple.agents.middleware.tool_availability import ToolPreparation
from maniple.llms import open_chat_models
from maniple.llms.streams import pass_on_calls, receive_calls
from maniple.tools.registry import PreparedTool
from tests.llms.test_chat import QUESTION, settings
from tests.openai_server import call, serving

pytestmark = pytest.mark.anyio


class Preparations:
    """A tool's preparation that notes each time it is begun."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1
        self.begun.set()


async def run(code: str) -> str:
    """Run code."""
    return code


def request_with(prepare: Preparations) -> Any:
    tool = PreparedTool.from_function(coroutine=run, prepare=prepare)
    return SimpleNamespace(tools=[tool, {"type": "of the provider"}])


def begin_call(name: str | None, arguments: str = "") -> None:
    """Pass on a piece of an answer as a model does."""
    piece = {"name": name, "args": arguments, "id": "1", "index": 0}
    pass_on_calls(ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[piece])))


async def test_a_tool_is_prepared_before_the_answer_has_ended():
    prepare = Preparations()

    async def answer(_: Any) -> ModelResponse:
        begin_call("run")
        async with asyncio.timeout(60):
            await prepare.begun.wait()
        for letter in "code":
            begin_call(None, letter)
        begin_call("run")
        return ModelResponse(result=[AIMessage("")])

    await ToolPreparation().awrap_model_call(request_with(prepare), answer)
    await asyncio.sleep(0)
    assert prepare.count == 1


async def test_an_answer_that_calls_other_tools_prepares_nothing():
    prepare = Preparations()

    async def answer(_: Any) -> ModelResponse:
        begin_call("search")
        return ModelResponse(result=[AIMessage("")])

    await ToolPreparation().awrap_model_call(request_with(prepare), answer)
    begin_call("run")  # after the request
    await asyncio.sleep(0)
    assert prepare.count == 0


async def test_the_name_of_a_call_is_known_before_its_arguments_have_arrived():
    names: list[str] = []
    known: list[tuple[int, str]] = []
    with serving({"other": [call("python_repl_tool", code="print(1 + 3)  # " + "and more " * 20)]}) as server:
        async with open_chat_models(settings(server.base_url)) as models:
            with receive_calls(names.append):
                async for chunk in models.get("basic").astream(QUESTION):
                    known += [(len(names), one["args"] or "") for one in chunk.tool_call_chunks]
    assert names == ["python_repl_tool"]
    assert known[0][0] == 1, "before its first piece is read"
    assert "print" in "".join(arguments for _, arguments in known)
