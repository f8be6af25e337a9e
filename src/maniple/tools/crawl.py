"""`crawl_tool`: the readable part of a page."""

from typing import Protocol

from langchain_core.tools import BaseTool, StructuredTool

from maniple.crawler import Article
from maniple.tools.evidence import source_line


class Reads(Protocol):
    """What reads a page: a `Crawler`, or one that knows documents, too."""

    async def crawl(self, url: str, section: str = "") -> Article: ...


def crawl_tool(crawler: Reads) -> BaseTool:
    """A call gives the page as Markdown under its title and its address.

    Of a long page it gives a part, with an outline to read on by.

    Raises `FetchError` when the page cannot be read.
    """

    async def crawl(url: str, section: str | int = "") -> str:
        asked = url.strip()
        article = await crawler.crawl(asked, str(section))
        # All of it: the report may quote a section that is read later.
        text = article.whole or article.markdown
        source = await source_line(article.url, article.title, text, asked=asked)
        return article.text.replace(f"Source: {article.url}", source, 1)

    return StructuredTool.from_function(
        coroutine=crawl,
        name="crawl_tool",
        description=(
            "Read a public web page, PDF, Word document, feed or data file as Markdown, by its full URL. "
            "A long one comes in parts: name a section of its outline, by number or heading, to read on."
        ),
        metadata={"idempotent": True},
    )
