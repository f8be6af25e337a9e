"""Semantic Scholar, a catalogue of papers: https://api.semanticscholar.org/api-docs/graph.

All who ask without a key share one rate limit, so it often answers 429; with a key one request a second is
allowed.
"""

from functools import partial
from typing import Any

from maniple.config.values import ApiKey, Section
from maniple.config.web_settings import SearchSettings
from maniple.search.provider import HttpEndpoint, ProviderSpec, SearchHit, normalize_query
from maniple.search.scholarly import (
    PATIENCE_SECONDS,
    QUERY_CHARACTERS,
    PaperRecord,
    RequestQueue,
    list_hits,
    take_dict,
    take_dicts,
)

BASE_URL = "https://api.semanticscholar.org"
PAUSE_SECONDS = 1.0
_FIELDS = "title,abstract,url,venue,year,publicationDate,authors,externalIds,openAccessPdf"
_MAX_PAPERS = 20
_MAX_AUTHORS_READ = 5_000
# "Hyphenated query terms yield no matches", says its documentation.
_HYPHENS = str.maketrans("-‐‑", "   ")
_REMEDIES = {
    401: "Correct search.options.semantic_scholar.api_key.",
    403: "Correct search.options.semantic_scholar.api_key.",
}


class SemanticScholarOptions(Section):
    """Settings of Semantic Scholar."""

    api_key: ApiKey = None
    """Requested at https://www.semanticscholar.org/product/api; it gives a rate limit of one's own."""


class SemanticScholarSearch:
    """Searches titles and abstracts."""

    def __init__(
        self,
        settings: SearchSettings,
        options: SemanticScholarOptions | None = None,
        base_url: str = BASE_URL,
        pause_seconds: float = PAUSE_SECONDS,
    ) -> None:
        key = (options or SemanticScholarOptions()).api_key
        self._url = f"{base_url}/graph/v1/paper/search"
        self._headers = {"x-api-key": key.get_secret_value()} if key is not None else {}
        self._queue = RequestQueue("Semantic Scholar", pause_seconds)
        self._endpoint = HttpEndpoint(
            "Semantic Scholar", settings.timeout_seconds, _REMEDIES, patience_seconds=PATIENCE_SECONDS
        )

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        text = normalize_query(query.translate(_HYPHENS), QUERY_CHARACTERS)
        params = {"query": text, "limit": str(min(limit, _MAX_PAPERS)), "fields": _FIELDS}
        answer = await self._queue.run(
            partial(self._endpoint.get_json, self._url, params, headers=self._headers)
        )
        papers = answer.get("data", [] if answer.get("total") == 0 else None)
        if not isinstance(papers, list):
            raise self._endpoint.malformed_response()
        return list_hits(map(_read_paper, take_dicts(papers, _MAX_PAPERS)), limit)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def _read_paper(paper: dict[str, Any]) -> PaperRecord:
    authors = take_dicts(paper.get("authors"), _MAX_AUTHORS_READ)
    return PaperRecord(
        title=paper.get("title"),
        abstract=paper.get("abstract"),
        authors=[one.get("name") for one in authors],
        published=paper.get("publicationDate") or paper.get("year"),
        venue=paper.get("venue"),
        doi=take_dict(paper, "externalIds").get("DOI"),
        pages=(paper.get("url"),),
        full_texts=(take_dict(paper, "openAccessPdf").get("url"),),
    )


PROVIDER = ProviderSpec(
    name="semantic_scholar",
    create=lambda settings, context: SemanticScholarSearch(settings, context.options),
    options=SemanticScholarOptions,
    is_scholarly=True,
    servers=lambda settings: [BASE_URL],
)
