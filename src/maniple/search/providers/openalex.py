"""OpenAlex, an open catalogue of scholarly works: https://developers.openalex.org.

Without a key about 100 searches a day are free for an address, with a free key ten times as many.
"""

from collections.abc import Iterator
from typing import Any

from maniple.config.values import ApiKey, Section
from maniple.config.web_settings import SearchSettings
from maniple.search.provider import HttpEndpoint, ProviderSpec, SearchHit, normalize_query
from maniple.search.scholarly import (
    PATIENCE_SECONDS,
    QUERY_CHARACTERS,
    PaperRecord,
    list_hits,
    take_dict,
    take_dicts,
)

BASE_URL = "https://api.openalex.org"
MAX_WORKS = 10
"""Of one request: each work comes with up to 100 authors and their institutions."""
MAX_ABSTRACT_WORDS = 2_000
_FIELDS = (
    "id,doi,title,publication_date,publication_year,authorships,primary_location,best_oa_location,"
    "open_access,abstract_inverted_index"
)
_WILDCARDS = str.maketrans("*?~|", "    ")
_REMEDIES = {
    401: "Correct search.options.openalex.api_key.",
    403: "Correct or set search.options.openalex.api_key.",
    409: "Set search.options.openalex.api_key; a key is free.",
}


class OpenAlexOptions(Section):
    """Settings of OpenAlex."""

    api_key: ApiKey = None
    """A free one raises the number of searches a day: https://openalex.org/settings/api."""


class OpenAlexSearch:
    """Searches titles, abstracts and full texts."""

    def __init__(
        self, settings: SearchSettings, options: OpenAlexOptions | None = None, base_url: str = BASE_URL
    ) -> None:
        self._url = f"{base_url}/works"
        self._key = (options or OpenAlexOptions()).api_key
        self._endpoint = HttpEndpoint(
            "OpenAlex", settings.timeout_seconds, _REMEDIES, patience_seconds=PATIENCE_SECONDS
        )

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; at most `MAX_WORKS`."""
        text = normalize_query(query.translate(_WILDCARDS), QUERY_CHARACTERS)
        params = {"search": text, "per_page": str(min(limit, MAX_WORKS)), "select": _FIELDS}
        if self._key is not None:
            params["api_key"] = self._key.get_secret_value()
        answer = await self._endpoint.get_json(self._url, params)
        if not isinstance(answer.get("results"), list):
            raise self._endpoint.malformed_response()
        return list_hits(map(_read_work, take_dicts(answer["results"], MAX_WORKS)), limit)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()


def _read_work(work: dict[str, Any]) -> PaperRecord:
    primary, best = take_dict(work, "primary_location"), take_dict(work, "best_oa_location")
    authors = (take_dict(one, "author") for one in take_dicts(work.get("authorships"), 100))
    return PaperRecord(
        title=work.get("title"),
        abstract=read_inverted_index(work.get("abstract_inverted_index")),
        authors=[one.get("display_name") for one in authors],
        published=work.get("publication_date") or work.get("publication_year"),
        venue=take_dict(primary, "source").get("display_name"),
        doi=work.get("doi"),
        pages=(primary.get("landing_page_url"), work.get("id")),
        full_texts=(best.get("pdf_url"), take_dict(work, "open_access").get("oa_url")),
    )


def read_inverted_index(index: Any) -> str:
    """Return the text of an index, a mapping of words to their positions; "" for any other value.

    Words after the position `MAX_ABSTRACT_WORDS` are left out: some abstracts are whole documents.
    """
    placed = sorted(_place_words(index)) if isinstance(index, dict) else []
    return " ".join(word for _, word in placed)


def _place_words(index: dict[Any, Any]) -> Iterator[tuple[int, str]]:
    for word, positions in index.items():
        for position in positions if isinstance(positions, list) else ():
            if isinstance(position, int) and 0 <= position < MAX_ABSTRACT_WORDS:
                yield position, str(word)


PROVIDER = ProviderSpec(
    name="openalex",
    create=lambda settings, context: OpenAlexSearch(settings, context.options),
    options=OpenAlexOptions,
    is_scholarly=True,
    servers=lambda settings: [BASE_URL],
)
