"""Wikipedia in the language of the query: https://www.mediawiki.org/wiki/API:Search. Needs no key."""

import re
from collections.abc import Callable
from typing import Any

from maniple.config.web_settings import SearchSettings
from maniple.search.provider import (
    HttpEndpoint,
    ProviderFailure,
    ProviderSpec,
    RateLimited,
    SearchHit,
    normalize_query,
    parse_hits,
)

BASE_URL = "https://{language}.wikipedia.org"
_QUERY_CHARACTERS = 300
_EXTRACT_CHARACTERS = 1_000

# Scripts of one large language; kana before Han, because Japanese uses both.
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
}
# Scripts of several languages, each with the language to assume when nothing else is known.
_SHARED_SCRIPTS = {
    "ru": (re.compile("[\u0400-\u04ff]"), {"ru", "uk", "be", "bg", "sr", "mk", "kk", "tg"}),
    "ar": (re.compile("[\u0600-\u06ff]"), {"ar", "fa", "ur"}),
    "hi": (re.compile("[\u0900-\u097f]"), {"hi", "mr", "ne"}),
}
_NON_LATIN = {*_SCRIPTS, *(name for _, names in _SHARED_SCRIPTS.values() for name in names)}
# Wikipedias with about 100,000 articles or more. Clients choose the locale: a Wikipedia that does not exist
# would fail, and the circuit breaker would pause Wikipedia for all runs.
_LANGUAGES = frozenset(
    (
        *("af", "ar", "ast", "az", "be", "bg", "bn", "bs", "ca", "cs", "cy", "da", "de", "el", "en", "eo"),
        *("es", "et", "eu", "fa", "fi", "fr", "gl", "he", "hi", "hr", "hu", "hy", "id", "it", "ja", "ka"),
        *("kk", "ko", "la", "lt", "lv", "mk", "mr", "ms", "my", "ne", "nl", "nn", "no", "pl", "pt", "ro"),
        *("ru", "sh", "sk", "sl", "sq", "sr", "sv", "ta", "te", "tg", "th", "tr", "uk", "ur", "uz", "vi"),
        "zh",
    )
)
_ALIASES = {"nb": "no", "cmn": "zh", "yue": "zh"}


class WikipediaSearch:
    """Searches Wikipedia; `locale` returns the conversation's locale, such as `de-DE`, or ""."""

    def __init__(
        self, settings: SearchSettings, locale: Callable[[], str] = str, base_url: str = BASE_URL
    ) -> None:
        self._fallback = settings.language
        self._locale = locale
        self._base_url = base_url
        self._endpoint = HttpEndpoint("Wikipedia", settings.timeout_seconds)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; the extracts are the articles' first paragraphs."""
        text = normalize_query(query, _QUERY_CHARACTERS)
        language = wikipedia_language(text, self._locale(), self._fallback)
        answer = await self._endpoint.get_json(
            f"{self._base_url.format(language=language)}/w/api.php",
            {
                "action": "query",
                "format": "json",
                "formatversion": "2",
                "generator": "search",
                "gsrsearch": text,
                "gsrlimit": str(limit),
                "prop": "extracts|info",
                "inprop": "url",
                "exintro": "1",
                "explaintext": "1",
                "exchars": str(_EXTRACT_CHARACTERS),
                "exlimit": "max",
            },
        )
        return parse_hits(self._parse_pages(answer), url="canonicalurl", content="extract")[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _parse_pages(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        if isinstance(error := answer.get("error"), dict):
            code = str(error.get("code"))[:100]
            if code in ("ratelimited", "maxlag"):
                raise RateLimited(f"Wikipedia limits the rate of requests ({code}).")
            raise ProviderFailure(f"Wikipedia rejected the query ({code}).", cooldown_seconds=0)
        found = answer.get("query", {})  # absent when no page was found
        pages = found.get("pages", []) if isinstance(found, dict) else None
        if not isinstance(pages, list):
            raise self._endpoint.malformed_response()
        # The pages are ordered by page number and carry their rank.
        return sorted((page for page in pages if isinstance(page, dict)), key=_rank)


def _rank(page: dict[str, Any]) -> float:
    rank = page.get("index")
    return rank if isinstance(rank, int | float) else float("inf")


def wikipedia_language(query: str, locale: str, fallback: str) -> str:
    """Return the language of the Wikipedia to ask: by the query's script, else the locale, else `fallback`.

    A locale such as `ru-RU` is ignored for a query in another script than its language's.
    """
    language_code = re.split("[-_]", locale.lower())[0]
    language_code = _ALIASES.get(language_code, language_code)
    known = language_code if language_code in _LANGUAGES else ""
    for language, letters in _SCRIPTS.items():
        if letters.search(query):
            return "ja" if language == "zh" and known == "ja" else language
    for language, (letters, names) in _SHARED_SCRIPTS.items():
        if letters.search(query):
            return next((code for code in (known, fallback) if code in names), language)
    return known if known and known not in _NON_LATIN else fallback


PROVIDER = ProviderSpec(
    name="wikipedia",
    create=lambda settings, context: WikipediaSearch(settings, context.locale),
    servers=lambda settings: [BASE_URL.format(language=settings.language)],
    rank=60,
)
