"""What the team is measured against: a bare LangGraph graph of the same five calls and the same tool."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import BaseTool
from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.state import CompiledStateGraph
from pydantic import SecretStr

BareGraph = CompiledStateGraph[Any, Any, Any, Any]
HANDOFF = {
    "type": "function",
    "function": {"name": "handoff_to_planner", "parameters": {"type": "object", "properties": {}}},
}


@asynccontextmanager
async def open_bare_graph(base_url: str, tool: BaseTool) -> AsyncIterator[BareGraph]:
    """Four nodes in a row, each asking ChatOpenAI directly; no prompts worth the name, no checks."""
    async with httpx2.AsyncClient() as http:
        model = ChatOpenAI(
            model="scripted",
            base_url=base_url,
            api_key=SecretStr("x"),
            http_async_client=http,
            stream_usage=True,
            use_responses_api=False,
        )

        def asked(role: str, state: MessagesState) -> list[Any]:
            return [SystemMessage(f"You are the {role} of a team."), *state["messages"]]

        async def coordinator(state: MessagesState) -> dict[str, Any]:
            await model.bind_tools([HANDOFF]).ainvoke(asked("coordinator", state))
            return {}

        async def planner(state: MessagesState) -> dict[str, Any]:
            answer = await model.ainvoke(asked("planner", state))
            return {"messages": [HumanMessage(answer.text)]}

        async def coder(state: MessagesState) -> dict[str, Any]:
            bound, messages = model.bind_tools([tool]), asked("coder", state)
            first = await bound.ainvoke(messages)
            results = [await tool.ainvoke({**call, "type": "tool_call"}) for call in first.tool_calls]
            answer = await bound.ainvoke([*messages, first, *results])
            return {"messages": [HumanMessage(answer.text)]}

        async def reporter(state: MessagesState) -> dict[str, Any]:
            answer = await model.ainvoke(asked("reporter", state))
            return {"messages": [HumanMessage(answer.text)]}

        graph = StateGraph(MessagesState)
        nodes = {"coordinator": coordinator, "planner": planner, "coder": coder, "reporter": reporter}
        before = START
        for name, node in nodes.items():
            graph.add_node(name, node)
            graph.add_edge(before, name)
            before = name
        graph.add_edge(before, END)
        yield graph.compile()
