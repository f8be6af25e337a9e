"""The researcher and the browser for small models: one call of one tool with the user's own words."""

from dataclasses import dataclass

from langchain_core.tools import BaseTool

from maniple.agents.compact.steps import RESULT_CHARACTERS, call_tool
from maniple.agents.task import StepFailed, Task, shortened
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
            return await _found(self.crawl, url=address)
        if self.search is None:
            raise StepFailed(self.missing)
        return await _found(self.search, query=task.request)


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
        return await _found(self.tool, instruction=task.request if named else task.description)


async def _found(tool: BaseTool, **arguments: str) -> str:
    found, _ = await call_tool(tool, 0, **arguments)
    return shortened(found, RESULT_CHARACTERS)
