"""The workers for small local models.

Each does one narrow task, because a free ReAct loop fails half of the time. Measured with the embedded model
(seed `models.md`): a ReAct loop was right 3 times of 6, one fenced program with one repair 10 times of 12.
"""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import BaseTool

from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.fencing import fences_to_code
from maniple.agents.middleware.text_tools import is_truncated, text_with_note
from maniple.agents.middleware.tool_calls import REJECTED, call_once
from maniple.agents.report import CheckedReportModel, build_unrepaired_draft, check_addition, check_report
from maniple.agents.task import (
    COMPACT_CALLER_CHARACTERS,
    StepFailed,
    StepResult,
    Task,
    append_files,
    find_partial_work,
    format_caller,
    truncate_middle,
)
from maniple.evidence import extract
from maniple.llms import ask
from maniple.prompts import read_examples, render
from maniple.tools.code import WRITTEN
from maniple.tools.web import find_address

RESULT_CHARACTERS = 1_500
PROMPT_ONLY = 1
"""For prompts with worked examples: the number of first messages that are never left out."""


def example_messages(pairs: Sequence[tuple[str, str]]) -> Iterator[BaseMessage]:
    """Yield question and answer pairs as a conversation."""
    for question, answer in pairs:
        yield HumanMessage(question)
        yield AIMessage(answer)


