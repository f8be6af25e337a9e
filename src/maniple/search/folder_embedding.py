"""Embeds the passages of a folder's index in the background, and the questions about them."""

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from maniple.errors import ModelError
from maniple.locks import file_lock
from maniple.search.folder_index import FolderIndex
from maniple.search.passage_vectors import NearPassage, PassageText, VectorCounts, WrongDimensions

AWAY_SECONDS = 60.0
"""After a failure the endpoint is not asked again for so long."""
_REFUSED = ("HTTP 400", "HTTP 413", "HTTP 422")
_BY_WORDS = "Documents were found by their words only"
_log = logging.getLogger(__name__)

T = TypeVar("T")


class Embedder(Protocol):
    """A model that turns texts into vectors. Its text names it and its endpoint."""

    @property
    def name(self) -> str:
        """What the vectors of a text depend on."""
        ...

    @property
    def batch(self) -> int:
        """The passages of one request at most."""
        ...

    @property
    def tokens(self) -> int:
        """The tokens that the endpoint has counted."""
        ...

    @property
    def cost(self) -> float | None:
        """The price of these tokens, if it is known."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the vector of each text; raises `ModelError`."""
        ...

    async def embed_query(self, text: str) -> Sequence[float]:
        """Return the vector of a question; raises `ModelError`."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


class IndexRunner(Protocol):
    """Calls a function with the index in a thread; raises `sqlite3.Error`."""

    def __call__(self, work: Callable[[FolderIndex], T], /) -> Awaitable[T]: ...


class FolderEmbedding:
    """The embeddings of one folder. `clock` gives seconds."""

    def __init__(self, embedder: Embedder, clock: Callable[[], float] = time.monotonic) -> None:
        self._embedder = embedder
        self._clock = clock
        self._away_until = 0.0
        self._has_answered = False
        self.failure = ""
        """Why the last call failed, and what follows from it; "" after one that did not."""

    @property
    def is_away(self) -> bool:
        """Whether the endpoint is not asked, because it has just failed."""
        return self._clock() < self._away_until

    def counts(self, index: FolderIndex) -> VectorCounts:
        """Return how much is embedded. Blocks."""
        return index.vectors(self._embedder.name).counts()

    def rank(self, index: FolderIndex, vector: Sequence[float]) -> list[NearPassage]:
        """Return the documents near a vector, the nearest one first. Blocks; raises `WrongDimensions`."""
        return index.vectors(self._embedder.name).rank(vector)

    async def embed_query(self, query: str) -> Sequence[float] | None:
        """Return the vector of a question; None where the endpoint cannot give it, which `failure` says."""
        if self.is_away or not query:
            return None
        try:
            vector = await self._embedder.embed_query(query)
        except ModelError as error:
            self.fail(error)
            return None
        self._succeed()
        return vector

    async def fill(self, run: IndexRunner, lock: Path) -> None:
        """Embed what is not embedded yet, in batches; each is stored at once.

        A process that finds another one at it waits for it.
        """
        tokens, cost, done, last = self._embedder.tokens, self._embedder.cost or 0.0, 0, 0
        try:
            async with file_lock(lock, lambda: None):
                while batch := await run(partial(self._missing, last)):
                    vectors = await self._embed(batch)
                    await run(partial(self._store, batch, vectors))
                    self._succeed()
                    done, last = done + len(batch), batch[-1].passage
        except (ModelError, WrongDimensions) as error:
            self.fail(error)
        except (sqlite3.Error, OSError) as error:
            self.fail(error)
        if done:
            price = "" if self._embedder.cost is None else f", at a price of {self._embedder.cost - cost:.4f}"
            spent = self._embedder.tokens - tokens
            _log.info("%s embedded %d passages with %d tokens%s.", self._embedder, done, spent, price)

    def fail(self, error: Exception) -> None:
        """Note a failure; the endpoint is not asked for a while."""
        self._away_until = self._clock() + AWAY_SECONDS
        before = self.failure
        reason = str(error).rstrip(".")
        named = reason if isinstance(error, ModelError) else f"{self._embedder}: {reason}"
        self.failure = f"{_BY_WORDS}, not by their meaning: {named}."
        if self.failure != before:
            _log.warning("%s", self.failure)

    async def aclose(self) -> None:
        """Close the connections to the endpoint."""
        await self._embedder.aclose()

    def _succeed(self) -> None:
        self._has_answered = True
        self._away_until = 0.0
        self.failure = ""

    def _missing(self, after: int, index: FolderIndex) -> list[PassageText]:
        return index.vectors(self._embedder.name).missing(after, self._embedder.batch)

    def _store(
        self, batch: Sequence[PassageText], vectors: Sequence[Sequence[float] | None], index: FolderIndex
    ) -> None:
        index.put_vectors(self._embedder.name, batch, vectors)

    async def _embed(self, batch: Sequence[PassageText]) -> list[Sequence[float] | None]:
        """Return the vectors; None for a passage that is refused by itself, though others are accepted."""
        try:
            return list(await self._embedder.embed_passages([one.text for one in batch]))
        except ModelError as error:
            if not error.refusal.startswith(_REFUSED):
                raise
            if len(batch) == 1:
                if not self._has_answered:
                    # Else the request itself is refused, such as for the name of the model.
                    await self._embedder.embed_passages(["text"])
                return [None]
        middle = len(batch) // 2
        return [*await self._embed(batch[:middle]), *await self._embed(batch[middle:])]
