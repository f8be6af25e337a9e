"""The coordinator's question back to the user, and the request that it makes whole."""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from maniple.graph.state import is_users
from maniple.text import without_thoughts

ASK_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "ask_user",
        "description": "Ask the user for what only the user knows and nobody can sensibly assume.",
        "parameters": {
            "type": "object",
            "properties": {"question": {"type": "string", "description": "One short question."}},
            "required": ["question"],
        },
    },
}
_ASK_TEXT = re.compile(r"ask_user\(\s*(?:question\s*=\s*)?(.+?)\s*\)\s*\Z", re.S)
_MARK = "maniple_question"


def question_in(answer: AIMessage) -> str:
    """Return what the coordinator asks the user, by tool call or in words; "" when it asks nothing."""
    if answer.tool_calls:
        call = answer.tool_calls[0]
        # Beside a hand-off a question is idle: the team can begin.
        alone = len(answer.tool_calls) == 1 and call["name"] == "ask_user"
        return str(call["args"].get("question") or "").strip() if alone else ""
    found = _ASK_TEXT.match(without_thoughts(answer.text))
    return found[1].strip("\"'“”") if found else ""


def as_question(question: str, message_id: str | None) -> AIMessage:
    """Return the question as the coordinator's message."""
    return AIMessage(question, name="coordinator", id=message_id, additional_kwargs={_MARK: True})


def clarified(messages: Sequence[BaseMessage], limit: int) -> tuple[str, int]:
    """Return the present request with up to `limit` answers to questions about it, and their number.

    Without an answer the request is "": then it is just the newest message. In a history that a client sent
    nothing marks a question: there it is what the assistant said last, if it ends with a question mark.
    """
    said = [one for one in messages if one.type != "system"]
    at = len(said) - 1
    answered: list[str] = []
    while len(answered) < limit and at >= 2 and is_users(said[at - 2]) and _is_question(said[at - 1]):
        answered.insert(0, f"Asked: {said[at - 1].text}\nThe user's answer: {said[at].text}")
        at -= 2
    return "\n\n".join([said[at].text, *answered]) if answered else "", len(answered)


def _is_question(message: BaseMessage) -> bool:
    if not isinstance(message, AIMessage):
        return False
    if message.name == "coordinator":
        return bool(message.additional_kwargs.get(_MARK))
    return message.name is None and message.text.rstrip().endswith(("?", "？"))
