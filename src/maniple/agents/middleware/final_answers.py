"""The answer that ends a step, and the calls before it; middleware for calls that the user rejected."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from maniple.agents.done_calls import DoneCall
from maniple.agents.middleware.base import ModelHandler
from maniple.agents.middleware.call_records import REJECTED_KEY, edited_arguments
from maniple.agents.step_outcome import parse_answer
from maniple.agents.task import PARTIAL_WORK, REJECTED_BY_USER, StepFailed
from maniple.evidence.address_secrets import hide_secrets
from maniple.text import shorten, without_thoughts
from maniple.tools.files import READ_FILE
from maniple.tools.findings import NOTE_FINDING
from maniple.tools.interaction import ASK_USER
from maniple.tools.item_search import SEARCH_ITEMS
from maniple.tools.items import READ_ITEM
from maniple.types import STEP_FAILED, STEP_PARTIAL, SUMMARY_SOURCE

_NO_WORK = frozenset({ASK_USER, NOTE_FINDING, "terminate"})
"""Tools whose calls do not count as work."""
PASSIVE_TOOLS = _NO_WORK | {READ_ITEM, SEARCH_ITEMS}
"""The tools of a member that has none to work with; it may still read what is there."""
_SHOWS_FILES = frozenset({READ_ITEM, READ_FILE, SEARCH_ITEMS})
"""Tools whose results may begin with any words."""
_REPORT_HEAD = 60
"""The characters that begin the report of an agent, with the key of its JSON object."""
_MAIN_ARGUMENTS = (
    "path",
    "file_path",
    "filename",
    "source",
    "command",
    "cmd",
    "url",
    "address",
    "query",
    "code",
)
"""The arguments that say what a call is about, the most telling first."""
_ARGUMENT_CHARACTERS = 80
_WORDS_CHARACTERS = 200


def final_answer(response: ModelResponse) -> str | None:
    """Return the text with which a response ends its step; None if it does not end it."""
    last = response.result[-1] if response.result else None
    if not isinstance(last, AIMessage):
        return None
    if not last.tool_calls:
        return without_thoughts(last.text)
    if len(last.tool_calls) > 1 or last.tool_calls[0]["name"] != "terminate":
        return None
    arguments = last.tool_calls[0]["args"]
    text = str(arguments.get("result") or arguments.get("answer") or without_thoughts(last.text))
    return f"{STEP_FAILED} {text}" if arguments.get("status") == "failure" else text


def is_compacted(messages: Sequence[BaseMessage]) -> bool:
    """Return whether a summary stands for earlier messages, so that not all calls are known."""
    return any(one.additional_kwargs.get("lc_source") == SUMMARY_SOURCE for one in messages)


def find_done_calls(messages: Sequence[BaseMessage], readers: Set[str] = frozenset()) -> list[DoneCall]:
    """Return the calls of tools that work and succeeded, in their order; `readers` only read."""
    return [
        DoneCall(
            result.name or "",
            edited_arguments(result) or written,
            result.text,
            written,
            only_reads=result.name in readers,
        )
        for result, written in _with_arguments(messages)
        if result.status != "error" and not _says_failed(result)
    ]


def _says_failed(result: ToolMessage) -> bool:
    """Return whether a result is the report of an agent that failed, such as the one of `browser`."""
    return result.name not in _SHOWS_FILES and STEP_FAILED in result.text[:_REPORT_HEAD]


def has_asked(messages: Sequence[BaseMessage]) -> bool:
    """Return whether the user has answered a question of the member: its step may need no more."""
    return any(isinstance(one, ToolMessage) and one.name == ASK_USER for one in messages)


def find_results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return the results of tools that work, also of calls that failed or were rejected."""
    return [one for one, _ in _with_arguments(messages)]


def _with_arguments(messages: Sequence[BaseMessage]) -> list[tuple[ToolMessage, dict[str, Any]]]:
    """Return the results of tools that work, with the arguments that the model wrote.

    Endpoints repeat the ids of calls: a result belongs to the last call of its id.
    """
    found: list[tuple[ToolMessage, dict[str, Any]]] = []
    arguments: dict[str | None, dict[str, Any]] = {}
    for one in messages:
        if isinstance(one, AIMessage):
            arguments |= {call["id"]: call["args"] for call in one.tool_calls}
        elif isinstance(one, ToolMessage) and one.name not in _NO_WORK:
            found.append((one, arguments.get(one.tool_call_id, {})))
    return found


def rejected_arguments(messages: Sequence[BaseMessage]) -> str:
    """Return the arguments of the calls that the user rejected, as text."""
    rejected = (
        written for one, written in _with_arguments(messages) if REJECTED_KEY in one.additional_kwargs
    )
    return "\n".join(str(value) for written in rejected for value in written.values())


class RejectedCalls(AgentMiddleware[Any, Any]):
    """Fails a step all of whose calls the user rejected; another try would not help.

    If the member did other work, but nothing after the rejection, its answer is partial.
    """

    async def awrap_model_call(self, request: ModelRequest, handler: ModelHandler) -> ModelResponse:
        response = await handler(request)
        answer = final_answer(response)
        results = find_results(request.messages) if answer is not None else []
        if answer is None or not results or REJECTED_KEY not in results[-1].additional_kwargs:
            return response
        reason, parsed = _describe(request.messages), parse_answer(answer)
        is_all = all(REJECTED_KEY in one.additional_kwargs for one in results)
        if is_all and not is_compacted(request.messages):
            own = f"{PARTIAL_WORK}{parsed.text}" if answer.strip() else ""
            raise StepFailed(f"{reason}{own}", is_final=True)
        is_done = parsed.outcome.status == "done"
        return replace(response, result=as_partial(response.result, reason)) if is_done else response


def _describe(messages: Sequence[BaseMessage]) -> str:
    """Return which calls the user rejected and did not approve later, with the user's words for each."""
    said: dict[str, str] = {}
    for one, written in _with_arguments(messages):
        name = f"`{one.name}`{_main_argument(written)}"
        said.pop(name, None)
        if REJECTED_KEY in one.additional_kwargs:
            words = shorten(str(one.additional_kwargs[REJECTED_KEY]), _WORDS_CHARACTERS)
            said[name] = f"{name}: {words}" if words else name
    text = f"{REJECTED_BY_USER} {'; '.join(said.values())}"
    return text if text.endswith((".", "!", "?", "。")) else f"{text}."


def _main_argument(arguments: Mapping[str, Any]) -> str:
    """Return what a call was about, in brackets; "" for a call without such an argument."""
    value = next((str(arguments[key]) for key in _MAIN_ARGUMENTS if arguments.get(key)), "")
    return f" ({hide_secrets(shorten(value, _ARGUMENT_CHARACTERS))})" if value else ""


def as_partial(messages: Sequence[BaseMessage], reason: str) -> list[BaseMessage]:
    """Return the messages with their final answer as a partial one, in which `reason` is missing."""
    *before, last = messages
    if not isinstance(last, AIMessage):
        return list(messages)
    if not last.tool_calls:
        text = f"{without_thoughts(last.text)}\n\n{STEP_PARTIAL} {reason}"
        return [*before, last.model_copy(update={"content": text})]
    call = last.tool_calls[0]
    missing = "; ".join(filter(None, (str(call["args"].get("missing") or ""), reason)))
    arguments = {**call["args"], "status": "partial", "missing": missing}
    return [*before, last.model_copy(update={"tool_calls": [{**call, "args": arguments}]})]
