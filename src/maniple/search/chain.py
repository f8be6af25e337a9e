"""Several search providers as one: who fails or finds nothing is followed by the next."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from maniple.errors import SearchError
from maniple.search.hits import told_by, unique
from maniple.search.merge import merged
from maniple.search.provider import ProviderFailure, SearchHit, SearchProvider
from maniple.search.rests import Rests

_REASON_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, and why those who did not answer did not."""

    hits: list[SearchHit]
    failures: Mapping[str, str] = field(default_factory=dict)


class SearchChain:
    """Asks `providers`, by their names, in their order, or all at once when `merges`; who failed rests."""

    def __init__(
        self,
        providers: Mapping[str, SearchProvider],
        *,
        merges: bool = False,
        timeout_seconds: float = 10,
        total_seconds: float = 30,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._providers = providers
        self._merges = merges
        self._timeout_seconds = timeout_seconds
        self._total_seconds = total_seconds
        self._rests = Rests(clock)

    @property
    def names(self) -> Sequence[str]:
        """Who is asked, in this order."""
        return tuple(self._providers)

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        """See `SearchProvider.search`; each hit names its `source`."""
        return (await self.ask(query, limit=limit)).hits

    async def ask(self, query: str, *, limit: int) -> Answer:
        """Search, and also tell who failed.

        Raises:
            SearchError: nobody answered; the words say why, of each.
        """
        if not query.strip():
            raise SearchError("The search query is empty; say what to look for.")
        awake, failures = self._rests.awake(self._providers), self._rests.reasons()
        answers = await (self._all if self._merges else self._first)(awake, query, limit, failures)
        if not answers:
            raise SearchError(_nobody(failures))
        hits = merged(answers, limit) if self._merges else answers[-1]
        return Answer(hits, failures)

    async def _first(
        self, names: Iterable[str], query: str, limit: int, failures: dict[str, str]
    ) -> list[list[SearchHit]]:
        """Return what each said until one found something; fill `failures`."""
        answers = []
        left = list(names)
        try:
            async with asyncio.timeout(self._total_seconds):
                while left and not (answers and answers[-1]):
                    try:
                        answers.append(await self._asked(left[0], query, limit))
                        failures.pop(left[0], None)
                    except SearchError as error:
                        failures[left[0]] = str(error)
                    del left[0]
        except TimeoutError:
            failures.update(dict.fromkeys(left, "there was no time left for it"))
        return answers

    async def _all(
        self, names: Iterable[str], query: str, limit: int, failures: dict[str, str]
    ) -> list[list[SearchHit]]:
        """Return what each said, as far as it came in time; fill `failures`."""
        tasks = {name: asyncio.create_task(self._asked(name, query, limit)) for name in names}
        try:
            if tasks:
                await asyncio.wait(tasks.values(), timeout=self._total_seconds)
        finally:
            for task in tasks.values():
                task.cancel()
            ended = await asyncio.gather(*tasks.values(), return_exceptions=True)
        answers = []
        for name, end in zip(tasks, ended, strict=True):
            if isinstance(end, SearchError):
                failures[name] = str(end)
            elif isinstance(end, asyncio.CancelledError):
                failures[name] = "it took too long to answer"
            elif isinstance(end, BaseException):
                raise end
            else:
                failures.pop(name, None)
                answers.append(end)
        return answers

    async def _asked(self, name: str, query: str, limit: int) -> list[SearchHit]:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                hits = await self._providers[name].search(query, limit=limit)
        except TimeoutError as error:
            failure = ProviderFailure(f"it took longer than {self._timeout_seconds:g} s to answer")
            self._rests.begin(name, failure)
            raise failure from error
        except ProviderFailure as failure:
            self._rests.begin(name, failure)
            raise
        self._rests.end(name)
        return told_by(unique(hits)[:limit], name)


def _nobody(failures: Mapping[str, str]) -> str:
    if len(failures) == 1:
        [words] = failures.values()
        return f"{words.rstrip('.')}. Search again later or go on without."
    told = "; ".join(f"{name}: {words.rstrip('.')[:_REASON_CHARACTERS]}" for name, words in failures.items())
    return f"No search provider answered. {told}. Search again later or go on without."
