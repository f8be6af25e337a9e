"""The pauses, the small talk, the errors and the ends of a run, with the clients of each protocol.

| client | small talk | task | question | plan review | approval, edited | error | cancel | outlived |
|---|---|---|---|---|---|---|---|---|
| `openai`: Chat Completions | own | own | own | own | own | own | none | survival |
| `openai`: Responses | here | own | own | here | here | own | own | survival |
| `openai` (npm): Chat Completions | here | own | here | here | here | here | none | as in Python |
| `openai` (npm): Responses | here | here | here | here | here | here | here | as in Python |
| `langgraph_sdk`: runs | here | own | own | own | here | own | own | survival |
| `langgraph_sdk`: events, by hand | here | own | here | here | here | here | own | survival |
| `langgraph_sdk`: `threads.stream` | here | own | here | here | here | here | own | by hand |
| `RemoteGraph` in a parent graph | here | own | here | here | here | here | runs' | of runs |
| `@langchain/langgraph-sdk`: runs | here | here | here | here | here | here | here | as in Python |
| `@langchain/langgraph-sdk`: events | here | own | here | here | here | here | here | as in Python |
| `@langchain/react` | page | page | page | page | page | page | page | page |
| deepagents | own | own | own | no options | own | own | own | of runs |
| AG-UI, by hand | here | own | own | here | own | own | none | survival |
| `@ag-ui/client` | here | own | here | here | here | here | none | survival |
| `ag-ui-langgraph` | own | own | own | own | own | own | own | own; `tests/graph/test_embedded_crash.py` |
| MCP | here | own | own | own | here | own | own | survival |
| MCP (npm) | here | own | here | here | here | here | here | survival |
| ACP | own | own | own | own | own | own | own | own (the editor has no time-out) |
| ACP (npm) | own | own | own | own | own | own | own | as in Python |

"own" is the file of the protocol or of the client (also of `tests/mcp_server`, `tests/acp_server`),
"page" `test_use_stream.py`, "survival" `test_survival.py`; "none": the protocol has no such thing.
The last column is a time-out of 5 s, a reload in mid-run and `kill -9`; "as in Python", "by hand", "of runs":
the client asks the same routes as another one, and the server cannot tell them apart.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langchain_core.messages import HumanMessage
from langgraph.pregel.remote import RemoteException, RemoteGraph
from langgraph.types import Command
from langgraph_sdk import get_client
from mcp import Client
from openai import AsyncOpenAI

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.protocols import test_ag_ui as ag_ui
from tests.protocols import test_langgraph_streams as second
from tests.protocols.javascript import CLIENT_MODULES, HAS_NODE, WEB_MODULES, ClientError, JavaScriptClient
from tests.protocols.parent_graph import put_into_graph
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
TALK = "Hello, how are you?"
ASKED = "Which numbers?"
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question=ASKED), *SIMPLE["coordinator"]]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
EDIT = {"type": "edit", "args": {"cmd": "echo edited"}}
ANSWER = "The answer is **4**."


def changed_for_langchain(given: Any) -> Any:
    """Return an answer with LangChain's form of an edit."""
    edited = {"name": "bash_tool", "args": EDIT["args"]}
    return {"decisions": [{"type": "edit", "edited_action": edited}]} if given == EDIT else given


@dataclass
class Responses:
    """A pause is an answer, and the next input answers it."""

    http: httpx.AsyncClient
    previous: Any = None

    async def ask(self, text: str, *, review: bool = False) -> str:
        base = f"{self.http.base_url}/v1".replace("//v1", "/v1")
        async with AsyncOpenAI(base_url=base, api_key="none", timeout=100, max_retries=0) as client:
            more = {"metadata": {"auto_accepted_plan": "false"}} if review else {}
            given: Any = {"model": "maniple", "input": text, "previous_response_id": self.previous, **more}
            made = await client.responses.create(**given)
        self.previous = made.id
        return made.output_text

    async def answer(self, given: Any) -> str:
        return await self.ask(given if isinstance(given, str) else json.dumps(given))


@dataclass
class LangGraph:
    """A pause is an interrupt, and a command resumes it."""

    http: httpx.AsyncClient
    thread: str = ""

    async def ask(self, text: str, *, review: bool = False) -> str:
        given = {"messages": [{"role": "user", "content": text}]}
        return await self._wait(input=given, context={"auto_accepted_plan": not review})

    async def answer(self, given: Any) -> str:
        return await self._wait(command={"resume": changed_for_langchain(given)})

    async def _wait(self, **options: Any) -> str:
        async with get_client(url=str(self.http.base_url), api_key=None, timeout=100) as client:
            self.thread = self.thread or (await client.threads.create())["thread_id"]
            values: Any = await client.runs.wait(self.thread, "maniple", **options)
        if pauses := values.get("__interrupt__"):
            return json.dumps(pauses)
        return values["messages"][-1]["content"]


