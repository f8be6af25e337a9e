"""A run outlives the request that started it, in every protocol.

Each protocol's own client loses its request to a time-out of its own, or to `kill -9` of the server. Then it
attaches to the run again, as its protocol does that. Nothing is lost, and nothing is done or said twice.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import httpx2
import pytest
from ag_ui.core import RunAgentInput
from langgraph_sdk import get_client
from mcp import Client
from mcp.shared.exceptions import MCPError
from openai import APIError, AsyncOpenAI

from tests.mcp_server.hosts import HELLO
from tests.openai_server import SIMPLE, OpenAIServer
from tests.protocols import test_langgraph_streams as second
from tests.protocols.conftest import SETTINGS
from tests.protocols.javascript import CLIENT_MODULES, HAS_NODE, WEB_MODULES, ClientError, JavaScriptClient
from tests.serving import ServerProcess, environment, server_process

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
QUESTION = "1+3=?"
ANSWER = "The answer is **4**."
HANGING = {**SIMPLE, "coder": [{"hang": True}, *SIMPLE["coder"]]}
TIMEOUT_SECONDS = 5
PING_SECONDS = 15
"""The longest silence of an idle stream: MCP's SDK pings so often."""
LONG_SECONDS = 100


def openai_client(url: str, seconds: float) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=f"{url}/v1", api_key="none", timeout=seconds, max_retries=0)


class ChatCompletions:
    """The same request again joins the run."""

    async def begin(self, url: str, seconds: float) -> None:
        await self.attach(url, seconds)

    async def attach(self, url: str, seconds: float = LONG_SECONDS) -> str:
        async with AsyncOpenAI(
            base_url=f"{url}/v1", api_key="none", timeout=seconds, max_retries=0
        ) as client:
            stream = await client.chat.completions.create(
                model="maniple", messages=[{"role": "user", "content": QUESTION}], stream=True
            )
            return "".join([one.choices[0].delta.content or "" async for one in stream if one.choices])


class Responses:
    """The stream goes on after the newest event."""

    response_id = ""
    number = -1
    text = ""

    async def begin(self, url: str, seconds: float) -> None:
        async with openai_client(url, seconds) as client:
            stream = await client.responses.create(
                model="maniple", input=QUESTION, stream=True, background=True
            )
            await self._read(stream)

    async def attach(self, url: str) -> str:
        async with openai_client(url, LONG_SECONDS) as client:
            stream = await client.responses.retrieve(
                self.response_id, stream=True, starting_after=self.number
            )
            await self._read(stream)
        return self.text

    def reload(self) -> None:
        self.number, self.text = -1, ""

    async def _read(self, stream: Any) -> None:
        async for event in stream:
            self.number = event.sequence_number
            if event.type == "response.created":
                self.response_id = event.response.id
            elif event.type == "response.output_text.delta":
                self.text += event.delta


class LangGraph:
    """The stream of the run is joined after its newest part."""

    thread_id = ""
    run_id = ""
    newest = ""

    async def begin(self, url: str, seconds: float) -> None:
        # After a time-out of its own the client would attach by itself.
        async with asyncio.timeout(seconds), get_client(url=url, api_key=None, timeout=seconds) as client:
            self.thread_id = (await client.threads.create())["thread_id"]
            asked = {"messages": [{"role": "user", "content": QUESTION}]}
            async for part in client.runs.stream(
                self.thread_id, "maniple", input=asked, stream_mode="values"
            ):
                self.run_id = self.run_id or part.data["run_id"]
                self.newest = part.id or self.newest

    async def attach(self, url: str) -> str:
        async with get_client(url=url, api_key=None, timeout=LONG_SECONDS) as client:
            [run] = await client.runs.list(self.thread_id)
            assert run["run_id"] == self.run_id
            rest = client.runs.join_stream(
                self.thread_id, self.run_id, last_event_id=self.newest, stream_mode="values"
            )
            values: Any = [part.data async for part in rest if part.event == "values"][-1]
            assert (await client.threads.get_state(self.thread_id))["values"] == values
            return "".join(one["content"] for one in values["messages"] if one["type"] == "ai")

    def reload(self) -> None:
        self.newest = ""


