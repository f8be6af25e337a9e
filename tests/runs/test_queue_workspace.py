"""The files of a run whose worker was killed are those that the next worker finds, with their history."""

import asyncio

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import call, reply, serving
from tests.runs.test_undo_survival import POEM, QUICK, script, wait_for_results
from tests.runs.workers import cluster_of, read_events
from tests.team import data

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]


def contents(folder) -> dict[str, bytes]:
    """Return all files below a folder by their path in it."""
    files = (one for one in folder.rglob("*") if one.is_file())
    return {str(one.relative_to(folder)): one.read_bytes() for one in files}


async def test_the_next_worker_has_the_files_byte_for_byte_and_can_undo_the_edits(postgres_url, tmp_path):
    undo = call("str_replace_editor", command="undo_edit", path="poem.txt")
    with serving(script({"hang": True})) as model:
        async with cluster_of(postgres_url, model.base_url, tmp_path, count=1, **QUICK) as (api, workers):
            async with httpx.AsyncClient(base_url=api, trust_env=False, timeout=200) as client:
                thread = (await client.post("/api/threads")).json()["thread_id"]
                folder = tmp_path / "data" / "workspaces"
                started = await client.post(f"/api/threads/{thread}/runs", json={"input": "Write."})
                run_id = started.json()["run_id"]
                await wait_for_results(client, f"/api/runs/{run_id}/events", 2)
                await asyncio.to_thread(
                    model.wait_for, lambda s: s["by_role"].get("file_manager") == 3 and s["active"] == 1, 100
                )
                before = contents(folder)
                assert before[f"{thread}/poem.txt"].decode() == POEM.replace("red", "white")
                (first,) = workers.running
                await workers.kill(first)
                assert contents(folder) == before
                model.reset(script({"hang": True}))
                second = await workers.add()
                await asyncio.to_thread(
                    model.wait_for, lambda s: s["by_role"].get("file_manager") == 1 and s["active"] == 1, 100
                )
                assert contents(folder) == before, "taking over has changed a file"
                # Killed again, so that a third one undoes what the first one has done.
                await workers.kill(second)
                model.reset(script(undo, reply("As it was.")))
                await workers.add()
                frames = await read_events(client, run_id)
    assert Client().read(frames).status == "completed"
    results = [one["tool_result"].partition(" ")[0] for one in data(frames, "tool_call_result")]
    assert results == ["Created", "Changed", "Undone."]
    assert (folder / thread / "poem.txt").read_text() == POEM
