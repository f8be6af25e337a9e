"""The queue of runs: which runs have jobs, in which order, and what becomes of those of dead processes."""

import asyncio
import re
import time
from dataclasses import replace
from itertools import count

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from maniple.errors import RunTakenOver, StoreError
from maniple.store import InputRecord
from maniple.store.postgres import queue as postgres
from maniple.store.postgres import run_tables
from maniple.store.postgres.database import ProcessTimes
from maniple.store.postgres.queue import FOLLOWED_ROWS, QueueLimits, RunQueue
from tests.store.samples import a_run, a_thread, some_events

pytestmark = pytest.mark.anyio
NO_LIMIT = QueueLimits(1_000)
UNREAD = "INSERT INTO unread_pages (run_id, comparable, url, reason, tried_at) VALUES (%s, 'c', 'u', '', 0)"
FETCH = "SELECT id, args ->> 'run_id' FROM procrastinate_fetch_job_v2('{runs.1}', NULL)"


@pytest.fixture
async def other(open_postgres_again, postgres_store):
    """A second process on the same database."""
    async with open_postgres_again(server=False) as opened:
        yield opened


@pytest.fixture
def queue(postgres_store) -> RunQueue:
    return RunQueue(postgres_store.database)


async def submitted(store, thread_id: str, owner: str = "") -> str:
    thread = replace(a_thread(owner), thread_id=thread_id)
    if await store.threads.get(thread_id, None) is None:
        await store.threads.create(thread)
    added = await RunQueue(store.database).submit(a_run(thread, store.process), NO_LIMIT, rejects=False)
    assert not isinstance(added, str)
    return added.run_id


async def fetched(store) -> tuple[int, str] | None:
    (row,) = await store.database.execute(FETCH)
    return None if row[0] is None else (row[0], row[1])


async def die(store) -> None:
    """Count the process of a store as dead, until its next beat."""
    await store.database.execute("DELETE FROM processes WHERE process = %s", (store.process,))


async def test_only_the_oldest_run_of_a_thread_has_a_job_and_its_end_gives_one_to_the_next(
    postgres_store, queue
):
    first, second = [await submitted(postgres_store, "t") for _ in range(2)]
    job, run_id = await fetched(postgres_store)
    assert (run_id, await fetched(postgres_store)) == (first, None)
    claimed = await queue.claim(first, job)
    await queue.end(claimed.run, {"status": "completed"}, lambda pending: ({}, []))
    await postgres_store.database.execute("SELECT procrastinate_finish_job_v1(%s, 'succeeded', true)", (job,))
    assert (await fetched(postgres_store))[1] == second


async def test_what_waits_behind_an_interrupted_run_waits_until_that_is_answered_and_ends(
    postgres_store, queue
):
    first, _ = [await submitted(postgres_store, "t") for _ in range(2)]
    job, _ = await fetched(postgres_store)
    claimed = await queue.claim(first, job)
    paused = await queue.end(claimed.run, {"status": "interrupted"}, lambda pending: ({}, []))
    await postgres_store.database.execute("SELECT procrastinate_finish_job_v1(%s, 'succeeded', true)", (job,))
    assert await fetched(postgres_store) is None
    answer = InputRecord("i", "resume", "user", "{}", time.time(), "{}")
    await queue.continue_run(paused, answer, NO_LIMIT)
    assert (await queue.continue_run(paused, replace(answer, input_id="j"), NO_LIMIT)) == "changed"
    assert (await fetched(postgres_store))[1] == first


async def test_the_first_run_of_a_second_owner_waits_for_one_run_of_the_first(postgres_store):
    mine = [await submitted(postgres_store, f"a{number}", "ann") for number in range(5)]
    theirs = [await submitted(postgres_store, f"b{number}", "bob") for number in range(2)]
    order = [(await fetched(postgres_store))[1] for _ in range(7)]
    assert [order.index(one) for one in theirs] == [1, 3]
    assert [one for one in order if one in mine] == mine


async def test_a_limit_of_the_owner_or_of_all_refuses_a_run(postgres_store, queue):
    await submitted(postgres_store, "t", "ann")
    run = a_run(await postgres_store.threads.get("t", None), postgres_store.process)
    assert await queue.submit(run, QueueLimits(1), rejects=False) == "full"
    assert await queue.submit(run, QueueLimits(2, 1), rejects=False) == "owner_full"
    assert await queue.submit(run, QueueLimits(2, 2), rejects=True) == "busy"
    assert await postgres_store.runs.get(run.run_id) is None


async def test_a_run_that_two_processes_submit_at_once_is_stored_once(postgres_store, queue, other):
    thread = replace(a_thread(""), thread_id="t")
    await postgres_store.threads.create(thread)
    run = a_run(thread, postgres_store.process)
    queues = [queue, RunQueue(other.database)] * 4
    added = await asyncio.gather(*(one.submit(run, QueueLimits(1), rejects=True) for one in queues))
    assert {one.run_id for one in added} == {run.run_id}
    assert len(await postgres_store.runs.list("")) == 1


async def test_the_job_of_a_dead_process_is_given_back_and_that_process_cannot_end_it(
    postgres_store, queue, other
):
    run_id = await submitted(postgres_store, "t")
    job, _ = await fetched(postgres_store)
    lost = await RunQueue(other.database).claim(run_id, job)
    assert await queue.sweep() == 0
    await die(other)
    assert await queue.sweep() == 1
    assert await fetched(postgres_store) == (job, run_id)
    assert (await queue.claim(run_id, job)).run.process == postgres_store.process
    with pytest.raises(RunTakenOver):
        await RunQueue(other.database).end(lost.run, {"status": "completed"}, lambda pending: ({}, []))
    finish = "SELECT procrastinate_finish_job_v1(%s, 'succeeded', true)"
    with pytest.raises(RunTakenOver):
        await other.database.execute(finish, (job,))
    await postgres_store.database.execute(finish, (job,))


async def test_a_process_that_sleeps_in_a_transaction_holds_its_run_no_longer_than_its_lease(
    postgres_store, queue, open_postgres_again
):
    woken, asleep = asyncio.Event(), asyncio.Event()
    async with open_postgres_again(server=False, times=ProcessTimes(0.5)) as sleeper:
        run_id = await submitted(sleeper, "t")
        job, _ = await fetched(postgres_store)
        await RunQueue(sleeper.database).claim(run_id, job)

        async def write(connection) -> None:
            await connection.execute(UNREAD, (run_id,))
            asleep.set()
            await woken.wait()
            await connection.execute("SELECT 1")

        writing = asyncio.create_task(sleeper.database.write(write))
        await asleep.wait()
        claiming = asyncio.create_task(queue.claim(run_id, job))
        await asyncio.wait({claiming}, timeout=20)
        is_claimed = claiming.done()
        woken.set()
        with pytest.raises(RunTakenOver):
            await writing
        claimed = await claiming
    assert is_claimed
    assert claimed.run.process == postgres_store.process
    assert await postgres_store.database.fetch("SELECT 1 FROM unread_pages") == []


async def test_a_dead_process_that_was_cut_off_while_it_swept_does_not_prevent_the_next_sweep(
    postgres_store, queue, other
):
    run_id = await submitted(postgres_store, "t")
    job, _ = await fetched(postgres_store)
    await RunQueue(other.database).claim(run_id, job)
    await other.runs.start(run_id)
    begun = asyncio.Event()

    async def stay_in_sweep() -> None:
        async with other.database.connection() as connection, connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('sweep', 0))")
            begun.set()
            await connection.execute("SELECT pg_sleep(300)")  # the server is busy with it, not idle

    sweeping = asyncio.create_task(stay_in_sweep())
    await begun.wait()
    await die(other)
    async with asyncio.timeout(20):
        while not await queue.sweep():
            pass
    with pytest.raises(StoreError):
        await sweeping


async def test_a_run_whose_job_was_lost_gets_another_one(postgres_store, queue):
    run_id = await submitted(postgres_store, "t")
    await postgres_store.database.execute("DELETE FROM procrastinate_jobs")
    await queue.sweep()
    assert (await fetched(postgres_store))[1] == run_id


async def test_a_run_that_nobody_drives_is_claimed_to_end_it_and_one_at_work_is_not(postgres_store, queue):
    cancel = InputRecord("c", "cancel", "user", "{}", time.time())
    for number in range(2):
        await submitted(postgres_store, f"t{number}")
    job, run_id = await fetched(postgres_store)
    claimed = await queue.claim(run_id, job)
    assert await queue.claim_to_end(claimed.run, cancel) is None
    (waiting,) = [one for one in await postgres_store.runs.list(None) if one.run_id != run_id]
    assert (await queue.claim_to_end(waiting, cancel)).run_id == waiting.run_id
    assert await fetched(postgres_store) is None


async def test_a_run_of_a_dead_process_counts_as_taken_over_and_one_given_back_does_not(
    postgres_store, queue, other
):
    run_id = await submitted(postgres_store, "t")
    job, _ = await fetched(postgres_store)
    elsewhere = RunQueue(other.database)
    assert not (await elsewhere.claim(run_id, job)).is_taken_over
    await other.runs.start(run_id)
    await elsewhere.give_back(run_id)
    assert not (await queue.claim(run_id, job)).is_taken_over
    assert (await queue.measure()).take_overs == 0
    assert (await elsewhere.claim(run_id, job)).is_taken_over
    await queue.give_back(run_id)  # too late: the other one has it
    assert (await queue.claim(run_id, job)).is_taken_over
    assert (await queue.measure()).take_overs == 2


