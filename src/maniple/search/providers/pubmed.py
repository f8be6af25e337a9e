"""PubMed, biomedical papers: https://www.ncbi.nlm.nih.gov/books/NBK25499 (E-utilities). Needs no key.

A search takes two requests: `esearch` finds the numbers of the papers, `efetch` their records.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from maniple.config.values import ApiKey, Section
from maniple.config.web_settings import SearchSettings
from maniple.search.provider import (
    HttpEndpoint,
    ProviderFailure,
    ProviderSpec,
    SearchHit,
    normalize_query,
)
from maniple.search.scholarly import (
    PATIENCE_SECONDS,
    QUERY_CHARACTERS,
    MailAddress,
    PaperRecord,
    RequestQueue,
    format_date,
    list_hits,
    parse_xml,
    take_dict,
)

if TYPE_CHECKING:
    from lxml.etree import _Element

BASE_URL = "https://eutils.ncbi.nlm.nih.gov"
PAGE = "https://pubmed.ncbi.nlm.nih.gov/{}/"
FULL_TEXT = "https://pmc.ncbi.nlm.nih.gov/articles/{}/"
# Three requests a second are allowed without a key, ten with one.
PAUSE_SECONDS = 0.34
PAUSE_SECONDS_WITH_KEY = 0.1
_MAX_PAPERS = 20
_REMEDIES = {400: "If search.options.pubmed.api_key is set, correct it; else reword the query."}


class PubmedOptions(Section):
    """Settings of PubMed."""

    api_key: ApiKey = None
    """Made in the settings of an NCBI account; it allows ten requests a second instead of three."""
    mailto: MailAddress | None = None
    """The operator's mail address, to which NCBI writes before it blocks requests."""


class PubmedSearch:
    """Searches titles, abstracts, authors and subject headings."""

    def __init__(
        self, settings: SearchSettings, options: PubmedOptions | None = None, base_url: str = BASE_URL
    ) -> None:
        options = options or PubmedOptions()
        self._url = f"{base_url}/entrez/eutils"
        self._identity = {"db": "pubmed", "tool": "maniple"}
        if options.mailto is not None:
            self._identity["email"] = options.mailto
        if options.api_key is not None:
            self._identity["api_key"] = options.api_key.get_secret_value()
        self._queue = RequestQueue("PubMed", PAUSE_SECONDS_WITH_KEY if options.api_key else PAUSE_SECONDS)
        self._endpoint = HttpEndpoint(
            "PubMed", settings.timeout_seconds, _REMEDIES, patience_seconds=PATIENCE_SECONDS
        )

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        numbers = await self._find_numbers(normalize_query(query, QUERY_CHARACTERS), min(limit, _MAX_PAPERS))
        if not numbers:
            return []
        params = {**self._identity, "id": ",".join(numbers), "retmode": "xml"}
        body = await self._queue.run(partial(self._endpoint.get, f"{self._url}/efetch.fcgi", params))
        articles = parse_xml(body, "PubmedArticleSet", self._endpoint).findall("PubmedArticle")
        by_number = {number: one for one in articles if (number := _text(one, "MedlineCitation/PMID"))}
        found = [_read_article(number, by_number[number]) for number in numbers if number in by_number]
        return list_hits(found, limit)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    async def _find_numbers(self, query: str, limit: int) -> list[str]:
        params: Mapping[str, str] = {
            **self._identity,
            "term": query,
            "retmode": "json",
            "retmax": str(limit),
            "sort": "relevance",
        }
        url = f"{self._url}/esearch.fcgi"
        answer: dict[str, Any] = await self._queue.run(partial(self._endpoint.get_json, url, params))
        result = take_dict(answer, "esearchresult")
        if isinstance(reason := result.get("ERROR"), str):
            raise ProviderFailure(f"PubMed rejected the query: {reason[:200]}", cooldown_seconds=0)
        numbers = result.get("idlist")
        if not isinstance(numbers, list):
            raise self._endpoint.malformed_response()
        return [one for one in numbers if isinstance(one, str) and one.isdecimal()][:limit]


def _read_article(number: str, record: "_Element") -> PaperRecord:
    article = "MedlineCitation/Article"
    ids = {one.get("IdType"): one.text for one in record.iterfind("PubmedData/ArticleIdList/ArticleId")}
    abstracts = record.iterfind(f"{article}/Abstract/AbstractText")
    return PaperRecord(
        title=_markup(record.find(f"{article}/ArticleTitle")),
        abstract=" ".join(filter(None, map(_read_section, abstracts))),
        authors=[_write_name(one) for one in record.iterfind(f"{article}/AuthorList/Author")],
        published=next(_list_days(record), ""),
        venue=_text(record, f"{article}/Journal/Title"),
        doi=ids.get("doi"),
        pages=(PAGE.format(number),),
        full_texts=[FULL_TEXT.format(pmc)] if (pmc := ids.get("pmc")) else [],
    )


def _read_section(section: "_Element") -> str:
    """Return a part of a structured abstract after its label, or the whole of another one."""
    label, text = section.get("Label", "").strip().rstrip(":").capitalize(), _markup(section)
    return f"{label}: {text}" if label and text else text


def _write_name(author: "_Element") -> str:
    """Return the name of a person, or of a group."""
    person = " ".join(filter(None, (_text(author, "ForeName"), _text(author, "LastName"))))
    return person or _text(author, "CollectiveName")


def _list_days(record: "_Element") -> Iterator[str]:
    """Return the days on which a paper appeared, the day of the electronic edition before the issue's."""
    article = "MedlineCitation/Article"
    for path in (f"{article}/ArticleDate", f"{article}/Journal/JournalIssue/PubDate"):
        for date in record.iterfind(path):
            # A season or a span is `MedlineDate`, such as "2019 Nov-Dec".
            year = _text(date, "Year") or _text(date, "MedlineDate")[:4]
            if day := format_date(year, _text(date, "Month"), _text(date, "Day")):
                yield day


def _text(element: "_Element", path: str) -> str:
    return " ".join((element.findtext(path) or "").split())


def _markup(element: "_Element | None") -> str:
    """Return the content of an element with its markup, such as `<sup>`; "" for None."""
    from lxml import etree  # pyright: ignore[reportAttributeAccessIssue] - it is compiled

    return "" if element is None else etree.tostring(element, encoding="unicode", with_tail=False).strip()


PROVIDER = ProviderSpec(
    name="pubmed",
    create=lambda settings, context: PubmedSearch(settings, context.options),
    options=PubmedOptions,
    is_scholarly=True,
    servers=lambda settings: [BASE_URL],
)
