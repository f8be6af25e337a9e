"""Middleware that asks once more for an answer that is no result: delivered means delivered.

Three kinds are recognised: a tool call that is announced or written as text, results that no tool call
supports, and files that are promised and not there. Each kind is asked about once in a step, within its
conversation. If the next answer is no better, the step fails with the reason.
"""

from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from maniple.agents.deliverables import PromisedFiles, promise_files
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.agents.middleware.final_answers import NO_WORK, final_answer, has_asked, has_worked
from maniple.agents.roles import WORKSPACE_TOOLS
from maniple.agents.step_outcome import parse_answer
from maniple.agents.step_state import enter_step_state, step_state
from maniple.agents.task import PARTIAL_WORK, StepFailed, Task, current_task
from maniple.agents.work_evidence import (
    WORK,
    StepTexts,
    can_be_confirmed,
    find_announcement,
    find_unsupported,
)
from maniple.text import shorten, without_thoughts
from maniple.types import Worker

AS_IT_IS = "NOTHING MISSING"
"""The last line with which a model says that its answer is complete, although it looks unfinished."""
_Kind = Literal["call", "work", "files"]
SEARCH = "tavily_search"
_READERS = frozenset({"directory_tree", "list_files", "read_file", "search_files"})
_WRITERS = WORKSPACE_TOOLS - _READERS
_FROM = "[From maniple, not from the user] "
_END = (
    "If your answer was right as it is and needed no tool, give the whole answer again and end with the line "
    f"`{AS_IT_IS}`. "
    "If you cannot do it, answer `STEP FAILED:` and why."
)
_ASKED: dict[_Kind, str] = {
    "call": "Your answer announces a tool call or is one written as text; no tool was called. Make the call "
    "now, or give the final answer.",
    "work": "You called no tool in this step, so nothing supports {what} in your answer. Do the work with "
    "your tools now, and answer with what they show.",
    "files": "The workspace has no file {what}, which your step or your answer promises. Write it now with "
    "your tools and see that it is there; then give the whole answer. If it has another name, use that name.",
}
_REASONS: dict[_Kind, str] = {
    "call": "The member announced a tool call and did not make it, also when it was asked again.",
    # Without what was claimed, which the next try would read as known.
    "work": "The member called no tool, so nothing supports its answer, also when it was asked again.",
    "files": "The file {what} was not written, also when the member was asked again.",
}


@dataclass(slots=True)
class _StepCheck:
    """What is known of the current step."""

    files: PromisedFiles | None = None
    asked: set[_Kind] = field(default_factory=set[_Kind])


def check_step() -> AbstractContextManager[None]:
    """Return a context in which all model calls are one step."""
    return enter_step_state(_StepCheck())


@dataclass(frozen=True, slots=True)
class _Problem:
    """Why an answer is no result."""

    kind: _Kind
    what: str = ""


def _sees_nothing() -> bool:
    return False


