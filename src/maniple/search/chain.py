"""Several search providers as one: fallback or fusion, circuit breaker, cache for each run."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from maniple.errors import SearchError
from maniple.search.merging import deduplicate, label_hits, merge_ranked
from maniple.search.provider import (
    ProviderFailure,
    ProxyUnreachable,
    RateLimited,
    SearchHit,
    SearchProvider,
    check_reachable,
)

_log = logging.getLogger(__name__)

MAX_CACHED_QUERIES = 512
"""Of all runs together; the least recently used is evicted. With 5 hits each, some 6 MB."""
MAX_CACHE_AGE_SECONDS = 3_600.0
"""In an embedding graph a run is known by its thread only, which may continue for days."""
CHECK_SECONDS = 1.0
"""For connections to the providers before a plan is made. A slow provider is not counted as unreachable."""
REACHED_SECONDS = 60.0
"""How long a provider that was reached is not checked again."""
NO_ANSWER = "The web search does not answer. Check the network, or set another provider in search.providers."
_NO_PROXY_ANSWER = (
    "The web search does not answer: the proxy that {} names cannot be reached. Start it, correct or unset "
    "the variable, or name the providers' hosts in NO_PROXY."
)
_REASON_CHARACTERS = 200

_CacheKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The hits, and for each provider that did not answer the reason."""

    hits: list[SearchHit]
    failures: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class OutageReporter(Protocol):
    """A search that can report that it is unavailable."""

    async def describe_outage(self) -> str:
        """Return why no search is possible now, with the remedy; "" if one may be answered."""
        ...


async def find_outage(search: SearchProvider) -> str:
    """Return why no search is possible now, with the remedy; "" if one may be answered."""
    return await search.describe_outage() if isinstance(search, OutageReporter) else ""


@dataclass(frozen=True, slots=True)
class SearchGaps:
    """What a search cannot find although it belongs to what is searched."""

    text: str = ""
    """Sentences for models and people; "" for nothing."""
    is_passing: bool = False
    """Whether the same search will find more soon, without a change of the settings."""


@runtime_checkable
class GapReporter(Protocol):
    """A search that can report what it does not find."""

    async def find_gaps(self) -> SearchGaps:
        """Return what cannot be found now."""
        ...


async def find_gaps(search: SearchProvider) -> SearchGaps:
    """Return what a search cannot find now."""
    return await search.find_gaps() if isinstance(search, GapReporter) else SearchGaps()


