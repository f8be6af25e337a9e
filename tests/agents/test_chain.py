"""Middlewares as one, as LangChain would call them one by one."""

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState, ExtendedModelResponse
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.types import Command

from maniple.agents.middleware.base import MiddlewareChain, chain_middleware

pytestmark = pytest.mark.anyio


class Counted(AgentState[Any]):
    """An agent's messages, and two numbers."""

    number: int
    other: int


class Noting(AgentMiddleware[Any, Any]):
    """Notes what passes through it."""

    def __init__(
        self, name: str, told: list[str], *, number: int = 0, key: str = "number", answer: str = ""
    ) -> None:
        super().__init__()
        self._name, self._told, self._number, self._key, self._answer = name, told, number, key, answer
        if number:
            self.state_schema = Counted

    @property
    def name(self) -> str:
        return self._name

    async def awrap_model_call(self, request, handler):
        self._told.append(f"{self._name}: model")
        if self._answer:
            return AIMessage(self._answer)
        response = await handler(request)
        self._told.append(f"{self._name}: answer")
        if self._number:
            return ExtendedModelResponse(response, Command(update={self._key: self._number}))
        return response

    async def awrap_tool_call(self, request, handler):
        self._told.append(f"{self._name}: tool")
        return await handler(request)


class Between(AgentMiddleware[Any, Any]):
    """Has a node of its own."""

    async def abefore_model(self, state, runtime):
        return None


class Blocking(AgentMiddleware[Any, Any]):
    """Knows the blocking calls alone."""

    def wrap_tool_call(self, request, handler):
        return handler(request)


class Scripted(GenericFakeChatModel):
    """Says what it was given, tools or not."""

    def bind_tools(self, tools, **kwargs):
        return self


@tool
async def look() -> str:
    """Look."""
    return "seen"


async def _run(middleware, *answers: AIMessage) -> dict[str, Any]:
    agent = create_agent(Scripted(messages=iter(answers)), [look], middleware=middleware)
    return await agent.ainvoke({"messages": [HumanMessage("?")]})


async def test_calls_pass_the_first_as_the_outermost_just_as_they_do_without_a_chain():
    calls = AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}])
    alone: list[str] = []
    together: list[str] = []
    for told, made in ((alone, list), (together, chain_middleware)):
        middleware = [Noting(name, told) for name in ("a", "b", "c")]
        result = await _run(made(middleware), calls, AIMessage("done"))
        assert [message.text for message in result["messages"]] == ["?", "", "seen", "done"]
    assert together == alone
    assert together[:3] == ["a: model", "b: model", "c: model"]


async def test_an_update_of_the_state_reaches_it_and_the_outer_ones_see_the_answer_alone():
    told: list[str] = []
    middleware = chain_middleware([Noting("outer", told), Noting("inner", told, number=7)])
    assert [one.name for one in middleware] == ["outer+inner"]
    assert (await _run(middleware, AIMessage("done")))["number"] == 7
    assert told[-1] == "outer: answer"


async def test_updates_of_several_keys_are_one():
    middleware = chain_middleware([Noting("a", [], number=1), Noting("b", [], number=2, key="other")])
    state = await _run(middleware, AIMessage("done"))
    assert (state["number"], state["other"]) == (1, 2)


async def test_two_updates_of_one_key_are_refused_rather_than_one_of_them_lost():
    middleware = chain_middleware([Noting("a", [], number=1), Noting("b", [], number=2)])
    with pytest.raises(TypeError, match="Only one middleware"):
        await _run(middleware, AIMessage("done"))


async def test_an_answer_of_an_inner_one_is_reported_to_the_outer_ones_like_a_models():
    told: list[str] = []
    middleware = chain_middleware([Noting("outer", told), Noting("inner", told, answer="mine")])
    assert (await _run(middleware))["messages"][-1].text == "mine"
    assert told == ["outer: model", "inner: model", "outer: answer"]


def test_those_with_nodes_of_their_own_or_blocking_calls_stay_as_they_are():
    middleware = chain_middleware([Noting("a", []), Noting("b", []), Between(), Noting("c", []), Blocking()])
    assert [one.name for one in middleware] == ["a+b", "Between", "c", "Blocking"]
    assert isinstance(middleware[0], MiddlewareChain)
