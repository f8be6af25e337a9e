"""What OpenAlex is asked, and how its works are read, over loopback."""

import time
from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import RateLimited, SearchHit
from maniple.search.providers.openalex import (
    MAX_ABSTRACT_WORDS,
    MAX_WORKS,
    OpenAlexOptions,
    OpenAlexSearch,
    read_inverted_index,
)
from tests.crawler.web import Reply, Site, open_site
from tests.search.paper_responses import OPENALEX
from tests.search.responses import as_json

pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/works": as_json(OPENALEX)}) as site:
        yield site


@pytest.fixture
async def openalex(site: Site) -> AsyncIterator[OpenAlexSearch]:
    options = OpenAlexOptions(api_key=SecretStr("oa-key"))
    provider = OpenAlexSearch(SearchSettings(), options, site.url)
    yield provider
    await provider.aclose()


async def test_a_work_has_its_abstract_and_all_of_its_publication(openalex: OpenAlexSearch) -> None:
    hits = await openalex.search("open access", limit=5)
    expected = SearchHit(
        "The state of OA: a large-scale analysis",
        "https://doi.org/10.7717/peerj.4375",
        "Despite growing interest in Open Access, despite interest.",
        kind="paper",
        published="2018-02-13",
        author="Heather Piwowar, Jason Priem",
        publisher="PeerJ",
        doi="10.7717/peerj.4375",
        full_text_url="https://peerj.com/articles/4375.pdf",
    )
    assert hits[0] == expected


async def test_a_work_without_doi_or_place_keeps_its_page(openalex: OpenAlexSearch) -> None:
    hit = (await openalex.search("open access", limit=5))[1]
    assert (hit.url, hit.content, hit.published) == ("https://openalex.org/W2", "", "1999")
    assert (hit.doi, hit.publisher, hit.full_text_url) == ("", "", "")


async def test_the_request_has_the_key_and_no_wildcards(openalex: OpenAlexSearch, site: Site) -> None:
    await openalex.search("open *access?", limit=20)
    [(_, path, head)] = site.requests
    sent = parse_qs(urlsplit(path).query)
    assert (sent["search"], sent["per_page"], sent["api_key"]) == (
        ["open access"],
        [str(MAX_WORKS)],
        ["oa-key"],
    )
    assert "user-agent: maniple/" in head.lower()


async def test_a_spent_budget_is_a_rate_limit(openalex: OpenAlexSearch, site: Site) -> None:
    site.pages["/works"] = as_json({"error": "Rate limit exceeded"}, 429, Retry_After="900")
    with pytest.raises(RateLimited) as limited:
        await openalex.search("x", limit=5)
    assert limited.value.cooldown_seconds == 900


async def test_a_short_wait_that_an_engine_asks_for_is_waited_once(
    openalex: OpenAlexSearch, site: Site
) -> None:
    site.pages["/works"] = as_json({}, 503, Retry_After="0")
    begun = time.monotonic()
    with pytest.raises(RateLimited, match="503"):
        await openalex.search("x", limit=5)
    assert (len(site.requests), time.monotonic() - begun < 5) == (2, True)


async def test_a_refused_key_is_named_by_its_setting(openalex: OpenAlexSearch, site: Site) -> None:
    site.pages["/works"] = as_json({"error": "Invalid API key"}, 401)
    with pytest.raises(SearchError, match=r"search\.options\.openalex\.api_key") as refused:
        await openalex.search("x", limit=5)
    assert "oa-key" not in str(refused.value)


async def test_a_page_instead_of_json_is_an_error(openalex: OpenAlexSearch, site: Site) -> None:
    site.pages["/works"] = Reply("<html>Maintenance</html>")
    with pytest.raises(SearchError, match="malformed"):
        await openalex.search("x", limit=5)


def test_an_index_is_read_in_order_and_bounded() -> None:
    index = {"b": [1], "a": [0, 2], "late": [MAX_ABSTRACT_WORDS], "odd": ["x", -1], "none": 3}
    assert read_inverted_index(index) == "a b a"
    assert read_inverted_index(["a"]) == ""
