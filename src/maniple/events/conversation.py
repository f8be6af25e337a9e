"""The conversation as clients hold it: the messages that they receive, and those that they send back."""

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from maniple.agents import is_handover, mark_author
from maniple.events.model import ChatMessage
from maniple.text import fix_surrogates
from maniple.types import WORKERS

_ROLES = {"human": "user", "ai": "assistant"}
ASKED_BY_TEAM = "**The team asks:**"
"""The beginning of a question that a member or a tool has put in the middle of the work."""


def as_chat_message(message: BaseMessage) -> ChatMessage:
    """Return a message as clients see it: hand-overs of agents have the role `user`, as LangManus's have."""
    role = {"human": "user", "ai": "assistant"}.get(message.type, message.type)
    role = "user" if is_handover(message) else role
    content = message.content
    if isinstance(content, str):
        return ChatMessage(role=role, content=fix_surrogates(content))
    return ChatMessage(role=role, content=fix_surrogates([_part(part) for part in content]))


def history_digest(messages: Iterable[ChatMessage]) -> str:
    """Return the SHA-256 (hex) of a conversation: of the roles and contents of its messages.

    It is the same for the messages that a client was sent and for those that it sends back. The questions of
    the team at the end have a digest of their own, behind a colon: what comes before it is the digest for
    clients that were sent the questions as events, not as messages.
    """
    known = [(_ROLES.get(one.role.casefold(), one.role.casefold()), one.content) for one in messages]
    end = len(known)
    while end and _is_question(*known[end - 1]):
        end -= 1
    parts = (known[:end], known[end:]) if end < len(known) else (known,)
    return ":".join(map(_digest, parts))


def _is_question(role: str, content: str | list[dict[str, Any]]) -> bool:
    return role == "assistant" and isinstance(content, str) and content.startswith(ASKED_BY_TEAM)


def _digest(messages: Iterable[tuple[str, str | list[dict[str, Any]]]]) -> str:
    text = json.dumps(fix_surrogates([[role, _comparable(content)] for role, content in messages]))
    return hashlib.sha256(text.encode()).hexdigest()


def _comparable(content: str | list[dict[str, Any]]) -> Any:
    """Return the content without the keys of parts that clients may leave out or add."""
    if isinstance(content, str):
        return content
    return [(part.get("type"), part.get("text") or part.get("image_url") or "") for part in content]


def attributed(messages: Sequence[BaseMessage], members: Collection[str] = WORKERS) -> list[BaseMessage]:
    """Return the conversation with the authors of the team's messages as their names.

    A client sends back the messages of `end_of_workflow`, where the team's have the role `user`
    (`docs/wire.md`). A plan marks the start of a workflow; results and the report follow it, and the message
    before the next plan, or before a reply of the coordinator, is the user's again. The newest message is
    always the user's. `members` are the agents that a plan's steps can name.
    """
    named = list(messages)
    starts = [at for at, message in enumerate(named[:-1]) if _authors(message, members)]
    for start, end in pairwise([*starts, len(named)]):
        authors = _authors(named[start], members)
        named[start] = mark_author("planner", named[start])
        question = _next_question(named, start + 1, end)
        written = [at for at in range(start + 1, question) if isinstance(named[at], HumanMessage)]
        for place, at in enumerate(written):
            named[at] = mark_author(_author(authors, place, len(written)), named[at])
    return named


def _authors(message: BaseMessage, members: Collection[str]) -> list[str]:
    """Return the agents of a plan's steps; an empty list when the message is no plan."""
    if message.name or not isinstance(message.content, str) or not message.content.lstrip().startswith("{"):
        return []
    try:
        plan = json.loads(message.content)
    except (ValueError, RecursionError):
        return []
    steps = plan.get("steps") if isinstance(plan.get("title"), str) else None
    named = [step.get("agent_name") for step in _dicts(steps)]
    return [str(name) for name in named] if all(name in members for name in named) else []


def _dicts(value: Any) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in items if isinstance(one, dict)]


def _next_question(messages: Sequence[BaseMessage], start: int, end: int) -> int:
    """Return the index of the user's next message after the plan before `start`."""
    replies = (at for at in range(start, end) if _is_reply(messages[at]))
    return max(start, next(replies, end) - 1)


def _is_reply(message: BaseMessage) -> bool:
    """Return whether it is the coordinator's reply to the user, and not a question in the work."""
    return isinstance(message, AIMessage) and not message.text.startswith(ASKED_BY_TEAM)


def _author(authors: Sequence[str], place: int, count: int) -> str:
    """Return the author of message `place` of the `count` messages after a plan.

    A step that was repeated wrote more than one, and the report is the last.
    """
    if place == count - 1 and count >= len(authors):
        return "reporter"
    return authors[min(place, max(0, len(authors) - 2))]


def _part(part: str | dict[str, Any]) -> dict[str, Any]:
    """Return a part of a message as clients send it, so that they can send it back."""
    match part:
        case {"type": "image_url", "image_url": {"url": url}}:
            return {"type": "image", "image_url": url}
        case dict():
            return part
        case _:
            return {"type": "text", "text": str(part)}
