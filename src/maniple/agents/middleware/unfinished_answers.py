"""Middleware that asks once more for an answer that is no result: delivered means delivered.

Three kinds are recognised: a tool call that is announced or written as text, results that no tool call
supports, and files that are promised and not there. Each kind is asked about once in a step, within its
conversation. If the next answer is no better, the step fails with the reason.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from maniple.agents.deliverables import PromisedFiles, promise_files
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.agents.roles import WORKSPACE_TOOLS
from maniple.agents.step_state import enter_step_state, step_state
from maniple.agents.task import StepFailed, Task, current_task
from maniple.agents.work_evidence import find_announcement, find_unsupported
from maniple.text import shorten, without_thoughts
from maniple.types import SUMMARY_SOURCE, Worker

AS_IT_IS = "NOTHING MISSING"
"""The last line with which a model says that its answer is complete, although it looks unfinished."""
_Kind = Literal["call", "work", "files"]
_READERS = frozenset({"directory_tree", "list_files", "read_file", "search_files"})
_WRITERS = WORKSPACE_TOOLS - _READERS
_NO_WORK = frozenset({"ask_human", "read_item", "terminate"})
"""Tools whose calls do not count as work."""
_FROM = "[From maniple, not from the user] "
_END = (
    f"If your answer was right as it is, give the whole answer again and end with the line `{AS_IT_IS}`. "
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

    def as_prompt(self) -> str:
        return f"{_FROM}{_ASKED[self.kind].format(what=self.what)} {_END}"

    def as_reason(self, answer: str) -> str:
        """Return why the step failed; what an answer without its files says is of use, a claim is not."""
        reason = _REASONS[self.kind].format(what=self.what)
        return f"{reason}\nUntil then:\n{answer}" if self.kind == "files" else reason


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
        if step is None or not names - _NO_WORK:
            return await handler(request)
        task = current_task()
        if step.files is None:
            step.files = await promise_files(task, self._member, writes=not _WRITERS.isdisjoint(names))
        added: list[BaseMessage] = []
        while True:
            shown = cast("list[AnyMessage]", [*request.messages, *added])
            response = await handler(request.override(messages=shown))
            answer = _final_answer(response)
            problem = await self._find_problem(step, task, shown, answer) if answer else None
            if problem is None:
                break
            if problem.kind in step.asked:
                raise StepFailed(problem.as_reason(answer))
            step.asked.add(problem.kind)
            added += [*response.result, *_ask_again(response, problem)]
        result = [*added, *_without_mark(response.result)] if step.asked else response.result
        return replace(response, result=result)

    async def _find_problem(
        self, step: _StepCheck, task: Task, shown: Sequence[BaseMessage], answer: str
    ) -> _Problem | None:
        text, mark = _split_mark(answer)
        is_confirmed = mark and bool(step.asked)
        if not is_confirmed and find_announcement(text):
            return _Problem("call")
        if not is_confirmed and not self._has_page() and not _has_worked(shown):
            given = "\n".join(one.text for one in shown if _is_given(one))
            asked = "\n".join([task.title, task.description])
            if what := find_unsupported(self._member, given, asked, text):
                return _Problem("work", what)
        files = step.files or PromisedFiles()
        if is_confirmed:
            files = replace(files, names=())
        missing = await files.find_missing(task, text)
        return _Problem("files", ", ".join(f"`{shorten(one, 100)}`" for one in missing)) if missing else None


def _final_answer(response: ModelResponse) -> str:
    """Return the text with which an answer ends its step; "" if it does not, or says that it failed."""
    last = response.result[-1] if response.result else None
    if not isinstance(last, AIMessage):
        return ""
    if not last.tool_calls:
        text = without_thoughts(last.text)
        return "" if text.lstrip(" *#_`").startswith("STEP FAILED") else text
    if len(last.tool_calls) > 1 or last.tool_calls[0]["name"] != "terminate":
        return ""
    arguments = last.tool_calls[0]["args"]
    if arguments.get("status") == "failure":
        return ""
    return str(arguments.get("result") or arguments.get("answer") or without_thoughts(last.text))


def _ask_again(response: ModelResponse, problem: _Problem) -> list[BaseMessage]:
    last = cast(AIMessage, response.result[-1])
    if not last.tool_calls:
        return [HumanMessage(problem.as_prompt())]
    call = last.tool_calls[0]
    refusal = ToolMessage(problem.as_prompt(), tool_call_id=call["id"], name=call["name"], status="error")
    refusal.additional_kwargs[AUTHOR_KEY] = "maniple"
    return [refusal]


def _has_worked(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the conversation has the result of a tool that works, or a summary of earlier ones."""
    return any(
        (isinstance(one, ToolMessage) and one.name not in _NO_WORK)
        or one.additional_kwargs.get("lc_source") == SUMMARY_SOURCE
        for one in messages
    )


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