async def test_each_write_that_a_fence_refuses_is_counted(postgres_store, queue, other):
    run_id = await submitted(postgres_store, "t")
    job, _ = await fetched(postgres_store)
    lost = await RunQueue(other.database).claim(run_id, job)
    await queue.claim(run_id, job)
    assert (await queue.measure()).fenced_writes == 0
    for refused in (
        other.events.append([(run_id, some_events(1, 1))]),
        other.events.append([(run_id, some_events(5, 6))]),
        other.ledger.begin(run_id, "c", "bash_tool", "{}"),
        other.runs.change(run_id, stalls=1),
        RunQueue(other.database).end(lost.run, {"status": "completed"}, lambda pending: ({}, [])),
    ):
        with pytest.raises(RunTakenOver):
            await refused
    assert (await queue.measure()).fenced_writes == 5


async def test_each_process_is_dead_after_a_lease_of_its_own(postgres_store, queue, open_postgres_again):
    run_id = await submitted(postgres_store, "t")
    job, _ = await fetched(postgres_store)
    ago = "UPDATE processes SET beat_at = clock_timestamp() - interval '60 s' WHERE process = %s"
    async with open_postgres_again(server=False, times=ProcessTimes(300)) as patient:
        await RunQueue(patient.database).claim(run_id, job)
        await patient.database.execute(ago, (patient.process,))
        assert await queue.sweep() == 0
        await postgres_store.database.execute(
            "UPDATE processes SET lease_seconds = 0.001 WHERE process = %s", (patient.process,)
        )
        assert await queue.sweep() == 1


async def test_take_overs_at_one_checkpoint_are_counted_from_processes_that_worked(
    postgres_store, queue, other
):
    run_id = await submitted(postgres_store, "t")
    job, _ = await fetched(postgres_store)
    stores, counted, number = [other, postgres_store], list[tuple[bool, int]](), 0

    async def die_after(*, works: bool, moves: bool = False) -> None:
        nonlocal number
        driver, following = stores
        if works:
            number += 1
            await driver.events.append([(run_id, some_events(number, number))])
        if moves:
            await driver.checkpointer.aput(
                {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
            )
        stores.reverse()
        claimed = await RunQueue(following.database).claim(run_id, job)
        counted.append((claimed.has_moved, claimed.repeats))

    await RunQueue(other.database).claim(run_id, job)
    await other.runs.start(run_id)
    await die_after(works=True)
    await die_after(works=False)
    await die_after(works=True)
    await die_after(works=True, moves=True)
    await die_after(works=True)
    assert counted == [(False, 1), (False, 1), (False, 2), (True, 1), (False, 2)]


async def test_who_follows_a_run_gets_each_event_once_and_all_of_them_before_its_end(
    postgres_store, queue, monkeypatch
):
    monkeypatch.setattr(postgres, "_FOLLOW", postgres._FOLLOW.replace(f"LIMIT {FOLLOWED_ROWS}", "LIMIT 2"))
    monkeypatch.setattr(postgres, "FOLLOWED_ROWS", 2)
    run_id = await submitted(postgres_store, "t")
    (waiting,) = await queue.follow([(run_id, 0)])
    assert (waiting.events, waiting.has_more, waiting.is_unfinished) == ([], False, True)
    job, _ = await fetched(postgres_store)
    claimed = await queue.claim(run_id, job)
    stored = some_events(1, 9)
    for first in range(0, 9, 3):
        await postgres_store.events.append([(run_id, stored[first : first + 3])])
    await queue.end(claimed.run, {"status": "completed"}, lambda pending: ({}, []))
    # From the middle of a group.
    asked = [(run_id, 1), ("no such run", 0), (run_id, 6)]
    page, nobody, rest = await queue.follow(asked)
    assert ([one.number for one in page.events], page.has_more) == ([2, 3, 4, 5, 6], True)
    assert (nobody.events, nobody.has_more, nobody.is_unfinished) == ([], False, False)
    assert ([one.number for one in rest.events], rest.has_more, rest.is_unfinished) == (
        [7, 8, 9],
        False,
        False,
    )


@pytest.mark.parametrize("number", [0, 40])
@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (run_tables._INSERT_ALL_EVENTS, "'{a}'::text[], '{1}'::bigint[], '{1}'::bigint[], '{x}'::text[], 1"),
        (postgres._FOLLOW, "'{a}'::text[], '{0}'::bigint[]"),
    ],
)
async def test_the_events_of_some_runs_are_planned_without_a_look_at_all_runs(
    postgres_store, sql, values, number
):
    numbers = count(1)
    numbered = re.sub("%s", lambda _: f"${next(numbers)}", sql)
    for place in range(number):
        run_id = await submitted(postgres_store, f"t{place}")
        await postgres_store.events.append([(run_id, some_events(1, 9))])

    async def explain(connection) -> str:
        await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE asked AS {numbered}")
        plan = await (await connection.execute(f"EXPLAIN EXECUTE asked ({values})")).fetchall()
        await connection.execute("DEALLOCATE asked")
        return "\n".join(line for (line,) in plan)

    plan = await postgres_store.database.repeat(explain)
    assert "Index" in plan
    assert "Seq Scan on" not in plan
