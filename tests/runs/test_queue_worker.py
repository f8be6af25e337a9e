"""A worker that others took for dead leaves."""

import time
from importlib.util import find_spec

import pytest

from maniple.runs import EngineConfig
from tests.openai_server import SIMPLE
from tests.runs.workers import until
from tests.team import scripted_team

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(find_spec("procrastinate") is None, reason="needs maniple[postgres]"),
]


async def test_a_worker_that_wakes_after_its_lease_leaves_although_it_beats_at_once(
    open_postgres_again, monkeypatch
):
    from maniple.runs.queue.opening import open_queue
    from maniple.runs.queue.worker import REFUSED_STATUS, RunWorker

    statuses = list[int]()

    async def has_left() -> bool:
        return bool(statuses)

    monkeypatch.setattr(RunWorker.__init__, "__defaults__", (statuses.append,))
    async with (
        open_postgres_again(server=False) as store,
        scripted_team(SIMPLE, checkpointer=store.checkpointer) as it,
        open_queue(it.team, store, config=EngineConfig(drain_seconds=0.1)),
    ):
        store.database.contact.heard_at = time.monotonic() - 2 * store.database.lease_seconds
        store.database.contact.hear(time.monotonic())
        await until(has_left)
    assert statuses == [REFUSED_STATUS]
