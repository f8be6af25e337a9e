"""Middleware: of a long result the conversation holds head and tail; the whole is a file of the workspace."""

from typing import Any

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage

from maniple.agents.wrapping import ChangedResults
from maniple.llms.windows import characters_within, room_of
from maniple.tools.kept_results import WHOLE, KeptResults

CAP_CHARACTERS = 24_000
"""More than a page of a file has, which tells how to read on (`maniple.tools.page`)."""
WINDOW_SHARE = 0.25
"""Of what the model's prompt may have: no result takes more."""


class ResultCap(ChangedResults):
    """Cuts texts in their middles. What is kept becomes an artifact of the run, as all new files do."""

    def __init__(self, model: BaseChatModel, kept: KeptResults | None = None) -> None:
        super().__init__()
        self._tokens = int(WINDOW_SHARE * room_of(model))
        self._kept = kept

    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        text = _text(result.content)
        # By its head: one character of Chinese is as many tokens as four others.
        most = min(CAP_CHARACTERS, characters_within(self._tokens, text[:CAP_CHARACTERS]))
        if len(text) <= most:
            return result
        half = most // 2
        # A tool that has cut its result itself has kept the whole.
        whole = result.artifact.get(WHOLE) if isinstance(result.artifact, dict) else None
        characters = whole["characters"] if whole else len(text)
        left_out = f"{characters - 2 * half:,} of {characters:,} characters left out"
        where = whole["where"] if whole else await self._place(result.name or "tool", text)
        short = f"{text[:half]}\n[… {left_out}; {where} …]\n{text[len(text) - half :]}"
        return result.model_copy(update={"content": _with(result.content, short)})

    async def _place(self, name: str, text: str) -> str:
        return await self._kept.place(name, text) if self._kept else "they are not kept"


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    texts = (part if isinstance(part, str) else part.get("text") for part in content)
    return "\n".join(text for text in texts if isinstance(text, str))


def _with(content: str | list[Any], short: str) -> str | list[Any]:
    """Return the content with one text, before whatever it holds that is none, such as pictures."""
    if isinstance(content, str):
        return short
    others = [part for part in content if isinstance(part, dict) and "text" not in part]
    return [{"type": "text", "text": short}, *others]
