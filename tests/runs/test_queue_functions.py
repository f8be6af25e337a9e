"""Functions of the client outlive the workers that drive the run."""

import asyncio
from typing import Any

import pytest

from tests.openai_server import call, reply, serving
from tests.runs.workers import cluster_of

openai = pytest.importorskip("openai")
pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(240)]
WEATHER = {"name": "get_weather", "parameters": {"properties": {"location": {"type": "string"}}}}
TOOLS: Any = [{"type": "function", "function": WEATHER}]
STEP = {"agent_name": "researcher", "title": "Look", "description": "Look up the weather."}
RESULT = "warm\0 and dry"


async def test_a_call_and_its_result_outlive_two_workers(postgres_url, tmp_path):
    rome, oslo = (call("get_weather", location=one) for one in ("Rome", "Oslo"))
    answers = {
        "coordinator": [call("handoff_to_planner", locale="en-US", step=STEP)],
        "researcher": [rome, {"hang": True}, oslo, reply("It is warm.")],
    }
    with serving(answers) as model:
        cluster = cluster_of(postgres_url, model.base_url, tmp_path, count=1, MANIPLE_RUNS__LEASE_SECONDS="3")
        async with cluster as (api, workers):
            async with openai.AsyncOpenAI(base_url=f"{api}/v1", api_key="none", timeout=100) as client:
                messages: list[Any] = [{"role": "user", "content": "What is the weather?"}]

                async def ask() -> Any:
                    return await client.chat.completions.create(
                        model="maniple", messages=messages, tools=TOOLS
                    )

                def answer(answered: Any) -> None:
                    [called] = answered.choices[0].message.tool_calls
                    message = answered.choices[0].message.model_dump(exclude_none=True)
                    messages.extend([message, {"role": "tool", "tool_call_id": called.id, "content": RESULT}])

                first = await ask()
                answer(first)
                await workers.kill(workers.running[0])
                await workers.add()
                going = asyncio.create_task(ask())
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("researcher") == 2)
                await workers.kill(workers.running[0])
                await workers.add()
                second = await going
                answer(second)
                third = await ask()
    assert {one.id for one in (first, second, third)} == {first.id}
    assert third.choices[0].message.content == "It is warm."
    offered = [one for one in model.requests if "You are the researcher" in str(one)]
    assert len(offered) == 4
    assert all("get_weather" in str(one["tools"]) for one in offered)
    assert str(offered[-1]["messages"]).count("and dry") == 2
