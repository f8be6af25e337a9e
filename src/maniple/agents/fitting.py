"""Make a conversation fit a number of tokens without a model; a call is never parted from its results."""

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from maniple.agents.task import shortened
from maniple.llms.windows import count_tokens

SHORTEST_CHARACTERS = 400
"""Texts are cut to this at most; what is still too long then loses its oldest messages."""

Count = Callable[[Sequence[BaseMessage]], int]


def task_length(messages: Sequence[BaseMessage], given: int = 0) -> int:
    """Return how many messages come before the first answer: the prompt and the task, which always stay.

    Answers among the first `given` messages are part of the task: a conversation that goes on.
    """
    own = enumerate(messages[given:], given)
    return next((n for n, one in own if isinstance(one, AIMessage)), len(messages))


def grouped(messages: Sequence[BaseMessage]) -> list[list[BaseMessage]]:
    """Return the messages in groups that must stay together: an answer with tool calls and their results."""
    groups: list[list[BaseMessage]] = []
    for message in messages:
        if isinstance(message, ToolMessage) and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    return groups


def newest(messages: Sequence[BaseMessage], tokens: int, count: Count = count_tokens) -> int:
    """Return where the newest part begins that has at most `tokens`; the last group is always in it."""
    start, room = len(messages), tokens
    for group in reversed(grouped(messages)):
        room -= count(group)
        if room < 0 and start < len(messages):
            break
        start -= len(group)
    return start


def fitted(
    messages: Sequence[BaseMessage], tokens: int, *, kept: int = 0, count: Count = count_tokens
) -> list[BaseMessage]:
    """Return the messages with at most about `tokens`, by `count`.

    The longest texts are cut in their middles first, all to the same length; system prompts are not. When
    that is not enough, the oldest groups after the first `kept` messages are left out, with a word of it.
    """
    if count(messages) <= tokens:
        return list(messages)
    longest = max((_longest(message) for message in messages), default=0)
    low, high = SHORTEST_CHARACTERS, max(longest, SHORTEST_CHARACTERS)
    while high - low > SHORTEST_CHARACTERS // 4:
        middle = (low + high) // 2
        if count(_cut(messages, middle)) <= tokens:
            low = middle
        else:
            high = middle
    short = _cut(messages, low)
    return short if count(short) <= tokens else _without_oldest(short, tokens, kept, count)


def _without_oldest(
    messages: Sequence[BaseMessage], tokens: int, kept: int, count: Count
) -> list[BaseMessage]:
    head, rest = list(messages[:kept]), list(messages[kept:])
    start = newest(rest, tokens - count([*head, _gap(len(rest))]), count)
    return [*head, _gap(start), *rest[start:]] if start else [*head, *rest]


def _gap(messages: int) -> BaseMessage:
    return HumanMessage(f"[{messages} earlier messages are left out here.]")


def _cut(messages: Sequence[BaseMessage], characters: int) -> list[BaseMessage]:
    return [_shortened(message, characters) for message in messages]


def _shortened(message: BaseMessage, characters: int) -> BaseMessage:
    if isinstance(message, SystemMessage) or _longest(message) <= characters:
        return message
    update: dict[str, Any] = {"content": _content(message.content, characters)}
    if isinstance(message, AIMessage) and message.tool_calls:
        update["tool_calls"] = [
            {**call, "args": {name: _text(value, characters) for name, value in call["args"].items()}}
            for call in message.tool_calls
        ]
    return message.model_copy(update=update)


def _content(content: str | list[Any], characters: int) -> str | list[Any]:
    if isinstance(content, str):
        return shortened(content, characters)
    return [
        {**part, "text": _text(part["text"], characters)}
        if isinstance(part, dict) and "text" in part
        else _text(part, characters)
        for part in content
    ]


def _text(value: Any, characters: int) -> Any:
    return shortened(value, characters) if isinstance(value, str) else value


def _longest(message: BaseMessage) -> int:
    parts = [message.content] if isinstance(message.content, str) else message.content
    texts = [part if isinstance(part, str) else part.get("text") for part in parts]
    if isinstance(message, AIMessage):
        texts += [value for call in message.tool_calls for value in call["args"].values()]
    return max((len(text) for text in texts if isinstance(text, str)), default=0)
