"""`crawl_tool`: the readable part of a page."""

from typing import Protocol

from langchain_core.tools import BaseTool, StructuredTool

from maniple.crawler import Article


class Reads(Protocol):
    """What reads a page: a `Crawler`, or one that knows documents, too."""

    async def crawl(self, url: str) -> Article: ...


def crawl_tool(crawler: Reads) -> BaseTool:
    """A call gives the page as Markdown under its title and its address.

    Raises `FetchError` when the page cannot be read.
    """

    async def crawl(url: str) -> str:
        article = await crawler.crawl(url.strip())
        return f"# {article.title}\n\nSource: {article.url}\n\n{article.markdown}"

    return StructuredTool.from_function(
        coroutine=crawl,
        name="crawl_tool",
        description="Read a public web page as Markdown, by its full URL. No PDF, no JavaScript.",
        metadata={"idempotent": True},
    )
