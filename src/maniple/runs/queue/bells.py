"""The bells of runs, as one connection of this process hears them."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

from maniple.store.postgres.database import PostgresDatabase
from maniple.store.postgres.queue import CHANNEL

OnInput = Callable[[str], None]
"""Called with the id of a run that was sent something; with "" when one must look."""


_LAG = "lag-of-"
"""A bell that a process rings for itself: no run has this id."""


class RunBells:
    """Tells who waits for a run that something of it is new, at a bell and at least once a second."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._on_input: list[OnInput] = []
        self.lag_seconds = 0.0
        """How long the newest bell of `measure_lag` took."""

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

    async def measure_lag(self) -> None:
        """Ring for this process; `lag_seconds` says, when it is heard, how long that took."""
        bell = f"{_LAG}{self._database.process} {time.monotonic()}"
        await self._database.execute("SELECT pg_notify(%s, %s)", (CHANNEL, bell))

    async def _listen(self) -> None:
        async with aclosing(self._database.listen(CHANNEL)) as bells:
            async for bell in bells:
                run_id, _, what = bell.partition(" ")
                if run_id == f"{_LAG}{self._database.process}":
                    self.lag_seconds = time.monotonic() - float(what)
                    continue
                self._ring([run_id] if run_id else [*self._waiting])
                if what == "input" or not run_id:
                    for on_input in self._on_input:
                        on_input(run_id)

    def _ring(self, run_ids: Sequence[str]) -> None:
        for run_id in run_ids:
            if (waiting := self._waiting.pop(run_id, None)) is not None and not waiting.done():
                waiting.set_result(None)
