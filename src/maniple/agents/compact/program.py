"""The coder for small models: one fenced program, run, and repaired once with what went wrong."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.tools import BaseTool

from maniple.agents.compact.steps import PROMPT_ONLY, RESULT_CHARACTERS, call_tool, worked
from maniple.agents.context import within_window
from maniple.agents.cut_answers import is_cut
from maniple.agents.task import StepFailed, Task, shortened, with_files
from maniple.llms import ask
from maniple.prompts import read_examples, render

PROGRAM_TOKENS = 300
_TRIES = 2
_FENCE = re.compile(r"```(?:python|py)?\s*\n(.*?)(?:```|\Z)", re.S)
_FAILURE = re.compile(r"\[(?:exit code|timeout|no output)|Traceback \(most recent call last\)")
_TOO_LONG = "The program was cut at the model's output limit, so it was not run."


@dataclass(frozen=True, slots=True)
class ProgramWriter:
    """Writes a program and runs it. One that ends well and prints, or writes a file, has done its step."""

    model: BaseChatModel
    tool: BaseTool | None

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed("there is no sandbox in this run, so no code can be executed")
        pairs = [(question, f"```python\n{code}\n```") for question, code in read_examples()["program"]]
        request = HumanMessage(with_files(task.request, task.files))
        messages = [SystemMessage(render("compact/coder")), *worked(pairs), request]
        output = ""
        for number in range(_TRIES):
            answer = await self._written(messages)
            code, output = _program(answer.text), _TOO_LONG
            if not is_cut(answer):
                output, ran = await call_tool(self.tool, number, code=code)
                code, output = str(ran["code"]), output.strip()
                if output and not _FAILURE.search(output):
                    return f"Code run:\n{code}\nOutput: {shortened(output, RESULT_CHARACTERS)}"
            messages += [
                AIMessage(f"```python\n{code}\n```"),
                HumanMessage(f"{_wrong(output)}\nReply with corrected code."),
            ]
        raise StepFailed(
            f"the program failed twice: {_last_words(output)}\n{shortened(output, RESULT_CHARACTERS)}"
        )

    async def _written(self, messages: Sequence[BaseMessage]) -> AIMessage:
        async def send(shown: Sequence[BaseMessage]) -> AIMessage:
            return await ask(self.model, shown, max_tokens=PROGRAM_TOKENS)

        return await within_window(self.model, messages, send, kept=PROMPT_ONLY)


def _program(text: str) -> str:
    found = _FENCE.search(text)
    return (found.group(1) if found else text).strip()


def _wrong(output: str) -> str:
    if not output or output.startswith("[no output"):
        return "It printed nothing. Use print."
    return f"It failed:\n{output[-300:]}"


def _last_words(output: str) -> str:
    """Return the line that names the error; the sandbox's own lines after it stand in brackets."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    spoken = [line for line in lines if not line.startswith("[")]
    return (spoken or lines or ["it printed nothing"])[-1]
