"""Wikipedia (https://www.mediawiki.org/wiki/API:Search), in the language of the query; needs no key."""

import re
from collections.abc import Callable
from typing import Any

from maniple.config.search_settings import SearchSettings
from maniple.search.endpoint import Endpoint, asked_for
from maniple.search.hits import hits_of
from maniple.search.provider import ProviderFailure, RateLimited, SearchHit

BASE_URL = "https://{language}.wikipedia.org"
_QUERY_CHARACTERS = 300
_EXTRACT_CHARACTERS = 1_000
# A script that one language of the big ones writes; kana before Han, which Japanese writes, too.
_SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7a3]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
}
# Scripts of several languages, and the one that is meant when nothing else is known.
_SHARED = {
    "ru": (re.compile("[\u0400-\u04ff]"), {"ru", "uk", "be", "bg", "sr", "mk", "kk", "ky", "mn", "tg"}),
    "ar": (re.compile("[\u0600-\u06ff]"), {"ar", "fa", "ur", "ps", "ckb"}),
    "hi": (re.compile("[\u0900-\u097f]"), {"hi", "mr", "ne", "sa"}),
}
_WRITTEN_OTHERWISE = {*_SCRIPTS, *(name for _, names in _SHARED.values() for name in names)}


class WikipediaSearch:
    """Searches Wikipedia; `locale` tells the language of the conversation, such as `de-DE` or ""."""

    def __init__(
        self, settings: SearchSettings, locale: Callable[[], str] = str, base_url: str = BASE_URL
    ) -> None:
        self._fallback = settings.language
        self._locale = locale
        self._base_url = base_url
        self._endpoint = Endpoint("Wikipedia", settings.timeout_seconds)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; the extracts are the articles' first paragraphs."""
        words = asked_for(query, _QUERY_CHARACTERS)
        language = language_of(words, self._locale(), self._fallback)
        answer = await self._endpoint.json(
            f"{self._base_url.format(language=language)}/w/api.php",
            {
                "action": "query",
                "format": "json",
                "formatversion": "2",
                "generator": "search",
                "gsrsearch": words,
                "gsrlimit": str(limit),
                "prop": "extracts|info",
                "inprop": "url",
                "exintro": "1",
                "explaintext": "1",
                "exchars": str(_EXTRACT_CHARACTERS),
                "exlimit": "max",
            },
        )
        return hits_of(self._pages(answer), url="canonicalurl", content="extract")[:limit]

    async def aclose(self) -> None:
        """Close the connections."""
        await self._endpoint.aclose()

    def _pages(self, answer: dict[str, Any]) -> list[dict[str, Any]]:
        if isinstance(error := answer.get("error"), dict):
            code = str(error.get("code"))[:100]
            if code in ("ratelimited", "maxlag"):
                raise RateLimited(f"Wikipedia wants fewer searches ({code}).")
            raise ProviderFailure(f"Wikipedia did not understand the query ({code}).", rest_seconds=0)
        found = answer.get("query", {})  # left out when there is no page
        pages = found.get("pages", []) if isinstance(found, dict) else None
        if not isinstance(pages, list):
            raise self._endpoint.garbled()
        # They come by number of page, with their rank beside.
        return sorted((page for page in pages if isinstance(page, dict)), key=_rank)


def _rank(page: dict[str, Any]) -> float:
    rank = page.get("index")
    return rank if isinstance(rank, int | float) else float("inf")


def language_of(query: str, locale: str, fallback: str) -> str:
    """Return whose Wikipedia fits: by the query's script, else the locale (`de-DE`), else `fallback`.

    A locale whose language is written otherwise than the query is no word about it.
    """
    spoken = re.split("[-_]", locale.lower())[0]
    known = spoken if re.fullmatch("[a-z]{2,3}", spoken) else ""
    for language, letters in _SCRIPTS.items():
        if letters.search(query):
            return "ja" if language == "zh" and known == "ja" else language
    for language, (letters, names) in _SHARED.items():
        if letters.search(query):
            return next((one for one in (known, fallback) if one in names), language)
    return known if known and known not in _WRITTEN_OTHERWISE else fallback
