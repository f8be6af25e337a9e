"""Middleware that asks once more for an answer that is no result: delivered means delivered.

Three kinds are recognised: a tool call that is announced or written as text, results that no tool call
supports, and files that are promised and not there. Each kind is asked about once in a step, within its
conversation. If the next answer is no better, it is kept as a partial one, in which that is missing.
"""

from collections.abc import Callable, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from maniple.agents.answer_words import FAILED
from maniple.agents.deliverables import (
    PromisedFiles,
    find_claimed_files,
    find_file_names,
    is_among,
    promise_files,
    split_sentences,
)
from maniple.agents.middleware.base import ModelHandler, reading_tools
from maniple.agents.middleware.call_records import AUTHOR_KEY
from maniple.agents.middleware.final_answers import (
    PASSIVE_TOOLS,
    as_partial,
    final_answer,
    find_done_calls,
    find_results,
    has_asked,
    is_compacted,
    rejected_arguments,
)
from maniple.agents.roles import WORKSPACE_TOOLS
from maniple.agents.settled_files import is_settled
from maniple.agents.step_outcome import parse_answer
from maniple.agents.step_state import enter_step_state, step_state
from maniple.agents.task import StepFailed, current_task
from maniple.agents.work_evidence import (
    DRAWING,
    WORK,
    WRITTEN,
    StepTexts,
    before_announcement,
    files_in_material,
    find_announcement,
    find_unsupported,
)
from maniple.llms import capabilities_of
from maniple.text import shorten, without_thoughts
from maniple.tools.web import WEB_SEARCH
from maniple.types import Worker

AS_IT_IS = "NOTHING MISSING"
"""The last line with which a model says that its answer is complete, although it looks unfinished."""
_Kind = Literal["call", "work", "files"]
_READERS = frozenset({"directory_tree", "list_files", "read_file", "search_files"})
_WRITERS = WORKSPACE_TOOLS - _READERS
_LAST_WORDS_CHARACTERS = 160
_FROM = "[From maniple, not from the user] "
_END = (
    "If your answer was right as it is and needed no tool, give the whole answer again and end with the line "
    f"`{AS_IT_IS}`; it is then kept, with a remark where only a tool could show it. "
    "If you cannot do it, answer `STEP FAILED:` and why."
)
_ASKED: dict[_Kind | Literal["other calls"], str] = {
    "call": "Your answer announces a tool call or is one written as text; no tool was called. Make the call "
    "now, or give the final answer.",
    "work": "You called no tool in this step, so nothing supports {what} in your answer. Do the work with "
    "your tools now, and answer with what they show.",
    "other calls": "No call that succeeded in this step supports {what} in your answer. Do it with your "
    "tools now, and answer with what they show, or say in the first sentence what you did not do.",
    "files": "Not in the workspace: {what}, which your step or your answer names. If it is to be there, "
    "write it now with your tools and see that it is there; then give the whole answer. If it has another "
    "name, use that name.",
}
_LACKS: dict[_Kind | Literal["other calls"], str] = {
    "call": "what the answer announces at its end was not done",
    "work": "no tool was called, so nothing shows that the answer is true",
    "other calls": "no tool call that succeeded supports {what} in the answer",
    "files": "not in the workspace: {what}",
}
_NO_ANSWER = "The member announced a tool call and did not make it, also when it was asked again."


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
    is_empty: bool = False
    """Whether there is nothing in the answer to keep."""
    has_calls: bool = False
    """Whether the member called tools, but not for this."""

    def asked(self) -> str:
        return _ASKED["other calls" if self.has_calls else self.kind].format(what=self.what)

    def lacks(self) -> str:
        return _LACKS["other calls" if self.has_calls else self.kind].format(what=self.what)


def _sees_nothing() -> bool:
    return False


