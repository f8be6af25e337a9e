"""The messages of requests, as dictionaries of the API, in the forms that strict endpoints take."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from maniple.llms.picture_parts import is_picture_part

Message = dict[str, Any]

UNKNOWN_REASONING = " "
"""For a call whose reasoning is not known: some endpoints take an empty text for a missing one."""
_SHORT_ID = re.compile(r"[A-Za-z0-9]{9}")
_SYSTEM_ROLES = ("system", "developer")
_JOINED_ROLES = ("user", "assistant")
_OPENING = "Continue."
_LEFT_OUT = "[A picture is left out here: at most {most} can be sent in one request. Say so if it is needed.]"
_NO_TEXT = "I call a tool."
_ACKNOWLEDGED = "I have read the results."


def has_system(messages: Sequence[Message]) -> bool:
    """Return whether there is an instruction in a role of its own."""
    return any(one["role"] in _SYSTEM_ROLES for one in messages)


def has_late_system(messages: Sequence[Message]) -> bool:
    """Return whether there is a system message after the first message."""
    return has_system(messages[1:])


def has_pictures(messages: Sequence[Message]) -> bool:
    """Return whether a message holds a picture."""
    return count_pictures(messages) > 0


def count_pictures(messages: Sequence[Message]) -> int:
    """Return how many pictures the messages hold."""
    return sum(is_picture_part(part) for one in messages for part in _list_of(one.get("content")))


def keep_newest_pictures(messages: Sequence[Message], most: int) -> list[Message]:
    """Return the messages with a sentence in place of each picture before the newest ones, `most` of them."""
    left_out = count_pictures(messages) - most
    kept: list[Message] = []
    for message in messages:
        if left_out > 0 and has_pictures([message]):
            parts: list[Any] = []
            for part in message["content"]:
                is_left_out = is_picture_part(part) and left_out > 0
                left_out -= is_left_out
                parts.append({"type": "text", "text": _LEFT_OUT.format(most=most)} if is_left_out else part)
            message = {**message, "content": parts}
        kept.append(message)
    return kept


def join_texts(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with each list of plain texts as one text, which every endpoint takes."""
    return [{**one, "content": _text_of(one["content"])} if _is_text(one) else one for one in messages]


def _is_text(message: Message) -> bool:
    parts = _list_of(message.get("content"))
    # A part with more fields, such as the mark of a cache, says more than its text.
    return bool(parts) and all(one.keys() == {"type", "text"} for one in parts if isinstance(one, dict))


def _text_of(parts: Sequence[Any]) -> str:
    return "\n\n".join(one["text"] if isinstance(one, dict) else str(one) for one in parts)


def lacks_reasoning(messages: Sequence[Message]) -> bool:
    """Return whether a tool call is sent without the reasoning before it."""
    return any(one.get("tool_calls") and not one.get("reasoning_content") for one in messages)


def is_alternating(messages: Sequence[Message]) -> bool:
    """Return whether user and assistant take turns, and the user begins."""
    return join_neighbours(messages) == [*messages]


def join_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with all system messages as one, at the beginning."""
    system = [one for one in messages if one["role"] in _SYSTEM_ROLES]
    rest = [one for one in messages if one["role"] not in _SYSTEM_ROLES]
    return [_joined(system), *rest] if system else rest


def fold_system(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with what the system says at the beginning of the first user message."""
    if not has_system(messages):
        return [*messages]
    system, *rest = join_system(messages)
    system = {**system, "role": "user"}
    if rest and rest[0]["role"] == "user":
        return [_joined([system, rest[0]]), *rest[1:]]
    return [system, *rest]


def join_neighbours(messages: Sequence[Message]) -> list[Message]:
    """Return messages in which user and assistant take turns; results of tools follow their calls.

    System messages are joined at the beginning. Templates do not count calls and results, so an answer is put
    between a result and a user message.
    """
    joined: list[Message] = []
    for message in join_system(messages):
        before = joined[-1]["role"] if joined else ""
        if before == message["role"] and before in _JOINED_ROLES:
            message = _joined([joined.pop(), message])
        elif before == "tool" and message["role"] == "user":
            joined.append({"role": "assistant", "content": _ACKNOWLEDGED})
        elif before in ("", *_SYSTEM_ROLES) and message["role"] == "assistant":
            joined.append({"role": "user", "content": _OPENING})
        joined.append(message)
    return joined


def has_empty_content(messages: Sequence[Message]) -> bool:
    """Return whether a message has no content."""
    return any(not one.get("content") for one in messages)


def fill_empty_content(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with a text in those of the assistant that have none."""
    return [
        {**one, "content": _NO_TEXT} if one["role"] == "assistant" and not one.get("content") else one
        for one in messages
    ]


def has_extra_content(messages: Sequence[Message]) -> bool:
    """Return whether a call has fields beside its name and arguments; see `streams.EXTRAS_KEY`."""
    return any("extra_content" in call for one in messages for call in one.get("tool_calls") or ())


def remove_extra_content(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with calls that have only their name and arguments."""
    left_out = "extra_content"
    return [
        {**one, "tool_calls": [{name: call[name] for name in call if name != left_out} for call in calls]}
        if (calls := one.get("tool_calls"))
        else one
        for one in messages
    ]


def has_long_call_ids(messages: Sequence[Message]) -> bool:
    """Return whether a call has an id other than nine letters and digits."""
    return shorten_call_ids(messages) != [*messages]


def shorten_call_ids(messages: Sequence[Message]) -> list[Message]:
    """Return the messages with ids of calls and results of nine letters and digits, as Mistral wants."""
    shortened: list[Message] = []
    for message in messages:
        if calls := message.get("tool_calls"):
            named = [{**one, "id": _short_id(one["id"])} if one.get("id") else one for one in calls]
            message = {**message, "tool_calls": named}
        if message.get("tool_call_id"):
            message = {**message, "tool_call_id": _short_id(message["tool_call_id"])}
        shortened.append(message)
    return shortened


def _short_id(call_id: str) -> str:
    return call_id if _SHORT_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]


def _joined(messages: Sequence[Message]) -> Message:
    """Return several messages of one role as one."""
    whole = {name: value for one in messages for name, value in one.items()}
    contents = [one["content"] for one in messages if one.get("content")]
    if all(isinstance(content, str) for content in contents):
        whole["content"] = "\n\n".join(contents) or None
    else:
        whole["content"] = [part for content in contents for part in _parts(content)]
    if reasoning := [one["reasoning_content"] for one in messages if one.get("reasoning_content")]:
        whole["reasoning_content"] = "\n\n".join(reasoning)
    if calls := [call for one in messages for call in one.get("tool_calls") or ()]:
        whole["tool_calls"] = calls
    return {**whole, "role": messages[0]["role"]}


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else [*content]


def _list_of(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []
