"""What Semantic Scholar is asked, and how its answer is read, over loopback."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import SearchHit
from maniple.search.providers.semantic_scholar import SemanticScholarOptions, SemanticScholarSearch
from tests.crawler.web import Site, open_site
from tests.search.paper_responses import SEMANTIC_SCHOLAR
from tests.search.responses import as_json

PATH = "/graph/v1/paper/search"
pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({PATH: as_json(SEMANTIC_SCHOLAR)}) as site:
        yield site


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[SemanticScholarSearch]:
    provider = SemanticScholarSearch(
        SearchSettings(), SemanticScholarOptions(api_key=SecretStr("s2-key")), site.url, 0.01
    )
    yield provider
    await provider.aclose()


def sent(site: Site, number: int = 0) -> dict[str, list[str]]:
    return parse_qs(urlsplit(site.requests[number][1]).query)


async def test_a_paper_has_its_link_its_day_and_its_open_pdf(provider: SemanticScholarSearch) -> None:
    hits = await provider.search("corpus", limit=5)
    expected = SearchHit(
        "S2ORC",
        "https://doi.org/10.18653/v1/2020.acl-main.447",
        "A large corpus.",
        kind="paper",
        published="2020-07-01",
        author="Kyle Lo, Lucy Wang",
        publisher="Annual Meeting of the ACL",
        doi="10.18653/v1/2020.acl-main.447",
        full_text_url="https://acl.test/447.pdf",
    )
    assert hits[0] == expected


async def test_a_paper_without_doi_or_abstract_keeps_its_page_and_year(
    provider: SemanticScholarSearch,
) -> None:
    hit = (await provider.search("corpus", limit=5))[1]
    assert (hit.url, hit.published) == ("https://www.semanticscholar.org/paper/b2", "1998")
    assert (hit.content, hit.full_text_url) == ("", "")


async def test_hyphens_are_not_sent_and_the_key_is_a_header(
    provider: SemanticScholarSearch, site: Site
) -> None:
    await provider.search("state-of-the-art", limit=5)
    assert sent(site)["query"] == ["state of the art"]
    assert "s2-key" not in site.requests[0][1]
    assert "x-api-key: s2-key" in site.requests[0][2].lower()


async def test_nothing_found_is_no_failure(provider: SemanticScholarSearch, site: Site) -> None:
    site.pages[PATH] = as_json({"total": 0, "offset": 0})
    assert await provider.search("x", limit=5) == []


async def test_a_refused_key_is_named_by_its_setting(provider: SemanticScholarSearch, site: Site) -> None:
    site.pages[PATH] = as_json({"message": "Forbidden"}, 403)
    with pytest.raises(SearchError, match=r"search\.options\.semantic_scholar\.api_key"):
        await provider.search("x", limit=5)
