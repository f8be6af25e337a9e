"""What every store does."""

import time
from dataclasses import replace

import pytest

from maniple.errors import StoreError
from maniple.store import EventRecord, KeyLimits, RunUsage
from tests.store.samples import a_run, a_thread, content_path, some_events, stored_run

pytestmark = pytest.mark.anyio


async def test_a_temporary_thread_is_abandoned_when_its_process_has_gone(reopen):
    async with reopen(server=True) as store:
        of = ("", store.process, "gone")
        made = [await store.threads.create(a_thread(), temporary_of=one) for one in of]
        kept, own, foreign = [one.thread_id for one in made]
        assert [one.thread_id for one in await store.threads.list_abandoned()] == [foreign]
        await store.threads.touch(own, "A title")
    async with reopen(server=True) as store:
        assert {one.thread_id for one in await store.threads.list_abandoned()} == {own, foreign}
        assert (await store.threads.get(kept, None)) is not None


async def test_a_thread_is_found_by_its_owner_only(store):
    thread = await store.threads.create(a_thread("ann"))
    assert await store.threads.get(thread.thread_id, "ann") == thread
    assert await store.threads.get(thread.thread_id, None) == thread
    assert await store.threads.get(thread.thread_id, "bob") is None
    assert await store.threads.get("nowhere", "ann") is None


async def test_a_thread_is_not_made_twice(store):
    thread = await store.threads.create(a_thread())
    with pytest.raises(StoreError):
        await store.threads.create(thread)


async def test_lists_come_in_pages_newest_first_though_times_are_equal(store):
    made = [await store.threads.create(a_thread("ann", at=1000.0)) for _ in range(7)]
    await store.threads.create(a_thread("bob", at=1000.0))
    listed, before = [], None
    for _ in range(4):
        page = await store.threads.list("ann", 2, before)
        listed += page
        before = page[-1].created_at
    assert listed == made[::-1]
    assert not await store.threads.list("ann", 2, before)
    assert len(await store.threads.list(None)) == 8
    assert not await store.threads.list(None, -1)


async def test_lists_have_the_order_of_insertion_with_any_clock(store):
    thread = await store.threads.create(a_thread())
    times = [5000.0, 5001.0, 4000.0, 4001.0, 4000.0, 5000.0]
    made = [await store.runs.add(a_run(thread, store.process, at=at)) for at in times]
    listed, before = [], None
    for _ in range(len(times)):
        (run,) = await store.runs.list("", 1, before)
        listed.append(run)
        before = run.created_at
    assert listed == made[::-1]


async def test_a_page_may_follow_a_deleted_record(store):
    made = [await store.threads.create(a_thread(at=1000.0 + n)) for n in range(4)]
    await store.threads.delete(made[2].thread_id)
    page = await store.threads.list("", 5, made[2].created_at)
    assert page == [made[1], made[0]]


async def test_touching_renames_and_dates_a_thread(store):
    thread = await store.threads.create(a_thread(at=1.0))
    await store.threads.touch(thread.thread_id)
    touched = await store.threads.get(thread.thread_id, "")
    assert touched.updated_at > 1.0
    assert touched.title == thread.title
    await store.threads.touch(thread.thread_id, "Another \ud800")
    assert (await store.threads.get(thread.thread_id, "")).title == "Another �"


async def test_a_run_changes_field_by_field(store):
    run = await stored_run(store)
    usage = RunUsage(1, 2, 3, 4, 5.5, 0.25)
    changed = await store.runs.change(run.run_id, status="running", started_at=7.0, usage=usage)
    assert changed == replace(run, status="running", started_at=7.0, usage=usage)
    assert await store.runs.get(run.run_id) == changed
    assert await store.runs.get(run.run_id, "bob") is None
    assert await store.runs.change("nowhere", status="failed") is None
    with pytest.raises(TypeError):
        await store.runs.change(run.run_id, owner="bob")