class SearchChain:
    """Queries `providers`, by name: in order until one has hits, or all concurrently if `merges`.

    In order, hits of which the best one is weak are not enough: the next provider is asked, too, and its hits
    are put before and between them. They stay alone if it has none.
    """

    def __init__(
        self,
        providers: Mapping[str, SearchProvider],
        *,
        merges: bool = False,
        timeout_seconds: float = 10,
        total_seconds: float = 30,
        clock: Callable[[], float] = time.monotonic,
        servers: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._providers = providers
        self._servers = servers or {}
        self._reached_until: dict[str, float] = {}
        self._clock = clock
        self._merges = merges
        self._timeout_seconds = timeout_seconds
        self._total_seconds = total_seconds
        self._breaker = CircuitBreaker(clock)

    @property
    def names(self) -> Sequence[str]:
        """The names of the providers in the order in which they are queried."""
        return tuple(self._providers)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; each hit names its `source`."""
        return (await self.ask(query, limit=limit)).hits

    async def describe_outage(self) -> str:
        """See `OutageReporter`. Connects to providers that were not reached within the last minute."""
        paused = self._breaker.reasons()
        names = [name for name in self._providers if name not in paused]
        reachable = await asyncio.gather(*(self._is_reachable(name) for name in names))
        if any(reachable):
            return ""
        proxy = self._breaker.unreachable_proxy()
        return _NO_PROXY_ANSWER.format(proxy) if proxy else NO_ANSWER

    async def find_gaps(self) -> SearchGaps:
        """See `GapReporter`."""
        gaps = [await find_gaps(provider) for provider in self._providers.values()]
        text = " ".join(one.text for one in gaps if one.text)
        return SearchGaps(text, any(one.is_passing for one in gaps))

    async def _is_reachable(self, name: str) -> bool:
        """Return whether a provider may answer; start the cooldown of one that cannot be reached."""
        servers = self._servers.get(name, ())
        if not servers or self._clock() < self._reached_until.get(name, 0):
            return True
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await check_reachable(name, servers)
        except ProviderFailure as failure:
            self._breaker.trip(name, failure)
            return False
        except TimeoutError:
            return True
        self._reached_until[name] = self._clock() + REACHED_SECONDS
        return True

    async def ask(self, query: str, *, limit: int, only: str = "") -> SearchAnswer:
        """Search, with one provider alone if `only` names it, and also return which providers failed.

        Raises:
            SearchError: no provider answered; the message gives the reason of each.
        """
        if not query.strip():
            raise SearchError("The search query is empty; say what to look for.")
        names = [name for name in self._providers if only in ("", name)]
        reasons = self._breaker.reasons()
        available, failures = (
            self._breaker.available(names),
            {name: reasons[name] for name in names if name in reasons},
        )
        answers = await (self._ask_all if self._merges else self._ask_in_turn)(
            available, query, limit, failures
        )
        if not answers:
            raise SearchError(_describe_failures(failures))
        return SearchAnswer(self._combine(answers, limit), failures)

    def _combine(self, answers: Sequence[list[SearchHit]], limit: int) -> list[SearchHit]:
        if self._merges:
            return merge_ranked(answers, limit)
        found = [answer for answer in answers if answer]
        # Only the last one may be other than weak: its hits come first.
        return merge_ranked(found[::-1], limit) if len(found) > 1 else [hit for hits in found for hit in hits]

    def _is_enough(self, hits: Sequence[SearchHit]) -> bool:
        """Return whether no other provider has to be asked: there are hits, and the best one is not weak."""
        return bool(hits) and not hits[0].is_weak

    async def _ask_in_turn(
        self, names: Iterable[str], query: str, limit: int, failures: dict[str, str]
    ) -> list[list[SearchHit]]:
        """Return the answers up to the first that is neither empty nor weak; fill `failures`."""
        answers = []
        remaining = list(names)
        try:
            async with asyncio.timeout(self._total_seconds):
                while remaining and not (answers and self._is_enough(answers[-1])):
                    try:
                        answers.append(await self._ask_provider(remaining[0], query, limit))
                        failures.pop(remaining[0], None)
                    except SearchError as error:
                        failures[remaining[0]] = str(error)
                    del remaining[0]
        except TimeoutError:
            failures.update(dict.fromkeys(remaining, "not asked: search.total_seconds is over"))
        return answers

    async def _ask_all(
        self, names: Iterable[str], query: str, limit: int, failures: dict[str, str]
    ) -> list[list[SearchHit]]:
        """Return the answers that arrive in time; fill `failures`."""
        tasks = {name: asyncio.create_task(self._ask_provider(name, query, limit)) for name in names}
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=self._total_seconds)
        finally:
            for task in tasks.values():
                task.cancel()
            results = await asyncio.gather(*tasks.values(), return_exceptions=True)
        answers = []
        for name, result in zip(tasks, results, strict=True):
            if isinstance(result, SearchError):
                failures[name] = str(result)
            elif isinstance(result, asyncio.CancelledError):
                failures[name] = "no answer within search.total_seconds"
            elif isinstance(result, BaseException):
                raise result
            else:
                failures.pop(name, None)
                answers.append(result)
        return answers

    async def _ask_provider(self, name: str, query: str, limit: int) -> list[SearchHit]:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                hits = await self._providers[name].search(query, limit=limit)
        except TimeoutError as error:
            failure = ProviderFailure(f"no answer in {self._timeout_seconds:g} s")
            self._breaker.trip(name, failure)
            raise failure from error
        except ProviderFailure as failure:
            self._breaker.trip(name, failure)
            raise
        self._breaker.reset(name)
        self._reached_until[name] = self._clock() + REACHED_SECONDS
        return label_hits(deduplicate(hits)[:limit], name)


def _describe_failures(failures: Mapping[str, str]) -> str:
    reasons = "; ".join(
        f"{name}: {reason.rstrip('.')[:_REASON_CHARACTERS]}" for name, reason in failures.items()
    )
    return f"No search provider answered. {reasons}. Search again later or continue without search."


@dataclass(frozen=True, slots=True)
class _OpenCircuit:
    until: float
    failure: ProviderFailure


class CircuitBreaker:
    """Pauses failed providers until their cooldown ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[str, _OpenCircuit] = {}

    def trip(self, name: str, failure: ProviderFailure) -> None:
        """Start the cooldown of a provider that failed, if its failure has one."""
        if failure.cooldown_seconds > 0:
            self._open[name] = _OpenCircuit(self._clock() + failure.cooldown_seconds, failure)
            _log.warning("search provider %s paused for %.0f s: %s", name, failure.cooldown_seconds, failure)

    def reset(self, name: str) -> None:
        """End the cooldown of a provider that answered."""
        self._open.pop(name, None)

    def reasons(self) -> dict[str, str]:
        """Return the paused providers, each with the reason."""
        now = self._clock()
        self._open = {name: circuit for name, circuit in self._open.items() if circuit.until > now}
        return {
            name: f"paused for {max(circuit.until - now, 1):.0f} s: {circuit.failure}"
            for name, circuit in self._open.items()
        }

    def unreachable_proxy(self) -> str:
        """Return the variable and the host of a proxy that pauses a provider; "" if none does."""
        failures = (circuit.failure for circuit in self._open.values())
        return next((failure.proxy for failure in failures if isinstance(failure, ProxyUnreachable)), "")

    def available(self, names: Iterable[str]) -> list[str]:
        """Return the providers to ask. When all are paused: those that are not rate limited."""
        candidates, paused = list(names), self.reasons()
        return [name for name in candidates if name not in paused] or [
            name for name in candidates if not isinstance(self._open[name].failure, RateLimited)
        ]


@dataclass(slots=True, eq=False)
class _CacheEntry:
    request: asyncio.Task[list[SearchHit]] | None
    """None once it has finished: a task holds the context, and so the run, in which it was created."""
    started_at: float
    waiters: int = 0
    hits: tuple[SearchHit, ...] = ()


class RunSearchCache:
    """Caches the results of each run. `run_key` returns the run's name, or "" if nothing is cached.

    Concurrent equal queries share one request. Failures, empty results and those of a search that finds more
    soon are not cached.
    """

    def __init__(
        self,
        provider: SearchProvider,
        run_key: Callable[[], str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._provider = provider
        self._run_key = run_key
        self._clock = clock
        self._entries: OrderedDict[_CacheKey, _CacheEntry] = OrderedDict()

    async def describe_outage(self) -> str:
        """See `OutageReporter`."""
        return await find_outage(self._provider)

    async def find_gaps(self) -> SearchGaps:
        """See `GapReporter`."""
        return await find_gaps(self._provider)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`."""
        run = self._run_key()
        if not run:
            return await self._provider.search(query, limit=limit)
        key = (run, " ".join(query.split()).casefold(), limit)
        entry = self._entries.get(key)
        if entry is None or self._clock() - entry.started_at > MAX_CACHE_AGE_SECONDS:
            request = asyncio.create_task(self._provider.search(query, limit=limit))
            entry = self._entries[key] = _CacheEntry(request, self._clock())
        self._entries.move_to_end(key)
        while len(self._entries) > MAX_CACHED_QUERIES:
            self._entries.popitem(last=False)
        if entry.request is None:
            return list(entry.hits)
        return await self._wait(key, entry, entry.request)

    async def _wait(
        self, key: _CacheKey, entry: _CacheEntry, request: asyncio.Task[list[SearchHit]]
    ) -> list[SearchHit]:
        entry.waiters += 1
        try:
            # Others may wait for the request, too: a caller that is cancelled must not cancel it.
            hits = await asyncio.shield(request)
        except BaseException:  # every error passes; an entry of no use must not stay
            entry.waiters -= 1
            await self._abandon(key, entry, request)
            raise
        entry.waiters -= 1
        entry.request, entry.hits = None, tuple(hits)
        if not hits or (await self.find_gaps()).is_passing:
            self._remove(key, entry)
        return list(hits)

    async def _abandon(
        self, key: _CacheKey, entry: _CacheEntry, request: asyncio.Task[list[SearchHit]]
    ) -> None:
        """Remove a request that failed; cancel one that has no waiters left."""
        if request.done():
            self._remove(key, entry)
        elif not entry.waiters:
            self._remove(key, entry)
            request.cancel()
            await asyncio.gather(request, return_exceptions=True)

    def _remove(self, key: _CacheKey, entry: _CacheEntry) -> None:
        if self._entries.get(key) is entry:
            del self._entries[key]
