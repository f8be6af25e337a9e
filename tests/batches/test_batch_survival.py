"""Processes that are killed at random do each item of a batch once, and report the end of each run."""

import pytest

from tests.batches.surviving import on_postgres, on_sqlite, survive

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(500)]
ITEMS, KILLS = 400, 8
PARALLEL = 16
SECONDS = 450


async def test_each_item_is_one_run_under_kills_on_sqlite(tmp_path):
    async with on_sqlite(tmp_path) as victims:
        done = await survive(victims, ITEMS, KILLS, PARALLEL, SECONDS)
    done.require_each_once()
    print(f"{done.count} items, {done.kills} kills: {done.seconds:.0f} s")


async def test_each_item_is_one_run_under_kills_on_postgres(postgres_url, tmp_path):
    async with on_postgres(postgres_url, tmp_path) as victims:
        done = await survive(victims, ITEMS, KILLS, PARALLEL, SECONDS)
    done.require_each_once()
    print(f"{done.count} items, {done.kills} kills: {done.seconds:.0f} s")