@dataclass
class LangGraphEvents:
    """A pause is an event, and a command answers it."""

    http: httpx.AsyncClient
    thread: str = ""
    asked: str = ""

    async def ask(self, text: str, *, review: bool = False) -> str:
        question = {"messages": [{"role": "user", "content": text}]}
        context = {"configurable": {"auto_accepted_plan": not review}}
        self.thread, sent = await second.start(self.http, input=question, config=context)
        return await self._read(sent)

    async def answer(self, given: Any) -> str:
        body = {"interrupt_id": self.asked, "response": given}
        return await self._read(
            await second.command(self.http, self.thread, "input.respond", namespace=[], **body)
        )

    async def _read(self, sent: Any) -> str:
        assert sent["type"] == "success", sent
        since = sent["meta"]["applied_through_seq"]
        found = await second.read_run(self.http, self.thread, since=since)
        if asked := second.data(found, "input.requested"):
            self.asked = asked[-1]["interrupt_id"]
            return json.dumps(asked)
        assert second.data(found, "lifecycle")[-1]["event"] == "completed"
        return second.data(found, "values")[-1]["messages"][-1]["content"]


@dataclass
class AgUi:
    """A pause is an outcome, and the next input resumes it."""

    http: httpx.AsyncClient
    thread: str = field(default_factory=lambda: str(uuid4()))
    asked: str = ""

    async def ask(self, text: str, *, review: bool = False) -> str:
        options = {"auto_accepted_plan": not review}
        return await self._run(ag_ui.asking(text, self.thread, forwardedProps=options))

    async def answer(self, given: Any) -> str:
        entry = {"interruptId": self.asked, "status": "resolved", "payload": given}
        return await self._run(ag_ui.asking("", self.thread, resume=[entry]))

    async def _run(self, given: Any) -> str:
        events = await ag_ui.run(self.http, given)
        outcome = events[-1].outcome
        if outcome is not None and outcome.type == "interrupt":
            self.asked = outcome.interrupts[0].id
            return json.dumps([one.model_dump(mode="json") for one in outcome.interrupts])
        return ag_ui.text(events)


@dataclass
class Mcp:
    """A pause is a result, and the next question answers it."""

    http: httpx.AsyncClient
    thread: str = ""

    async def ask(self, text: str, *, review: bool = False) -> str:
        return await self._call(question=text, review_plan=review)

    async def answer(self, given: Any) -> str:
        return await self._call(question=given if isinstance(given, str) else json.dumps(given))

    async def _call(self, **arguments: Any) -> str:
        thread = {"thread_id": self.thread} if self.thread else {}
        async with Client(str(self.http.base_url).rstrip("/") + "/mcp") as client:
            result = await client.call_tool("ask_team", {"wait_seconds": 100, **thread, **arguments})
        run: Any = result.structured_content
        self.thread = run["thread_id"]
        return json.dumps(run["waits_for"]) if run["status"] == "interrupted" else run["answer"]


@dataclass
class ThreadStream:
    """`threads.stream` of LangGraph's SDK: a pause is in its `interrupts`."""

    http: httpx.AsyncClient
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)
    _client: Any = None
    _thread: Any = None

    async def ask(self, text: str, *, review: bool = False) -> str:
        url = str(self.http.base_url)
        self._client = await self._open.enter_async_context(get_client(url=url, api_key=None, timeout=100))
        stream = self._client.threads.stream(assistant_id="maniple")
        self._thread = await self._open.enter_async_context(stream)
        given = {"messages": [{"role": "user", "content": text}]}
        await self._thread.run.start(input=given, config={"configurable": {"auto_accepted_plan": not review}})
        return await self._read()

    async def answer(self, given: Any) -> str:
        await self._thread.run.respond(changed_for_langchain(given))
        return await self._read()

    async def close(self) -> None:
        await self._open.aclose()

    async def _read(self) -> str:
        name = self._thread.thread_id
        [run] = await self._client.runs.list(name, limit=1)
        await self._client.runs.join(name, run["run_id"])
        if (await self._client.threads.get(name))["status"] != "interrupted":
            return (await self._thread.output)["messages"][-1]["content"]
        async with asyncio.timeout(60):  # its watcher is a connection of its own
            while not self._thread.interrupts:  # noqa: ASYNC110 - another task changes it
                await asyncio.sleep(0.01)
        return json.dumps(self._thread.interrupts)


