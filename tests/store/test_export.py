"""The export of all stored data as JSON lines."""

import json
from dataclasses import replace

import pytest

from maniple.evidence import NotedFinding
from maniple.store import KeyLimits, export_records
from tests.store.samples import some_events, stored_run

pytestmark = pytest.mark.anyio


async def test_everything_of_a_thread_is_exported_but_secrets(store):
    run, other = await stored_run(store, request='{"messages": ["é"]}'), await stored_run(store)
    await store.events.append(
        [(run.run_id, [*some_events(1, 1199), replace(*some_events(1200, 1200), at=12.5)])]
    )
    await store.ledger.begin(run.run_id, "c", "bash_tool", '{"cmd": "ls"}')
    await store.evidence(run.run_id).add("https://e.test/a", "A page", "page", "What it says")
    noted = NotedFinding(1, "It says so.", "it says", "0" * 64, 5, 12)
    assert await store.evidence(run.run_id).add_finding(noted)
    artifact = await store.artifacts.add(run, "a.txt", "text/plain", b"content")
    await store.keys.add("key", KeyLimits())
    lines = [json.loads(line) async for line in export_records(store, run.thread_id)]
    kinds = [line.pop("record") for line in lines]
    assert kinds == ["thread", "run", *["event"] * 1200, "tool_call", "source", "finding", "artifact"]
    assert lines[1]["request"] == {"messages": ["é"]}
    assert lines[1201]["data"] == {"delta": "word 1200"}
    assert [line["at"] for line in lines[1200:1202]] == [None, 12.5]
    assert lines[-4]["arguments"] == {"cmd": "ls"}
    assert (lines[-3]["run_id"], lines[-3]["url"]) == (run.run_id, "https://e.test/a")
    assert (lines[-2]["source"], lines[-2]["quote"]) == (1, "it says")
    assert "What it says" not in str(lines)
    assert lines[-1]["sha256"] == artifact.sha256
    everything = [json.loads(line) async for line in export_records(store)]
    assert len(everything) == len(lines) + 2
    assert other.thread_id in {line.get("thread_id") for line in everything}


async def test_a_thread_that_is_not_there_cannot_be_exported(store):
    with pytest.raises(LookupError, match="nowhere"):
        [line async for line in export_records(store, "nowhere")]
