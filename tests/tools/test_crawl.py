import pytest

from maniple.config.settings import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from maniple.tools.crawl import crawl_tool
from tests.crawler.web import Reply, open_site

pytestmark = pytest.mark.anyio


async def test_a_page_comes_as_markdown_under_its_title_and_address() -> None:
    tool = crawl_tool(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/a": Reply("<title>Title</title><p>Some <b>text</b>.")}) as site:
        said = await tool.ainvoke({"url": f" {site.url}/a\n"})
    assert said == f"# Title\n\nSource: {site.url}/a\n\nSome **text**."


async def test_an_internal_page_is_an_error_for_the_model() -> None:
    async with open_site({"/": Reply("secret")}) as site:
        with pytest.raises(FetchError, match="not public"):
            await crawl_tool(Crawler(FetchSettings())).ainvoke({"url": site.url})
    assert site.requests == []


def test_the_tool_has_the_name_and_argument_that_clients_know() -> None:
    tool = crawl_tool(Crawler(FetchSettings()))
    assert (tool.name, list(tool.args)) == ("crawl_tool", ["url"])
    assert len(tool.description.split()) < 25
