"""How often a run on the queue goes to the database."""

import asyncio
from collections.abc import AsyncGenerator
from importlib.util import find_spec
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import EngineConfig, RunRequest
from tests.openai_server import SIMPLE
from tests.team import scripted_team

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("procrastinate") is None, reason="needs maniple[postgres]"),
]
RUNS = 4
MAX_WAYS = 105
"""Of a run of four model calls; with a transaction for each value stored there were 260."""
WITHOUT_RUNS = (
    "procrastinate_fetch_job",
    "processes",
    "'sweep'",
    "WITH dead",
    "DISTINCT thread_id",
    "asked.place",
)
"""What is asked each second, and by those who follow."""


@pytest.fixture
def ways(monkeypatch) -> list[str]:
    """The statements that are sent to the database, two more for each transaction around some."""
    from psycopg import AsyncConnection, AsyncCursor

    sent: list[str] = []
    originals = AsyncCursor.execute, AsyncCursor.executemany, AsyncConnection.transaction

    def note(query: str | bytes) -> None:
        text = query.decode() if isinstance(query, bytes) else query
        if not any(one in text for one in WITHOUT_RUNS):
            sent.append(text)

    async def execute(self: AsyncCursor, query: Any, *arguments: Any, **options: Any) -> AsyncCursor:
        note(query)
        return await originals[0](self, query, *arguments, **options)

    async def execute_many(self: AsyncCursor, query: Any, *arguments: Any, **options: Any) -> None:
        note(query)
        await originals[1](self, query, *arguments, **options)

    def transaction(self: AsyncConnection, *arguments: Any, **options: Any) -> AsyncGenerator[Any]:
        sent.extend(("BEGIN", "COMMIT"))
        return originals[2](self, *arguments, **options)

    monkeypatch.setattr(AsyncCursor, "execute", execute)
    monkeypatch.setattr(AsyncCursor, "executemany", execute_many)
    monkeypatch.setattr(AsyncConnection, "transaction", transaction)
    return sent


async def test_a_run_goes_to_the_database_a_limited_number_of_times(open_postgres_again, ways):
    from maniple.runs.queue.opening import open_queue

    async def ask(engine) -> None:
        accepted = await engine.submit(RunRequest([HumanMessage("1+3=?")]))
        async with asyncio.timeout(60):
            async for _ in engine.events(accepted.run.run_id):
                pass
        assert (await engine.status(accepted.run.run_id)).status == "completed"

    async with (
        open_postgres_again(server=False) as store,
        scripted_team(SIMPLE | {"by_history": True}, checkpointer=store.checkpointer) as it,
        open_queue(it.team, store, config=EngineConfig(drain_seconds=0.1)) as opened,
    ):
        await ask(opened.engine)
        ways.clear()
        for _ in range(RUNS):
            await ask(opened.engine)
        a_run = len(ways) / RUNS
    print(f"{a_run:.0f} statements, BEGIN and COMMIT among them, a run")
    assert a_run <= MAX_WAYS
