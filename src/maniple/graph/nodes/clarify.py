"""Wait for the user's answer to the coordinator's question."""

from dataclasses import dataclass
from typing import Any, Literal

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from maniple.graph.state import State, make_update
from maniple.tools.interaction import answer_text


@dataclass(frozen=True, slots=True)
class ClarifyNode:
    """Pause with the question; its answer joins the conversation, and the coordinator decides anew.

    A node of its own: LangGraph executes a node again after a pause, and the coordinator's model would be
    asked again and might ask something else.
    """

    async def __call__(self, state: State, runtime: Runtime[Any]) -> Command[Literal["coordinator"]]:
        question = state["messages"][-1].text
        answer = interrupt({"kind": "question", "question": question, "options": []})
        reply = HumanMessage(answer_text(answer))
        return Command(goto="coordinator", update=make_update(reply, next="coordinator"))
