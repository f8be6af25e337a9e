"""The reporter for small models: a short report, to which code adds what must not be garbled."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from maniple.agents.compact.language import language_of
from maniple.agents.compact.steps import RESULT_CHARACTERS
from maniple.agents.context import within_window
from maniple.agents.cut_answers import marked
from maniple.agents.fencing import as_code
from maniple.agents.report import CheckedModel, checked, checked_addition, unmended
from maniple.agents.task import COMPACT_CALLER_CHARACTERS, Result, Task, fenced, shortened
from maniple.llms import ask
from maniple.prompts import render
from maniple.tools.written import WRITTEN

REPORT_TOKENS = 260
_WRITTEN_LINE = re.compile(rf"{re.escape(WRITTEN)}.*$", re.M)
_FROM_MEMORY = (
    "(Nothing was looked up or computed: this is from the model's memory and may be wrong.{missing})"
)
_FROM_MEMORY_ZH = "（没有查询或计算任何内容：以上来自模型的记忆，可能有误。{missing}）"


@dataclass(frozen=True, slots=True)
class ShortReport:
    """Writes from the results that are there; left to itself, a small model makes up what nobody found.

    A plan that nobody but the reporter can serve is answered from the model's memory, and says so.
    """

    model: BaseChatModel
    no_search: str = ""
    """Why there is no search, and how to get one."""

    async def work(self, task: Task) -> str:
        done = [result for result in task.results if result.done]
        failed = [as_code(result.text) for result in task.results if not result.done]
        if failed and not done:
            return await checked(task, "\n\n".join(failed))
        language = language_of(task.request, task.locale)
        text = await self._written(task, done, language)
        if not text:
            return ""
        missing = [await checked_addition(task, one) for one in failed]
        return "\n\n".join([text, *self._added(done, text, language), *missing])

    async def _written(self, task: Task, done: list[Result], language: str) -> str:
        prompt = render("compact/reporter" if done else "compact/answer", language=language)
        system = SystemMessage(prompt + fenced(task.caller, COMPACT_CALLER_CHARACTERS))
        # In pieces, so that the longest of them are cut to the window and not all in one middle.
        pieces = _material(task.request, done, language) if done else [task.request]

        # A small model is not asked to mend it.
        model = CheckedModel(model=self.model, draft=await unmended(task, language))

        async def send(shown: Sequence[BaseMessage]) -> AIMessage:
            material = HumanMessage("\n".join(piece.text for piece in shown[1:]))
            return await ask(model, [shown[0], material], max_tokens=REPORT_TOKENS)

        messages = [system, *(HumanMessage(piece) for piece in pieces)]
        return marked(await within_window(self.model, messages, send))

    def _added(self, done: list[Result], text: str, language: str) -> Iterator[str]:
        """Yield where files are, and where the text is from when it is from no result."""
        for result in done:
            yield from (line for line in _WRITTEN_LINE.findall(result.text) if line not in text)
        if not done:
            notice = _FROM_MEMORY_ZH if language == "Chinese" else _FROM_MEMORY
            yield notice.format(missing=f" {self.no_search}" if self.no_search else "")


def _material(request: str, done: Sequence[Result], language: str) -> list[str]:
    # Said last and in that language, or the program's English decides.
    wish = "用中文写报告。" if language == "Chinese" else f"Write the report in {language}."
    return [f"Request: {request}", *(shortened(result.text, RESULT_CHARACTERS) for result in done), wish]
