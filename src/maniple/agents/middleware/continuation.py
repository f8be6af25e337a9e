"""What a step had done when its model gave no answer; its next try continues from there.

A try that begins anew would make its recorded tool calls again. So the messages of the step go with the error
into the plan, as plain data, and from there into the next try.
"""

import json
import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict, messages_from_dict

from maniple.agents.middleware.call_records import AUTHOR_KEY, read_message
from maniple.agents.step_state import enter_step_state, step_state
from maniple.agents.task import truncate_middle
from maniple.errors import BudgetExhausted, ModelError
from maniple.scope.run_scope import run_scope, task_key
from maniple.store.protocols import ToolCallLedger

MAX_CHARACTERS = 2_000_000
"""Of the messages as JSON. With more, long results are cut; if that is not enough, the step begins anew."""
_REFUSED = ("model_bad_request",)
"""Codes of errors that the same messages would cause again."""
_NOT_RUN = "This call was not made: the work was cut off before it."
_UNKNOWN = (
    "The work was cut off during this call. It is unknown whether it did its work; look before you repeat it."
)


class _CallTasks(dict[str, str]):
    """The graph's task of each of the step's calls, by the call's id: each call is a task of its own."""


@contextmanager
def register_calls() -> Generator[None]:
    """Remember the tasks of the calls of one step."""
    with enter_step_state(_CallTasks()):
        yield


def register_call(tool_call_id: str) -> None:
    """Remember that a call is the graph's current task."""
    if (tasks := step_state(_CallTasks)) is not None:
        tasks[tool_call_id] = task_key()


def save_messages(
    error: ModelError | BudgetExhausted,
    messages: Sequence[BaseMessage],
    cut_off: Mapping[str, str] | None = None,
) -> None:
    """Put the step's own messages into `error.continuation`, if they hold tool calls.

    `cut_off` are texts on calls that had begun, by their ids. The continuation is left empty for an error
    that the same messages would cause again.
    """
    error.continuation = {}
    has_calls = any(isinstance(one, AIMessage) and one.tool_calls for one in messages)
    if not has_calls or getattr(error, "code", "") in _REFUSED:
        return
    plain = [_without_objects(one) for one in messages]
    room = MAX_CHARACTERS // (2 * len(plain))
    for each in (plain, [_shorten(one, room) for one in plain]):
        data = {
            "tasks": dict(step_state(_CallTasks) or {}),
            "messages": [message_to_dict(one) for one in each],
            "cut_off": dict(cut_off or {}),
        }
        if _count_characters(data) <= MAX_CHARACTERS:
            error.continuation = data
            return


def _count_characters(data: object) -> float:
    """Return the length of `data` as JSON; infinity if it cannot be JSON."""
    try:
        return len(json.dumps(data))
    except (TypeError, ValueError):
        return math.inf


def _without_objects(message: BaseMessage) -> BaseMessage:
    """Return the message without what its tool added for programs, if that is no plain data."""
    is_plain = not isinstance(message, ToolMessage) or _count_characters(message.artifact) < math.inf
    return message if is_plain else message.model_copy(update={"artifact": None})


def _shorten(message: BaseMessage, room: int) -> BaseMessage:
    """Return the message with at most `room` characters of a tool's result, and no pictures in it."""
    if not isinstance(message, ToolMessage) or _count_characters(message.content) <= room:
        return message
    return message.model_copy(update={"content": truncate_middle(message.text, room)})


async def load_messages(continuation: Mapping[str, Any] | None) -> list[BaseMessage]:
    """Return the messages of an earlier try, each of its calls with a result; [] without a continuation."""
    if not continuation:
        return []
    messages = messages_from_dict(cast("list[dict[str, Any]]", continuation["messages"]))
    answered = {one.tool_call_id for one in messages if isinstance(one, ToolMessage)}
    calls = [call for one in messages if isinstance(one, AIMessage) for call in one.tool_calls]
    ledger, results = run_scope().ledger, list[BaseMessage]()
    for call in calls:
        call_id = call["id"] or ""
        if call_id in answered:
            continue
        if text := continuation["cut_off"].get(call_id):
            results.append(_substitute(text, call["name"], call_id))
            continue
        # A call of which this process knows nothing may have been made by an earlier one.
        task = continuation.get("tasks", {}).get(call_id)
        recorded = await _recorded_result(ledger, f"{task}:{call_id}", call["name"], call_id)
        text = _NOT_RUN if task else _UNKNOWN
        results.append(recorded or _substitute(text, call["name"], call_id))
    return [*messages, *results]


async def _recorded_result(
    ledger: ToolCallLedger | None, key: str, name: str, call_id: str
) -> ToolMessage | None:
    """Return the newest recorded result of a call, a text that it is unknown, or None if it never began."""
    rows = await ledger.list_by_run(run_scope().run_id) if ledger is not None else []
    tries = [row for row in rows if row.tool_call_id == key or row.tool_call_id.startswith(f"{key}#")]
    if not tries:
        return None
    return read_message(tries[-1].result, name, call_id) or _substitute(_UNKNOWN, name, call_id)


def _substitute(text: str, name: str, call_id: str) -> ToolMessage:
    message = ToolMessage(text, tool_call_id=call_id, name=name, status="error")
    message.additional_kwargs[AUTHOR_KEY] = "maniple"
    return message
