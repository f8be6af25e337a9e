"""How fast a run that has ended is told again: from the store alone, and by a real server over HTTP."""

import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from uuid import uuid4

import httpx

from maniple.store import EventRecord, RunRecord, Store, Thread, open_store
from maniple.store.protocols import read_event_pages
from tests.environment import environment
from tests.serving import server_process

EVENTS = 10_000
BATCH = 10
"""Events that came while the last were written: the server stores them together."""
ROUNDS = 9


async def measure(base_url: str) -> dict[str, float]:
    """Keep a long run, read it from the file, then start a server on that file and read it there."""
    with tempfile.TemporaryDirectory() as home:
        data = Path(home) / "data"
        async with open_store(data / "maniple.db", data / "artifacts", server=True) as store:
            run_id = await _keep(store)
            from_store = await _from_store(store, run_id)
        with server_process(environment(base_url, home), Path(home), start=subprocess.Popen) as server:
            over_http = _over_http(f"{server.url}/api/runs/{run_id}/events")
    return {"replay_events_per_s": over_http, "replay_from_store_per_s": from_store}


async def _keep(store: Store) -> str:
    now, name = time.time(), str(uuid4())
    await store.threads.create(Thread(name, "", "replay", now, now))
    await store.runs.add(RunRecord(name, name, "", "server", "none", "completed", "{}", now))
    data = json.dumps({"message_id": "m", "delta": {"content": "some words of a report"}})
    for first in range(1, EVENTS + 1, BATCH):
        events = [EventRecord(number, "message", data) for number in range(first, first + BATCH)]
        await store.events.append([(name, events)])
    return name


async def _from_store(store: Store, run_id: str) -> int:
    began, count = time.perf_counter(), 0
    async for page in read_event_pages(store.events, run_id):
        count += len(page)
    assert count == EVENTS
    return round(EVENTS / (time.perf_counter() - began))


def _over_http(address: str) -> int:
    """Return the median of some readings; the client only counts the frames when it has them all."""
    rates = []
    with httpx.Client(timeout=60) as client:
        for _ in range(ROUNDS):
            began = time.perf_counter()
            with client.stream("GET", address) as response:
                body = b"".join(response.iter_raw())
            rates.append(EVENTS / (time.perf_counter() - began))
            assert body.count(b"\nevent: message\n") == EVENTS
    return round(statistics.median(rates))
