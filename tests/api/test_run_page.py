"""The page of a run, over HTTP."""

import json
import re

import pytest

from maniple.store import EventRecord
from tests.api.in_process import InProcessService
from tests.openai_server import SIMPLE, reply

pytestmark = pytest.mark.anyio
JPEG = b"\xff\xd8\xff\xe0 picture"


async def test_every_run_has_a_page_of_its_own_under_a_strict_policy(it: InProcessService):
    run = await it.run()
    await it.events_of(run["run_id"])
    response = await it.client.get(f"/api/runs/{run['run_id']}/page")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and "frame-ancestors 'none'" in policy
    assert policy.partition("; frame-ancestors")[0].replace("'", "&#39;") in response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["cache-control"] == "private, no-store"
    data = json.loads(response.text.partition('id="run">')[2].partition("</script>")[0])
    assert data["asked"] == "1+3=?"
    report = await it.client.get(f"/api/runs/{run['run_id']}/report")
    assert data["result"] == report.text
    assert data["llm_usage"]["model_calls"] == 5
    assert "<td>reporter</td>" in response.text


async def test_a_run_that_waits_or_was_cancelled_has_one_too(it: InProcessService):
    run = await it.run(auto_accepted_plan=False)
    await it.events_of(run["run_id"])
    path = f"/api/runs/{run['run_id']}/page"
    assert "plan review" in (await it.client.get(path)).text
    await it.client.post(f"/api/runs/{run['run_id']}/cancel")
    assert "run was cancelled" in (await it.client.get(path)).text


async def test_a_run_whose_model_failed_has_one_too(it: InProcessService, model):
    model.reset({**SIMPLE, "coordinator": [{"status": 400, "error": "no such <model>"}]})
    run = await it.run()
    await it.events_of(run["run_id"])
    html = (await it.client.get(f"/api/runs/{run['run_id']}/page")).text
    assert "no such &lt;model&gt;" in html


async def test_the_page_is_for_the_key_whose_run_it_was(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    path = f"/api/runs/{run['run_id']}/page"
    assert (await it.client.get(path, headers=mine)).status_code == 200
    assert (await it.client.get(path, headers=other)).status_code == 404
    assert (await it.client.get(path)).status_code == 401


async def test_pictures_are_in_the_page_and_only_those_of_the_run(it: InProcessService, model):
    model.reset({**SIMPLE, "coordinator": [reply("Hello")]})
    runs = [await it.run(), await it.run()]
    for run in runs:
        await it.events_of(run["run_id"])
    store = it.service.store
    own, others = [await store.runs.get(run["run_id"]) for run in runs]
    assert own and others
    picture = await store.artifacts.add(own, "screenshot.jpg", "image/jpeg", JPEG)
    gone = await store.artifacts.add(own, "screenshot.jpg", "image/jpeg", JPEG + b"2")
    (await store.artifacts.open(gone)).unlink()
    fake = await store.artifacts.add(own, "screenshot.jpg", "image/jpeg", b"<script>")
    stolen = await store.artifacts.add(others, "screenshot.jpg", "image/jpeg", JPEG)
    await store.artifacts.add(own, "recording.gif", "image/gif", b"GIF89a...")
    last = await store.events.last(own.run_id)
    assert last
    events = [
        (kind, json.dumps(data))
        for artifact in (picture, gone, fake, stolen)
        for kind, data in (
            (
                "browser_state",
                {"url": "https://a.test/", "screenshot": f"/api/artifacts/{artifact.artifact_id}"},
            ),
            (
                "tool_call",
                {"tool_call_id": artifact.artifact_id, "tool_name": "browser_use", "tool_input": {}},
            ),
        )
    ]
    malformed = [("browser_step", "[1, 2"), ("usage", '{"seconds": NaN}'), ("plan", "null")]
    records = [EventRecord(n, *one) for n, one in enumerate([*events, *malformed], last.number + 1)]
    await store.events.append([(own.run_id, records)])
    html = (await it.client.get(f"/api/runs/{own.run_id}/page")).text
    assert re.findall(r'src="(data:image/\w+)', html) == ["data:image/gif", "data:image/jpeg"]
