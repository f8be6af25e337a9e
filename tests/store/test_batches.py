"""Batches and their items, in every database."""

from dataclasses import replace

import pytest

from maniple.store import Batch, BatchItem
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio
BATCH = Batch("b1", "ann", "server", "Sums", "{}", "{}", "{}", 4, 1, 5.0)


async def test_a_batch_is_stored_with_all_of_its_items(store):
    table = store.batches
    await table.add(BATCH, [BatchItem(n, f"task {n} \ud800?") for n in range(1, 1_202)])
    assert await table.get("b1", "ann") == BATCH
    assert await table.get("b1", "bob") is None
    assert await table.list("ann") == [BATCH] and await table.list("bob") == []
    assert [len(await table.list_items("b1", after=n)) for n in (0, 1_000, 1_201)] == [500, 201, 0]
    assert (await table.total("b1")).counts == {"waiting": 1_201}
    assert not await table.delete("b1", "bob") and await table.delete("b1", "ann")
    assert await table.list_items("b1") == []
    assert (await table.total("b1")).counts == {}


async def test_an_item_changes_from_its_state_only_and_is_summed(store):
    table = store.batches
    await table.add(BATCH, [BatchItem(1, "a"), BatchItem(2, "b")])
    started = BatchItem(1, "a", "started", 1, "r1")
    assert await table.change_item("b1", started, "waiting")
    assert not await table.change_item("b1", started, "waiting")
    ended = replace(started, state="accepted", tokens=7, model_calls=2, seconds=1.5, cost=0.25)
    assert await table.change_item("b1", ended, "started")
    await table.change_all("b1", "waiting", "left_out", "No more.")
    totals = await table.total("b1")
    assert totals.counts == {"accepted": 1, "left_out": 1}
    assert (totals.tokens, totals.model_calls, totals.seconds, totals.cost) == (7, 2, 1.5, 0.25)
    assert await table.list_items("b1", "left_out") == [BatchItem(2, "b", "left_out", reason="No more.")]


async def test_started_items_are_listed_with_the_status_of_their_runs(store):
    run, table = await stored_run(store, status="running"), store.batches
    items = [BatchItem(1, "a"), BatchItem(2, "b", "started", 1, run.run_id, model_calls=3)]
    await table.add(BATCH, [*items, BatchItem(3, "c", "started", 1, "no run yet")])
    listed = [(item.number, item.model_calls, status) for item, status in await table.list_started("b1")]
    assert listed == [(2, 3, "running"), (3, 0, None)]
    assert [item.number for item, _ in await table.list_started("b1", 1)] == [2]


async def test_a_program_finds_its_open_batches(store):
    table = store.batches
    await table.add(BATCH, [BatchItem(1, "a")])
    await table.add(replace(BATCH, batch_id="b2", driver="terminal"), [BatchItem(1, "a")])
    assert [one.batch_id for one in await table.list_open("server")] == ["b1"]
    await table.set_open("b1", is_open=False)
    assert await table.list_open("server") == []


async def test_a_batch_is_found_by_the_beginning_of_its_id_and_gets_new_limits(store):
    table = store.batches
    for name, owner in (("b1", "ann"), ("b2", "ann"), ("b3", "bob"), ("%", "ann")):
        await table.add(replace(BATCH, batch_id=name, owner=owner), [BatchItem(1, "a")])
    for beginning, names in (("b", ["b2", "b1"]), ("b1", ["b1"]), ("%", ["%"]), ("B1", []), ("b11", [])):
        assert [one.batch_id for one in await table.list_named("ann", beginning)] == names
    await table.set_limits("b1", '{"tokens": 5}', 7)
    changed = await table.get("b1", "ann")
    assert (changed.budget, changed.parallel) == ('{"tokens": 5}', 7)
    assert await table.get("b2", "ann") == replace(BATCH, batch_id="b2")
