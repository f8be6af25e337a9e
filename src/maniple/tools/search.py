"""`tavily_search`: web search under the name that LangManus's clients know, whoever answers."""

import json
from dataclasses import asdict

from langchain_core.tools import BaseTool, StructuredTool

from maniple.search import SearchProvider


def search_tool(provider: SearchProvider, limit: int) -> BaseTool:
    """A search gives a JSON array of at most `limit` `{title, url, content, score?}`, best first.

    Raises `SearchError` when the engine could not be asked.
    """

    async def search(query: str) -> str:
        hits = [asdict(hit) for hit in await provider.search(query, limit=limit)]
        for hit in hits:
            if hit["score"] is None:
                del hit["score"]
        return json.dumps(hits, ensure_ascii=False)

    return StructuredTool.from_function(
        coroutine=search,
        name="tavily_search",
        description="Search the web. Gives titles, URLs and extracts; read a page with crawl_tool.",
        metadata={"idempotent": True},
    )
