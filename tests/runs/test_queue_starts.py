"""How soon runs begin, who is next, and how soon what a run does is seen on another node."""

import asyncio
import itertools
import time
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import EngineConfig, RunLimits, RunRequest
from maniple.store.rows import split_batch
from tests.grammar import Client
from tests.openai_server import reply, serving
from tests.runs.killing import together
from tests.runs.workers import begin, cluster_of, connected, describe_times, open_api, read_events
from tests.team import scripted_team

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(240)]
SHORT = {"by_history": True, "coordinator": [reply("Hello.")]}
STARTS = 12
BESIDE = 32
PLACES = 4
WATCHED = 24
"""Runs whose events are followed on another node; on two cores a third of the 64 of the design."""


async def read_runs(client: httpx.AsyncClient, run_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return runs once they have ended."""
    for run_id in run_ids:
        assert Client().read(await read_events(client, run_id)).status == "completed"
    return [(await client.get(f"/api/runs/{one}")).json() for one in run_ids]


def starts_of(runs: Sequence[dict[str, Any]]) -> list[float]:
    return [one["started_at"] - one["created_at"] for one in runs]


async def test_runs_begin_beside_others_and_those_of_a_thread_one_after_another(postgres_url, tmp_path):
    with serving(SHORT) as model:
        async with cluster_of(postgres_url, model.base_url, tmp_path) as (api, _):
            async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=120) as client:
                idle = list[dict[str, Any]]()
                for number in range(STARTS):
                    idle += await read_runs(client, [await begin(client, f"i{number}")])
                first = await begin(client, "t0")
                thread = (await client.get(f"/api/runs/{first}")).json()["thread_id"]
                queued = [await begin(client, f"t{number}", thread) for number in range(1, STARTS)]
                behind = await read_runs(client, [first, *queued])
                model.reset({"coordinator": [reply("Hello.", hang=True, times=BESIDE), reply("Hello.")]})
                hanging = await together(begin(client, "h") for _ in range(BESIDE))
                await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == BESIDE)
                beside = list[dict[str, Any]]()
                for _ in range(STARTS):
                    beside += await read_runs(client, [await begin(client, "h")])
                still_hanging = model.stats["active"]
                await asyncio.to_thread(model.release)
                await read_runs(client, hanging)
    gaps = [after["started_at"] - before["ended_at"] for before, after in itertools.pairwise(behind)]
    print(f"start, idle: {describe_times(starts_of(idle))}")
    print(f"start beside {BESIDE}: {describe_times(starts_of(beside))}")
    print(f"next run of a thread: {describe_times(gaps)}")
    assert still_hanging == BESIDE
    assert [one["run_id"] for one in behind] == [first, *queued]
    assert all(gap >= 0 for gap in gaps), "two runs of a thread were at work"


async def test_events_are_seen_on_another_node_without_a_gap(postgres_url, tmp_path):
    words = [f"word{number} " for number in range(40)]
    script = {"coordinator": [{"chunks": words, "delay_seconds": 0.05}]}
    delays = list[float]()

    async def follow(client: httpx.AsyncClient, run_id: str) -> list[tuple[int, float]]:
        """Return the numbers of the events, and when they came."""
        seen = list[tuple[int, float]]()
        async with client.stream("GET", f"/api/runs/{run_id}/events?view=live") as response:
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    seen.append((int(line[4:]), time.time()))
        return seen

    with serving(script) as model:
        async with cluster_of(postgres_url, model.base_url, tmp_path) as (api, workers):
            async with (
                open_api(workers) as other,
                httpx.AsyncClient(base_url=api, trust_env=False, timeout=120) as client,
                httpx.AsyncClient(base_url=other, trust_env=False, timeout=120) as elsewhere,
                connected(postgres_url) as fetch,
            ):
                run_ids = await together(begin(client, f"r{number}") for number in range(WATCHED))
                seen = await together(follow(elsewhere, one) for one in run_ids)
                for run_id, events in zip(run_ids, seen, strict=True):
                    groups = await fetch(
                        "SELECT first, body FROM events WHERE run_id = %s ORDER BY first", run_id
                    )
                    stored = [one for first, body in groups for one in split_batch(run_id, first, body)]
                    assert [number for number, _ in events] == [one.number for one in stored]
                    delays += [came - stored[number - 1].at for number, came in events]
    print(f"{WATCHED} runs, {len(delays)} events, seen on another node: {describe_times(delays)}")


async def test_the_first_run_of_an_owner_does_not_wait_for_all_runs_of_another(open_postgres_again):
    from maniple.runs.queue.opening import open_queue

    config = EngineConfig(drain_seconds=0.1, working=PLACES, limits=RunLimits(100, 100))
    async with (
        open_postgres_again(server=False) as store,
        open_postgres_again(server=False) as other,
        scripted_team(
            {"coordinator": [reply("Hello.", delay_seconds=0.05)]}, checkpointer=store.checkpointer
        ) as it,
        scripted_team({}, checkpointer=other.checkpointer, server=it.server) as elsewhere,
        open_queue(it.team, store, role="api", config=config) as asked,
    ):
        mine = [await asked.engine.submit(RunRequest([HumanMessage("a")], owner="ann")) for _ in range(20)]
        theirs = [await asked.engine.submit(RunRequest([HumanMessage("b")], owner="bob")) for _ in range(3)]
        async with open_queue(elsewhere.team, other, role="worker", config=config):
            for one in (*mine, *theirs):
                async with asyncio.timeout(60):
                    [page async for page in asked.engine.events(one.run.run_id)]
        runs = [await asked.engine.status(one.run.run_id, one.run.owner) for one in (*mine, *theirs)]
    order = [one.owner for one in sorted(runs, key=lambda one: one.started_at or 0)]
    places = [place for place, owner in enumerate(order, 1) if owner == "bob"]
    print(f"bob's runs behind ann's 20, {PLACES} places: {places}")
    assert places[0] <= PLACES + 1
    assert places[-1] <= 3 * (PLACES + 1)
    ann = [one for one in runs if one.owner == "ann"]
    assert {one.status for one in runs} == {"completed"}
    assert len(ann) == 20
