"""DuckDuckGo and other engines, through `ddgs` (https://github.com/deedy5/ddgs); needs no key.

It reads the pages that engines give to browsers, so any of them may refuse or change: whom `search.engines`
names is asked in turn.
"""

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from maniple.config.search_settings import SearchSettings
from maniple.search.endpoint import asked_for
from maniple.search.hits import hits_of
from maniple.search.provider import ProviderFailure, SearchHit

_QUERY_CHARACTERS = 400
_AT_ONCE = 4
_NOTHING = "No results found."


class Metasearch:
    """Searches with `ddgs` in threads of its own; `aclose` lets them go.

    A thread ends with the time-out of its request, which covers name, connection and body: `ddgs` would
    wait for one engine after the other in the same thread, so each call names one engine.
    """

    def __init__(self, settings: SearchSettings) -> None:
        self._engines = settings.engines
        self._timeout_seconds = settings.timeout_seconds
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ddgs")

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        words = asked_for(query, _QUERY_CHARACTERS)
        failures = []
        try:
            async with asyncio.timeout(self._timeout_seconds):
                for engine in self._engines:
                    try:
                        found = await self._asked(engine, words, limit)
                    except ProviderFailure as failure:
                        failures.append(str(failure))
                        continue
                    if hits := hits_of(found, url="href", content="body")[:limit]:
                        return hits
        except TimeoutError:
            failures.append("there was no time for more")
        if len(failures) < len(self._engines):
            return []
        raise ProviderFailure(f"No engine of ddgs answered: {'; '.join(failures)}")

    async def aclose(self) -> None:
        """Start no further request; those under way end by their time-outs."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _asked(self, engine: str, words: str, limit: int) -> list[Any]:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._ask, engine, words, limit)

    def _ask(self, engine: str, words: str, limit: int) -> list[Any]:
        ddgs = importlib.import_module("ddgs")
        failures = importlib.import_module("ddgs.exceptions")
        # Its engines divide the time among themselves: so much for one of them.
        seconds = max(int(self._timeout_seconds / 2), 1)
        try:
            return ddgs.DDGS(timeout=seconds).text(words, backend=engine, max_results=limit)
        except failures.DDGSException as error:
            if str(error) == _NOTHING:  # also what it says of any status but 200
                return []
            reason = "no answer in time" if isinstance(error, failures.TimeoutException) else str(error)[:200]
            raise ProviderFailure(f"{engine}: {reason}") from error
