"""When the events of a run happened, over HTTP."""

import re
import time
from typing import Any

import pytest

from maniple.store import EventRecord
from tests.api.in_process import InProcessService, numbered

pytestmark = pytest.mark.anyio


async def test_a_run_reports_the_times_of_its_events_on_request(it: InProcessService):
    began = time.time()
    run = await it.run()
    path = f"/api/runs/{run['run_id']}/events"
    live = (await it.client.get(f"{path}?timed=true")).text
    ended = time.time()
    plain = (await it.client.get(path)).text
    assert (await it.client.get(f"{path}?timed=true")).text == live, "told again, they are the same"
    assert re.sub(r', "at": \d{10}\.\d{1,3}\}$', "}", live, flags=re.MULTILINE) == plain
    frames = [frame for _, frame in numbered(live)]
    assert all([*told][-1] == "at" for _, told in frames)
    times = [told["at"] for _, told in frames]
    assert times == sorted(times), "its agents worked one after another"
    assert round(began, 3) <= times[0] <= times[-1] <= round(ended, 3)
    assert (await it.client.get(f"{path}?timed=maybe")).status_code == 422


async def test_events_that_an_earlier_version_stored_have_no_time(it: InProcessService):
    run = await it.run()
    whole = await it.events_of(run["run_id"])
    later = [EventRecord(len(whole) + 1, "error", '{"code": "internal"}')]
    await it.service.store.events.append([(run["run_id"], later)])
    path = f"/api/runs/{run['run_id']}/events?timed=true&after={len(whole)}"
    assert (
        await it.client.get(path)
    ).text == f"id: {len(whole) + 1}\nevent: error\ndata: {later[0].data}\n\n"


async def test_a_page_of_stored_events_is_what_the_live_view_sends(it: InProcessService):
    run = await it.run()
    path = f"/api/runs/{run['run_id']}/events"
    frames = numbered((await it.client.get(f"{path}?view=live")).text)
    live = [(number, data) for number, (_, data) in frames]
    found: list[Any] = []
    after = 0
    while (page := (await it.client.get(f"{path}/page?after={after}&limit=9")).json())["events"]:
        assert len(page["events"]) <= 9
        found += page["events"]
        after = page["next_after"]
    assert (page["status"], after) == ("completed", len(live))
    assert [(one["number"], one["data"]) for one in found] == live
    assert all(one["at"] for one in found)
    for query in ("after=-1", "limit=0", "limit=1001"):
        assert (await it.client.get(f"{path}/page?{query}")).status_code == 422
    assert (await it.client.get("/api/runs/none/events/page")).status_code == 404