async def call_tool(tool: BaseTool, number: int, **arguments: str) -> tuple[str, Mapping[str, Any]]:
    """Call `tool` as a model would, so that clients see the call and its result.

    `number` identifies the call within its task, so that a task that is executed again finds its recorded
    result.
    Returns the result and the arguments that the tool ran with, which may be the recorded ones or the user's.
    Raises `StepFailed` if the tool failed or the user rejected the call.
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
        reason = done.answer.text if isinstance(done.answer, ToolMessage) else str(done.answer)
        raise StepFailed(reason, is_final=reason.startswith(REJECTED))
    return done.answer.text, done.arguments


_HAN = re.compile(r"[\u4e00-\u9fff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af]")
_LANGUAGE_NAME = re.compile(r"[A-Za-z][A-Za-z ()-]{1,19}")
_CHINESE = re.compile(r"(?:zh|chinese|中文)", re.IGNORECASE)
_EXAMPLES = {
    "zh": _CHINESE,
    "de": re.compile(r"de\b|german|deutsch", re.IGNORECASE),
    "fr": re.compile(r"fr\b|french|français", re.IGNORECASE),
    "es": re.compile(r"es\b|spanish|español", re.IGNORECASE),
}
"""Languages with worked examples of plans, by the beginning of their names. The others use English ones."""


def is_chinese(text: str) -> bool:
    """Return whether `text` contains Chinese characters but no Japanese or Korean ones."""
    return _HAN.search(text) is not None and _KANA_OR_HANGUL.search(text) is None


def detect_language(request: str, named: str) -> str:
    """Return the language of the request:

    By its characters if they show it, else the one that the model `named`.
    """
    if is_chinese(request):
        return "Chinese"
    # For a request without letters, such as a sum, the model answers "Chinese".
    wordless = not any(character.isalpha() for character in request)
    if wordless or not _LANGUAGE_NAME.fullmatch(named) or _CHINESE.match(named):
        return "English" if wordless else ""
    return named


def choose_language(request: str, locale: str) -> str:
    """Return the language to answer in: "Chinese", the `locale`, or a phrase if the language is unknown."""
    if _CHINESE.match(locale) or (not locale and is_chinese(request)):
        return "Chinese"
    return locale or "the language of the request"


def choose_examples(language: str) -> str:
    """Return the name of the plan examples to show; a small model writes its titles in their language."""
    known = (code for code, beginning in _EXAMPLES.items() if beginning.match(language.replace("_", "-")))
    return f"plan_{next(known, 'en')}"


@dataclass(frozen=True, slots=True)
class CompactResearcher:
    """The researcher: it reads the page that the request names; without one it searches."""

    search: BaseTool | None
    crawl: BaseTool | None
    missing: str
    """Why search is unavailable."""

    async def work(self, task: Task) -> str:
        # A small model invents addresses, so an address in its plan is used only if there is no search.
        address = find_address(task.request)
        if address is None and self.search is None:
            address = find_address(task.description)
        if self.crawl is not None and address is not None:
            return await _read_page(self.crawl, task, url=address)
        if self.search is None:
            raise StepFailed(self.missing, is_final=True)
        return await _search_web(self.search, task)


@dataclass(frozen=True, slots=True)
class CompactBrowser:
    """The browser: it opens the page that the request names."""

    tool: BaseTool | None
    missing: str

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed(self.missing, is_final=True)
        # The plan's texts are short, so an address in them may be cut.
        named = find_address(task.request) is not None
        return await _read_page(self.tool, task, instruction=task.request if named else task.description)


async def _read_page(tool: BaseTool, task: Task, **arguments: str) -> str:
    page, _ = await call_tool(tool, 0, **arguments)
    with suppress(ValueError, KeyError, TypeError):
        page = str(json.loads(page)["result_content"])  # the format of the browser tool
    return (await asyncio.to_thread(extract, page, task.request, RESULT_CHARACTERS)).text


async def _search_web(tool: BaseTool, task: Task) -> str:
    """Return the hits of a search, each with its number on two lines."""
    found, _ = await call_tool(tool, 0, query=task.request)
    try:
        hits: list[dict[str, Any]] = [hit for hit in json.loads(found) if isinstance(hit, dict)]
    except (TypeError, ValueError):
        hits = []
    if not hits:
        return truncate_middle(found, RESULT_CHARACTERS)
    room = RESULT_CHARACTERS // len(hits)
    return "\n".join(_format_hit(hit, task.request, room) for hit in hits)


def _format_hit(hit: Mapping[str, Any], asked: str, characters: int) -> str:
    number = f"[{hit['cite']}] " if "cite" in hit else ""
    content = extract(str(hit.get("content") or ""), asked, characters).text
    return f"{number}{hit.get('title')} — {hit.get('url')}\n{content}"


PROGRAM_TOKENS = 300
_TRIES = 2
_FENCE = re.compile(r"```(?:python|py)?\s*\n(.*?)(?:```|\Z)", re.S)
_FAILURE = re.compile(r"\[(?:exit code|timeout|no output)|Traceback \(most recent call last\)")
_TOO_LONG = "The program was cut at the model's output limit, so it was not run."


@dataclass(frozen=True, slots=True)
class CompactCoder:
    """Writes a program and runs it. The step succeeds if the program exits without error and has output."""

    model: BaseChatModel
    tool: BaseTool | None

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed("there is no sandbox in this run, so no code can be executed", is_final=True)
        pairs = [(question, f"```python\n{code}\n```") for question, code in read_examples()["program"]]
        request = HumanMessage(append_files(task.request, task.files))
        messages = [SystemMessage(render("compact/coder")), *example_messages(pairs), request]
        output = ""
        for number in range(_TRIES):
            answer = await self._written(messages)
            code, output = _extract_program(answer.text), _TOO_LONG
            if not is_truncated(answer):
                output, ran = await call_tool(self.tool, number, code=code)
                code, output = str(ran["code"]), output.strip()
                if output and not _FAILURE.search(output):
                    return f"Code run:\n{code}\nOutput: {truncate_middle(output, RESULT_CHARACTERS)}"
            messages += [
                AIMessage(f"```python\n{code}\n```"),
                HumanMessage(f"{_describe_output_error(output)}\nReply with corrected code."),
            ]
        error, shown = _find_error_line(output), truncate_middle(output, RESULT_CHARACTERS)
        raise StepFailed(f"the program failed twice: {error}\n{shown}", is_final=True)

    async def _written(self, messages: Sequence[BaseMessage]) -> AIMessage:
        async def send(shown: Sequence[BaseMessage]) -> AIMessage:
            return await ask(self.model, shown, max_tokens=PROGRAM_TOKENS)

        return await send_within_window(self.model, messages, send, pinned=PROMPT_ONLY)


def _extract_program(text: str) -> str:
    found = _FENCE.search(text)
    return (found.group(1) if found else text).strip()


def _describe_output_error(output: str) -> str:
    if not output or output.startswith("[no output"):
        return "It printed nothing. Use print."
    return f"It failed:\n{output[-300:]}"


def _find_error_line(output: str) -> str:
    """Return the line that names the error. Lines in brackets are added by the sandbox."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    own_lines = [line for line in lines if not line.startswith("[")]
    return (own_lines or lines or ["it printed nothing"])[-1]


REPORT_TOKENS = 260
_WRITTEN_LINE = re.compile(rf"{re.escape(WRITTEN)}.*$", re.M)
_FROM_MEMORY = (
    "(Nothing was looked up or computed: this is from the model's memory and may be wrong.{missing})"
)
_FROM_MEMORY_ZH = "（没有查询或计算任何内容：以上来自模型的记忆，可能有误。{missing}）"


@dataclass(frozen=True, slots=True)
class CompactReporter:
    """Writes the report from the results of the other workers.

    A plan that has only the reporter is answered from the model's memory, and the answer states so. A small
    model
    without this guidance invents results.
    """

    model: BaseChatModel
    no_search: str = ""
    """Why search is unavailable, and how to configure it."""

    async def work(self, task: Task) -> str:
        done = [result for result in task.results if result.done]
        failed = [result for result in task.results if not result.done]
        # Sentences written by code are not checked; what the members found until they failed is.
        missing = [result.describe_missing() for result in failed]
        found = "\n\n".join(filter(None, (fences_to_code(find_partial_work(one.text)) for one in failed)))
        if failed and not done:
            return "\n\n".join([*missing, *([await check_report(task, found)] if found else [])])
        language = choose_language(task.request, task.locale)
        text = await self._written(task, done, language)
        if not text:
            return ""
        missing += [await check_addition(task, found)] if found else []
        return "\n\n".join([text, *self._additions(done, text, language), *missing])

    async def _written(self, task: Task, done: list[StepResult], language: str) -> str:
        prompt = render("compact/reporter" if done else "compact/answer", language=language)
        system = SystemMessage(prompt + format_caller(task.caller, COMPACT_CALLER_CHARACTERS))
        # One message for each piece, so that the longest pieces are cut rather than the middle of the whole.
        pieces = _build_material(task.request, done, language) if done else [task.request]

        # A small model is not asked for repairs.
        model = CheckedReportModel(model=self.model, draft=await build_unrepaired_draft(task, language))

        async def send(shown: Sequence[BaseMessage]) -> AIMessage:
            material = HumanMessage("\n".join(piece.text for piece in shown[1:]))
            return await ask(model, [shown[0], material], max_tokens=REPORT_TOKENS)

        messages = [system, *(HumanMessage(piece) for piece in pieces)]
        return text_with_note(await send_within_window(self.model, messages, send))

    def _additions(self, done: list[StepResult], text: str, language: str) -> Iterator[str]:
        """Yield the lines that name written files, and a notice if the text comes from the model's memory."""
        for result in done:
            yield from (line for line in _WRITTEN_LINE.findall(result.text) if line not in text)
        if not done:
            notice = _FROM_MEMORY_ZH if language == "Chinese" else _FROM_MEMORY
            yield notice.format(missing=f" {self.no_search}" if self.no_search else "")


def _build_material(request: str, done: Sequence[StepResult], language: str) -> list[str]:
    # Last and in that language; otherwise the model follows the English of the results.
    closing = "用中文写报告。" if language == "Chinese" else f"Write the report in {language}."
    return [
        f"Request: {request}",
        *(truncate_middle(result.text, RESULT_CHARACTERS) for result in done),
        closing,
    ]
