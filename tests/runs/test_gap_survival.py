"""A server that is killed between two rounds of a deep run continues with the round that was under way."""

import asyncio
import json

import pytest

from tests.api.in_process import numbered
from tests.openai_server import SIMPLE, call, reply, serving
from tests.runs.killing import Mortal, open_site
from tests.serving import environment
from tests.team import plan, step

pytestmark = [pytest.mark.anyio]
PLAN = json.dumps(plan(step("researcher", "Find"), step("reporter", "Report")))


def gaps(title: str):
    new = {"agent_name": "researcher", "title": title, "description": f"Find {title}.", "needs": []}
    asked = {"question": f"What about {title}?", "why": "It is asked for.", "open": False}
    return reply(json.dumps({"gaps": [asked], "steps": [new]}))


def script(researcher, lead):
    return {
        "coordinator": SIMPLE["coordinator"],
        "planner": [reply(PLAN)],
        "researcher": researcher,
        "supervisor": lead,
        "reporter": [reply("# Tea")],
    }


async def test_a_run_that_is_killed_between_two_rounds_goes_on_with_the_second(tmp_path):
    async with open_site() as site:

        def read(name: str):
            return [call("crawl_tool", url=f"{site.url}/{name}"), reply(f"{name} is found")]

        first = script([*read("tea"), *read("milk")], [gaps("milk"), {"hang": True}])
        with serving(first) as model:
            env = environment(model.base_url, tmp_path, MANIPLE_FETCH__ALLOW_PRIVATE="127.0.0.0/8")
            async with Mortal(env, tmp_path) as server:
                async with server.client() as client:
                    thread = (await client.post("/api/threads", json={})).json()["thread_id"]
                    body = {"input": "What does tea cost?", "depth": "deep"}
                    run_id = (await client.post(f"/api/threads/{thread}/runs", json=body)).json()["run_id"]
                    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"]["supervisor"] == 2)
                await server.kill()
                model.reset(script(read("sugar"), [gaps("sugar")]))
                await server.start()
                async with server.client() as client:
                    events = numbered((await client.get(f"/api/runs/{run_id}/events")).text)
            assert model.stats["by_role"] == {"supervisor": 1, "researcher": 2, "reporter": 1}
    sent = [content for _, (name, content) in events if name == "plan"][-1]["steps"]
    assert [(one["title"], one["status"]) for one in sent] == [
        ("Find", "completed"),
        ("milk", "completed"),
        ("sugar", "completed"),
        ("Report", "completed"),
    ]
    reviews = [content for _, (name, content) in events if name == "gap_review"]
    assert [(one["round"], one["steps"]) for one in reviews] == [(1, ["milk"]), (2, ["sugar"]), (2, [])]
