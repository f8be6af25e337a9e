"""DuckDuckGo and other engines through `ddgs`: https://github.com/deedy5/ddgs. Needs no key.

`ddgs` reads the pages that engines serve to browsers, so any engine may refuse or change: those of
`search.engines` are asked in turn.
"""

import asyncio
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from maniple.config.web_settings import SearchEngine, SearchSettings
from maniple.egress.environment_proxies import EnvironmentProxies
from maniple.search.provider import (
    DEFAULT_COOLDOWN_SECONDS,
    ProviderFailure,
    ProviderSpec,
    RateLimited,
    SearchHit,
    cooldown_from_headers,
    normalize_query,
    parse_hits,
)

_QUERY_CHARACTERS = 400
_MAX_THREADS = 4
_NO_RESULTS = "No results found."
_SERVERS: Mapping[SearchEngine, str] = {
    "brave": "https://search.brave.com",
    "duckduckgo": "https://html.duckduckgo.com",
    "mojeek": "https://www.mojeek.com",
    "startpage": "https://www.startpage.com",
    "yahoo": "https://search.yahoo.com",
}
# DuckDuckGo returns 202 with a CAPTCHA.
_RATE_LIMIT_STATUSES = (202, 429)
_CHALLENGE = re.compile(r"captcha|anomaly-modal|unusual traffic", re.IGNORECASE)
_INSPECTED_CHARACTERS = 200_000

DEFAULT_REGION = "us-en"
"""The default of `ddgs`."""
# DuckDuckGo's regions (https://duckduckgo.com/duckduckgo-help-pages/settings/params) by language, the home
# country first. Clients choose the locale: any other value would go into the engines' requests unchecked.
_REGIONS: Mapping[str, tuple[str, ...]] = {
    "ar": ("xa-ar",),
    "bg": ("bg-bg",),
    "ca": ("ct-ca",),
    "cs": ("cz-cs",),
    "da": ("dk-da",),
    "de": ("de-de", "at-de", "ch-de"),
    "el": ("gr-el",),
    "en": ("us-en", "uk-en", "au-en", "ca-en", "ie-en", "in-en", "nz-en", "ph-en", "sg-en", "za-en"),
    "es": ("es-es", "ar-es", "cl-es", "co-es", "mx-es", "pe-es"),
    "et": ("ee-et",),
    "fi": ("fi-fi",),
    "fr": ("fr-fr", "be-fr", "ca-fr", "ch-fr"),
    "he": ("il-he",),
    "hr": ("hr-hr",),
    "hu": ("hu-hu",),
    "id": ("id-id",),
    "it": ("it-it", "ch-it"),
    "ja": ("jp-jp",),
    "ko": ("kr-kr",),
    "lt": ("lt-lt",),
    "lv": ("lv-lv",),
    "nb": ("no-no",),
    "nl": ("nl-nl", "be-nl"),
    "no": ("no-no",),
    "pl": ("pl-pl",),
    "pt": ("pt-pt", "br-pt"),
    "ro": ("ro-ro",),
    "ru": ("ru-ru",),
    "sk": ("sk-sk",),
    "sv": ("se-sv",),
    "th": ("th-th",),
    "tr": ("tr-tr",),
    "uk": ("ua-uk",),
    "vi": ("vn-vi",),
    "zh": ("cn-zh", "hk-tzh", "tw-tzh"),
}


