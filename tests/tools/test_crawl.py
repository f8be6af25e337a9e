import pytest

from maniple.config.settings import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from maniple.search.provider import SearchHit
from tests.crawler.web import Reply, open_site
from tests.tools.built import build_reader

pytestmark = pytest.mark.anyio


async def test_a_page_comes_as_markdown_under_its_title_and_address() -> None:
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/a": Reply("<title>Title</title><p>Some <b>text</b>.")}) as site:
        said = await tool.ainvoke({"url": f" {site.url}/a\n"})
    assert said == f"# Title\n\nSource: {site.url}/a\n\nSome **text**."


async def test_an_internal_page_is_an_error_for_the_model() -> None:
    async with open_site({"/": Reply("secret")}) as site:
        with pytest.raises(FetchError, match="not public"):
            await build_reader(Crawler(FetchSettings())).ainvoke({"url": site.url})
    assert site.requests == []


class EmptySearch:
    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        return []


@pytest.mark.parametrize(("search", "advised"), [(EmptySearch(), "another source"), (None, "no web search")])
async def test_only_with_a_search_another_source_is_advised(search: EmptySearch | None, advised: str) -> None:
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))), search)
    async with open_site({"/a": Reply("", status=403)}) as site:
        with pytest.raises(FetchError) as caught:
            await tool.ainvoke({"url": f"{site.url}/a"})
    found = [one for one in ("another source", "no web search") if one in str(caught.value)]
    assert found == [advised]


def test_the_tools_name_and_argument_are_those_of_the_wire() -> None:
    tool = build_reader(Crawler(FetchSettings()))
    assert (tool.name, list(tool.args)) == ("crawl_tool", ["url", "section"])
    assert tool.get_input_jsonschema()["required"] == ["url"]
    assert len(tool.description.split()) < 40


async def test_a_long_page_is_read_on_by_the_number_or_the_heading_of_a_section() -> None:
    page = "".join(f"<h2>Chapter {n}</h2><p>{f'Words of chapter {n}, ' * 20}</p>" for n in range(1, 6))
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",), max_characters=2_000)))
    async with open_site({"/long": Reply(f"<title>Long</title><article>{page}</article>")}) as site:
        first = await tool.ainvoke({"url": f"{site.url}/long"})
        fourth = await tool.ainvoke({"url": f"{site.url}/long", "section": 4})
        named = await tool.ainvoke({"url": f"{site.url}/long", "section": "chapter 4"})
        with pytest.raises(FetchError, match=r"'Chapter 9'; .*1 to 5: Chapter 1;"):
            await tool.ainvoke({"url": f"{site.url}/long", "section": "Chapter 9"})
    assert "Sections 1 to 4 of 5" in first
    assert "4. Chapter 4 (" in first
    assert "Words of chapter 4" in first and "Words of chapter 5" not in first
    assert fourth == named
    assert "Sections 4 to 5 of 5" in fourth and "Words of chapter 5" in fourth
