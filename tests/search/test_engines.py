"""Who is asked, by the settings."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr, ValidationError

from maniple.config import SearchSettings, load_settings
from maniple.config.search_settings import PROVIDERS
from maniple.search import (
    FolderSearch,
    SearchChain,
    Surroundings,
    Unavailable,
    lacking,
    open_chain,
    open_search,
)
from tests.crawler.web import open_site
from tests.search.answers import SEARXNG, as_json

pytestmark = pytest.mark.anyio

KEY = SecretStr("k")


async def unread(name: str, body: bytes) -> tuple[str, str, str]:
    return name, "", ""


async def asked(settings: SearchSettings, surroundings: Surroundings | None = None) -> tuple[str, ...]:
    async with open_chain(settings, surroundings) as chain:
        assert isinstance(chain, SearchChain), str(chain)
        return tuple(chain.names)


async def test_without_any_key_those_are_asked_that_need_none() -> None:
    assert await asked(SearchSettings()) == ("ddgs", "wikipedia")


async def test_what_is_configured_is_asked_first(tmp_path: Path) -> None:
    assert await asked(SearchSettings(tavily_api_key=KEY)) == ("tavily", "ddgs", "wikipedia")
    settings = SearchSettings(
        tavily_api_key=KEY, brave_api_key=KEY, searxng_url="http://10.0.0.1", folder=tmp_path
    )
    folder = FolderSearch(tmp_path, unread)
    order = ("folder", "tavily", "brave", "searxng", "ddgs", "wikipedia")
    assert await asked(settings, Surroundings(folder=folder)) == order


async def test_the_order_that_is_named_holds_and_each_name_once() -> None:
    settings = SearchSettings(providers=("arxiv", "wikipedia", "arxiv"), tavily_api_key=KEY)
    assert await asked(settings) == ("arxiv", "wikipedia")


async def test_a_provider_without_its_key_is_left_out_and_named() -> None:
    settings = SearchSettings(providers=("brave", "wikipedia", "searxng", "folder"))
    assert await asked(settings) == ("wikipedia",)
    wants = {"folder": "search.folder", "brave": "BRAVE_API_KEY", "searxng": "SEARXNG_URL"}
    assert lacking(settings) == wants
    assert lacking(SearchSettings()) == {}


@pytest.mark.parametrize(
    ("settings", "reason", "remedy"),
    [
        ({"providers": ()}, "turned off", "search.providers"),
        ({"providers": ("brave", "tavily")}, "tavily, brave", "TAVILY_API_KEY or BRAVE_API_KEY"),
        ({"providers": ("ddgs",), "engines": ()}, "ddgs", "search.engines"),
    ],
)
async def test_when_nobody_can_be_asked_the_reason_says_what_to_set(
    settings: dict[str, Any], reason: str, remedy: str
) -> None:
    async with open_search(SearchSettings(**settings)) as search:
        assert isinstance(search, Unavailable)
        assert (reason in search.reason, remedy in search.remedy) == (True, True), search


async def test_every_provider_can_be_opened(tmp_path: Path) -> None:
    settings = SearchSettings(
        providers=PROVIDERS, tavily_api_key=KEY, brave_api_key=KEY, searxng_url="http://x", folder=tmp_path
    )
    folder = FolderSearch(tmp_path, unread)
    assert await asked(settings, Surroundings(folder=folder)) == PROVIDERS


async def test_two_that_are_configured_are_asked_at_once_and_merged() -> None:
    async with open_site({"/search": as_json(SEARXNG)}) as site:
        # The same fake answers Tavily's request, too: its shape is a part of SearXNG's.
        settings = SearchSettings(
            providers=("searxng", "tavily"),
            mode="merged",
            searxng_url=site.url,
            tavily_api_key=KEY,
            tavily_base_url=site.url,
        )
        async with open_search(settings) as search:
            assert not isinstance(search, Unavailable)
            hits = await search.search("bridges", limit=5)
    assert [(hit.title, hit.source, hit.score) for hit in hits] == [
        ("Arch", "searxng, tavily", 1.0),
        ("Beam", "searxng, tavily", 0.9839),
    ]
    assert sorted(method for method, _, _ in site.requests) == ["GET", "POST"]


def test_variables_name_keys_and_providers_and_empty_brackets_turn_search_off(tmp_path: Path) -> None:
    def read(**environment: str) -> SearchSettings:
        nothing = {"env_file": tmp_path / "none"}
        return load_settings(tmp_path / "none.yaml", **nothing, environment=environment).search

    settings = read(BRAVE_API_KEY="b", SEARXNG_URL="http://10.0.0.1:8080", MANIPLE_SEARCH__MODE="merged")
    assert (settings.order, settings.mode) == (("brave", "searxng", "ddgs", "wikipedia"), "merged")
    assert read(MANIPLE_SEARCH__PROVIDERS="arxiv, wikipedia").order == ("arxiv", "wikipedia")
    assert read(MANIPLE_SEARCH__PROVIDERS="[]").order == ()
    assert read(MANIPLE_SEARCH__ENGINES="mojeek").engines == ("mojeek",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"providers": ("google",)},
        {"mode": "both"},
        {"language": "../x"},
        {"searxng_url": "searx.lan"},
        {"engines": ("google",)},
    ],
)
def test_what_cannot_be_meant_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SearchSettings(**wrong)