class LangGraphEvents:
    """The events of the thread go on after the newest one."""

    thread = ""
    number = 0

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def begin(self, url: str, seconds: float) -> None:
        async with httpx.AsyncClient(base_url=url, timeout=seconds) as http:
            self.thread, _ = await second.start(http)
            await self._read(http)

    async def attach(self, url: str) -> str:
        async with httpx.AsyncClient(base_url=url, timeout=LONG_SECONDS) as http:
            await self._read(http)
        numbers = [one["seq"] for one in self.seen]
        assert numbers == sorted(set(numbers))
        root = [one for one in self.seen if not one["params"]["namespace"]]
        begun = [one["id"] for one in second.data(root, "messages") if one["event"] == "message-start"]
        said = second.data(root, "values")[-1]["messages"]
        assert len(begun) == len(set(begun))
        return "".join(one["content"] for one in said if one["type"] == "ai")

    def reload(self) -> None:
        self.seen, self.number = [], 0

    async def _read(self, http: httpx.AsyncClient) -> None:
        since = {"since": self.number} if self.number else {}
        async with aclosing(second.events(http, self.thread, **since)) as events:
            async for one in events:
                self.seen.append(one)
                self.number = one["seq"]
                params = one["params"]
                is_end = one["method"] == "lifecycle" and params["data"]["event"] in second.ENDS
                if is_end and not params["namespace"]:
                    return


class AgUi:
    """An input with the same `runId` joins the run."""

    def __init__(self) -> None:
        message = {"id": str(uuid4()), "role": "user", "content": QUESTION}
        given = {"threadId": str(uuid4()), "runId": str(uuid4()), "messages": [message]}
        self.given = RunAgentInput.model_validate(given).model_dump(mode="json", by_alias=True)

    async def begin(self, url: str, seconds: float) -> None:
        await self.attach(url, seconds)

    async def attach(self, url: str, seconds: float = LONG_SECONDS) -> str:
        async with httpx.AsyncClient(base_url=url, timeout=seconds) as client:
            response = await client.post("/ag-ui", json=self.given)
        lines = [one.removeprefix("data: ") for one in response.text.split("\n") if one.startswith("data: ")]
        events = [json.loads(one) for one in lines]
        assert events[-1]["type"] == "RUN_FINISHED"
        return "".join(one["delta"] for one in events if one["type"] == "TEXT_MESSAGE_CONTENT")


class InJavaScript:
    """A program that ends with the time-out, or with its page, and is started again: it has no message."""

    name = "ag_ui"
    modules = WEB_MODULES

    def __init__(self) -> None:
        self.thread = str(uuid4())

    def open(self, url: str) -> JavaScriptClient:
        return JavaScriptClient(self.name, url, self.thread, modules=self.modules)

    async def begin(self, url: str, seconds: float) -> None:
        client = self.open(url)
        try:
            async with asyncio.timeout(seconds):
                await client.ask(QUESTION)
        finally:
            await client.kill()

    async def attach(self, url: str) -> str:
        client = self.open(url)
        try:
            return await client.send(load=True)
        finally:
            await client.close()


class McpInJavaScript(InJavaScript):
    name = "mcp"
    modules = CLIENT_MODULES


class Mcp:
    """`get_run` without an id waits for the newest run."""

    async def begin(self, url: str, seconds: float) -> None:
        await self._call(url, seconds, "ask_team", question=QUESTION)

    async def attach(self, url: str) -> str:
        return (await self._call(url, LONG_SECONDS, "get_run", wait_seconds=60))["answer"]

    async def _call(self, url: str, seconds: float, tool: str, **arguments: Any) -> Any:
        async with Client(f"{url}/mcp") as client:
            result = await client.call_tool(tool, arguments, read_timeout_seconds=seconds)
        assert not result.is_error
        return result.structured_content


LOST = (APIError, MCPError, httpx.HTTPError, httpx2.HTTPError, OSError, ExceptionGroup, ClientError)
"""What the clients raise where an answer does not come; that of MCP in a group."""


def _without(modules: Path) -> pytest.MarkDecorator:
    is_there = HAS_NODE and modules.is_dir()
    return pytest.mark.skipif(not is_there, reason="Node.js or its clients are not there")


PROTOCOLS = (
    *(ChatCompletions, Responses, LangGraph, LangGraphEvents, AgUi, Mcp),
    *(pytest.param(one, marks=_without(one.modules)) for one in (InJavaScript, McpInJavaScript)),
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "conf.yaml").write_text(SETTINGS, encoding="utf-8")
    return tmp_path


@asynccontextmanager
async def serving_team(model: OpenAIServer, home: Path) -> AsyncIterator[ServerProcess]:
    """Start a server process and stop it; both block, so that they are done in threads."""
    process = server_process(environment(model.base_url, home), home)
    server = await asyncio.to_thread(process.__enter__)
    try:
        yield server
    finally:
        await asyncio.to_thread(process.__exit__, None, None, None)


async def count_runs(url: str) -> int:
    async with httpx.AsyncClient(base_url=url, timeout=LONG_SECONDS) as client:
        threads = (await client.get("/api/threads")).json()["threads"]
        details = [(await client.get(f"/api/threads/{one['thread_id']}")).json() for one in threads]
    return sum(len(one["runs"]) for one in details)


