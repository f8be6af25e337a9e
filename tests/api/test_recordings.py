"""Recordings of the browser, at the address where the old client looks for them."""

import pytest

from tests.api.in_process import InProcessService
from tests.store.samples import content_path

pytestmark = pytest.mark.anyio
GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"
MISSING = (404, {"detail": "File not found"})


async def a_run(it: InProcessService, key: dict[str, str]):
    run = await it.run(key)
    await it.events_of(run["run_id"], headers=key)
    return await it.service.store.runs.get(run["run_id"])


async def asked(it: InProcessService, name: str, key: dict[str, str]):
    response = await it.client.get(f"/api/browser_history/{name}", headers=key)
    return response.status_code, response.json()


async def test_a_recording_is_for_the_key_that_made_it(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    add = it.service.store.artifacts.add
    recording = await add(await a_run(it, mine), "recording.gif", "image/gif", GIF)
    name = f"{recording.artifact_id}.gif"
    response = await it.client.get(f"/api/browser_history/{name}", headers=mine)
    assert (response.status_code, response.content) == (200, GIF)
    assert response.headers["content-type"] == "image/gif"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "private, no-store"
    assert await asked(it, name, other) == MISSING
    assert (await it.client.get(f"/api/browser_history/{name}")).status_code == 401


async def test_nothing_but_a_recording_is_shown_as_one(it: InProcessService):
    key = await it.key("mine")
    run = await a_run(it, key)
    add = it.service.store.artifacts.add
    page = await add(run, "page.html", "text/html", b"<script>1</script>")
    gone = await add(run, "recording.gif", "image/gif", GIF)
    content_path(it.service.store, gone).unlink()
    for name in (f"{page.artifact_id}.gif", f"{gone.artifact_id}.gif", gone.artifact_id, ".gif", "x.gif"):
        assert await asked(it, name, key) == MISSING


async def test_a_recording_goes_with_its_conversation(it: InProcessService):
    key = await it.key("mine")
    run = await a_run(it, key)
    recording = await it.service.store.artifacts.add(run, "recording.gif", "image/gif", GIF)
    assert (await it.client.delete(f"/api/threads/{run.thread_id}", headers=key)).status_code == 200
    assert await asked(it, f"{recording.artifact_id}.gif", key) == MISSING
