"""Workers for small local models: one narrow thing each, where a free loop fails half of the time.

Measured with the embedded model (`docs/design` and seed `models.md`): a free ReAct loop was right 3
times of 6, one fenced program with one repair 10 times of 12.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import uuid4

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.task import StepFailed, Task, shortened
from maniple.errors import ToolFailure
from maniple.llms import ask
from maniple.prompts import read_examples, render

PROGRAM_TOKENS = 300
REPORT_TOKENS = 260
RESULT_CHARACTERS = 1_500
_FENCE = re.compile(r"```(?:python|py)?\s*\n(.*?)(?:```|\Z)", re.S)
_FAILURE = re.compile(r"\[(?:exit code|timeout|no output)|Traceback \(most recent call last\)")


def is_chinese(text: str) -> bool:
    """Say whether `text` holds Chinese characters; examples are given in the user's language."""
    return any("\u4e00" <= character <= "\u9fff" for character in text)


def worked(pairs: Sequence[tuple[str, str]]) -> Iterator[BaseMessage]:
    """Yield question and answer pairs as a conversation."""
    for question, answer in pairs:
        yield HumanMessage(question)
        yield AIMessage(answer)


@dataclass(frozen=True, slots=True)
class ProgramWriter:
    """The coder: one fenced program, run, and repaired once with what went wrong."""

    model: BaseChatModel
    tool: BaseTool | None

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed("there is no sandbox in this run, so no code can be executed")
        pairs = [(question, f"```python\n{code}\n```") for question, code in read_examples()["program"]]
        messages = [SystemMessage(render("compact/coder")), *worked(pairs), HumanMessage(task.request)]
        code, output, ran = "", "", False
        for _ in range(2):
            answer = await ask(self.model, messages, max_tokens=PROGRAM_TOKENS)
            code = _program(answer.text)
            output, ran = await self._run(self.tool, code)
            if ran:
                break
            wrong = f"It failed:\n{output[-300:]}" if output else "It printed nothing. Use print."
            messages += [
                AIMessage(f"```python\n{code}\n```"),
                HumanMessage(f"{wrong}\nOnly the standard library is there. Reply with corrected code."),
            ]
        if not ran:
            raise StepFailed(f"the program failed twice:\n{shortened(output, RESULT_CHARACTERS)}")
        return f"Code run:\n{code}\nOutput: {shortened(output, RESULT_CHARACTERS)}"

    async def _run(self, tool: BaseTool, code: str) -> tuple[str, bool]:
        output = (await call_tool(tool, code=code)).strip()
        return output, bool(output) and not _FAILURE.search(output)


@dataclass(frozen=True, slots=True)
class OneCall:
    """The researcher and the browser: one call of their tool with the step's own words."""

    tool: BaseTool | None
    argument: str
    missing: str

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed(self.missing)
        words = task.description if self.argument == "instruction" else task.request
        try:
            found = await call_tool(self.tool, **{self.argument: words})
        except ToolFailure as failure:
            raise StepFailed(str(failure)) from failure
        return shortened(found, RESULT_CHARACTERS)


@dataclass(frozen=True, slots=True)
class ShortReport:
    """The reporter: a short report from the results alone."""

    model: BaseChatModel

    async def work(self, task: Task) -> str:
        if task.results and not any(result.done for result in task.results):
            # Left to itself, a small model would make up what nobody found.
            return "\n\n".join(result.text for result in task.results)
        results = "\n".join(shortened(result.text, RESULT_CHARACTERS) for result in task.results)
        messages = [
            SystemMessage(render("compact/reporter", chinese=is_chinese(task.request))),
            HumanMessage(f"Request: {task.request}\n{results or 'No results.'}"),
        ]
        return (await ask(self.model, messages, max_tokens=REPORT_TOKENS)).text.strip()


async def call_tool(tool: BaseTool, **arguments: str) -> str:
    """Call `tool` as a model would, so that clients see the call and its result."""
    call = {"name": tool.name, "args": arguments, "id": f"call_{uuid4().hex}", "type": "tool_call"}
    message = await tool.ainvoke(call)
    return message.text if isinstance(message, ToolMessage) else str(message)


def _program(text: str) -> str:
    found = _FENCE.search(text)
    return (found.group(1) if found else text).strip()
