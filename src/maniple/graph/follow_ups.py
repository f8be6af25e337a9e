"""Completes a follow-up for a team of small models, whose prompts show only the request.

Without it "and plus 10?" reached planner and coder alone, and they made up what it refers to.
"""

import re
from collections.abc import Sequence

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from maniple.agents.compact import PROMPT_ONLY, example_messages, is_chinese
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.text_tools import is_truncated
from maniple.agents.task import truncate_middle
from maniple.errors import ModelError
from maniple.graph.state import State, answer_of, is_users, private_of
from maniple.llms import ask
from maniple.prompts import find_copied, read_examples, render

MAX_CHARACTERS = 120
"""Longer requests are taken to be complete: a small model shortens what it repeats."""
_SHOWN_CHARACTERS = 300
_TOKENS = 80
_NUMBER = re.compile(r"\d+")


async def complete_follow_up(model: BaseChatModel, state: State, request: str) -> str:
    """Return the request with what it refers to in the turn before; as it is if nothing safe comes of that.

    `request` is the newest message of the user in `state`. The model is asked only where there is an answered
    turn before it.
    """
    answer, before = answer_of(state), _find_request_before(state)
    if not (answer and before) or len(request) > MAX_CHARACTERS or "\n" in request:
        return request
    before, answer = (truncate_middle(text, _SHOWN_CHARACTERS) for text in (before, answer))
    shown = f"Question: {before}\nAnswer: {answer}\nLast message: {request}"
    # In another language, even a short request is answered in that of the nearest example.
    pairs = [pair for pair in read_examples()["follow_up"] if is_chinese(pair[1]) == is_chinese(request)]
    messages = [SystemMessage(render("compact/follow_up")), *example_messages(pairs), HumanMessage(shown)]

    async def send(prompt: Sequence[BaseMessage]) -> AIMessage:
        return await ask(model, prompt, max_tokens=_TOKENS)

    try:
        written = await send_within_window(model, messages, send, pinned=PROMPT_ONLY)
    except ModelError:
        return request
    text = written.text.strip()
    return request if is_truncated(written) or not _is_safe(text, request, shown) else text


def _is_safe(text: str, request: str, shown: str) -> bool:
    """Return whether a completed request keeps the language and all numbers, and invents none."""
    numbers = set(_NUMBER.findall(text))
    keeps = set(_NUMBER.findall(request)) <= numbers <= set(_NUMBER.findall(shown))
    is_plain = bool(text) and "\n" not in text and is_chinese(text) == is_chinese(request)
    return is_plain and keeps and not find_copied(text, shown)


def _find_request_before(state: State) -> str:
    """Return the request of the turn before, as the team completed it; "" for none."""
    asked = [message.text for message in state["messages"] if is_users(message)]
    return (private_of(state).get("request") or asked[-2]) if len(asked) > 1 else ""
