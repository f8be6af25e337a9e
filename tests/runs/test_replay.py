"""A follower of a run gets every event once and in order, in spite of failures."""

import asyncio
import json
import random

import httpx
import pytest

from tests.openai_server import BRIEF, serving, words
from tests.runs.killing import EventCounter, Mortal
from tests.serving import environment
from tests.sizes import sizes

pytestmark = [pytest.mark.anyio]
SEED = 7
BEFORE_THE_REPORT = 40
"""The maximum number of events; a run killed during a tool call waits for a user's answer."""


class Follower:
    """Reads one run's events, leaving at random moments and coming back with the last number it has."""

    def __init__(self, run_id: str, leaves: list[int], counter: EventCounter) -> None:
        self.run_id = run_id
        self._counter = counter
        self.heard: list[tuple[int, str]] = []
        self.drops = 0
        self._leaves = iter(leaves)
        self._leave_after = next(self._leaves, None)

    @property
    def done(self) -> bool:
        return bool(self.heard) and '"event": "final_session_state"' in self.heard[-1][1]

    def turns(self) -> list[tuple[str, str]]:
        """Return who spoke, and what was said in that turn."""
        turns: list[tuple[str, str]] = []
        for _, event in self.heard:
            told = json.loads(event)
            if told["event"] == "start_of_agent":
                turns.append((told["data"]["agent_name"], ""))
            elif told["event"] == "message":
                agent, text = turns[-1]
                turns[-1] = agent, text + told["data"]["delta"]["content"]
        return turns

    async def follow(self, server: Mortal) -> None:
        for _ in range(100):
            if self.done:
                return
            await server.up.wait()
            try:
                async with server.client() as client:
                    await self._read(client)
            except httpx.TransportError:
                continue  # the server was killed: come back when it is up
        raise AssertionError(f"the run never ended; heard {len(self.heard)} events")

    async def _read(self, client: httpx.AsyncClient) -> None:
        headers = {"last-event-id": str(self.heard[-1][0])} if self.heard else {}
        async with client.stream("GET", f"/api/runs/{self.run_id}/events", headers=headers) as response:
            assert response.status_code == 200
            number, name = 0, ""
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                elif line.startswith("event: "):
                    name = line[7:]
                elif line.startswith("data: "):
                    self.heard.append((number, json.dumps({"event": name, "data": json.loads(line[6:])})))
                    await self._counter.increment()
                    if self._leave_after is not None and len(self.heard) >= self._leave_after:
                        self.drops += 1
                        self._leave_after = next(self._leaves, None)
                        return


@pytest.mark.parametrize(("streams", "drops", "kills", "pieces"), sizes((3, 20, 1, 60), (20, 132, 3, 290)))
async def test_dropped_connections_and_kills_lose_repeat_and_reorder_nothing(
    tmp_path, streams, drops, kills, pieces
):
    dice = random.Random(SEED)
    each = [drops // streams + (number < drops % streams) for number in range(streams)]
    # Killed when it is stored and not told, it is told from the store, where it ends with its last word, in
    # one piece: so slowly that a busy machine's followers keep up.
    report = [*words(pieces - 1), "end"]
    script = {**BRIEF, "by_history": True, "reporter": [{"chunks": report, "delay_seconds": 0.05}]}
    with serving(script) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_ids = [await _begin(client, f"s{number}") for number in range(streams)]
            counter = EventCounter()
            followers = [
                Follower(run_id, sorted(dice.sample(range(2, pieces), leaves)), counter)
                for run_id, leaves in zip(run_ids, each, strict=True)
            ]
            async with asyncio.TaskGroup() as group:
                group.create_task(_follow_all(followers, server, counter))
                await counter.wait_until(lambda: all(len(one.heard) > BEFORE_THE_REPORT for one in followers))
                for kill in range(kills):
                    await counter.wait_for((kill + 1) * streams * pieces // (kills + 2))
                    await server.kill()
                    await server.start()
            async with server.client() as client:
                replays = [(await client.get(f"/api/runs/{run_id}/events")).text for run_id in run_ids]
    # On a busy machine some pieces are told together, and the last places to leave are never reached.
    assert sum(follower.drops for follower in followers) >= drops * 3 // 4
    for follower, replay in zip(followers, replays, strict=True):
        numbers = [number for number, _ in follower.heard]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) >= pieces * 3 // 4
        assert [json.loads(event)["data"] for _, event in follower.heard] == [
            json.loads(line[6:]) for line in replay.splitlines() if line.startswith("data: ")
        ]
        _says_what_the_model_said(follower.turns(), "".join(report))


def _says_what_the_model_said(turns: list[tuple[str, str]], report: str) -> None:
    """A turn that a kill cut off has its beginning; the last turn is complete, without gaps."""
    texts = [text for agent, text in turns if agent == "reporter"]
    assert texts[-1] == report
    assert all(report.startswith(text) for text in texts)
    assert [text for agent, text in turns if agent == "coder"][-1] == "1 + 3 = 4"


async def _follow_all(followers: list[Follower], server: Mortal, counter: EventCounter) -> None:
    await asyncio.gather(*(follower.follow(server) for follower in followers))
    await counter.end()


async def _begin(client, name: str) -> str:
    body = {"messages": [{"role": "user", "content": f"1+3=? #run={name}"}]}
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    return (await client.post(f"/api/threads/{thread}/runs", json=body)).json()["run_id"]
