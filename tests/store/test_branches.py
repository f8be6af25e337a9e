"""Branches in the store: what they begin with, and what of a conversation stays."""

from dataclasses import replace

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from maniple.store.protocols import BRANCHED_RUNS
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio


async def branched(store):
    """A thread of three runs, a branch at its second run, and a branch at the branch's second run."""
    root = await store.threads.create(a_thread())
    runs = [await store.runs.add(a_run(root, store.process)) for _ in range(3)]
    names = {"parent_id": root.thread_id, "branched_run": runs[1].run_id, "root_id": root.thread_id}
    first = await store.threads.create(replace(a_thread(), **names))
    own = [await store.runs.add(a_run(first, store.process)) for _ in range(2)]
    names = {"parent_id": first.thread_id, "branched_run": own[1].run_id, "root_id": root.thread_id}
    second = await store.threads.create(replace(a_thread(), note="A note.", **names))
    last = await store.runs.add(a_run(second, store.process))
    return (root, first, second), (runs, own, [last])


async def ids(store, thread, **page):
    return [run.run_id for run in await store.runs.list_by_thread(thread.thread_id, **page)]


async def test_a_branch_begins_with_the_runs_before_it(store):
    (root, first, second), (runs, own, [last]) = await branched(store)
    assert await ids(store, root) == [run.run_id for run in reversed(runs)]
    assert await ids(store, first) == [own[1].run_id, own[0].run_id, runs[0].run_id]
    assert await ids(store, second) == [last.run_id, own[0].run_id, runs[0].run_id]
    page = await store.runs.list_by_thread(second.thread_id, 1, last.created_at)
    assert [run.run_id for run in page] == [own[0].run_id]


async def test_a_copy_begins_with_the_runs_up_to_its_last_one(store):
    (root, first, _), (runs, own, _) = await branched(store)
    for source, run, begin in ((root, runs[1], [runs[0], runs[1]]), (first, own[0], [runs[0], own[0]])):
        names = {"parent_id": source.thread_id, "copied_run": run.run_id, "root_id": root.thread_id}
        copy = await store.threads.create(replace(a_thread(), **names))
        assert await ids(store, copy) == [one.run_id for one in reversed(begin)]
        added = await store.runs.add(a_run(copy, store.process))
        assert await ids(store, copy, limit=2) == [added.run_id, run.run_id]


async def test_a_list_may_have_the_branches_and_the_metadata_of_all(store):
    (root, first, second), _ = await branched(store)
    listed = await store.threads.list(None, with_branches=True)
    assert [one.thread_id for one in listed] == [one.thread_id for one in (second, first, root)]
    await store.threads.touch(first.thread_id, metadata='{"user": "Ada"}')
    assert (await store.threads.get(first.thread_id, None)).metadata == '{"user": "Ada"}'
    assert (await store.threads.get(root.thread_id, None)).metadata == "{}"


async def test_the_list_has_conversations_and_their_branches_apart(store):
    (root, first, second), (runs, _, [last]) = await branched(store)
    assert [one.thread_id for one in await store.threads.list(None)] == [root.thread_id]
    found = await store.threads.list_branches([root.thread_id, "unknown"])
    assert found == {root.thread_id: [first, second], "unknown": []}
    assert await store.runs.list_first([root.thread_id, second.thread_id, "unknown"]) == {
        root.thread_id: runs[0].run_id,
        second.thread_id: last.run_id,
    }
    assert second.note == "A note." and second.conversation_id == root.thread_id


async def test_a_branch_has_the_artifacts_and_sources_of_the_runs_before_it(store):
    (_, first, _), (runs, own, _) = await branched(store)
    for run in (runs[0], runs[1]):
        await store.artifacts.add(run, f"{run.run_id}.txt", "text/plain", b"x")
        await store.evidence(run.run_id).add(f"https://e.test/{run.run_id}", "T", "page", "The text.")
    made = await store.artifacts.list_by_thread(first.thread_id)
    assert [one.run_id for one in made] == [runs[0].run_id]
    await store.runs.start(own[0].run_id)
    sources = await store.evidence(own[0].run_id).sources()
    assert [one.url for one in sources] == [f"https://e.test/{runs[0].run_id}"]


async def test_pruning_leaves_the_checkpoints_before_the_newest_runs(store):
    thread = await store.threads.create(a_thread())
    place = {"configurable": {"thread_id": thread.thread_id, "checkpoint_ns": ""}}
    bases = []
    for _ in range(BRANCHED_RUNS + 2):
        put = await store.checkpointer.aput(place, empty_checkpoint(), {}, {})
        bases.append(put["configurable"]["checkpoint_id"])
        run = await store.runs.add(a_run(thread, store.process))
        await store.runs.change(run.run_id, base_checkpoint=bases[-1])
        await store.checkpointer.aput(place, empty_checkpoint(), {}, {})
    newest = (await store.checkpointer.aget_tuple(place)).checkpoint["id"]
    await store.checkpoints.prune(thread.thread_id)
    left = [one.checkpoint["id"] async for one in store.checkpointer.alist(place)]
    assert left == [newest, *reversed(bases[2:])]