class UnfinishedAnswers(AgentMiddleware[Any, Any]):
    """Asks `member` once more for an answer that is no result, and marks what it lacks if it stays so.

    `has_page` returns whether the member sees an open page, which it needs no call for. Raises `StepFailed`
    for an answer that is nothing but a call.
    """

    def __init__(self, member: Worker, has_page: Callable[[], bool] = _sees_nothing) -> None:
        super().__init__()
        self._member = member
        self._has_page = has_page

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        step = step_state(_StepCheck)
        names = {one["name"] if isinstance(one, dict) else one.name for one in request.tools}
        if step is None or not names - PASSIVE_TOOLS:
            return await handler(request)
        if step.files is None:
            writes = not _WRITERS.isdisjoint(names)
            step.files = await promise_files(current_task(), self._member, writes=writes)
            if find_results(request.messages):  # after a pause, calls have changed the workspace before
                step.files = replace(step.files, stamps=None)
        added: list[BaseMessage] = []
        response = await handler(request)
        problems = await self._find_problems(step, request, response, names)
        while problems and step.asked.isdisjoint(one.kind for one in problems):
            step.asked.update(one.kind for one in problems)
            more = [*response.result, *_ask_again(response, problems)]
            asked = cast("list[AnyMessage]", [*request.messages, *added, *more])
            again = request.override(messages=asked)
            try:
                following = await handler(again)
            except StepFailed as failure:
                if failure.is_final:
                    raise
                break  # such as at the limit of model calls: the answer before it is kept
            response = _with_confirmed(following, final_answer(response) or "")
            added += more
            problems = await self._find_problems(step, again, response, names)
        if not step.asked:
            return response
        return replace(response, result=[*added, *_settle(response.result, problems)])

    async def _find_problems(
        self, step: _StepCheck, request: ModelRequest, response: ModelResponse, tools: Set[str]
    ) -> list[_Problem]:
        shown = request.messages
        text, mark = _split_mark(final_answer(response) or "")
        status = parse_answer(text).outcome.status if text else "failed"
        if status == "failed":
            return []
        is_confirmed = mark and bool(step.asked)
        announced = find_announcement(text, tools)
        if announced and not (is_confirmed and announced == "colon"):
            return [_Problem("call", text, is_empty=not before_announcement(text, announced))]
        problems = list[_Problem]()
        found = None
        if not self._has_page() and not is_compacted(shown):
            texts = self._texts_of(step, request, tools)
            texts = replace(texts, has_made_files=await _has_made_files(step, texts))
            found = find_unsupported(texts, text)
            if found is not None and found.what in (DRAWING, WRITTEN) and texts.has_made_files:
                found = None
        is_told = found is not None and found.what == WORK and has_asked(shown)
        if found is not None and not is_told and not (is_confirmed and found.may_be_known):
            problems.append(_Problem("work", found.what, has_calls=bool(find_results(shown))))
        if missing := await self._find_missing(step, shown, text, is_partial=status == "partial"):
            problems = [one for one in problems if one.what != WRITTEN]  # it is one of them
            problems.append(_Problem("files", ", ".join(f"`{shorten(one, 100)}`" for one in missing)))
        return problems

    async def _find_missing(
        self, step: _StepCheck, shown: Sequence[BaseMessage], answer: str, *, is_partial: bool
    ) -> list[str]:
        """Return the files that are missing, without those that the user or the step itself decided against.

        What the user did not let the member write counts only if its answer says that it wrote it. A partial
        answer names itself which ones it could not write.
        """
        files, task, calls = step.files or PromisedFiles(), current_task(), find_done_calls(shown)
        spoken_of = files_in_material(task.description or task.title)
        claimed = find_claimed_files(answer, with_links=files.writes)
        if files.writes and _has_worked(shown):
            given = "\n".join(one.text for one in shown if _is_given(one)).casefold()
            claimed += [one for one in find_file_names(answer) if one.casefold() not in given]
        claimed = [one for one in dict.fromkeys(claimed) if one not in spoken_of]
        rejected, said = rejected_arguments(shown).casefold(), find_claimed_files(_without_failures(answer))
        missing = await (replace(files, names=()) if is_partial else files).find_missing(task, claimed)
        wanted = [one for one in missing if is_among(one, said) or one.casefold() not in rejected]
        return [one for one in wanted if not is_settled(one, calls, answer, is_claimed=is_among(one, said))]

    def _texts_of(self, step: _StepCheck, request: ModelRequest, tools: Set[str]) -> StepTexts:
        task, shown = current_task(), request.messages
        asked = task.description or task.title
        results = "\n".join(one.text for one in (*task.results, *task.named_items) if one.done)
        given = "\n".join(one.text for one in shown if _is_given(one))
        own = (one.text for one in task.conversation if isinstance(one, AIMessage))
        earlier = "\n".join([*own, task.history.report])
        sees = bool(task.pictures) and capabilities_of(request.model).has("vision")
        read = {one.path for one in (*task.results, *task.named_items)} | set(task.pictures if sees else ())
        there = {*(step.files or PromisedFiles()).before, *(one.path for one in task.items)} - read
        return StepTexts(
            self._member,
            asked,
            given,
            results,
            earlier,
            searches=WEB_SEARCH in tools,
            sees=sees,
            files=there,
            calls=find_done_calls(shown, reading_tools(request)),
            is_told=has_asked(shown),
            has_failed_calls=any(one.status == "error" for one in find_results(shown)),
        )


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


def _settle(messages: Sequence[BaseMessage], problems: Sequence[_Problem]) -> list[BaseMessage]:
    """Return the answer that ends the step, as a partial one if problems are left."""
    for one in problems:
        if one.is_empty:
            raise StepFailed(f"{_NO_ANSWER} Its last words: {shorten(one.what, _LAST_WORDS_CHARACTERS)}")
    answer = _without_mark(messages)
    return as_partial(answer, "; ".join(one.lacks() for one in problems)) if problems else answer


def _ask_again(response: ModelResponse, problems: Sequence[_Problem]) -> list[BaseMessage]:
    prompt = f"{_FROM}{' '.join(one.asked() for one in problems)} {_END}"
    last = cast(AIMessage, response.result[-1])
    if not last.tool_calls:
        return [HumanMessage(prompt)]
    call = last.tool_calls[0]
    refusal = ToolMessage(prompt, tool_call_id=call["id"], name=call["name"], status="error")
    refusal.additional_kwargs[AUTHOR_KEY] = "maniple"
    return [refusal]


async def _has_made_files(step: _StepCheck, texts: StepTexts) -> bool | None:
    """Return whether the workspace has a file that a call of the step may have made; None if unknown."""
    if step.files is None or not texts.calls:
        return None
    return await step.files.has_new(current_task())


def _has_worked(messages: Sequence[BaseMessage]) -> bool:
    """Return whether a call succeeded, or may have before the messages that are left."""
    return is_compacted(messages) or bool(find_done_calls(messages))


def _without_failures(answer: str) -> str:
    """Return the sentences of an answer that speak of nothing that failed or was refused."""
    return "\n".join(one for one in split_sentences(answer) if not FAILED.search(one))


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
