"""Search providers with given results."""

import asyncio
from dataclasses import dataclass, field

from maniple.search.provider import SearchHit


def pages(*names: str) -> list[SearchHit]:
    return [SearchHit(name.upper(), f"https://{name}.test/", f"About {name}.") for name in names]


@dataclass
class FakeProvider:
    """Finds `hits`, or raises `failure`, once it may `answer`."""

    hits: list[SearchHit] = field(default_factory=list)
    failure: Exception | None = None
    answers: bool = True
    asked: list[str] = field(default_factory=list)
    left: int = 0
    """How many searches were cancelled."""

    def __post_init__(self) -> None:
        self.gate = asyncio.Event()
        self.reached = asyncio.Event()
        if self.answers:
            self.gate.set()

    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        self.asked.append(query)
        self.reached.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.left += 1
            raise
        if self.failure is not None:
            raise self.failure
        return self.hits[:limit]
