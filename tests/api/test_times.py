"""When the events of a run happened, over HTTP."""

import re
import time

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
