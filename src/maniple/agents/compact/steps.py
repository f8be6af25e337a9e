"""What the workers for small local models share.

Each does one narrow thing, where a free loop fails half of the time. Measured with the embedded model
(seed `models.md`): a free ReAct loop was right 3 times of 6, one fenced program with one repair 10 times
of 12.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.task import StepFailed
from maniple.agents.tool_calls import call_once

RESULT_CHARACTERS = 1_500
PROMPT_ONLY = 1
"""Of a prompt with worked examples: so many messages stay whatever the window, and the newest."""


def worked(pairs: Sequence[tuple[str, str]]) -> Iterator[BaseMessage]:
    """Yield question and answer pairs as a conversation."""
    for question, answer in pairs:
        yield HumanMessage(question)
        yield AIMessage(answer)


async def call_tool(tool: BaseTool, number: int, **arguments: str) -> tuple[str, Mapping[str, Any]]:
    """Call `tool` as a model would, so that clients see the call and its result.

    `number` tells the calls of one task apart: executed again, the task finds what it did. Returns the result
    and the arguments that it came from, which may be those on record or the user's. Raises `StepFailed` when
    the tool failed or the user rejected the call.
    """
    call_id = f"call_{number}"

    async def run(arguments: Mapping[str, Any]) -> ToolMessage:
        call = {"name": tool.name, "args": dict(arguments), "id": call_id, "type": "tool_call"}
        answer = await tool.ainvoke(call)
        if isinstance(answer, ToolMessage):
            return answer
        return ToolMessage(str(answer), tool_call_id=call_id, name=tool.name)

    done = await call_once(tool, call_id, arguments, run)
    if not isinstance(done.answer, ToolMessage) or done.answer.status == "error":
        raise StepFailed(done.answer.text if isinstance(done.answer, ToolMessage) else str(done.answer))
    return done.answer.text, done.arguments
