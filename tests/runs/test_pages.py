"""Stored pages are reported once, also across kills."""

import hashlib

import pytest

from maniple.events import as_json
from maniple.runs.active_run import ActiveRun
from maniple.runs.artifact_collector import PageCollector, make_artifact_event
from maniple.store import EventRecord, Store, open_store
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio
URL = "https://e.test/tea"


@pytest.fixture
async def store(tmp_path):
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        yield store


async def taken_up(store: Store, record) -> list[str]:
    """Return the ids of the pages that a process reports after it recovers the run."""
    active = ActiveRun(record, None, None, None, None, None, None)  # type: ignore[arg-type]
    pages = PageCollector(store, active)
    made = [one for _ in range(2) async for one in pages.collect_after("crawl_tool")]
    assert [one.source for one in made] == [1] * len(made)
    return [one.artifact_id for one in made]


async def test_a_stored_but_unreported_page_is_reported_after_recovery(store: Store):
    run = await stored_run(store)
    await store.evidence(run.run_id).add(URL, "Tea", "page", "3 euros")
    [first] = await taken_up(store, run)  # and its process ends before that is recorded
    assert await taken_up(store, run) == [first]
    (artifact,) = await store.artifacts.list_by_run(run.run_id)
    assert artifact.sha256 == hashlib.sha256(f"Source: {URL}\n\n3 euros".encode()).hexdigest()
    event = make_artifact_event(artifact)
    await store.events.append([(run.run_id, [EventRecord(1, event.type, as_json(event))])])
    assert "source" not in as_json(event), "a file is the text of no source"
    assert await taken_up(store, run) == []
    assert len(await store.artifacts.list_by_run(run.run_id)) == 1
