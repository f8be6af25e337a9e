"""`tavily_search`: the web search tool, by the name and in the shape that clients know."""

import json
from dataclasses import asdict

from langchain_core.tools import BaseTool, StructuredTool

from maniple.search import SearchProvider


def search_tool(provider: SearchProvider, *, limit: int = 5) -> BaseTool:
    """The tool; its result is a JSON array of {title, url, content, score?}."""

    async def search(query: str) -> str:
        hits = await provider.search(query, limit=limit)
        found = [{key: value for key, value in asdict(hit).items() if value is not None} for hit in hits]
        return json.dumps(found, ensure_ascii=False)

    return StructuredTool.from_function(
        coroutine=search,
        name="tavily_search",
        description="Search the web. Use short, specific queries. Returns titles, URLs and extracts.",
    )
