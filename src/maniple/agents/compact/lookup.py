"""The researcher and the browser for small models: one call of one tool with the user's own words."""

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool

from maniple.agents.compact.steps import RESULT_CHARACTERS, call_tool
from maniple.agents.task import StepFailed, Task, shortened
from maniple.evidence import extract
from maniple.tools.addresses import first_address


@dataclass(frozen=True, slots=True)
class Research:
    """The researcher: it reads the page that the request names, else it searches."""

    search: BaseTool | None
    crawl: BaseTool | None
    missing: str
    """Why there is no search."""

    async def work(self, task: Task) -> str:
        # A small model makes up addresses: one in its plan counts only when there is nothing else.
        address = first_address(task.request)
        if address is None and self.search is None:
            address = first_address(task.description)
        if self.crawl is not None and address is not None:
            return await _read(self.crawl, task, url=address)
        if self.search is None:
            raise StepFailed(self.missing)
        return await _found(self.search, task)


@dataclass(frozen=True, slots=True)
class Browsing:
    """The browser: it opens the page that the request names."""

    tool: BaseTool | None
    missing: str

    async def work(self, task: Task) -> str:
        if self.tool is None:
            raise StepFailed(self.missing)
        # The plan's own words are short, so that an address in them may be cut.
        named = first_address(task.request) is not None
        return await _read(self.tool, task, instruction=task.request if named else task.description)


async def _read(tool: BaseTool, task: Task, **arguments: str) -> str:
    page, _ = await call_tool(tool, 0, **arguments)
    with suppress(ValueError, KeyError, TypeError):
        page = str(json.loads(page)["result_content"])  # as the browser tells it
    return (await asyncio.to_thread(extract, page, task.request, RESULT_CHARACTERS)).text


async def _found(tool: BaseTool, task: Task) -> str:
    """Return what a search found, a hit in two lines under its number."""
    found, _ = await call_tool(tool, 0, query=task.request)
    try:
        hits = [hit for hit in json.loads(found) if isinstance(hit, dict)]
    except (TypeError, ValueError):
        hits = []
    if not hits:
        return shortened(found, RESULT_CHARACTERS)
    room = RESULT_CHARACTERS // len(hits)
    return "\n".join(_line(hit, task.request, room) for hit in hits)


def _line(hit: Mapping[str, Any], asked: str, characters: int) -> str:
    number = f"[{hit['cite']}] " if "cite" in hit else ""
    said = extract(str(hit.get("content") or ""), asked, characters).text
    return f"{number}{hit.get('title')} — {hit.get('url')}\n{said}"
