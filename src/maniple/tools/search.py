"""`tavily_search`: web search under the name that LangManus's clients know, whoever answers."""

import json

from langchain_core.tools import BaseTool, StructuredTool

from maniple.search import SearchProvider
from maniple.search.provider import hit_to_dict
from maniple.tools.evidence import cited


def search_tool(provider: SearchProvider, limit: int) -> BaseTool:
    """A search gives a JSON array of at most `limit` hits, best first.

    Each is `{title, url, content, score?, source?, cite?}`: `source` is who found it, `cite` the hit's number
    among the sources of the run. Raises `SearchError` when nobody could be asked.
    """

    async def search(query: str) -> str:
        hits = await provider.search(query, limit=limit)
        return json.dumps(await cited([hit_to_dict(hit) for hit in hits]), ensure_ascii=False)

    return StructuredTool.from_function(
        coroutine=search,
        name="tavily_search",
        description="Search the web. Gives titles, URLs and extracts; read a page with crawl_tool.",
        metadata={"idempotent": True},
    )
