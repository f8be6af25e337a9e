"""One fetch of a model file."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from maniple.llms.embedded.files import ModelFile
from maniple.llms.embedded.progress import Progress

_TICK_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class FetchJob:
    """What is fetched, the file that it grows in, and who is told.

    `part` always holds the first bytes of the model, so its length is the whole state of the fetch.
    """

    model: ModelFile
    part: Path
    progress: Progress

    def present_bytes(self) -> int:
        """How much is there; asks the disk."""
        return self.part.stat().st_size if self.part.exists() else 0

    def tell(self, text: str, done: int) -> None:
        """Say `text` and that `done` bytes of the model are there."""
        self.progress.step(text, done, self.model.size)


@asynccontextmanager
async def ticking(say: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Await `say` now and twice a second until the block ends."""

    async def repeat() -> None:
        while True:
            await say()
            await asyncio.sleep(_TICK_SECONDS)

    task = asyncio.create_task(repeat())
    try:
        yield
    finally:
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(outcome, Exception):
        raise outcome