async def test_threads_are_found_by_words_of_their_titles(store):
    for title in ("Sums of 100%", "Sums of 1000"):
        await store.threads.create(a_thread(title=title))
    for words, titles in {"SUMS": ["Sums of 1000", "Sums of 100%"], "0%": ["Sums of 100%"], "_": []}.items():
        assert [one.title for one in await store.threads.list(None, titled=words)] == titles


async def test_a_run_needs_a_thread(store):
    with pytest.raises(StoreError):
        await store.runs.add(a_run(a_thread()))


async def test_runs_are_listed_by_thread(store):
    first, second = await stored_run(store), await stored_run(store)
    assert await store.runs.list_by_thread(first.thread_id) == [first]
    assert await store.runs.list("") == [second, first]


async def test_what_was_not_started_is_unfinished_and_can_be_claimed(store):
    run = await stored_run(store)
    await stored_run(store, kind="chat")
    await stored_run(store, status="completed")
    assert await store.runs.list_orphaned("server") == [run]
    claimed = await store.runs.claim(run)
    assert claimed is not None
    assert claimed.recoveries == 1
    await store.runs.change(run.run_id, status="completed")
    assert await store.runs.claim(run) is None


async def test_what_this_process_drives_is_not_left_behind(store):
    first, second = await stored_run(store), await stored_run(store, kind="chat")
    begun = await store.runs.start(first.run_id, started_at=5.0)
    assert (begun.status, begun.started_at) == ("running", 5.0)
    assert await store.runs.list_orphaned(None, [first.run_id]) == [second]
    assert await store.runs.list_orphaned(None, thread_id=first.thread_id) == [begun]
    assert await store.runs.list_in_other_processes(first.thread_id) == []
    assert await store.runs.start("nobody") is None


async def test_usage_adds_up_over_the_runs_of_an_owner(store):
    thread = await store.threads.create(a_thread("ann"))
    for at in (10.0, 20.0, 30.0):
        run = await store.runs.add(a_run(thread, store.process, at=at))
        await store.runs.change(run.run_id, usage=RunUsage(1, 2, 3, 4, 0.5, 0.25))
    assert await store.runs.sum_usage("ann", 15.0, 40.0) == RunUsage(2, 4, 6, 8, 1.0, 0.5)
    assert await store.runs.sum_usage("ann", 15.0, 25.0) == RunUsage(1, 2, 3, 4, 0.5, 0.25)
    assert await store.runs.sum_usage("bob", 0.0, 40.0) == RunUsage()


async def test_what_began_before_a_window_and_ended_in_it_counts(store):
    thread = await store.threads.create(a_thread("ann"))
    run = await store.runs.add(a_run(thread, store.process, at=10.0, usage=RunUsage(1)))
    assert await store.runs.sum_usage("ann", 20.0, 40.0) == RunUsage()
    await store.runs.change(run.run_id, usage=RunUsage(5), ended_at=30.0)
    assert await store.runs.sum_usage("ann", 20.0, 40.0) == RunUsage(5)
    assert await store.runs.sum_usage("ann", 0.0, 40.0) == RunUsage(5), "once, though it began there, too"


async def test_what_deleted_runs_used_stays_used(store):
    now = time.time()
    thread, other = [await store.threads.create(a_thread("ann")) for _ in range(2)]
    ended = a_run(thread, store.process, at=now - 60, ended_at=now, usage=RunUsage(1, 2, 3, 4, 0.5, 0.25))
    for run in (ended, a_run(thread, store.process, at=now - 50)):
        await store.runs.add(run)
    await store.runs.add(a_run(other, store.process, at=now - 40, usage=RunUsage(10)))
    before = await store.runs.sum_usage("ann", now - 90, now)
    assert await store.threads.delete(thread.thread_id)
    assert not await store.threads.delete(thread.thread_id)
    assert await store.runs.sum_usage("ann", now - 90, now) == before == RunUsage(11, 2, 3, 4, 0.5, 0.25)
    assert await store.runs.sum_usage("ann", now - 45, now) == before, "it ended in that window"
    assert await store.runs.sum_usage("ann", now - 90, now - 55) == RunUsage(1, 2, 3, 4, 0.5, 0.25)
    assert await store.runs.sum_usage("bob", now - 90, now) == RunUsage()


