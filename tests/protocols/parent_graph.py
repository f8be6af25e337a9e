"""A graph of somebody else's with the team as a node, by LangGraph's `RemoteGraph`."""

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.pregel.remote import RemoteGraph
from langgraph.types import Command, interrupt


def put_into_graph(team: RemoteGraph, config: Any) -> Any:
    """Return a graph that asks the team, and its own user what the team asks."""

    async def ask_team(state: MessagesState) -> dict[str, Any]:
        values: Any = await team.ainvoke(state, config)
        if waiting := values.get("__interrupt__"):
            values = await team.ainvoke(Command(resume=interrupt(waiting[0]["value"])), config)
        return {"messages": values["messages"]}

    graph = StateGraph(MessagesState)
    graph.add_node("team", ask_team)
    graph.add_edge(START, "team")
    return graph.compile(checkpointer=InMemorySaver())
