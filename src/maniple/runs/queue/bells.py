"""The bells of runs, as one connection of this process hears them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

from maniple.store.postgres.database import PostgresDatabase
from maniple.store.postgres.queue import CHANNEL

OnInput = Callable[[str], None]
"""Called with the id of a run that was sent something; with "" when one must look."""


class RunBells:
    """Tells who waits for a run that something of it is new, at a bell and at least once a second."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._on_input: list[OnInput] = []

    def rung(self, run_id: str) -> asyncio.Future[None]:
        """Return a future that ends at the next bell of a run; shared: nobody may cancel it."""
        if run_id not in self._waiting:
            self._waiting[run_id] = asyncio.get_running_loop().create_future()
        return self._waiting[run_id]

    def hear_inputs(self, on_input: OnInput) -> None:
        """Call `on_input` whenever a run was sent something."""
        self._on_input.append(on_input)

    @asynccontextmanager
    async def listening(self) -> AsyncGenerator[None]:
        """Hear bells inside of the context."""
        task = asyncio.create_task(self._listen(), name="run bells")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _listen(self) -> None:
        async with aclosing(self._database.listen(CHANNEL)) as bells:
            async for bell in bells:
                run_id, _, what = bell.partition(" ")
                self._ring([run_id] if run_id else [*self._waiting])
                if what == "input" or not run_id:
                    for on_input in self._on_input:
                        on_input(run_id)

    def _ring(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            if (waiting := self._waiting.pop(run_id, None)) is not None and not waiting.done():
                waiting.set_result(None)
