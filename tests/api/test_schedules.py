"""Schedules over HTTP."""

import asyncio

import pytest

pytestmark = pytest.mark.anyio
MONDAYS = {"cron": "0 8 * * 1", "time_zone": "Europe/Berlin", "run": {"input": "1+3=?"}}


async def test_a_schedule_is_made_read_changed_and_deleted(it):
    made = await it.client.post("/api/schedules", json={**MONDAYS, "name": "Sums"})
    assert made.status_code == 201, made.text
    path = made.headers["location"]
    assert len(made.json()["next_times"]) == 5
    seen = await it.get(f"{path}?upcoming=2")
    assert seen["next_times"] == made.json()["next_times"][:2] and seen["name"] == "Sums"
    assert [one["schedule_id"] for one in (await it.get("/api/schedules"))["schedules"]] == [
        seen["schedule_id"]
    ]
    paused = (await it.client.patch(path, json={"paused": True, "overlap": "queue"})).json()
    assert (paused["paused"], paused["overlap"], paused["next_times"]) == (True, "queue", [])
    changed = (await it.client.patch(path, json={"paused": False, "cron": "0 9 * * *"})).json()
    assert (changed["cron"], len(changed["next_times"])) == ("0 9 * * *", 5)
    assert (await it.client.delete(path)).status_code == 204
    assert (await it.client.get(path)).status_code == 404


async def test_a_schedule_belongs_to_its_key(it):
    ann, bob = await it.key("ann"), await it.key("bob")
    path = (await it.client.post("/api/schedules", json=MONDAYS, headers=ann)).headers["location"]
    assert (await it.client.get(path, headers=ann)).status_code == 200
    for method in ("GET", "DELETE"):
        assert (await it.client.request(method, path, headers=bob)).status_code == 404
    assert (await it.client.patch(path, json={"paused": True}, headers=bob)).status_code == 404
    assert (await it.get("/api/schedules", headers=bob))["schedules"] == []
    theirs = await it.client.post("/api/threads", headers=ann)
    thread = {**MONDAYS, "thread_id": theirs.json()["thread_id"]}
    assert (await it.client.post("/api/schedules", json=thread, headers=bob)).status_code == 404


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"cron": "every monday"}, "invalid_schedule"),
        ({"time_zone": "Nowhere"}, "invalid_schedule"),
        ({"at": "2030-01-01T00:00"}, "invalid_schedule"),
        ({"cron": "", "at": "2001-01-01T00:00"}, "invalid_schedule"),
        ({"overlap": "both"}, "invalid_request"),
        ({"run": {}}, "invalid_request"),
        ({"run": {"input": "a", "team_members": ["nobody"]}}, "invalid_request"),
    ],
)
async def test_what_cannot_be_a_schedule_is_refused(it, change, code):
    refused = await it.client.post("/api/schedules", json={**MONDAYS, **change})
    assert (refused.status_code, refused.json()["code"]) == (422, code)


async def test_the_server_starts_what_is_due(it):
    made = await it.client.post("/api/schedules", json={**MONDAYS, "same_thread": True})
    schedules = it.service.store.schedules
    schedule = await schedules.get(made.json()["schedule_id"], "")
    await schedules.advance(schedule.schedule_id, schedule.next_at, schedule.created_at)
    path = f"{made.headers['location']}"
    ticks = []
    async with asyncio.timeout(60):
        while not ticks or ticks[0]["state"] != "started":
            await asyncio.sleep(0.01)
            ticks = (await it.get(path))["ticks"]
    assert [one["state"] for one in ticks] == ["started"]
    frames = await it.events_of(ticks[0]["run_id"])
    assert frames
    run = await it.get(f"/api/runs/{ticks[0]['run_id']}")
    assert run["status"] == "completed"
    assert run["thread_id"] == made.json()["thread_id"]