@dataclass
class ParentGraph:
    """`RemoteGraph` in a node of another graph, whose own user is asked what the team asks."""

    http: httpx.AsyncClient
    _open: AsyncExitStack = field(default_factory=AsyncExitStack)
    _graph: Any = None
    _config: Any = field(default_factory=lambda: {"configurable": {"thread_id": str(uuid4())}})

    async def ask(self, text: str, *, review: bool = False) -> str:
        url = str(self.http.base_url)
        client = await self._open.enter_async_context(get_client(url=url, api_key=None, timeout=100))
        team = RemoteGraph("maniple", client=client)
        own: Any = {"configurable": {"thread_id": str(uuid4()), "auto_accepted_plan": not review}}
        self._graph = put_into_graph(team, own)
        return await self._run({"messages": [HumanMessage(text)]})

    async def answer(self, given: Any) -> str:
        return await self._run(Command(resume=changed_for_langchain(given)))

    async def close(self) -> None:
        await self._open.aclose()

    async def _run(self, given: Any) -> str:
        values = await self._graph.ainvoke(given, self._config)
        if pauses := values.get("__interrupt__"):
            return json.dumps([one.value for one in pauses])
        return values["messages"][-1].content


def in_javascript(name: str, modules: Path = WEB_MODULES) -> Any:
    """Return the parameter for a client of `conversation.mjs`."""

    def make(http: httpx.AsyncClient) -> JavaScriptClient:
        return JavaScriptClient(name, str(http.base_url).rstrip("/"), modules=modules)

    is_there = HAS_NODE and modules.is_dir()
    marks = [
        pytest.mark.slow,
        pytest.mark.skipif(not is_there, reason="Node.js or its clients are not there"),
    ]
    return pytest.param(make, marks=marks, id=f"{name}-javascript")


IN_JAVASCRIPT = [
    *(in_javascript(name) for name in ("openai", "responses", "langgraph", "langgraph_events", "ag_ui")),
    in_javascript("mcp", CLIENT_MODULES),
]
WITH_CANCELLING = [one for one in IN_JAVASCRIPT if one.id not in ("openai-javascript", "ag_ui-javascript")]
LANGGRAPH = [ThreadStream, ParentGraph]
CLIENTS = [Responses, LangGraph, LangGraphEvents, AgUi, Mcp, *LANGGRAPH, *IN_JAVASCRIPT]


def clients(those: Any) -> Any:
    """Return the mark that asks for each of some clients."""
    return pytest.mark.parametrize("client", those, indirect=True)


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as it:
        yield it


@pytest.fixture
async def client(request: pytest.FixtureRequest, http: httpx.AsyncClient) -> AsyncIterator[Any]:
    made = request.param(http)
    yield made
    if hasattr(made, "close"):
        await made.close()


@clients(CLIENTS)
async def test_small_talk_is_the_answer_alone(model: OpenAIServer, client: Any):
    model.reset({"coordinator": [reply(TALK)]})
    assert await client.ask("Hi") == TALK


@clients([one for one in IN_JAVASCRIPT if one.id in ("responses-javascript", "langgraph-javascript")])
async def test_a_task_ends_with_its_report(client: Any):
    assert ANSWER in await client.ask("1+3=?")


@clients(CLIENTS)
async def test_a_question_is_answered(model: OpenAIServer, client: Any):
    model.reset(ASKS)
    assert ASKED in await client.ask("1+3=?")
    assert ANSWER in await client.answer("1 and 3")
    assert "1 and 3" in json.dumps(model.requests)


@clients(CLIENTS)
async def test_a_plan_is_reviewed(model: OpenAIServer, client: Any):
    assert "Compute" in await client.ask("1+3=?", review=True)
    assert model.stats["by_role"].get("coder") is None
    assert ANSWER in await client.answer("accept")


@clients(CLIENTS)
async def test_a_tool_call_is_approved_with_other_arguments(model: OpenAIServer, client: Any):
    model.reset(APPROVAL)
    assert "echo 5" in await client.ask("1+3=?")
    assert ANSWER in await client.answer(EDIT)
    assert "edited" in json.dumps(model.requests)


@clients([*LANGGRAPH, *IN_JAVASCRIPT])
async def test_a_run_that_fails_is_an_error_of_the_client(model: OpenAIServer, client: Any):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    with pytest.raises((ClientError, RemoteException, RuntimeError)) as failed:
        await client.ask("1+3=?")
    assert "no such thing" in str(failed.value)


@clients(WITH_CANCELLING)
async def test_a_run_ends_when_its_client_cancels_it(model: OpenAIServer, client: Any):
    model.reset({"coordinator": [{"hang": True}]})
    await client.start("Hi")
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    # LangGraph has no word of its own for it.
    assert await client.cancel() in ("cancelled", "interrupted")
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 0)


async def test_a_run_that_fails_ends_the_second_protocol_s_run(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    thread, sent = await second.start(http)
    found = await second.read_run(http, thread, since=sent["meta"]["applied_through_seq"])
    [failed] = [one for one in second.data(found, "lifecycle") if one["event"] == "failed"]
    assert failed["error"]
