"""Crossref, the registry of DOIs: https://www.crossref.org/documentation/retrieve-metadata/rest-api. No key.

It knows nearly all journals, and abstracts where their publishers give them. Preprints of arXiv have DOIs of
another registry and are absent.
"""

from typing import Any

from maniple.config.values import Section
from maniple.config.web_settings import SearchSettings
from maniple.search.provider import HttpEndpoint, ProviderSpec, SearchHit, normalize_query
from maniple.search.scholarly import (
    PATIENCE_SECONDS,
    QUERY_CHARACTERS,
    MailAddress,
    PaperRecord,
    format_date,
    list_hits,
    take_dict,
    take_dicts,
)

BASE_URL = "https://api.crossref.org"
_FIELDS = "DOI,URL,title,author,issued,container-title,publisher,abstract,link,license"
_MAX_WORKS = 20
_MAX_AUTHORS_READ = 5_000
_OPEN_LICENSE = "creativecommons.org/"


class CrossrefOptions(Section):
    """Settings of Crossref."""

    mailto: MailAddress | None = None
    """The operator's mail address, with which requests are served from the polite pool."""


class CrossrefSearch:
    """Searches titles, authors, journals and years."""

    def __init__(
        self, settings: SearchSettings, options: CrossrefOptions | None = None, base_url: str = BASE_URL
    ) -> None:
        self._url = f"{base_url}/works"
        self._mailto = (options or CrossrefOptions()).mailto
        self._endpoint = HttpEndpoint("Crossref", settings.timeout_seconds, patience_seconds=PATIENCE_SECONDS)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        text = normalize_query(query, QUERY_CHARACTERS)
        params = {"query.bibliographic": text, "rows": str(min(limit, _MAX_WORKS)), "select": _FIELDS}
        if self._mailto is not None:
            params["mailto"] = self._mailto
        items = take_dict(await self._endpoint.get_json(self._url, params), "message").get("items")
        if not isinstance(items, list):
            raise self._endpoint.malformed_response()
        return list_hits(map(_read_item, take_dicts(items, _MAX_WORKS)), limit)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def _read_item(item: dict[str, Any]) -> PaperRecord:
    return PaperRecord(
        title=_take_first(item.get("title")),
        abstract=item.get("abstract"),
        authors=[_write_name(one) for one in take_dicts(item.get("author"), _MAX_AUTHORS_READ)],
        published=_read_day(take_dict(item, "issued")),
        venue=_take_first(item.get("container-title")) or item.get("publisher"),
        doi=item.get("DOI"),
        pages=(item.get("URL"),),
        full_texts=_list_open_pdfs(item),
    )


def _take_first(values: Any) -> Any:
    return values[0] if isinstance(values, list) and values else ""


def _write_name(author: dict[str, Any]) -> str:
    """Return the name of a person, or of a group."""
    parts = [author.get("given"), author.get("family")]
    return " ".join(one for one in parts if isinstance(one, str)) or str(author.get("name") or "")


def _read_day(issued: dict[str, Any]) -> str:
    """Return the day of `{"date-parts": [[2018, 2, 13]]}`; unknown parts are absent or null."""
    parts = _take_first(issued.get("date-parts"))
    return format_date(*parts[:3]) if isinstance(parts, list) and parts else ""


def _list_open_pdfs(item: dict[str, Any]) -> list[Any]:
    """Return the PDFs of a work with an open licence; the links of others ask for a subscription."""
    licenses = (one.get("URL") for one in take_dicts(item.get("license"), _MAX_WORKS))
    if not any(isinstance(one, str) and _OPEN_LICENSE in one for one in licenses):
        return []
    links = take_dicts(item.get("link"), _MAX_WORKS)
    return [one.get("URL") for one in links if one.get("content-type") == "application/pdf"]


PROVIDER = ProviderSpec(
    name="crossref",
    create=lambda settings, context: CrossrefSearch(settings, context.options),
    options=CrossrefOptions,
    is_scholarly=True,
    servers=lambda settings: [BASE_URL],
)
