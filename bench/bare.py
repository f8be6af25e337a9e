"""What the team is measured against: a bare LangGraph graph that makes the same calls with the same tools."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
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
SHORT_TEAM = ("coordinator", "planner", "coder", "reporter")
"""Five calls for `1+3=?`, as the team makes."""


@asynccontextmanager
async def open_bare_graph(
    base_url: str, tools: Mapping[str, Sequence[BaseTool]], roles: Sequence[str] = SHORT_TEAM
) -> AsyncIterator[BareGraph]:
    """Open a graph of nodes in a row, each asking ChatOpenAI until it wants no more tools; no checks."""
    async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=None)) as http:
        model = ChatOpenAI(
            model="scripted",
            base_url=base_url,
            api_key=SecretStr("x"),
            http_async_client=http,
            stream_usage=True,
            use_responses_api=False,
        )
        graph = StateGraph(MessagesState)
        before = START
        for number, role in enumerate(roles):
            name = f"{role}_{number}"
            graph.add_node(name, _node(model, role, {tool.name: tool for tool in tools.get(role, ())}))
            graph.add_edge(before, name)
            before = name
        graph.add_edge(before, END)
        yield graph.compile()


def _node(model: ChatOpenAI, role: str, tools: Mapping[str, BaseTool]) -> Any:
    if role == "coordinator":
        bound = model.bind_tools([HANDOFF])
    else:
        bound = model.bind_tools(list(tools.values())) if tools else model

    async def work(state: MessagesState) -> dict[str, Any]:
        messages: list[AnyMessage] = [SystemMessage(f"You are the {role} of a team."), *state["messages"]]
        answer = await bound.ainvoke(messages)
        while any(call["name"] in tools for call in answer.tool_calls):
            results = [
                await tools[call["name"]].ainvoke({**call, "type": "tool_call"}) for call in answer.tool_calls
            ]
            messages += [answer, *results]
            answer = await bound.ainvoke(messages)
        return {"messages": [HumanMessage(answer.text)] if answer.text else []}

    return work
