"""The streams of scripted runs as the service sends them, for the page's own tests.

Random names are replaced by `id1`, `id2`, … in the order of their appearance, times and tokens by fixed ones.
"""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, AsyncIterator, Iterable
from contextlib import aclosing
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from maniple.events import translate
from tests.agents.browsing.shop import HOME, done, shopping, use
from tests.agents.browsing.shop import shop_script as browsing
from tests.api.in_process import QUESTION, InProcessService, numbered, open_service
from tests.graph.test_embedding import Tenant, parent_of
from tests.openai_server import SIMPLE, OpenAIServer, call, reply, serving
from tests.page.worked import worked
from tests.serving import ROOT, Frame
from tests.team import plan, scripted_team, step

FOLDER = ROOT / "web/tests/streams"
Event = dict[str, Any]
_RANDOM = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])")
_ENDPOINT = re.compile(r"http://127\.0\.0\.1:\d+/v1")
_FIXED = {"seconds": 0.5, "started": 1_800_000_000.0, "input_tokens": 1_000, "output_tokens": 100}
_OVERLOADED = {"status": 500, "error": "broken"}
_FILE = "open('sums.csv', 'w').write('a,b\\n1,3\\n'); print(1+3)"
_SLOW = {"delay_seconds": 0.03}
"""Each piece arrives alone: what arrives together is joined."""
_SEARCHED = [step("researcher"), step("reporter")]
_BOTH = {"tool_calls": [call("python_repl_tool", code=f"print({n})")["tool_calls"][0] for n in (1, 3)]}

SCRIPTS: dict[str, dict[str, Any]] = {
    "workflow": {
        "planner": [{**SIMPLE["planner"][0], **_SLOW}],
        "reporter": [{**reply("# Report\n\nIt is **4**.", reasoning="How to say it?"), **_SLOW}],
    },
    "small-talk": {"coordinator": [reply("Hello! How are you?")]},
    "small-talk-of-one-chunk": {"coordinator": [{"chunks": ["Hello!"]}]},
    "hand-off-in-odd-chunks": {"coordinator": [{"chunks": ["h", "andoff_to_", "planner", "()"]}]},
    "bad-plan": {"planner": [reply("no plan"), reply("still none")], "researcher": [reply("It is 4.")]},
    "bad-plan-mended": {"planner": [reply("no plan"), *SIMPLE["planner"]]},
    "model-error": {"reporter": [_OVERLOADED]},
    "model-error-of-coordinator": {"coordinator": [_OVERLOADED]},
    "model-error-of-planner": {"planner": [_OVERLOADED]},
    "model-error-of-coder": {"coder": [_OVERLOADED]},
    "tool-that-raises": {"coder": [call("python_repl_tool", code="boom"), reply("It did not work.")]},
    "two-calls-at-once": {"coder": [_BOTH, reply("4")]},
    "artifacts": {"coder": [call("python_repl_tool", code=_FILE), reply("The sum is 4.")]},
    "page-that-cannot-be-read": {
        "planner": [reply(json.dumps(plan(*_SEARCHED)))],
        "researcher": [call("crawl_tool", url="http://127.0.0.1:1/"), reply("It cannot be read.")],
    },
}
"""By name, what replaces the replies of `SIMPLE`."""


async def recorded_streams(home: Path) -> AsyncIterator[tuple[str, list[Event]]]:
    """Run everything that needs no other process; yield each stream with its name."""
    with serving(SIMPLE) as model:
        settings = {"sandbox": {}, "runs": {"approval": ["bash_tool"]}, "server": {"stream_rate": 0}}
        async with open_service(model.base_url, home, **settings) as it:
            for name, script in SCRIPTS.items():
                model.reset({**SIMPLE, **script})
                yield name, await stream(it, (await it.run())["run_id"])
            async with aclosing(_steered(it, model)) as steered:
                async for one in steered:
                    yield one
    yield "browser", await _browsed()
    yield "embedded", await _embedded()
    yield "report", events(enumerate(await worked(), 1))


async def _steered(it: InProcessService, model: OpenAIServer) -> AsyncGenerator[tuple[str, list[Event]]]:
    """Yield what a person takes part in."""
    model.reset(SIMPLE)
    yield "plan-review", await _answered(it, "accept", auto_accepted_plan=False)
    approving = {"coder": [call("bash_tool", cmd="echo 4"), reply("4")]}
    model.reset({**SIMPLE, **approving})
    yield "tool-approval", await _answered(it, "approve")
    asks = [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]
    model.reset({**SIMPLE, "coordinator": asks})
    yield "question", await _answered(it, "1 and 3")
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    run = (await it.run())["run_id"]
    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1, 100)
    await it.client.post(f"/api/runs/{run}/cancel")
    yield "cancelled", await stream(it, run)
    model.reset({**SIMPLE, "reporter": [reply("for {run}")]})
    asked = [{**QUESTION["messages"][0], "content": f"1+3=? #run={name}"} for name in ("alpha", "beta")]
    both = [(await it.run(messages=[one]))["run_id"] for one in asked]
    first, second = await asyncio.gather(*(stream(it, run) for run in both))
    yield "two-runs-at-once-1", first
    yield "two-runs-at-once-2", second


async def _answered(it: InProcessService, answer: str, **body: Any) -> list[Event]:
    run = (await it.run(**body))["run_id"]
    await stream(it, run)
    await it.client.post(f"/api/runs/{run}/resume", json={"answer": answer})
    return await stream(it, run)


async def stream(it: InProcessService, run_id: str) -> list[Event]:
    """Return all events of a run until it has ended or waits."""
    return events(numbered((await it.client.get(f"/api/runs/{run_id}/events?view=live")).text))


async def _browsed() -> list[Event]:
    script = browsing(use("go_to_url", url=HOME), use("click_element", index="index of Basket"), done())
    async with shopping(script) as (team, _):
        frames = await team.run("What do apples cost?", thread_id="t")
    return events(enumerate(frames, 1))


async def _embedded() -> list[Event]:
    async with scripted_team(SIMPLE, checkpointer=None) as it:
        raw = parent_of(it.team).astream_events({"messages": []}, context=Tenant("acme"), version="v2")
        asked = [HumanMessage("1+3=?")]
        frames = [
            (one.type, one.data()) async for one in translate(raw, run_id="r", thread_id="t", messages=asked)
        ]
    return events(enumerate(frames, 1))


def events(frames: Iterable[tuple[int, Frame]]) -> list[Event]:
    """Return frames as the page takes them, with what differs from run to run replaced."""
    plain = [{"id": number, "type": kind, **data} for number, (kind, data) in frames]
    for event in plain:
        event.update({key: one for key, one in _FIXED.items() if key in event})
    seen: dict[str, str] = {}
    text = _RANDOM.sub(lambda match: seen.setdefault(match.group(), f"id{len(seen) + 1}"), json.dumps(plain))
    return json.loads(_ENDPOINT.sub("http://127.0.0.1:9/v1", text))
