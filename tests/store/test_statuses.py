"""How the runs of several threads stand."""

import pytest

from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio


async def test_the_newest_and_unfinished_runs_of_each_thread_come_newest_first(store):
    first, second, third, empty = [await store.threads.create(a_thread()) for _ in range(4)]
    for thread, status in [
        (first, "failed"),
        (second, "running"),
        (first, "interrupted"),
        (second, "queued"),
        (third, "failed"),
        (third, "completed"),
        *((first, "cancelled") for _ in range(8)),
    ]:
        await store.runs.add(a_run(thread, store.process, status=status))
    asked = [one.thread_id for one in (first, second, third, empty)]
    assert await store.runs.list_statuses(asked) == {
        first.thread_id: ["cancelled", "interrupted"],
        second.thread_id: ["queued", "running"],
        third.thread_id: ["completed"],
        empty.thread_id: [],
    }
    assert await store.runs.list_statuses([]) == {}
    assert await store.runs.list_statuses(["nowhere", 'a"b']) == {"nowhere": [], 'a"b': []}
