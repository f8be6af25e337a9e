"""What a step had done when its model gave no answer; its next try continues from there.

A try that begins anew would make its recorded tool calls again. So the messages of the step go with the error
into the plan, as plain data, and from there into the next try.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage, message_to_dict, messages_from_dict

from maniple.agents.middleware.call_records import AUTHOR_KEY, decode_answer, find_message
from maniple.agents.run_scope import run_scope, task_key
from maniple.errors import BudgetExhausted, ModelError
from maniple.store.protocols import ToolCallLedger

MAX_CHARACTERS = 2_000_000
"""Of the messages as JSON; a step with more begins anew."""
_REFUSED = ("model_bad_request",)
"""Codes of errors that the same messages would cause again."""
_NOT_RUN = "This call was not made: the work was cut off before it."
_UNKNOWN = (
    "The work was cut off during this call. It is unknown whether it did its work; look before you repeat it."
)


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
    data = {
        "task": task_key(),
        "messages": [message_to_dict(one) for one in messages],
        "cut_off": dict(cut_off or {}),
    }
    try:
        size = len(json.dumps(data))
    except (TypeError, ValueError):  # a tool's own objects
        return
    if size <= MAX_CHARACTERS:
        error.continuation = data


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
        key = f"{continuation['task']}:{call_id}"
        recorded = await _recorded_result(ledger, key, call["name"], call_id)
        results.append(recorded or _substitute(_NOT_RUN, call["name"], call_id))
    return [*messages, *results]


async def _recorded_result(
    ledger: ToolCallLedger | None, key: str, name: str, call_id: str
) -> ToolMessage | None:
    """Return the newest recorded result of a call, a text that it is unknown, or None if it never began."""
    rows = await ledger.list_by_run(run_scope().run_id) if ledger is not None else []
    tries = [row for row in rows if row.tool_call_id == key or row.tool_call_id.startswith(f"{key}#")]
    if not tries:
        return None
    result = json.loads(tries[-1].result or "null")
    if result is None or "content" not in result:
        return _substitute(_UNKNOWN, name, call_id)
    return find_message(decode_answer(result, name, call_id), name, call_id)


def _substitute(text: str, name: str, call_id: str) -> ToolMessage:
    message = ToolMessage(text, tool_call_id=call_id, name=name, status="error")
    message.additional_kwargs[AUTHOR_KEY] = "maniple"
    return message