async def test_what_deleted_runs_used_is_forgotten_when_no_window_reaches_it(store):
    now = time.time()
    thread = await store.threads.create(a_thread("ann"))
    for days in (-30, -3, -1, 1, 30):  # a clock that was ahead dates later than now
        await store.runs.add(a_run(thread, store.process, at=now + days * 86_400, usage=RunUsage(1)))
    await store.threads.delete(thread.thread_id)
    assert await store.runs.sum_usage("ann", 0.0, 2 * now) == RunUsage(2)


async def test_what_a_run_used_before_it_waits_counts_from_then_on_and_when_it_is_deleted(store):
    day, now = 24 * 3600.0, time.time()
    thread = await store.threads.create(a_thread("ann", at=now - 2 * day))
    run = await store.runs.add(a_run(thread, store.process, at=now - 2 * day))
    used = RunUsage(1, 2, 3, 4, 0.5, 0.25)
    await store.runs.change(run.run_id, usage=used, status="interrupted")
    assert await store.runs.sum_usage("ann", now - day, now + 60) == RunUsage()
    await store.threads.touch(thread.thread_id)
    assert await store.runs.sum_usage("ann", now - day, now + 60) == used
    await store.threads.delete(thread.thread_id)
    assert await store.runs.sum_usage("ann", now - day, now + 60) == used


async def test_what_is_used_outside_of_runs_counts_for_two_days(store):
    day, now = 24 * 3600.0, time.time()
    for at in (now - 3 * day, now - 60, now):
        await store.runs.add_usage("ann", RunUsage(1, 2, 3, 4, 0.5, 0.25), at)
    await store.runs.add_usage("bob", RunUsage(1), now)
    assert await store.runs.sum_usage("ann", now - 90, now) == RunUsage(2, 4, 6, 8, 1.0, 0.5)
    assert await store.runs.sum_usage("ann", now - 30, now) == RunUsage(1, 2, 3, 4, 0.5, 0.25)
    assert await store.runs.sum_usage("ann", 0.0, now) == RunUsage(2, 4, 6, 8, 1.0, 0.5), "the old is dropped"


async def test_events_are_read_back_from_anywhere(store):
    run, other = await stored_run(store), await stored_run(store)
    await store.events.append([(run.run_id, some_events(1, 3)), (other.run_id, some_events(1, 1))])
    await store.events.append([(run.run_id, some_events(4, 8)), (run.run_id, some_events(9, 10))])
    read = store.events.read
    assert await read(run.run_id) == some_events(1, 10)
    assert await read(run.run_id, 2, 4) == some_events(3, 6)
    assert await read(run.run_id, 10) == []
    assert await read(run.run_id, 0, 0) == []
    assert await store.events.last(run.run_id) == some_events(10, 10)[0]
    assert await store.events.last("nowhere") is None


async def test_only_events_of_the_given_types_are_read(store):
    run = await stored_run(store)
    named = EventRecord(1, "message", '{"delta": "run_status and message "}')
    begun, ended = EventRecord(4, "usage", "{}"), EventRecord(6, "run_status", "{}", 7.5, "r_coder_1", 2)
    others = [EventRecord(number, "message", "{}") for number in (2, 3, 5)]
    for records in ([named], others[:2], [begun, others[2], ended]):
        await store.events.append([(run.run_id, records)])
    read = store.events.read
    assert await read(run.run_id, types=["run_status", "usage"]) == [begun, ended]
    assert await read(run.run_id, 0, 1, ["run_status"]) == [ended], "the row that only names it is no page"
    assert await read(run.run_id, 4, 10, ["usage"]) == []
    assert await read(run.run_id, types=[]) == []


async def test_event_data_comes_back_as_it_was(store):
    run = await stored_run(store)
    data = '{"delta": "\u2028 \x85 \x0b 𝄞 a b"}'
    await store.events.append([(run.run_id, [EventRecord(1, "message", data)])])
    assert (await store.events.last(run.run_id)).data == data


