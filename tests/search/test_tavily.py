import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError, Unavailable
from maniple.search import SearchHit, SearchProvider, open_search
from tests.crawler.web import Reply, Send, Site, open_site

pytestmark = pytest.mark.anyio

# The shape that https://docs.tavily.com/documentation/api-reference/endpoint/search describes.
ANSWER = {
    "query": "bridges",
    "answer": None,
    "images": [],
    "results": [
        {
            "title": "Arch",
            "url": "https://a.test/",
            "content": "An arch.",
            "score": 0.98,
            "raw_content": None,
        },
        {"title": None, "url": "https://b.test/", "content": None},
        {"title": "Not a page", "url": "javascript:alert(1)", "content": "x"},
        {"title": "No address", "content": "x"},
        "noise",
    ],
    "response_time": 1.2,
}


def answer(value: object, status: int = 200) -> Reply:
    return Reply(json.dumps(value), "application/json", status)


@pytest.fixture
async def tavily(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/search": answer(ANSWER)}) as site:
        yield site


@pytest.fixture
def settings(tavily: Site) -> SearchSettings:
    return SearchSettings(
        providers=("tavily",),
        tavily_api_key=SecretStr("tvly-k"),
        tavily_base_url=tavily.url,
        timeout_seconds=5,
    )


@pytest.fixture
async def provider(settings: SearchSettings) -> AsyncIterator[SearchProvider]:
    async with open_search(settings) as provider:
        yield provider


async def test_results_with_a_web_address_are_hits(provider: SearchProvider, tavily: Site) -> None:
    assert await provider.search("bridges", limit=5) == [
        SearchHit("Arch", "https://a.test/", "An arch.", 0.98, "tavily"),
        SearchHit("https://b.test/", "https://b.test/", "", None, "tavily"),
    ]
    [(method, path, head)] = tavily.requests
    assert (method, path) == ("POST", "/search")
    assert "authorization: bearer tvly-k" in head.lower()


async def test_at_most_the_requested_number_of_hits(provider: SearchProvider) -> None:
    assert len(await provider.search("bridges", limit=1)) == 1


async def test_nothing_found_is_no_error(provider: SearchProvider, tavily: Site) -> None:
    tavily.pages["/search"] = answer({"results": []})
    assert await provider.search("bridges", limit=5) == []


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (answer({"detail": {"error": "Unauthorized"}}, 401), "correct TAVILY_API_KEY"),
        (answer({"detail": {"error": "Slow down"}}, 429), r"429.*Slow down"),
        (Reply("{}", status=429, headers=(("Retry-After", "7"),)), r"429.*for 7 s"),
        (answer({"detail": {"error": "Plan limit"}}, 432), r"plan.*Plan limit"),
        (answer({"detail": {"error": "Query is too long"}}, 400), r"reword it.*too long"),
        (Reply("oops", status=500), r"failed.*500"),
        (Reply("<html>", status=200), "not Tavily's JSON"),
        (answer({"results": None}), "without results"),
        (answer([1]), "not Tavily's JSON"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
async def test_errors_state_what_to_do(
    reply: Reply, said: str, provider: SearchProvider, tavily: Site
) -> None:
    tavily.pages["/search"] = reply
    with pytest.raises(SearchError, match=said):
        await provider.search("bridges", limit=5)


async def test_a_server_that_does_not_answer_is_left(settings: SearchSettings, tavily: Site) -> None:
    async def silent(send: Send) -> None:
        await asyncio.Event().wait()

    tavily.pages["/search"] = Reply(stream=silent)
    async with open_search(settings.model_copy(update={"timeout_seconds": 0.2})) as provider:
        with pytest.raises(SearchError, match=r"tavily: .*0\.2 s"):
            await provider.search("bridges", limit=5)


async def test_an_unreachable_server_is_reported(settings: SearchSettings) -> None:
    async with open_site({}) as gone:
        pass
    async with open_search(settings.model_copy(update={"tavily_base_url": gone.url})) as provider:
        with pytest.raises(SearchError, match="could not be reached"):
            await provider.search("bridges", limit=5)


async def test_an_empty_query_is_not_sent(provider: SearchProvider, tavily: Site) -> None:
    with pytest.raises(SearchError, match="empty"):
        await provider.search("  ", limit=5)
    assert tavily.requests == []


async def test_without_a_key_the_unavailable_reason_names_the_setting() -> None:
    with pytest.raises(Unavailable, match="TAVILY_API_KEY"):
        await open_search(SearchSettings(providers=("tavily",))).__aenter__()
