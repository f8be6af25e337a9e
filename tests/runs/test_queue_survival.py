"""Workers that are killed lose no run, and nothing that is on record is done twice."""

import asyncio
import json
import random
import time
from collections.abc import Mapping

import httpx
import pytest

from maniple.runs.queue.worker import REFUSED_STATUS
from tests.grammar import Client
from tests.openai_server import call, reply, serving
from tests.runs.killing import open_site, together
from tests.runs.workers import (
    CALLS,
    DRIVEN,
    Fetch,
    begin,
    cluster_of,
    connected,
    describe_times,
    read_events,
    script,
    until,
    watch_driver,
)
from tests.sizes import sizes

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(480)]
SEED = 20261128
ON_RECORD = "SELECT arguments FROM tool_calls WHERE result IS NOT NULL"
DONE = (
    "SELECT run_id, count(result) FROM runs LEFT JOIN tool_calls USING (run_id) "
    "WHERE run_id = ANY(%s) AND runs.ended_at IS NULL GROUP BY run_id"
)
"""How many calls each run that has not ended has done; one that was cut off is in the queue for a moment."""


@pytest.mark.parametrize(("runs", "kills"), sizes((12, 2), (48, 6)))
async def test_a_killed_worker_loses_no_run(postgres_url, tmp_path, runs, kills):
    dice, gaps = random.Random(SEED), list[float]()
    moments = sorted(dice.sample(range(runs * CALLS // 10, runs * CALLS * 3 // 4), kills))
    visits: dict[str, int] = {}
    async with (
        open_site() as site,
        connected(postgres_url) as fetch,
    ):
        with serving(script(site.url)) as model:
            # One that gets no time of a busy machine leaves: two have room for all runs, and a long lease
            # keeps it from cutting a run off thrice in one call together with those that are killed.
            more = {"places": runs // 2, "MANIPLE_RUNS__LEASE_SECONDS": "10"}
            cluster = cluster_of(postgres_url, model.base_url, tmp_path, **more)
            async with cluster as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=300) as client:
                    run_ids = await together(begin(client, f"r{n}") for n in range(runs))
                    following = [asyncio.create_task(read_events(client, one)) for one in run_ids]
                    for moment in moments:
                        await site.visited(moment)
                        victim = dice.choice(workers.running)
                        driven = [one for (one,) in await fetch(DRIVEN, victim.pid)]
                        done = dict(await fetch(DONE, driven))
                        await workers.kill(victim)
                        killed = time.monotonic()
                        for (arguments,) in await fetch(ON_RECORD):
                            path = "/" + json.loads(arguments)["url"].split("/", 3)[3]
                            visits.setdefault(path, site.hits[path])
                        await workers.add()
                        gaps += await watch_driver(fetch, driven, victim.pid, killed)
                        await _progressed(fetch, done)
                    told = await asyncio.gather(*following)
                statuses = await workers.stop()
        ended = await fetch("SELECT status, count(*) FROM runs GROUP BY status")
        left = await fetch("SELECT status::text, attempts FROM procrastinate_jobs")
    # A job that is left says "drive this run", which has ended: whoever takes it finds nothing to do.
    print(f"taken over: {describe_times(gaps)}; jobs left: {left}")
    for number, frames in enumerate(told):
        read = Client().read(frames)
        assert read.status == "completed", (number, frames[-4:])
        assert f"the report of r{number}" in frames[-1][1]["messages"][-1]["content"]
    assert ended == [("completed", runs)]
    assert len(site.hits) == runs * CALLS
    repeated = {path: hits for path, hits in visits.items() if site.hits[path] > hits}
    assert repeated == {}, "recorded calls were run again"
    # One that gets no time of a busy machine leaves as if it had slept.
    assert set(statuses) <= {0, REFUSED_STATUS}


async def _progressed(fetch: Fetch, done: Mapping[str, int]) -> None:
    """Wait until each run has done a further call: whoever is cut off thrice in one is given up."""

    async def have_all() -> bool:
        now = await fetch(DONE, [*done])
        return all(count > done[run_id] or count == CALLS for run_id, count in now)

    await until(have_all)


@pytest.mark.parametrize("is_poison", [True, False], ids=["poison", "other_calls"])
async def test_a_model_call_that_ends_each_worker_ends_its_run_at_the_third_one(
    postgres_url, tmp_path, is_poison
):
    async with open_site() as site, connected(postgres_url) as fetch:
        hang, look = {"hang": True}, call("crawl_tool", url=f"{site.url}/page")
        replies = [hang] * 3 if is_poison else [hang, look, hang, look, hang]
        deaths = [1, 2, 3] if is_poison else [1, 3, 5]
        answers = {**script(site.url), "by_history": False, "researcher": [*replies, reply("found")]}
        lease = {"MANIPLE_RUNS__LEASE_SECONDS": "3"}
        with serving(answers) as model:
            async with cluster_of(postgres_url, model.base_url, tmp_path, count=1, **lease) as (api, workers):
                async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=300) as client:
                    run_id = await begin(client, "r")
                    for number, calls in enumerate(deaths, 1):
                        await asyncio.to_thread(
                            model.wait_for, lambda stats, n=calls: stats["by_role"].get("researcher") == n
                        )
                        await _agents_begun(fetch, number)
                        await workers.kill(workers.running[0])
                        await workers.add()
                    read = Client().read(await read_events(client, run_id))
                    run = (await client.get(f"/api/runs/{run_id}")).json()
    if not is_poison:
        assert (run["status"], read.status) == ("completed", "completed")
        return
    assert (run["status"], read.status) == ("failed", "failed")
    assert run["error"]["code"] == "recovered_too_often"


async def _agents_begun(fetch: Fetch, times: int) -> None:
    """Wait until the researcher has begun so many times, as the stored events show."""
    sql = r"SELECT count(*) FROM events, regexp_matches(body, E'start_of_agent [^\n]*researcher', 'g')"
    async with asyncio.timeout(60):
        ((found,),) = await fetch(sql)
        while found < times:
            await asyncio.sleep(0.02)
            ((found,),) = await fetch(sql)