@pytest.mark.parametrize("first", [2, 5])
async def test_events_that_do_not_follow_are_refused_and_nothing_of_them_is_retained(store, first):
    run, other = await stored_run(store), await stored_run(store)
    await store.events.append([(run.run_id, some_events(1, 2))])
    with pytest.raises(StoreError):
        await store.events.append(
            [(other.run_id, some_events(1, 2)), (run.run_id, some_events(first, first))]
        )
    assert await store.events.read(other.run_id) == []
    assert await store.events.read(run.run_id) == some_events(1, 2)


async def test_events_of_a_deleted_run_do_not_keep_others_from_being_stored(store):
    gone, run = await stored_run(store), await stored_run(store)
    await store.events.append([(gone.run_id, some_events(1, 2))])
    await store.threads.delete(gone.thread_id)
    await store.events.append([(gone.run_id, some_events(3, 4)), (run.run_id, some_events(1, 2))])
    assert await store.events.read(gone.run_id) == []
    assert await store.events.read(run.run_id) == some_events(1, 2)


async def test_a_tool_call_begun_again_shows_what_is_known_of_it(store):
    run = await stored_run(store)
    call = await store.ledger.begin(run.run_id, "c1", "bash_tool", '{"cmd": "ls"}')
    assert (call.attempts, call.result) == (1, None)
    assert (await store.ledger.begin(run.run_id, "c1", "bash_tool", "{}")).attempts == 2
    await store.ledger.end(run.run_id, "c1", '"done"')
    await store.ledger.end(run.run_id, "c1", '"done twice"')
    again = await store.ledger.begin(run.run_id, "c1", "bash_tool", "{}")
    assert (again.result, again.arguments, again.begun_at) == ('"done"', '{"cmd": "ls"}', call.begun_at)
    await store.ledger.begin(run.run_id, "c2", "crawl_tool", "{}")
    assert [one.tool_call_id for one in await store.ledger.list_by_run(run.run_id)] == ["c1", "c2"]


async def test_a_key_that_one_process_revokes_is_unknown_to_another_at_once(reopen):
    async with reopen(server=True) as node, reopen(server=False) as other:
        key, secret = await node.keys.add("front end")
        assert await other.keys.find(secret) == key
        await other.keys.revoke(key.key_id)
        assert await node.keys.find(secret) is None


async def test_a_key_is_found_by_its_secret_until_it_is_revoked(store):
    key, secret = await store.keys.add("front end", KeyLimits(max_runs=3, daily_tokens=10_000))
    other, _ = await store.keys.add("other")
    assert secret.startswith("mk_")
    assert len(secret) == 3 + 43
    assert secret not in str(key)
    assert await store.keys.find(secret) == key
    assert await store.keys.find(secret[:-1]) is None
    assert await store.keys.find("\ud800") is None
    assert await store.keys.get(key.key_id) == key
    assert await store.keys.get(other.name) is None
    assert await store.keys.revoke(key.key_id)
    assert not await store.keys.revoke(key.key_id)
    assert await store.keys.find(secret) is None
    assert (await store.keys.get(key.key_id)).limits == key.limits, "its runs may still be under way"
    assert [one.key_id for one in await store.keys.list()] == [key.key_id, other.key_id]


async def test_keys_are_forgotten_together_and_only_when_none_is_valid(store):
    keys = [(await store.keys.add(name))[0] for name in ("one", "two")]
    await store.keys.revoke(keys[0].key_id)
    assert await store.keys.delete_revoked() == 0
    assert [one.key_id for one in await store.keys.list()] == [key.key_id for key in keys]
    await store.keys.revoke(keys[1].key_id)
    assert await store.keys.delete_revoked() == 2
    assert await store.keys.list() == []
    assert await store.keys.delete_revoked() == 0


