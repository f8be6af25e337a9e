import json

import pytest

from maniple.errors import SearchError
from maniple.search import SearchHit
from tests.tools.built import build_search

pytestmark = pytest.mark.anyio


class Shelf:
    """A search engine that knows two pages."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        self.asked.append((query, limit))
        if query == "fail":
            raise SearchError("The shelf fell down.")
        return [
            SearchHit("桥", "https://a.test/", "text", 0.9),
            SearchHit("Two", "https://b.test/", "more"),
        ]


async def test_the_result_is_the_array_of_the_wire() -> None:
    shelf = Shelf()
    tool = build_search(shelf, 5)
    said = await tool.ainvoke({"query": "bridges"})
    assert json.loads(said) == [
        {"title": "桥", "url": "https://a.test/", "content": "text", "score": 0.9},
        {"title": "Two", "url": "https://b.test/", "content": "more"},
    ]
    assert "桥" in said
    assert shelf.asked == [("bridges", 5)]


async def test_a_failing_engine_is_an_error_for_the_model() -> None:
    with pytest.raises(SearchError, match="fell down"):
        await build_search(Shelf(), 5).ainvoke({"query": "fail"})


def test_the_tools_name_and_argument_are_those_of_the_wire() -> None:
    tool = build_search(Shelf(), 5)
    assert (tool.name, list(tool.args)) == ("tavily_search", ["query"])
    assert len(tool.description.split()) < 25
