"""How the newest runs of several threads stand."""

import pytest

from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio


async def test_the_newest_runs_of_each_thread_are_told_newest_first(any_store):
    first, second, empty = [await any_store.threads.create(a_thread()) for _ in range(3)]
    for thread, status in [
        (first, "failed"),
        (second, "running"),
        (first, "completed"),
        (second, "queued"),
        (first, "interrupted"),
    ]:
        await any_store.runs.add(a_run(thread, status=status))
    asked = [one.thread_id for one in (first, second, empty)]
    assert await any_store.runs.statuses(asked, 2) == {
        first.thread_id: ["interrupted", "completed"],
        second.thread_id: ["queued", "running"],
        empty.thread_id: [],
    }
    assert await any_store.runs.statuses([], 2) == {}
    assert await any_store.runs.statuses(["nowhere", 'a"b'], 2) == {"nowhere": [], 'a"b': []}
    assert await any_store.runs.statuses([first.thread_id], 0) == {first.thread_id: []}