def is_computing(stats: dict[str, Any]) -> bool:
    return stats["by_role"].get("coder") == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_client_that_gave_up_attaches_again(model: OpenAIServer, home: Path, protocol: Any):
    model.reset(HANGING)
    client = protocol()
    async with serving_team(model, home) as server:
        beginning = asyncio.ensure_future(client.begin(server.url, TIMEOUT_SECONDS))
        await asyncio.to_thread(model.wait_for, is_computing)
        async with asyncio.timeout(LONG_SECONDS / 2):
            with pytest.raises(LOST):
                await beginning
        await asyncio.to_thread(model.release)
        async with asyncio.timeout(LONG_SECONDS):
            assert (await client.attach(server.url)).count(ANSWER) == 1
        assert await count_runs(server.url) == 1
    assert model.stats["by_role"]["planner"] == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_client_that_is_reloaded_in_mid_run_is_sent_all_of_it_once(
    model: OpenAIServer, home: Path, protocol: Any
):
    """A page that is loaded again knows the ids of its run, and none of the run's events."""
    model.reset({**HANGING, "reporter": [{"hang": True}, *SIMPLE["reporter"]]})
    client = protocol()
    async with serving_team(model, home) as server:
        beginning = asyncio.ensure_future(client.begin(server.url, LONG_SECONDS))
        await asyncio.to_thread(model.wait_for, is_computing)
        beginning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await beginning
        if hasattr(client, "reload"):
            client.reload()
        again = asyncio.ensure_future(client.attach(server.url))
        await asyncio.to_thread(model.release)
        await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("reporter") == 1)
        assert not again.done()
        await asyncio.to_thread(model.release)
        async with asyncio.timeout(LONG_SECONDS):
            assert (await again).count(ANSWER) == 1
        assert await count_runs(server.url) == 1
    assert model.stats["by_role"]["planner"] == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_client_whose_server_was_killed_attaches_again(
    model: OpenAIServer, home: Path, protocol: Any
):
    model.reset(HANGING)
    client = protocol()
    async with serving_team(model, home) as server:
        beginning = asyncio.ensure_future(client.begin(server.url, LONG_SECONDS))
        await asyncio.to_thread(model.wait_for, is_computing)
        server.process.kill()
        async with asyncio.timeout(LONG_SECONDS):
            with pytest.raises(LOST):
                await beginning
    model.reset(SIMPLE)
    async with serving_team(model, home) as server:
        async with asyncio.timeout(LONG_SECONDS):
            assert (await client.attach(server.url)).count(ANSWER) == 1
        assert await count_runs(server.url) == 1
    assert "planner" not in model.stats["by_role"]


REQUESTS: dict[str, Any] = {
    "/v1/chat/completions": {
        "model": "maniple",
        "messages": [{"role": "user", "content": QUESTION}],
        "stream": True,
    },
    "/v1/responses": {"model": "maniple", "input": QUESTION, "stream": True},
    "/runs/stream": {"assistant_id": "maniple", "input": {"messages": QUESTION}},
    "/runs/wait": {"assistant_id": "maniple", "input": {"messages": QUESTION}},
    "/threads/idle/stream/events": {"channels": second.CHANNELS},
    "/api/chat/stream": {"messages": [{"role": "user", "content": QUESTION}]},
    "/ag-ui": AgUi().given,
    "/mcp": {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "ask_team", "arguments": {"question": QUESTION}},
    },
}


async def test_an_idle_stream_is_never_silent_for_long(model: OpenAIServer, home: Path):
    model.reset({**SIMPLE, "coordinator": [{"hang": True}]})
    async with (
        serving_team(model, home) as server,
        httpx.AsyncClient(base_url=server.url, timeout=LONG_SECONDS) as client,
    ):
        accepted = {"accept": "application/json, text/event-stream"}
        hello = await client.post("/mcp", json=HELLO, headers=accepted)
        (await client.post("/threads", json={"thread_id": "idle"})).raise_for_status()
        headers = {**accepted, "mcp-session-id": hello.headers["mcp-session-id"]}
        silences = await asyncio.gather(
            *(longest_silence(client, path, body, headers) for path, body in REQUESTS.items())
        )
    assert all(one <= PING_SECONDS + 1 for one in silences), dict(zip(REQUESTS, silences, strict=True))


async def longest_silence(client: httpx.AsyncClient, path: str, body: Any, headers: dict[str, str]) -> float:
    """Return the longest time without a byte, in the first 35 s of a stream."""
    times = [time.monotonic()]
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(2 * PING_SECONDS + 5),
            client.stream("POST", path, json=body, headers=headers) as response,
        ):
            assert response.status_code == 200, await response.aread()
            async for _ in response.aiter_raw():
                times.append(time.monotonic())
            raise AssertionError(f"{path} has ended, although nothing answers.")
    times.append(time.monotonic())
    return max(later - earlier for earlier, later in pairwise(times))
