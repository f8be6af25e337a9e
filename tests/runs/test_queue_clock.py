"""What clocks, lost answers and several schedulers do to the runs of a queue: nothing."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from maniple.runs import EngineConfig
from tests.grammar import Client
from tests.openai_server import BRIEF, OpenAIServer, serving
from tests.runs.killing import open_site, together
from tests.runs.test_recovery import events_of
from tests.runs.workers import (
    CALLS,
    begin,
    cluster_of,
    connected,
    describe_times,
    read_events,
    script,
    until,
)
from tests.schedules.test_scheduler import MINUTE, Scene
from tests.team import scripted_team

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(240)]
SKEWED = Path(__file__).with_name("skewed_worker.py")
FETCH = "SELECT id FROM procrastinate_fetch_job_v2('{runs.1}', NULL)"
FETCHES = 8
NODES, TICKS, ENDS = 3, 60, 3
NEWEST = (
    "SELECT checkpoint_id, (SELECT max(checkpoint_id) FROM checkpoints beside "
    "WHERE beside.checkpoint_ns = checkpoints.checkpoint_ns) FROM checkpoints ORDER BY position DESC LIMIT 1"
)
"""The id of the newest checkpoint, and the greatest one beside it."""


async def test_a_run_goes_on_from_what_was_stored_last_whatever_the_clocks_of_its_workers_say(
    postgres_url, tmp_path
):
    newest = list[tuple[str, str]]()
    async with open_site() as site, connected(postgres_url) as fetch:
        replies = script(site.url)
        for turn in (2, 4, 6):
            replies["researcher"][turn]["hang"] = True
        with serving(replies) as model:

            async def asked(calls: int) -> None:
                await asyncio.to_thread(
                    model.wait_for, lambda stats: stats["by_role"].get("researcher") == calls
                )

            opening = cluster_of(postgres_url, model.base_url, tmp_path, count=0, program=SKEWED)
            async with opening as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=100) as client:
                    run_id = await begin(client, "r")
                    # Each asks again what the one before died in, and goes on to where the model waits next.
                    for skew, first, last in (("60", 3, 5), ("-60", 6, 8)):
                        worker = await workers.add(SKEW_SECONDS=skew)
                        await asked(first)
                        await asyncio.to_thread(model.release)
                        await asked(last)
                        newest += await fetch(NEWEST)
                        await workers.kill(worker)
                    await workers.add(SKEW_SECONDS="0")
                    await asked(9)
                    await asyncio.to_thread(model.release)
                    frames = await read_events(client, run_id)
    assert Client().read(frames).status == "completed"
    assert (len(site.hits), site.hits.total()) == (CALLS, CALLS), "a call was made again"
    (_, (last, greatest)) = newest
    assert last < greatest, "the clocks did not differ"


async def test_jobs_whose_fetch_was_lost_come_back(postgres_url, tmp_path):
    async with open_site() as site, connected(postgres_url) as fetch:
        with serving(script(site.url)) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path, count=0) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=100) as client:
                    run_ids = await together(begin(client, f"r{number}") for number in range(FETCHES))
                    # What a worker asks, whose connection is cut after the commit.
                    lost = [(await fetch(FETCH))[0][0] for _ in run_ids]
                    begun = time.monotonic()
                    await workers.add()
                    jobs = "SELECT 1 WHERE NOT EXISTS (SELECT FROM runs WHERE status = 'queued')"
                    await until(lambda: fetch(jobs))
                    took = time.monotonic() - begun
                    frames = await together(read_events(client, one) for one in run_ids)
    print(f"{FETCHES} lost fetches came back: {describe_times([took])}")
    assert None not in lost
    assert {Client().read(one).status for one in frames} == {"completed"}
    assert (len(site.hits), site.hits.total()) == (FETCHES * CALLS, FETCHES * CALLS)


@asynccontextmanager
async def open_node(reopen: Any, server: OpenAIServer) -> AsyncIterator[Scene]:
    """Open a process in effect: it looks for what is due, accepts runs and drives them."""
    from maniple.runs.queue.opening import open_queue

    async with (
        reopen(server=False) as store,
        scripted_team({}, checkpointer=store.checkpointer, server=server) as it,
        open_queue(it.team, store, config=EngineConfig(drain_seconds=0)) as opened,
    ):
        yield Scene(store, opened.engine)  # type: ignore[arg-type]


async def test_each_tick_of_a_schedule_starts_one_run_over_all_nodes_of_which_some_end(open_postgres_again):
    with serving({**BRIEF, "by_history": True}) as model:
        async with AsyncExitStack() as stack:
            nodes = [
                await stack.enter_async_context(open_node(open_postgres_again, model)) for _ in range(NODES)
            ]
            schedule_id = await nodes[0].add(overlap="queue")
            for minute in range(1, TICKS + 1):
                looking = [asyncio.create_task(one.at(minute * MINUTE)) for one in nodes]
                if minute % (TICKS // ENDS) == 0:
                    await asyncio.sleep(0)
                    looking[minute % NODES].cancel()  # it ends somewhere between two of its writes
                await asyncio.gather(*looking, return_exceptions=True)
                await nodes[0].at(minute * MINUTE)
                (tick,) = await nodes[0].store.schedules.list_ticks(schedule_id, 1)
                await events_of(nodes[0].engine, tick.run_id)
            states = await nodes[0].states(schedule_id)
            runs = await nodes[0].store.runs.list("", 2 * TICKS)
    assert states == [(minute * MINUTE, "started") for minute in range(1, TICKS + 1)]
    assert Counter(one.status for one in runs) == {"completed": TICKS}
