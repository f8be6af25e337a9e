"""The browser as a worker: its step is one call of the browser, and needs no model around it."""

import json
from contextlib import suppress
from dataclasses import dataclass

from langchain_core.tools import BaseTool

from maniple.agents.browsing.loop import FAILED
from maniple.agents.compact import call_tool
from maniple.agents.middleware.fencing import fence_untrusted
from maniple.agents.task import Task, set_current_task


@dataclass(frozen=True, slots=True)
class BrowserWorker:
    """Hands its step to the tool `browser` as it is; clients see the call, its steps and its result.

    An agent that would only choose the words of the call, and repeat the answer, costs two model calls.
    """

    tool: BaseTool

    async def work(self, task: Task) -> str:
        with set_current_task(task):
            answer, _ = await call_tool(self.tool, 0, instruction=_instruction(task))
        with suppress(ValueError, KeyError, TypeError):
            answer = str(json.loads(answer)["result_content"])
        reason, _, found = answer.partition("\n")
        # What was found until the failure is the pages' word, which others of the team are to read as data.
        return f"{reason}\n{fence_untrusted(found)}" if reason.startswith(FAILED) and found else answer


def _instruction(task: Task) -> str:
    if task.conversation:
        return task.conversation[-1].text
    note = f"\nNote: {task.note}" if task.note else ""
    return f"{task.description}{note}"