async def test_deleting_a_thread_deletes_all_that_belongs_to_it(store):
    run, other = await stored_run(store), await stored_run(store)
    for one in (run, other):
        await store.events.append([(one.run_id, some_events(1, 2))])
        await store.ledger.begin(one.run_id, "c", "bash_tool", "{}")
    artifact = await store.artifacts.add(run, "a.txt", "text/plain", b"a")
    kept = await store.artifacts.add(other, "b.txt", "text/plain", b"b")
    path = content_path(store, artifact)
    assert await store.threads.delete(run.thread_id)
    assert not await store.threads.delete(run.thread_id)
    assert await store.runs.get(run.run_id) is None
    assert await store.events.last(run.run_id) is None
    assert await store.ledger.list_by_run(run.run_id) == []
    assert await store.artifacts.get(artifact.artifact_id, None) is None
    assert not path.exists()
    assert await (await store.artifacts.open(kept)).read() == b"b"
    assert len(await store.ledger.list_by_run(other.run_id)) == 1


async def test_a_healthy_store_has_no_problems(store):
    await stored_run(store)
    await store.vacuum()
    assert await store.check() == []


async def test_the_runs_of_a_thread_that_wait_are_found_among_all(store):
    thread, other = [await store.threads.create(a_thread()) for _ in range(2)]
    for on, status in (
        (thread, "interrupted"),
        (thread, "completed"),
        (thread, "interrupted"),
        (other, "interrupted"),
    ):
        await store.runs.add(a_run(on, store.process, status=status))
    waiting = await store.runs.list_interrupted(thread.thread_id)
    assert [(run.thread_id, run.status) for run in waiting] == [(thread.thread_id, "interrupted")] * 2
    assert waiting[0].created_at > waiting[1].created_at


async def test_a_run_that_waits_is_adopted_from_any_process_and_another_is_not(store):
    waiting = await stored_run(store, status="interrupted")
    await store.runs.change(waiting.run_id, process="ended")
    adopted = await store.runs.adopt(waiting.run_id)
    assert adopted == waiting
    for status in ("running", "completed"):
        run = await stored_run(store, status=status)
        await store.runs.change(run.run_id, process="another")
        assert await store.runs.adopt(run.run_id) is None
    assert await store.runs.adopt("nowhere") is None


async def test_the_artifacts_of_a_thread_are_those_of_its_runs(store):
    run, again = await stored_run(store), await stored_run(store)
    made = [await store.artifacts.add(run, name, "text/plain", b"x") for name in ("a", "b")]
    await store.artifacts.add(again, "c", "text/plain", b"x")
    assert await store.artifacts.list_by_thread(run.thread_id) == made
    assert await store.artifacts.list_by_thread("nowhere") == []


async def test_a_thread_is_found_once_by_the_history_that_was_returned_on_it(store):
    older, newer, other = [
        await store.threads.create(a_thread(owner)) for owner in ("mine", "mine", "theirs")
    ]
    for thread in (older, newer, other):
        await store.threads.touch(thread.thread_id, history="digest")
    taken = [await store.threads.take_history("mine", "digest") for _ in range(3)]
    assert [one and one.thread_id for one in taken] == [newer.thread_id, older.thread_id, None]
    assert await store.threads.take_history("mine", "") is None
    found = await store.threads.take_history("theirs", "digest")
    assert found and found.thread_id == other.thread_id


async def test_a_thread_is_found_by_each_history_that_its_clients_hold(store):
    thread = await store.threads.create(a_thread("mine"))
    for given, sent in (({"history": "a:b"}, "a:b"), ({"history": "a:b"}, "a"), ({"cut_history": "c"}, "c")):
        await store.threads.touch(thread.thread_id, **given)
        for other in ("b", "a:", "ab", "a:c"):
            assert await store.threads.take_history("mine", other) is None
        assert await store.threads.take_history("theirs", sent) is None
        found = await store.threads.take_history("mine", sent)
        assert found and found.thread_id == thread.thread_id
        assert await store.threads.take_history("mine", sent) is None


async def test_the_end_of_a_run_does_not_replace_the_history_of_a_stream_that_was_cut(store):
    thread = await store.threads.create(a_thread("mine"))
    await store.threads.touch(thread.thread_id, cut_history="cut")
    await store.threads.touch(thread.thread_id, history="whole")
    assert await store.threads.take_history("mine", "cut")
    assert await store.threads.take_history("mine", "whole") is None, "its digests were forgotten together"
