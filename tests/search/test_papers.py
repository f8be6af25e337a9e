"""Search of papers in several catalogues."""

import pytest
from pydantic import ValidationError

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search import SearchHit, missing_settings, open_searches, select_papers
from maniple.search.chain import SearchChain
from maniple.search.papers import PaperSearch
from maniple.search.provider import ProviderFailure, SearchProvider
from tests.search.fake_providers import FakeProvider

pytestmark = pytest.mark.anyio

SCHOLARLY = {"arxiv", "crossref", "openalex", "pubmed", "semantic_scholar"}


def paper(name: str, published: str = "", content: str = "") -> SearchHit:
    return SearchHit(
        name, f"https://{name}.test/", content, kind="paper", published=published, doi=f"10.1/{name}"
    )


def build(**providers: SearchProvider) -> PaperSearch:
    return PaperSearch(SearchChain(providers, merges=True))


def selected(settings: SearchSettings) -> set[str]:
    return {spec.name for spec in select_papers(settings)}


async def test_a_paper_of_two_catalogues_comes_first_and_once() -> None:
    one = FakeProvider([paper("a"), paper("b", content="Short.")])
    two = FakeProvider([paper("c"), paper("b", content="Longer text.")])
    answer = await build(one=one, two=two).search("x", limit=5)
    assert [hit.title for hit in answer.hits] == ["b", "a", "c"]
    assert (answer.hits[0].content, answer.hits[0].source) == ("Longer text.", "one, two")


async def test_the_newest_are_chosen_from_the_best_only_on_request() -> None:
    found = [paper("a", "2001"), paper("b", "2024-05"), paper("c", "2010")]
    papers = build(one=FakeProvider(found))
    best = await papers.search("x", limit=2)
    newest = await papers.search("x", limit=2, is_newest_first=True)
    assert [hit.title for hit in best.hits] == ["a", "b"]
    assert [hit.title for hit in newest.hits] == ["b", "c"]


async def test_one_source_is_asked_alone() -> None:
    one, two = FakeProvider([paper("a")]), FakeProvider([paper("b")])
    answer = await build(one=one, two=two).search("x", limit=5, source="two")
    assert ([hit.title for hit in answer.hits], one.asked) == (["b"], [])


async def test_an_unknown_source_is_refused_with_those_there_are() -> None:
    one = FakeProvider([paper("a")])
    with pytest.raises(SearchError, match="one, two"):
        await build(one=one, two=FakeProvider()).search("x", limit=5, source="three")
    assert one.asked == []


async def test_a_source_that_fails_is_reported_beside_the_hits() -> None:
    broken = FakeProvider(failure=ProviderFailure("down", cooldown_seconds=0))
    papers = build(one=FakeProvider([paper("a")]), two=broken)
    answer = await papers.search("x", limit=5)
    assert (len(answer.hits), answer.failures) == (1, {"two": "down"})
    with pytest.raises(SearchError, match="two: down"):
        await papers.search("x", limit=5, source="two")


async def test_a_pause_of_another_source_is_no_failure_of_the_one_that_is_asked() -> None:
    broken = FakeProvider(failure=ProviderFailure("down"))
    papers = build(one=FakeProvider([paper("a")]), two=broken)
    await papers.search("x", limit=5)
    assert (await papers.search("y", limit=5, source="one")).failures == {}


def test_without_settings_all_scholarly_providers_are_asked() -> None:
    assert selected(SearchSettings()) == SCHOLARLY
    assert selected(SearchSettings(papers=())) == set()


def test_where_providers_are_named_no_other_one_is_asked_for_papers() -> None:
    assert selected(SearchSettings(providers=("folder",))) == set()
    assert selected(SearchSettings(providers=("ddgs", "arxiv"))) == {"arxiv"}
    assert selected(SearchSettings(providers=("ddgs",), papers=("pubmed",))) == {"pubmed"}
    assert selected(SearchSettings(providers=())) == set()


def test_papers_without_any_search_are_a_mistake_of_the_settings() -> None:
    with pytest.raises(ValidationError, match="papers needs"):
        SearchSettings(providers=(), papers=("arxiv",))


def test_a_source_of_papers_that_lacks_a_setting_is_named() -> None:
    assert missing_settings(SearchSettings(papers=("brave",))) == {"brave": "BRAVE_API_KEY"}


async def test_both_searches_share_a_provider_and_its_pauses() -> None:
    settings = SearchSettings(providers=("arxiv", "wikipedia"), papers=("arxiv",))
    async with open_searches(settings) as searches:
        assert tuple(searches.web.names) == ("arxiv", "wikipedia")
        assert searches.papers is not None
        assert tuple(searches.papers.names) == ("arxiv",)
    async with open_searches(SearchSettings(providers=("wikipedia",))) as searches:
        assert searches.papers is None
