"""What PubMed is asked, and how its answer is read, over loopback."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import SecretStr

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import SearchHit
from maniple.search.providers.pubmed import PubmedOptions, PubmedSearch
from tests.crawler.web import Reply, Site, open_site
from tests.search.paper_responses import PUBMED_NUMBERS, PUBMED_RECORDS
from tests.search.responses import as_json

SEARCH, FETCH = "/entrez/eutils/esearch.fcgi", "/entrez/eutils/efetch.fcgi"
RECORDS = Reply(PUBMED_RECORDS, "text/xml; charset=UTF-8")
pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({SEARCH: as_json(PUBMED_NUMBERS), FETCH: RECORDS}) as site:
        yield site


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[PubmedSearch]:
    provider = PubmedSearch(
        SearchSettings(), PubmedOptions(api_key=SecretStr("nk"), mailto="ops@a.test"), site.url
    )
    yield provider
    await provider.aclose()


def sent(site: Site, number: int = 0) -> dict[str, list[str]]:
    return parse_qs(urlsplit(site.requests[number][1]).query)


async def test_a_structured_abstract_is_joined_with_its_labels(provider: PubmedSearch) -> None:
    hits = await provider.search("asthma", limit=5)
    expected = SearchHit(
        "Effect of X on CO2.",
        "https://doi.org/10.1080/asthma.1",
        "Background: More than 10^6 people. Results: Risk fell (p < 0.05).",
        kind="paper",
        published="2020-03-09",
        author="Kei Ito, Asthma Group",
        publisher="Journal of Asthma",
        doi="10.1080/asthma.1",
        full_text_url="https://pmc.ncbi.nlm.nih.gov/articles/PMC7000001/",
    )
    assert hits[0] == expected


async def test_papers_come_in_the_order_of_the_search(provider: PubmedSearch) -> None:
    old = (await provider.search("asthma", limit=5))[1]
    assert (old.url, old.published) == ("https://pubmed.ncbi.nlm.nih.gov/10001/", "1999")
    assert (old.content, old.doi, old.full_text_url) == ("", "", "")


async def test_both_requests_say_who_asks(provider: PubmedSearch, site: Site) -> None:
    await provider.search("asthma", limit=2)
    assert (sent(site)["term"], sent(site, 1)["id"]) == (["asthma"], ["20002,10001"])
    for number in range(2):
        about = sent(site, number)
        assert (about["tool"], about["email"], about["api_key"]) == (["maniple"], ["ops@a.test"], ["nk"])


async def test_nothing_found_takes_one_request(provider: PubmedSearch, site: Site) -> None:
    site.pages[SEARCH] = as_json({"esearchresult": {"count": "0", "idlist": []}})
    assert await provider.search("x", limit=5) == []
    assert len(site.requests) == 1


async def test_what_pubmed_does_not_understand_is_the_querys_fault(
    provider: PubmedSearch, site: Site
) -> None:
    site.pages[SEARCH] = as_json({"esearchresult": {"ERROR": "Search Backend failed"}})
    with pytest.raises(SearchError, match="Search Backend failed"):
        await provider.search("x", limit=5)


async def test_records_that_are_a_page_are_an_error(provider: PubmedSearch, site: Site) -> None:
    site.pages[FETCH] = Reply("<html><body>Error</body></html>")
    with pytest.raises(SearchError, match="malformed"):
        await provider.search("x", limit=5)


async def test_records_with_entities_of_their_own_read_no_file(provider: PubmedSearch, site: Site) -> None:
    record = "<PubmedArticle><MedlineCitation><PMID>20002</PMID><Article><ArticleTitle>a&f;"
    record += "</ArticleTitle></Article></MedlineCitation></PubmedArticle>"
    entity = '<!DOCTYPE PubmedArticleSet [<!ENTITY f SYSTEM "file:///etc/passwd">]>'
    site.pages[FETCH] = Reply(f"{entity}<PubmedArticleSet>{record}</PubmedArticleSet>", "text/xml")
    [hit] = await provider.search("x", limit=5)
    assert "root:" not in hit.title
