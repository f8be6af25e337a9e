"""A server that is killed while a report is being repaired gives the same report afterwards."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from maniple.agents.report_score import remove_score
from tests.crawler.web import Reply, open_site
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import Mortal
from tests.serving import environment
from tests.team import plan, step

pytestmark = [pytest.mark.anyio]
PAGE = "<title>Tea</title><h1>Tea</h1><p>Tea costs 3 euros, and nobody has complained since the spring.</p>"
DRAFT = (
    "# Tea\n\nIt costs 3 euros [1].\n\n"
    "They say “nobody has ever complained about it” [1].\n\n"
    "More at https://made.test/up, so “tea costs 3 euros, and nobody has complained” [1].\n"
)
MENDED = '<passage number="1">They say “nobody has complained since the spring” [1].</passage>'


def script(url: str, mending: dict[str, Any]) -> dict[str, Any]:
    return {
        "coordinator": SIMPLE["coordinator"],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [call("crawl_tool", url=url), reply("Tea costs 3 euros [1].")],
        "reporter": [reply(DRAFT), mending],
    }


async def begun(client: httpx.AsyncClient) -> str:
    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
    body = {"messages": [{"role": "user", "content": "What does tea cost?"}]}
    return (await client.post(f"/api/threads/{thread}/runs", json=body)).json()["run_id"]


async def sources(client: httpx.AsyncClient, run_id: str) -> list[dict[str, Any]]:
    return (await client.get(f"/api/runs/{run_id}/sources")).json()["sources"]


async def report(client: httpx.AsyncClient, run_id: str) -> str:
    """Return the report when the run has ended; its last answer in the stream is the same."""
    told = (await client.get(f"/api/runs/{run_id}/events")).text
    _, _, last = told.strip().rpartition("\ndata: ")
    answer = await client.get(f"/api/runs/{run_id}/report", headers={"accept": "text/markdown"})
    assert json.loads(last)["messages"][-1]["content"] == answer.text
    return answer.text


async def test_the_report_and_its_sources_are_as_if_nothing_had_happened(tmp_path):
    async with open_site({"/tea": Reply(PAGE)}) as site:
        url = f"{site.url}/tea"
        with serving(script(url, reply(MENDED))) as model:
            env = environment(model.base_url, tmp_path, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
            async with Mortal(env, tmp_path) as server:
                async with server.client() as client:
                    undisturbed = await report(client, await begun(client))
                    model.reset(script(url, {"hang": True}))
                    run_id = await begun(client)
                    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"]["reporter"] == 2)
                    read = await sources(client, run_id)
                await server.kill()
                model.reset(script(url, reply(MENDED)))
                await server.start()
                async with server.client() as client:
                    assert await report(client, run_id) == undisturbed
                    assert await sources(client, run_id) == read
            assert model.stats["by_role"] == {"reporter": 2}, "nothing else was done again"
    assert [(one["number"], one["url"], one["kind"]) for one in read] == [(1, url, "page")]
    assert "They say “nobody has complained since the spring” [1]." in undisturbed
    assert "https://made.test/up [unverified], so “tea costs" in undisturbed
    assert remove_score(undisturbed).endswith(f"## Sources\n\n- [1] Tea: <{url}>")
    assert len(site.requests) == 2
