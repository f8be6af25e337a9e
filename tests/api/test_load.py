"""Many runs at once on one server process."""

import asyncio

import httpx
import pytest

from tests.grammar import Client
from tests.openai_server import SIMPLE, call, reply, serving
from tests.serving import environment, frames_of, server_process

pytestmark = pytest.mark.anyio
RUNS = 50
BLOCKED_MS = 50


@pytest.fixture
def script():
    coder = [
        call("python_repl_tool", code="open('{run}', 'w').close(); import os; print(sorted(os.listdir()))")
    ]
    return {
        **SIMPLE,
        "coder": [*coder, reply("done by {run}")],
        "reporter": [reply("report for {run}, word by word")],
    }


async def test_fifty_runs_at_once_share_nothing_and_never_block_the_loop(script, tmp_path):
    with (
        serving(script) as model,
        server_process(environment(model.base_url, tmp_path), tmp_path, measured=True) as server,
    ):
        limits = httpx.Limits(max_connections=RUNS)
        async with httpx.AsyncClient(base_url=server.url, timeout=120, limits=limits) as client:

            async def one(number: int):
                question = f"1+3=? #run=r{number}"
                return await frames_of(client, {"messages": [{"role": "user", "content": question}]})

            await one(RUNS)  # what is loaded at first use is not what is measured
            await client.post("/test/loop")
            told = await asyncio.gather(*(one(number) for number in range(RUNS)))
            longest = (await client.get("/test/loop")).json()
        requests = list(model.requests)
    for number, frames in enumerate(told):
        Client().read(frames)
        mine, text = f"r{number}", str(frames)
        assert f"report for {mine}," in text
        printed = dict(frames)["tool_call_result"]["tool_result"].splitlines()[0]
        assert printed == f"['{mine}']", "the workspace is the run's own"
        assert not any(
            f"by r{other}'" in text or f"for r{other}," in text for other in range(RUNS) if other != number
        )
    assert len(requests) == 5 * (RUNS + 1)
    assert longest["ms"] < BLOCKED_MS, longest
