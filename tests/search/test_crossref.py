"""What Crossref is asked, and how its answer is read, over loopback."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlsplit

import pytest
from pydantic import ValidationError

from maniple.config import SearchSettings
from maniple.errors import SearchError
from maniple.search.provider import SearchHit
from maniple.search.providers.crossref import CrossrefOptions, CrossrefSearch
from tests.crawler.web import Site, open_site
from tests.search.paper_responses import CROSSREF
from tests.search.responses import as_json

pytestmark = pytest.mark.anyio


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/works": as_json(CROSSREF)}) as site:
        yield site


@pytest.fixture
async def provider(site: Site) -> AsyncIterator[CrossrefSearch]:
    provider = CrossrefSearch(SearchSettings(), CrossrefOptions(mailto="ops@a.test"), site.url)
    yield provider
    await provider.aclose()


def sent(site: Site, number: int = 0) -> dict[str, list[str]]:
    return parse_qs(urlsplit(site.requests[number][1]).query)


async def test_a_work_has_its_abstract_as_text_and_its_open_pdf(provider: CrossrefSearch) -> None:
    hits = await provider.search("sharing data", limit=5)
    expected = SearchHit(
        "Sharing data",
        "https://doi.org/10.1371/journal.pone.0000217",
        "Background: About 10^3 papers.",
        kind="paper",
        published="2007-03",
        author="Ana Ruiz, The Arch Group",
        publisher="PLoS ONE",
        doi="10.1371/journal.pone.0000217",
        full_text_url="https://plos.test/217.pdf",
    )
    assert hits[0] == expected


async def test_a_work_without_an_open_licence_has_no_full_text(provider: CrossrefSearch) -> None:
    hit = (await provider.search("x", limit=5))[1]
    assert (hit.full_text_url, hit.published, hit.publisher) == ("", "", "A Press")


async def test_the_operators_address_is_sent_if_it_is_set(provider: CrossrefSearch, site: Site) -> None:
    await provider.search("sharing data", limit=5)
    assert (sent(site)["mailto"], sent(site)["rows"]) == (["ops@a.test"], ["5"])
    await CrossrefSearch(SearchSettings(), base_url=site.url).search("x", limit=5)
    assert "mailto" not in sent(site, 1)


async def test_a_list_of_mistakes_instead_of_works_is_an_error(provider: CrossrefSearch, site: Site) -> None:
    site.pages["/works"] = as_json({"status": "failed", "message": [{"type": "x", "message": "no"}]})
    with pytest.raises(SearchError, match="malformed"):
        await provider.search("x", limit=5)


def test_what_is_no_mail_address_is_refused() -> None:
    with pytest.raises(ValidationError):
        CrossrefOptions(mailto="ops@a.test&rows=1")
