"""Batches over HTTP."""

import asyncio
import csv
import io

import pytest

pytestmark = pytest.mark.anyio


async def test_a_batch_is_done_and_its_results_are_read(it):
    made = await it.client.post("/api/batches", json={"items": ["1+3=?", "2+3=?"], "name": "Sums"})
    assert made.status_code == 202, made.text
    path = made.headers["location"]
    async with asyncio.timeout(60):
        while not (batch := await it.get(path))["done"]:
            await it.client.get("/readyz")
    assert batch["counts"] == {"accepted": 2} and batch["model_calls"] > 0
    lines = (await it.client.get(f"{path}/results")).text.splitlines()
    assert len(lines) == 2 and '"answer": ' in lines[0]
    table = (await it.client.get(f"{path}/results?form=csv")).text
    assert [row["input"] for row in csv.DictReader(io.StringIO(table))] == ["1+3=?", "2+3=?"]
    rest = (await it.client.get(f"{path}/results?after=1&limit=5")).text.splitlines()
    assert rest == lines[1:]
    assert len((await it.client.get(f"{path}/results?limit=1")).text.splitlines()) == 1
    assert (await it.client.get(f"{path}/results?limit=0")).status_code == 422
    assert (await it.client.post(f"{path}/cancel")).status_code == 200
    assert (await it.client.post(f"{path}/retry")).json()["counts"] == {"accepted": 2}
    again = await it.client.post(f"{path}/retry", json={"budget": {"tokens": 10**9}, "parallel": 2})
    assert again.json()["counts"] == {"accepted": 2}
    assert (await it.client.post(f"{path}/retry", json={"parallel": 0})).status_code == 422
    assert (await it.client.delete(path)).status_code == 204
    assert (await it.get("/api/batches"))["batches"] == []


async def test_a_batch_belongs_to_its_key(it):
    ann, bob = await it.key("ann"), await it.key("bob")
    path = (await it.client.post("/api/batches", json={"items": ["a"]}, headers=ann)).headers["location"]
    for method, end in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/results"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
    ):
        assert (await it.client.request(method, path + end, headers=bob)).status_code == 404
    assert (await it.get("/api/batches", headers=bob))["batches"] == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"items": []}, "invalid_request"),
        ({"items": [" "]}, "invalid_request"),
        ({"items": ["a"], "parallel": 0}, "invalid_request"),
        ({"items": ["a"], "rule": {"pattern": "("}}, "invalid_batch"),
        ({"items": ["a"], "run": {"team_members": ["nobody"]}}, "invalid_request"),
    ],
)
async def test_what_cannot_be_a_batch_is_refused(it, body, code):
    refused = await it.client.post("/api/batches", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, code)
