"""DuckDuckGo and other engines, through `ddgs` (https://github.com/deedy5/ddgs); needs no key.

It reads the pages that engines give to browsers, so any of them may refuse or change: whom `search.engines`
names is asked in turn.
"""

import asyncio
import importlib
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from maniple.config.search_settings import SearchSettings
from maniple.search.endpoint import asked_for, rest_asked_for
from maniple.search.hits import hits_of
from maniple.search.provider import SET_ASIDE_SECONDS, ProviderFailure, RateLimited, SearchHit
from maniple.search.region import region_of

_QUERY_CHARACTERS = 400
_AT_ONCE = 4
_NOTHING = "No results found."
# DuckDuckGo wants to see a person when it says 202.
_FEWER = (202, 429)
_CHALLENGE = re.compile(r"captcha|anomaly-modal|unusual traffic", re.IGNORECASE)
_LOOKED_AT_CHARACTERS = 200_000


class Metasearch:
    """Searches with `ddgs` in threads of its own; `aclose` lets them go.

    A thread ends with the time-out of its request, which covers name, connection and body: `ddgs` would
    wait for one engine after the other in the same thread, so each call names one engine.
    """

    def __init__(self, settings: SearchSettings, locale: Callable[[], str] = str) -> None:
        self._engines = settings.engines
        self._timeout_seconds = settings.timeout_seconds
        self._locale = locale
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ddgs")

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        words, region = asked_for(query, _QUERY_CHARACTERS), region_of(self._locale())
        failures: list[ProviderFailure] = []
        answered = False
        try:
            async with asyncio.timeout(self._timeout_seconds):
                for engine in self._engines:
                    try:
                        found = await self._asked(engine, words, region, limit)
                    except ProviderFailure as failure:
                        failures.append(failure)
                        continue
                    answered = True
                    if hits := hits_of(found, url="href", content="body")[:limit]:
                        return hits
        except TimeoutError:
            failures.append(ProviderFailure("there was no time for more"))
        if answered:
            return []
        raise _of_all(failures)

    async def aclose(self) -> None:
        """Start no further request; those under way end by their time-outs."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _asked(self, engine: str, words: str, region: str, limit: int) -> list[Any]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, engine, words, region, limit)

    def _ask(self, engine: str, words: str, region: str, limit: int) -> list[Any]:
        ddgs = importlib.import_module("ddgs")
        failures = importlib.import_module("ddgs.exceptions")
        # Its engines divide the time among themselves: so much for one of them.
        seconds = max(int(self._timeout_seconds / 2), 1)
        client = ddgs.DDGS(timeout=seconds)
        answers = _noted(client, engine)
        try:
            return client.text(words, backend=engine, max_results=limit, region=region)
        except failures.DDGSException as error:
            if str(error) == _NOTHING:  # also what it says of any status but 200
                for answer in answers:
                    _require_answer(engine, answer)
                return []
            reason = "no answer in time" if isinstance(error, failures.TimeoutException) else str(error)[:200]
            raise ProviderFailure(f"{engine}: {reason}") from error


def _noted(client: Any, name: str) -> list[Any]:
    """Return a list that gets the answers of the engine `name`: `client` itself tells nobody their status."""
    answers: list[Any] = []

    def noting(request: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        answer = request(*arguments, **options)
        answers.append(answer)
        return answer

    for engine in client._get_engines("text", name):  # they are kept there, and asked by `text`
        engine.http_client.request = partial(noting, engine.http_client.request)
    return answers


def _require_answer(engine: str, answer: Any) -> None:
    """Raise `ProviderFailure` unless the engine searched, and found nothing."""
    status: int = answer.status_code
    if status in _FEWER or (status == 200 and _CHALLENGE.search(answer.text[:_LOOKED_AT_CHARACTERS])):
        # ddgs hides the headers; they are in the answer that it wraps.
        headers = {name.lower(): value for name, value in answer._resp.headers.items()}
        rest = rest_asked_for(headers)
        raise RateLimited(
            f"{engine}: it wants fewer searches, or a person (HTTP {status})",
            rest_seconds=SET_ASIDE_SECONDS if rest is None else rest,
        )
    if status != 200:
        raise ProviderFailure(f"{engine}: HTTP {status}")


def _of_all(failures: Sequence[ProviderFailure]) -> ProviderFailure:
    words = f"No engine of ddgs answered: {'; '.join(map(str, failures))}"
    if not all(isinstance(failure, RateLimited) for failure in failures):
        return ProviderFailure(words)
    return RateLimited(words, rest_seconds=min(failure.rest_seconds for failure in failures))
