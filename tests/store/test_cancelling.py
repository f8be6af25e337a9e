"""Callers that are cancelled at any moment."""

import asyncio
import random
import time

import anyio
import pytest

from maniple.errors import StoreError
from maniple.store import EventRecord
from tests.store.samples import some_events, stored_run

pytestmark = pytest.mark.anyio


async def test_a_call_cancelled_at_any_moment_is_done_whole_or_not_at_all(store):
    chance = random.Random(5)
    run = await stored_run(store)
    last = 0
    for _ in range(150):
        events = some_events(last + 1, last + 50)
        call = asyncio.create_task(store.events.append([(run.run_id, events)]))
        for _ in range(chance.randrange(4)):
            await asyncio.sleep(0)
        if chance.random() < 0.5:
            await asyncio.wait([call], timeout=chance.random() * 0.002)
        call.cancel()
        await asyncio.wait([call])
        newest = await store.events.last(run.run_id)
        stored = newest.number if newest else 0
        assert stored in (last, last + 50)
        assert call.cancelled() or stored == last + 50
        last = stored
    assert await store.events.read(run.run_id, 0, 100_000) == some_events(1, last)
    assert await store.check() == []


async def test_when_a_cancelled_call_returns_nothing_of_it_is_still_going_on(store):
    run = await stored_run(store)
    huge = [EventRecord(1, "message", '"' + "x" * 30_000_000 + '"')]
    call = asyncio.create_task(store.events.append([(run.run_id, huge)]))
    await asyncio.sleep(0.001)
    call.cancel()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    begun = time.perf_counter()
    await store.threads.touch(run.thread_id)
    assert time.perf_counter() - begun < 20
    assert (await store.events.last(run.run_id)).data == huge[0].data


async def test_a_time_limit_around_a_call_passes_through_and_the_store_stays_usable(store):
    run = await stored_run(store)
    huge = [EventRecord(1, "message", '"' + "x" * 30_000_000 + '"')]
    with anyio.move_on_after(0.002) as scope:
        await store.events.append([(run.run_id, huge)])
    assert scope.cancelled_caught
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.002):
            await store.artifacts.add(run, "big", "text/plain", bytes(30_000_000))
    assert (await store.events.last(run.run_id)).number == 1
    assert len(await store.artifacts.list_by_run(run.run_id)) == 1


async def test_a_call_after_the_end_is_refused_with_words(reopen):
    async with reopen(server=True) as store:
        run = await stored_run(store)
    with pytest.raises(StoreError, match="closed"):
        await store.events.append([(run.run_id, some_events(1, 1))])


async def test_the_loop_goes_on_while_the_disk_works(store, tmp_path):
    run = await stored_run(store)
    source = tmp_path / "big"
    source.write_bytes(bytes(50_000_000))
    turns = 0
    adding = asyncio.create_task(store.artifacts.add(run, "big", "text/plain", source))
    while not adding.done():
        await asyncio.sleep(0)
        turns += 1
    assert (await adding).size == 50_000_000
    assert turns > 20


async def test_an_artifact_whose_adding_was_cancelled_is_there_whole_or_not_at_all(store, tmp_path):
    run = await stored_run(store)
    for steps in range(8):
        adding = asyncio.create_task(store.artifacts.add(run, "big", "text/plain", bytes(2_000_000)))
        for _ in range(steps):
            await asyncio.sleep(0)
        adding.cancel()
        await asyncio.wait([adding])
    kept = {artifact.artifact_id for artifact in await store.artifacts.list_by_run(run.run_id)}
    assert kept == {file.name for file in (tmp_path / "artifacts").glob("[!.]*")}
    assert await store.check() == []