class UnfinishedAnswers(AgentMiddleware[Any, Any]):
    """Asks `member` once more for an answer that is no result, and fails its step if it stays so.

    `has_page` returns whether the member sees an open page, which it needs no call for.
    """

    def __init__(self, member: Worker, has_page: Callable[[], bool] = _sees_nothing) -> None:
        super().__init__()
        self._member = member
        self._has_page = has_page

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        step = step_state(_StepCheck)
        names = {one["name"] if isinstance(one, dict) else one.name for one in request.tools}
        if step is None or not names - NO_WORK:
            return await handler(request)
        task = current_task()
        if step.files is None:
            step.files = await promise_files(task, self._member, writes=not _WRITERS.isdisjoint(names))
        added: list[BaseMessage] = []
        answer, reason = "", ""
        while True:
            shown = cast("list[AnyMessage]", [*request.messages, *added])
            try:
                response = await handler(request.override(messages=shown))
            except StepFailed as failure:
                if failure.is_final or not reason:
                    raise
                raise StepFailed(reason) from None  # such as at the limit of model calls
            response = _with_confirmed(response, answer)
            answer = final_answer(response) or ""
            problems = await self._find_problems(step, shown, answer, names) if answer else []
            if not problems:
                break
            reason = _reason_of(problems, _split_mark(answer)[0])
            if any(one.kind in step.asked for one in problems):
                raise StepFailed(reason)
            step.asked.update(one.kind for one in problems)
            added += [*response.result, *_ask_again(response, problems)]
        result = [*added, *_without_mark(response.result)] if step.asked else response.result
        return replace(response, result=result)

    async def _find_problems(
        self, step: _StepCheck, shown: Sequence[BaseMessage], answer: str, tools: Set[str]
    ) -> list[_Problem]:
        text, mark = _split_mark(answer)
        status = parse_answer(text).outcome.status
        if status == "failed":
            return []
        is_confirmed = mark and bool(step.asked)
        if not is_confirmed and find_announcement(text, tools):
            return [_Problem("call")]
        task, problems = current_task(), list[_Problem]()
        if not self._has_page() and not has_worked(shown):
            what = find_unsupported(self._texts_of(task, shown, tools), text)
            is_accepted = is_confirmed and can_be_confirmed(what, self._member)
            is_accepted = is_accepted or (what == WORK and has_asked(shown))
            problems += [_Problem("work", what)] if what and not is_accepted else []
        files = step.files or PromisedFiles()
        # A partial answer names what is missing.
        if is_confirmed or status == "partial":
            files = replace(files, names=())
        missing = ", ".join(f"`{shorten(one, 100)}`" for one in await files.find_missing(task, text))
        return [*problems, *([_Problem("files", missing)] if missing else [])]

    def _texts_of(self, task: Task, shown: Sequence[BaseMessage], tools: Set[str]) -> StepTexts:
        asked = task.description or task.title
        results = "\n".join(one.text for one in task.results if one.done)
        given = "\n".join(one.text for one in shown if _is_given(one))
        earlier = "\n".join(one.text for one in task.conversation if isinstance(one, AIMessage))
        return StepTexts(self._member, asked, given, results, earlier, searches=SEARCH in tools)


def _with_confirmed(response: ModelResponse, before: str) -> ModelResponse:
    """Return a response with the answer before it, if it has only the line that confirms that."""
    last = response.result[-1] if response.result else None
    if not before or not isinstance(last, AIMessage) or last.tool_calls:
        return response
    text, mark = _split_mark(without_thoughts(last.text))
    if text or not mark:
        return response
    whole = last.model_copy(update={"content": f"{before}\n\n{AS_IT_IS}"})
    return replace(response, result=[*response.result[:-1], whole])


def _reason_of(problems: Sequence[_Problem], answer: str) -> str:
    """Return why the step failed; what an answer without its files says is of use, a claim is not."""
    reason = " ".join(_REASONS[one.kind].format(what=one.what) for one in problems)
    is_of_use = all(one.kind == "files" for one in problems)
    return f"{reason}{PARTIAL_WORK}{answer}" if is_of_use else reason


def _ask_again(response: ModelResponse, problems: Sequence[_Problem]) -> list[BaseMessage]:
    asked = " ".join(_ASKED[one.kind].format(what=one.what) for one in problems)
    prompt = f"{_FROM}{asked} {_END}"
    last = cast(AIMessage, response.result[-1])
    if not last.tool_calls:
        return [HumanMessage(prompt)]
    call = last.tool_calls[0]
    refusal = ToolMessage(prompt, tool_call_id=call["id"], name=call["name"], status="error")
    refusal.additional_kwargs[AUTHOR_KEY] = "maniple"
    return [refusal]


def _is_given(message: BaseMessage) -> bool:
    """Return whether a message is what the member was told, also by the user's answer to its question."""
    is_told = isinstance(message, HumanMessage | ToolMessage)
    return is_told and not message.text.startswith(_FROM)


def _split_mark(text: str) -> tuple[str, bool]:
    """Return an answer without the last line `AS_IT_IS`, and whether it had it."""
    own, _, last = text.rstrip().rpartition("\n")
    if AS_IT_IS not in last.upper() or len(last) > 200:
        return text, False
    return own.rstrip(), True


def _without_mark(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return an answer without the line that was meant for this check only."""
    *before, last = messages
    if not isinstance(last, AIMessage):
        return list(messages)
    if not last.tool_calls:
        text, has_mark = _split_mark(last.text)
        return [*before, last.model_copy(update={"content": text})] if has_mark else list(messages)
    calls = [_call_without_mark(one) for one in last.tool_calls]
    return [*before, last.model_copy(update={"tool_calls": calls})]


def _call_without_mark(call: Any) -> Any:
    arguments: dict[str, Any] = dict(call["args"])
    if call["name"] != "terminate":
        return call
    for key in arguments.keys() & {"result", "answer"}:
        arguments[key] = _split_mark(str(arguments[key]))[0]
    return {**call, "args": arguments}
