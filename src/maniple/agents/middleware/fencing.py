"""Middleware that shows tool results to a model between marks with a secret.

Text from a page or a program cannot pretend to end and continue as the user, because it cannot know the
closing mark (Hines et al. 2024, "Defending Against Indirect Prompt Injection Attacks With Spotlighting").
Messages, events and records contain the results without marks.
"""

import hashlib
import re
import secrets
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, ToolMessage

from maniple.agents.middleware.call_records import AUTHOR_KEY, EDIT_KEY
from maniple.scope.run_scope import run_scope, thread_key

_KEY = secrets.token_bytes(32)
_MARK = re.compile(r"<(/?)data ([0-9a-f]{8})>\n?")
_BACKTICKS = re.compile("`+")


def fence_untrusted(text: str) -> str:
    """Return `text` between the marks of untrusted data."""
    opening, closing = _marks()
    return f"{opening}\n{text}\n{closing}"


def remove_fences(text: str) -> str:
    """Return `text` without marks, for users or to be fenced as a whole."""
    return _MARK.sub("", text)


def fences_to_code(text: str) -> str:
    """Return `text` as Markdown for users, with the fenced parts as code blocks."""
    pieces, drawn, at = list[str](), "", 0
    for mark in _MARK.finditer(text):
        closes, name = mark.groups()
        if drawn and not (closes and name == drawn):
            continue  # a mark inside of untrusted data is part of it
        pieces.append(_code(text[at : mark.start()]) if drawn else text[at : mark.start()])
        drawn, at = "" if drawn or closes else name, mark.end()
    return "".join([*pieces, _code(text[at:]) if drawn else text[at:]])


def _code(text: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"\n\n{fence}\n{text.rstrip()}\n{fence}\n"


def _marks() -> tuple[str, str]:
    # The same for all prompts of a run, so that endpoints can cache them.
    run = run_scope().run_id or thread_key()
    drawn = hashlib.blake2s(run.encode(), key=_KEY, digest_size=4).hexdigest()
    return f"<data {drawn}>", f"</data {drawn}>"


class UntrustedDataFencing(AgentMiddleware[Any, Any]):
    """Fences tool results in requests to a model, except texts of the user or of maniple (`AUTHOR_KEY`).

    Before the result of a call that the user has edited, or says something about, it says what.
    """

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Send the request with its tool messages fenced."""
        trusted = {
            tool.name
            for tool in request.tools
            if not isinstance(tool, dict) and AUTHOR_KEY in (tool.metadata or {})
        }
        messages = [_fenced(message, trusted) for message in request.messages]
        return await handler(request.override(messages=messages))


def _fenced(message: AnyMessage, trusted: set[str]) -> AnyMessage:
    if not isinstance(message, ToolMessage):
        return message
    edit = message.additional_kwargs.get(EDIT_KEY)
    if message.content and message.name not in trusted and AUTHOR_KEY not in message.additional_kwargs:
        message = message.model_copy(update={"content": _fence_content(message)})
    if not edit:
        return message
    # Outside of the marks: that the user changed the call is no data of the tool.
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{edit}\n\n{message.content}".rstrip()})
    return message.model_copy(update={"content": [{"type": "text", "text": edit}, *message.content]})


def _fence_content(message: ToolMessage) -> str | list[Any]:
    if isinstance(message.content, str):
        return fence_untrusted(message.content)
    opening, closing = ({"type": "text", "text": text} for text in _marks())
    return [opening, *message.content, closing]
