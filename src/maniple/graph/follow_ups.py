"""Completes a follow-up for a team of small models, whose prompts show only the request.

Without it "and plus 10?" reached planner and coder alone, and they made up what it refers to.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from maniple.agents.compact import PROMPT_ONLY, example_messages, is_chinese
from maniple.agents.middleware.context_window import send_within_window
from maniple.agents.middleware.text_tools import is_truncated
from maniple.agents.task import MISSING, truncate_middle
from maniple.errors import ModelError
from maniple.graph.state import State, answer_of, is_reply, is_users, private_of
from maniple.llms import ask
from maniple.prompts import find_copied, read_examples, render

MAX_CHARACTERS = 120
"""Longer requests are taken to be complete: a small model shortens what it repeats."""
_SHOWN_CHARACTERS = 300
_TOKENS = 80
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A request that may refer to the turn before it."""

    request: str
    number_source: str | None = None
    """The text that the numbers of a calculation have to come from; None if the request is complete."""


async def complete_follow_up(model: BaseChatModel, state: State, request: str) -> FollowUp:
    """Return the request with what it refers to in the turn before; as it is if nothing safe comes of that.

    `request` is the newest message of the user in `state`. The model is asked only where there is an answered
    turn before it. Where that turn failed, there is no answer to refer to.
    """
    answer, before = _find_answer_before(state), _find_request_before(state)
    if not before or len(request) > MAX_CHARACTERS or "\n" in request:
        return FollowUp(request)
    if not answer:
        return FollowUp(request, None if _is_replied(state) else _number_source(request, before))
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
        return FollowUp(request)
    text = written.text.strip()
    if text == request:  # the model takes it to be complete
        return FollowUp(request)
    is_safe = not is_truncated(written) and _is_safe(text, request, shown)
    return FollowUp(text if is_safe else request, _number_source(request, shown))


def _number_source(request: str, shown: str) -> str | None:
    """Return the texts that may give numbers; None for a request without digits, which may spell them."""
    return f"{shown}\n{request}" if _NUMBER.search(request) else None


def _is_safe(text: str, request: str, shown: str) -> bool:
    """Return whether a completed request keeps the language and all numbers, and invents none."""
    numbers = set(_NUMBER.findall(text))
    keeps = set(_NUMBER.findall(request)) <= numbers <= set(_NUMBER.findall(shown))
    is_plain = bool(text) and "\n" not in text and is_chinese(text) == is_chinese(request)
    return is_plain and keeps and not find_copied(text, shown)


def _find_answer_before(state: State) -> str:
    """Return what the team answered in the turn before; "" if it failed, or answered nothing itself."""
    turn: State = {"messages": _turn_before(state)}
    answer = answer_of(turn)
    return "" if answer.startswith(MISSING) else answer


def _is_replied(state: State) -> bool:
    """Return whether the coordinator answered the turn before."""
    return any(is_reply(message) for message in _turn_before(state))


def _turn_before(state: State) -> list[AnyMessage]:
    """Return the messages from the request before to the present one; none in the first turn."""
    messages = state["messages"]
    asked = [at for at, message in enumerate(messages) if is_users(message)]
    return messages[asked[-2] : asked[-1] + 1] if len(asked) > 1 else []


def _find_request_before(state: State) -> str:
    """Return the request of the turn before, as the team completed it; "" for none."""
    asked = [message.text for message in state["messages"] if is_users(message)]
    return (private_of(state).get("request") or asked[-2]) if len(asked) > 1 else ""
