"""A run that waits for the user still waits after a crash, and continues with the answer."""

import json
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from tests.api.in_process import numbered
from tests.grammar import Client
from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.runs.killing import Mortal, crawling, open_site, together
from tests.serving import Frame, environment
from tests.sizes import rest_is_slow
from tests.team import agents, data, plan, status, step

pytestmark = [pytest.mark.anyio]
WHEN = pytest.mark.parametrize("killed_after_the_answer", rest_is_slow([True, False], 1))
"""Killed before the answer only, or also after it."""


@dataclass
class Answered:
    """One run: its name, the answer for it, and its events before and after."""

    name: str
    answer: Any
    run_id: str = ""
    pause: dict[str, Any] | None = None
    told: int = 0

    async def begin(self, client: httpx.AsyncClient, **body: Any) -> None:
        thread = (await client.post("/api/threads")).json()["thread_id"]
        asked = {"input": f"1+3=? #run={self.name}", **body}
        response = await client.post(f"/api/threads/{thread}/runs", json=asked)
        self.run_id = response.json()["run_id"]
        frames = await self.read_events(client)
        assert status(frames) == "interrupted"
        [self.pause] = data(frames, "interrupt")

    async def say(self, client: httpx.AsyncClient) -> None:
        stands = (await client.get(f"/api/runs/{self.run_id}")).json()
        assert (stands["status"], stands["interrupts"]) == ("interrupted", [self.pause])
        body = {"answer": self.answer, "interrupt_id": stands["interrupts"][0]["interrupt_id"]}
        response = await client.post(f"/api/runs/{self.run_id}/resume", json=body)
        assert response.status_code == 202, response.text

    async def read_events(self, client: httpx.AsyncClient) -> list[Frame]:
        """Follow the run from where it was followed before, to its end or its next pause."""
        text = (await client.get(f"/api/runs/{self.run_id}/events?after={self.told}")).text
        read = numbered(text)
        assert [number for number, _ in read] == list(range(self.told + 1, self.told + 1 + len(read)))
        self.told += len(read)
        frames = [frame for _, frame in read]
        Client().read(frames)
        return frames


async def through_a_crash(
    server: Mortal, runs: list[Answered], killed_after_the_answer: bool, **body: Any
) -> list[list[Frame]]:
    """Let all pause, kill the server, answer, and return the events after that."""
    async with server.client() as client:
        await together(one.begin(client, **body) for one in runs)
    await server.kill()
    await server.start()
    async with server.client() as client:
        await together(one.say(client) for one in runs)
        if not killed_after_the_answer:
            return await together(one.read_events(client) for one in runs)
    await server.kill()
    await server.start()
    async with server.client() as client:
        return await together(one.read_events(client) for one in runs)


def asked_of(model: OpenAIServer, role: str, name: str) -> list[str]:
    """Return what the model was shown as `role` in one conversation."""
    shown = [json.dumps(request["messages"]) for request in model.requests]
    return [text for text in shown if f"You are the {role}" in text and f"#run={name}" in text]


@WHEN
async def test_a_plan_is_accepted_edited_or_sent_back_after_a_crash(tmp_path, killed_after_the_answer):
    mine = plan(step("reporter", "Say it at once"), title="Mine")
    accepted, edited = Answered("accepted", "accept"), Answered("edited", mine)
    rejected = Answered("rejected", "Use the abacus.")
    with serving({**SIMPLE, "by_history": True}) as model:
        async with Mortal(environment(model.base_url, tmp_path), tmp_path) as server:
            runs = [accepted, edited, rejected]
            body = {"auto_accepted_plan": False}
            as_planned, as_edited, again = await through_a_crash(
                server, runs, killed_after_the_answer, **body
            )
            assert (status(as_planned), status(as_edited), status(again)) == (
                "completed",
                "completed",
                "interrupted",
            )
            [rejected.pause], rejected.answer = data(again, "interrupt"), "accept"
            async with server.client() as client:
                await rejected.say(client)
                at_last = await rejected.read_events(client)
    assert (agents(as_planned)[0], agents(as_planned)[-1]) == ("coder", "reporter")
    assert set(agents(as_edited)) == {"reporter"}
    assert data(as_edited, "plan")[-1]["title"] == "Mine"
    told = [[one["answer"] for one in data(frames, "user_answer")] for frames in (as_planned, again)]
    assert told == [["accept"], ["Use the abacus."]]
    assert len(data(as_edited, "user_answer")) == 1
    assert "planner" in agents(again)
    assert "Use the abacus." in asked_of(model, "planner", "rejected")[-1]
    assert status(at_last) == "completed"
    assert len(asked_of(model, "planner", "accepted")) == 1, "what was accepted is not planned again"


@WHEN
async def test_a_call_is_approved_edited_or_rejected_after_a_crash(tmp_path, killed_after_the_answer):
    (tmp_path / "conf.yaml").write_text("runs: {approval: [crawl_tool]}\n", encoding="utf-8")
    async with open_site() as site:
        runs = [
            Answered("approved", "approve"),
            Answered("edited", {"type": "edit", "args": {"url": f"{site.url}/another"}}),
            Answered("rejected", "No, no need"),
        ]
        with serving(crawling(site)) as model:
            env = environment(model.base_url, tmp_path, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
            async with Mortal(env, tmp_path) as server:
                told = await through_a_crash(server, runs, killed_after_the_answer)
    assert [status(frames) for frames in told] == ["completed"] * 3
    assert site.hits.keys() == {"/approved", "/another"}
    # A page may be read again when nobody knows the result; without a kill meanwhile it is read once.
    assert killed_after_the_answer or site.hits.total() == 2
    shown = asked_of(model, "researcher", "rejected")[-1]
    assert "call: No, no need" in shown