class DdgsSearch:
    """Searches with `ddgs` in its own threads.

    A thread ends with the timeout of its request, which covers name resolution, connection and body. `ddgs`
    would wait for several engines in one thread, one after the other, so each call names one engine.
    """

    def __init__(self, settings: SearchSettings, locale: Callable[[], str] = str) -> None:
        self._engines = settings.engines
        self._timeout_seconds = settings.timeout_seconds
        self._locale = locale
        self._threads = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="ddgs")

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        text, region = normalize_query(query, _QUERY_CHARACTERS), ddgs_region(self._locale())
        failures: list[ProviderFailure] = []
        answered = False
        try:
            async with asyncio.timeout(self._timeout_seconds):
                for engine in self._engines:
                    try:
                        found = await self._ask_engine(engine, text, region, limit)
                    except ProviderFailure as failure:
                        failures.append(failure)
                        continue
                    answered = True
                    if hits := parse_hits(found, url="href", content="body")[:limit]:
                        return hits
        except TimeoutError:
            failures.append(ProviderFailure("no time left for the other engines"))
        if answered:
            return []
        raise _combine_failures(failures, await asyncio.to_thread(self._describe_proxy))

    async def aclose(self) -> None:
        """Start no further request; those in progress end with their timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _ask_engine(self, engine: SearchEngine, text: str, region: str, limit: int) -> list[Any]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._query, engine, text, region, limit)

    def _describe_proxy(self) -> str:
        """Return the variable and the host of the proxy to the engines; "" without one."""
        found = (_find_proxy(engine) for engine in self._engines)
        return next((shown for _, shown in filter(None, found)), "")

    def _query(self, engine: SearchEngine, text: str, region: str, limit: int) -> list[Any]:
        ddgs = importlib.import_module("ddgs")
        failures = importlib.import_module("ddgs.exceptions")
        # ddgs divides the timeout among its engines; this is the share of one.
        seconds = max(int(self._timeout_seconds / 2), 1)
        found = _find_proxy(engine)
        client = ddgs.DDGS(proxy=found[0] if found else None, timeout=seconds)
        responses = _record_responses(client, engine)
        try:
            return client.text(text, backend=engine, max_results=limit, region=region)
        except failures.DDGSException as error:
            if str(error) == _NO_RESULTS:  # ddgs also raises this for every status but 200
                for response in responses:
                    _raise_for_response(engine, response)
                return []
            reason = "no answer in time" if isinstance(error, failures.TimeoutException) else str(error)[:200]
            raise ProviderFailure(f"{engine}: {reason}") from error


def _find_proxy(engine: SearchEngine) -> tuple[str, str] | None:
    """Return the address of the proxy to an engine, and its variable and host; None without one. Blocks.

    Otherwise primp would read the environment, but it lets no SOCKS proxy resolve names.
    """
    if getproxies().get("ddgs"):
        return None  # DDGS_PROXY, which ddgs reads itself
    proxies, server = EnvironmentProxies.read(), urlsplit(_SERVERS[engine])
    address = proxies.find(server.scheme, server.hostname or "", server.port)
    return (address, proxies.describe(server.scheme)) if address else None


def ddgs_region(locale: str) -> str:
    """Return the region of a locale as `ddgs` names it:

    `at-de` for `de-AT`. `DEFAULT_REGION` for unknown languages.
    """
    language, *others = locale.lower().replace("_", "-").split("-")
    regions = _REGIONS.get(language, (DEFAULT_REGION,))
    country = next((part for part in reversed(others) if len(part) == 2), "").replace("gb", "uk")
    return next((region for region in regions if region.startswith(f"{country}-")), regions[0])


def _record_responses(client: Any, name: str) -> list[Any]:
    """Return a list that collects the responses of the engine `name`:

    `client` does not expose their status.
    """
    responses: list[Any] = []

    def request_and_record(request: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        response = request(*arguments, **options)
        responses.append(response)
        return response

    for engine in client._get_engines("text", name):  # cached there, and used by `text`
        engine.http_client.request = partial(request_and_record, engine.http_client.request)
    return responses


def _raise_for_response(engine: str, response: Any) -> None:
    """Raise `ProviderFailure` unless the engine searched and found nothing."""
    status: int = response.status_code
    if status in _RATE_LIMIT_STATUSES or (
        status == 200 and _CHALLENGE.search(response.text[:_INSPECTED_CHARACTERS])
    ):
        # ddgs hides the headers; the response that it wraps has them.
        headers = {name.lower(): value for name, value in response._resp.headers.items()}
        seconds = cooldown_from_headers(headers)
        raise RateLimited(
            f"{engine}: rate limit or CAPTCHA (HTTP {status})",
            cooldown_seconds=DEFAULT_COOLDOWN_SECONDS if seconds is None else seconds,
        )
    if status != 200:
        raise ProviderFailure(f"{engine}: HTTP {status}")


def _combine_failures(failures: Sequence[ProviderFailure], proxy: str) -> ProviderFailure:
    through = f" through the proxy that {proxy} names" if proxy else ""
    message = f"No engine of ddgs answered{through}: {'; '.join(map(str, failures))}"
    if not all(isinstance(failure, RateLimited) for failure in failures):
        return ProviderFailure(message)
    return RateLimited(message, cooldown_seconds=min(failure.cooldown_seconds for failure in failures))


PROVIDER = ProviderSpec(
    name="ddgs",
    create=lambda settings, context: DdgsSearch(settings, context.locale),
    requires={"engines": "search.engines"},
    servers=lambda settings: [_SERVERS[engine] for engine in settings.engines],
    rank=50,
)
