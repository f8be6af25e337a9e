"""`crawl_tool`: reads one page."""

from langchain_core.tools import BaseTool, StructuredTool

from maniple.crawler import Crawler


def crawl_tool(crawler: Crawler) -> BaseTool:
    """The tool; its result is the page's readable part as Markdown, headed by title and URL."""

    async def crawl(url: str) -> str:
        article = await crawler.crawl(url)
        return f"# {article.title}\n{article.url}\n\n{article.markdown}"

    return StructuredTool.from_function(
        coroutine=crawl,
        name="crawl_tool",
        description="Read the main text of a web page as Markdown.",
    )
