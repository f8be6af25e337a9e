"""A server that is killed does nothing twice of which it cannot know that it may: it asks."""

import asyncio
import json
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path

import httpx
import pytest

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import EventCounter, Mortal, together
from tests.serving import environment
from tests.sizes import sizes
from tests.team import plan, step

pytestmark = [pytest.mark.anyio]
CALLS, SEED = 3, 20261122
AGAIN, SKIP = "run it again", "skip"
_LINE = re.compile(r"\w+-\d+")


def script():
    # Its line is written at once, its result is there a moment later.
    calls = [call("bash_tool", cmd=f"echo {{run}}-{n} >> lines.txt; sleep 0.3") for n in range(CALLS)]
    return {
        "by_history": True,
        "coordinator": SIMPLE["coordinator"],
        "planner": [{"chunks": [json.dumps(plan(step("coder"), step("reporter")))]}],
        "coder": [*calls, reply("done by {run}")],
        "reporter": [reply("the report of {run}")],
    }


class Person:
    """Follows one run through every crash and answers what it asks."""

    def __init__(self, run_id: str, counter: EventCounter, answers: Iterator[str]) -> None:
        self.run_id, self.status = run_id, ""
        self.asked: dict[str, list[str]] = {}
        """The answers to each question about a command, by its line."""
        self._counter, self._answers, self._told = counter, answers, 0

    async def attend(self, server: Mortal) -> None:
        for _ in range(100):
            await server.up.wait()
            try:
                async with server.client() as client:
                    await self._follow(client)
                    await self._answer(client)
            except httpx.TransportError:
                continue  # the server was killed: come back when it is up
            if self.status == "completed":
                return
        raise AssertionError(f"the run never ended; it is {self.status}")

    async def _follow(self, client: httpx.AsyncClient) -> None:
        path = f"/api/runs/{self.run_id}/events?after={self._told}"
        async with client.stream("GET", path) as response:
            async for line in response.aiter_lines():
                if line.startswith("id: "):
                    self._told = int(line[4:])
                elif line == "event: tool_call":
                    await self._counter.increment()

    async def _answer(self, client: httpx.AsyncClient) -> None:
        stands = (await client.get(f"/api/runs/{self.run_id}")).json()
        self.status = stands["status"]
        for question in stands["interrupts"]:
            assert question["payload"]["reason"] == "unknown_result"
            [line] = _LINE.findall(question["payload"]["tool_input"]["cmd"])
            answer = next(self._answers)
            self.asked.setdefault(line, []).append(answer)
            body = {"answer": answer, "interrupt_id": question["interrupt_id"]}
            response = await client.post(f"/api/runs/{self.run_id}/resume", json=body)
            assert response.status_code == 202, response.text


def recorded(database: Path) -> set[str]:
    """Return the lines of the commands whose result is on record. Reads beside a dead server."""
    sql = "SELECT arguments FROM tool_calls WHERE tool_name = 'bash_tool' AND result IS NOT NULL"
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection, connection:
        return {line for (given,) in connection.execute(sql) for line in _LINE.findall(given)}


def written(folder: Path) -> Counter[str]:
    """Return how often each command has written its line."""
    return Counter(line for file in folder.rglob("lines.txt") for line in file.read_text().split())


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "kills"), sizes((6, 2), (10, 4)))
async def test_unrecorded_calls_are_asked_about_and_recorded_ones_never_repeated(tmp_path, runs, kills):
    dice = random.Random(SEED)
    moments = sorted(dice.sample(range(runs // 2, runs * (CALLS - 1)), kills))
    data, at_kills = tmp_path / "data", dict[str, int]()
    answers, counter = cycle([AGAIN, SKIP]), EventCounter()
    with serving(script()) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            async with server.client() as client:
                run_ids = await together(_begin(client, f"r{n}") for n in range(runs))
            people = [Person(run_id, counter, answers) for run_id in run_ids]
            async with asyncio.TaskGroup() as group:
                group.create_task(_attend_all(people, server, counter))
                for moment in moments:
                    await counter.wait_for(moment)
                    await server.kill()
                    known, lines = recorded(data / "maniple.db"), written(data)
                    at_kills |= {line: lines[line] for line in known - at_kills.keys()}
                    await server.start()
            async with server.client() as client:
                ends = [numbered((await client.get(f"/api/runs/{one}/events")).text)[-1] for one in run_ids]
    _is_right(written(data), at_kills, [person.asked for person in people])
    for number, (_, (_, last)) in enumerate(ends):
        assert f"the report of r{number}" in last["messages"][-1]["content"]
    with closing(sqlite3.connect(data / "maniple.db")) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("SELECT DISTINCT status FROM runs").fetchall() == [("completed",)]


def _is_right(lines: Counter[str], at_kills: dict[str, int], each: list[dict[str, list[str]]]) -> None:
    asked = {line: answers for one in each for line, answers in one.items()}
    repeated = {line: count for line, count in at_kills.items() if lines[line] > count}
    assert repeated == {}, "recorded calls were run again"
    assert {answer for answers in asked.values() for answer in answers} == {AGAIN, SKIP}
    for line in (f"r{run}-{number}" for run in range(len(each)) for number in range(CALLS)):
        answers = asked.get(line, [])
        # Nothing runs a second time without a word; what a kill cut off may not have written its line.
        assert lines[line] <= 1 + answers.count(AGAIN), (line, answers)
        assert lines[line] >= 1 or SKIP in answers, (line, answers)


async def _attend_all(people: list[Person], server: Mortal, counter: EventCounter) -> None:
    await asyncio.gather(*(person.attend(server) for person in people))
    await counter.end()


async def _begin(client: httpx.AsyncClient, name: str) -> str:
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    body = {"input": f"Write three lines. #run={name}"}
    response = await client.post(f"/api/threads/{thread}/runs", json=body)
    assert response.status_code == 202, response.text
    return response.json()["run_id"]
