"""The coordinator's clarifying questions, and the request with the user's answers."""

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from maniple.graph.state import ANSWER_MARK, is_users
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


def find_question(answer: AIMessage) -> str:
    """Return the question in the coordinator's answer, by tool call or as text; "" if there is none."""
    if answer.tool_calls:
        call = answer.tool_calls[0]
        # A question together with a hand-off is ignored: the team can start.
        alone = len(answer.tool_calls) == 1 and call["name"] == "ask_user"
        return str(call["args"].get("question") or "").strip() if alone else ""
    found = _ASK_TEXT.match(without_thoughts(answer.text))
    return found[1].strip("\"'“”") if found else ""


def as_question(question: str, message_id: str | None) -> AIMessage:
    """Return the question as the coordinator's message."""
    return AIMessage(question, name="coordinator", id=message_id, additional_kwargs={_MARK: True})


def merge_clarifications(messages: Sequence[BaseMessage], limit: int) -> tuple[str, int]:
    """Return the present request with up to `limit` answers to questions about it, and their number.

    Without an answer the request is "", because it is the newest message itself. Messages sent by a client
    have no marks; there a question is an assistant's message that ends with a question mark.
    """
    exchange = [one for one in messages if one.type != "system"]
    at = len(exchange) - 1
    answered: list[str] = []
    while len(answered) < limit and at >= 2:
        request, question, answer = exchange[at - 2 : at + 1]
        if not (is_users(request) and _is_answered(question, answer)):
            break
        answered.insert(0, f"Asked: {question.text}\nThe user's answer: {answer.text}")
        at -= 2
    return "\n\n".join([exchange[at].text, *answered]) if answered else "", len(answered)


def _is_answered(question: BaseMessage, answer: BaseMessage) -> bool:
    """Return whether a message is a question that the next one answers.

    After a run that was cancelled while it waited, the next message is another request.
    """
    if not isinstance(question, AIMessage):
        return False
    if question.name == "coordinator":
        return bool(question.additional_kwargs.get(_MARK) and answer.additional_kwargs.get(ANSWER_MARK))
    return question.name is None and question.text.rstrip().endswith(("?", "？"))
