"""LangGraph's second streaming protocol with its own clients: commands, and the events of a thread."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.pregel.remote import RemoteGraph
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello! How are you?")]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
CHANNELS = ["lifecycle", "messages", "values", "updates", "tools", "custom", "input"]
QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}
ENDS = ("completed", "failed", "interrupted")


@pytest.fixture
async def client(server: ServerProcess) -> AsyncIterator[LangGraphClient]:
    async with get_client(url=server.url, api_key=None, timeout=100) as it:
        yield it


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as it:
        yield it


async def command(http: httpx.AsyncClient, thread: str, method: str, **params: Any) -> Any:
    answer = await http.post(
        f"/threads/{thread}/commands", json={"id": 1, "method": method, "params": params}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def start(http: httpx.AsyncClient, thread: str = "", **params: Any) -> tuple[str, Any]:
    thread = thread or str(uuid4())
    given = {"assistant_id": "maniple", "input": QUESTION, **params}
    return thread, await command(http, thread, "run.start", **given)


async def events(http: httpx.AsyncClient, thread: str, **wanted: Any) -> AsyncGenerator[dict[str, Any]]:
    body = {"channels": CHANNELS, **wanted}
    async with http.stream("POST", f"/threads/{thread}/stream/events", json=body) as response:
        assert response.status_code == 200
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


async def read_run(
    http: httpx.AsyncClient, thread: str, until: str = "", **wanted: Any
) -> list[dict[str, Any]]:
    """Return the events up to the end of a run or of the member `until`, or to where the run waits."""
    found: list[dict[str, Any]] = []
    async for event in events(http, thread, **wanted):
        found.append(event)
        params = event["params"]
        names = [one.partition(":")[0] for one in params["namespace"]]
        is_end = event["method"] == "lifecycle" and params["data"]["event"] in ENDS
        if is_end and names == ([until] if until else []):
            break
    return found


def data(found: list[dict[str, Any]], method: str) -> list[Any]:
    return [one["params"]["data"] for one in found if one["method"] == method]


async def test_a_run_is_started_and_its_channels_agree(http: httpx.AsyncClient):
    thread, answer = await start(http)
    assert answer["type"] == "success"
    found = await read_run(http, thread)
    numbers = [one["seq"] for one in found]
    assert numbers == sorted(set(numbers))
    assert min(numbers) > answer["meta"]["applied_through_seq"]
    values = data(found, "values")[-1]
    root = [one for one in found if one["method"] == "messages" and not one["params"]["namespace"]]
    parts = data(root, "messages")
    assert [parts[0]["event"], parts[-1]["event"]] == ["message-start", "message-finish"]
    assert parts[0]["id"] == values["messages"][-1]["id"]
    depths = {len(one["params"]["namespace"]) for one in found if one["method"] == "messages"}
    assert depths == {0, 2}, "clients count what is one level deep as the conversation"
    assert "4" in values["messages"][-1]["content"]
    assert {"tool-started", "tool-finished"} <= {one["event"] for one in data(found, "tools")}
    assert {"started", "running", "completed"} <= {one["event"] for one in data(found, "lifecycle")}
    assert (await command(http, thread, "state.get", namespace=[]))["result"]["values"] == values


async def test_since_and_namespaces_choose_among_the_same_events(http: httpx.AsyncClient):
    thread, _ = await start(http)
    whole = await read_run(http, thread)
    for place in (0, len(whole) // 2, len(whole) - 2):
        assert await read_run(http, thread, since=whole[place]["seq"]) == whole[place + 1 :]
    roots = [one for one in whole if not one["params"]["namespace"]]
    assert await read_run(http, thread, namespaces=[[]], depth=0) == roots
    coder = await read_run(
        http, thread, namespaces=[["coder"]], channels=["lifecycle", "tools"], until="coder"
    )
    assert {one["params"]["namespace"][0].split(":")[0] for one in coder} == {"coder"}
    assert "tools" in {one["method"] for one in coder}
    named = await read_run(http, thread, channels=["lifecycle", "custom:tool_call"])
    assert {one["name"] for one in data(named, "custom")} == {"tool_call"}


async def test_one_stream_goes_on_with_the_next_run(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset(TALK)
    thread, first = await start(http)
    runs: list[str] = []
    started = [first["result"]["run_id"]]
    async for event in events(http, thread, channels=["lifecycle"]):
        if event["params"]["data"]["event"] == "completed" and not event["params"]["namespace"]:
            runs.append(event["params"]["run_id"])
            if len(runs) == 2:
                break
            _, second = await start(http, thread)
            started.append(second["result"]["run_id"])
    assert runs == started


async def test_an_interrupt_is_answered_by_a_command(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset(APPROVAL)
    thread, _ = await start(http)
    found = await read_run(http, thread)
    [asked] = data(found, "input.requested")
    assert asked["payload"]["action_requests"][0]["name"] == "bash_tool"
    assert data(found, "lifecycle")[-1]["event"] == "interrupted"
    answer = {"interrupt_id": asked["interrupt_id"], "response": {"decisions": [{"type": "approve"}]}}
    sent = await command(http, thread, "input.respond", namespace=[], **answer)
    rest = await read_run(http, thread, since=sent["meta"]["applied_through_seq"])
    assert "4" in data(rest, "values")[-1]["messages"][-1]["content"]
    again = await command(http, thread, "input.respond", namespace=[], **answer)
    assert (again["type"], again["error"]) == ("error", "no_such_interrupt")


async def test_a_message_is_sent_to_a_run_at_work(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset({"coordinator": [reply("Hello!", hang=True)]})
    thread, _ = await start(http)
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    sent = await command(
        http, thread, "input.inject", namespace=[], message={"role": "user", "content": "Hurry."}
    )
    assert sent["type"] == "success"
    await asyncio.to_thread(model.release)
    await read_run(http, thread)  # to its end: it takes no answer of the next test
    refused = await command(http, str(uuid4()), "input.inject", message={"role": "user", "content": "Hi"})
    assert refused["error"] == "no_such_run"


async def test_a_cancelled_run_ends_the_output_of_the_sdk(client: LangGraphClient, model: OpenAIServer):
    model.reset({"coordinator": [reply("Hello!", hang=True)]})
    async with client.threads.stream(assistant_id="maniple") as thread:
        run = await thread.run.start(input=QUESTION)
        await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
        await client.runs.cancel(thread.thread_id, run["run_id"])
        with pytest.raises(RuntimeError, match="cancelled"):
            async with asyncio.timeout(60):
                await thread.output


@pytest.mark.parametrize(
    ("method", "params", "error"),
    [
        ("run.start", {"assistant_id": "maniple", "input": {"messages": []}}, "invalid_argument"),
        ("run.start", {"assistant_id": "agent", "input": QUESTION}, "no_such_run"),
        ("run.start", {"input": QUESTION}, "invalid_argument"),
        ("state.fork", {"checkpoint_id": "1"}, "not_supported"),
        ("input.respond", {"interrupt_id": "1", "response": 1, "goto": "planner"}, "not_supported"),
    ],
)
async def test_a_command_that_cannot_be_done_is_an_error_of_the_protocol(
    http: httpx.AsyncClient, method: str, params: dict[str, Any], error: str
):
    assert (await command(http, str(uuid4()), method, **params))["error"] == error


async def test_the_sdk_streams_a_run_and_answers_its_interrupt(client: LangGraphClient, model: OpenAIServer):
    model.reset(APPROVAL)
    async with client.threads.stream(assistant_id="maniple") as thread:
        await thread.run.start(input=QUESTION)
        async for _ in thread.values:
            pass
        async with asyncio.timeout(60):  # its watcher is a connection of its own
            while not thread.interrupts:  # noqa: ASYNC110 - another task changes it
                await asyncio.sleep(0.01)
        [asked] = thread.interrupts
        assert asked["value"]["action_requests"][0]["name"] == "bash_tool"
        await thread.run.respond({"decisions": [{"type": "approve"}]})
        values: Any = await thread.output
        assert "4" in values["messages"][-1]["content"]


async def test_the_sdk_streams_the_messages_of_a_run(client: LangGraphClient):
    async with client.threads.stream(assistant_id="maniple") as thread:
        await thread.run.start(input=QUESTION)
        messages = [message async for message in thread.messages]
        texts = [await message.text for message in messages]
        values: Any = await thread.output
        assert texts[-1].strip() == values["messages"][-1]["content"]


async def test_a_remote_graph_streams_the_second_version(client: LangGraphClient):
    team = RemoteGraph("maniple", client=client)
    given = {"messages": [HumanMessage("1+3=?").model_dump()]}
    async with await team.astream_events(given, version="v3") as run:
        values: Any = await run.output()
    assert "4" in values["messages"][-1]["content"]
