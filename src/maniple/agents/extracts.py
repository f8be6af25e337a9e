"""Middleware: of what is found on the web, an agent is shown what speaks of its step.

Clients hear each result as the tool gave it; what enters the conversation, and the ledger, is the extract.
"""

import asyncio
import json
import re
from collections.abc import Iterable
from typing import Any

from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, ToolMessage

from maniple.agents.task import current_task
from maniple.agents.wrapping import ChangedResults
from maniple.evidence import Extract, extract
from maniple.llms.windows import characters_within, room_of

PAGE_CHARACTERS = 6_000
SECTION_CHARACTERS = 12_000
"""Of a section that was asked for by its name, more is shown."""
HIT_CHARACTERS = 700
WINDOW_SHARE = 0.125
"""Of what the model's prompt may have: no page takes more."""
_HEADINGS, _HEADING_CHARACTERS = 20, 80
_CITED = re.compile(r'"cite": (\d+)')
_SEARCH = "tavily_search"
_CHOSEN = "An extract of {:,} characters, chosen for your step"
_BEGINNING = "The beginning of {:,} characters"


class Extracts(ChangedResults):
    """Shortens the results of the tools that search and read the web; others pass."""

    def __init__(self, model: BaseChatModel) -> None:
        super().__init__()
        self._tokens = int(WINDOW_SHARE * room_of(model))

    async def changed(self, result: ToolMessage, request: ToolCallRequest) -> ToolMessage:
        if result.status == "error" or not isinstance(result.content, str):
            return result
        shorten = {_SEARCH: self._hits, "crawl_tool": self._page, "browser": self._opened}.get(
            result.name or ""
        )
        if shorten is None:
            return result
        # In a thread: ranking a long page takes its time.
        content = await asyncio.to_thread(shorten, result.content, request)
        return result.model_copy(update={"content": content})

    def _hits(self, content: str, request: ToolCallRequest) -> str:
        """Shorten what each hit says; say so when the agent has seen every one of them before."""
        hits = _read(content, list)
        if not hits or not all(isinstance(hit, dict) for hit in hits):
            return content
        asked = _asked(request)
        for hit in hits:
            hit["content"] = self._extract(str(hit.get("content") or ""), asked, HIT_CHARACTERS).text
        found = {hit.get("cite") for hit in hits}
        seen = _seen(request.state["messages"])
        repeats = f"\n\nNothing new: {len(found)} of {len(found)} known already." if found <= seen else ""
        return json.dumps(hits, ensure_ascii=False) + repeats

    def _page(self, content: str, request: ToolCallRequest) -> str:
        if request.tool_call["args"].get("section"):
            # The agent knows what it wants to read: nothing is chosen for it.
            chosen, what = self._extract(content, "", SECTION_CHARACTERS), _BEGINNING
        else:
            chosen, what = self._extract(content, _asked(request), PAGE_CHARACTERS), _CHOSEN
        if chosen.is_whole:
            return content
        return f"{chosen.text}\n\n{_notice(content, what, chosen.left_out, request)}"

    def _opened(self, content: str, request: ToolCallRequest) -> str:
        shown = _read(content, dict)
        if not shown or not isinstance(shown.get("result_content"), str):
            return content
        shown["result_content"] = self._page(shown["result_content"], request)
        return json.dumps(shown, ensure_ascii=False)

    def _extract(self, text: str, asked: str, characters: int) -> Extract:
        return extract(text, asked, min(characters, characters_within(self._tokens, text)))


def _asked(request: ToolCallRequest) -> str:
    """Return what a call is to find out: its own words, and those of the step."""
    wanted = [one for one in request.tool_call["args"].values() if isinstance(one, str)]
    task = current_task()
    return " ".join([*wanted, task.title, task.description])


def _notice(content: str, what: str, left_out: Iterable[str], request: ToolCallRequest) -> str:
    """Return the last words of an extract: how long the page is, and how to read on."""
    names = [name[:_HEADING_CHARACTERS] for name in left_out if name]
    more = f"; and {len(names) - _HEADINGS} more" if len(names) > _HEADINGS else ""
    sections = f" Sections left out: {'; '.join(names[:_HEADINGS])}{more}." if names else ""
    readable = request.tool is not None and "section" in request.tool.args
    how = f" Read on: {request.tool_call['name']}(url, section)." if readable else ""
    return f"[{what.format(len(content))}.{sections}{how}]"


def _seen(messages: Iterable[BaseMessage]) -> set[int]:
    """Return the numbers of the hits that the conversation holds."""
    results = (one.text for one in messages if isinstance(one, ToolMessage) and one.name == _SEARCH)
    return {int(number) for text in results for number in _CITED.findall(text)}


def _read(content: str, kind: type) -> Any:
    try:
        found = json.loads(content)
    except ValueError:
        return None
    return found if isinstance(found, kind) else None
