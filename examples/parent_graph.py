"""The team as a node of your own LangGraph graph; a person approves the plan and each file that it writes.

    python examples/parent_graph.py "What is 1 + 3? Write it to sum.md."

Prints what waits for approval and reads the answer: to a plan `accept` or what to change, to a call `yes`, or
`no` and why. At the end it prints how the run ended and where the graph's next node has stored the report.
The graph's checkpointer is also the team's. With one on disk the process may end while a person thinks: call
`ainvoke(Command(resume=...), config)` in the next one.
"""

import asyncio
import json
import sys
from pathlib import Path

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, Interrupt

from maniple import RunOptions, Team, load_settings, open_team

REPORT = Path("report.md")


async def main(question: str) -> None:
    settings = load_settings()
    runs = settings.runs.model_copy(update={"approval": ("write_file",)})
    async with open_team(settings.model_copy(update={"runs": runs})) as team:
        graph = build_parent(team)
        config: RunnableConfig = {"configurable": {"thread_id": "example"}}
        options = RunOptions(auto_accepted_plan=False)
        state = await graph.ainvoke({"messages": [HumanMessage(question)]}, config, context=options)
        while "__interrupt__" in state:
            answer = await ask_person(state["__interrupt__"][0])
            state = await graph.ainvoke(Command(resume=answer), config, context=options)
    print("Status:", state["messages"][-1].response_metadata["status"])


def build_parent(team: Team):
    """Return the compiled graph: the team, then a node that stores the report."""
    parent = StateGraph(MessagesState, context_schema=RunOptions)
    parent.add_node("team", team)
    parent.add_node("store_report", store_report)
    parent.add_edge(START, "team")
    parent.add_edge("team", "store_report")
    parent.add_edge("store_report", END)
    return parent.compile(checkpointer=InMemorySaver())


async def store_report(state: MessagesState) -> None:
    report = state["messages"][-1].text
    await asyncio.to_thread(REPORT.write_text, report, encoding="utf-8")
    print("Report:", REPORT)


async def ask_person(interrupt: Interrupt) -> str:
    """Show what waits, a plan or a call, and return the person's answer."""
    print(json.dumps(interrupt.value, indent=2, ensure_ascii=False))
    return await asyncio.to_thread(input, "Answer: ")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
