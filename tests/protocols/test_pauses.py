"""The pauses, the small talk and the errors of a run, in the protocols whose own tests do not show them.

| | small talk | task | question | plan review | approval, edited | error | cancel | time-out, kill |
|---|---|---|---|---|---|---|---|---|
| Chat Completions | own | own | own | own | own | own | not in the protocol | survival |
| Responses | here | own | own | here | here | own | own | survival |
| LangGraph, first | here | own | own | own | here | own | own | survival |
| LangGraph, second | here | own | here | here | here | here | own | survival |
| AG-UI | here | own | own | here | own | own | not in the protocol | survival |
| MCP | here | own | own | own | here | own | own | survival |
| ACP | own | own | own | own | own | own | own | own (the editor has no time-out) |

"own" is the file of the protocol (of MCP and ACP also `tests/mcp_server`, `tests/acp_server`), "survival"
`test_survival.py`, which has the reload in mid-run, too; that of ACP is its own.
"""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import httpx
import pytest
from langgraph_sdk import get_client
from mcp import Client
from openai import AsyncOpenAI

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.protocols import test_ag_ui as ag_ui
from tests.protocols import test_langgraph_streams as second
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
TALK = "Hello, how are you?"
ASKED = "Which numbers?"
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question=ASKED), *SIMPLE["coordinator"]]}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
EDIT = {"type": "edit", "args": {"cmd": "echo edited"}}
ANSWER = "The answer is **4**."


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
        # The first protocol has LangChain's form of an edit.
        edited = {"name": "bash_tool", "args": EDIT["args"]}
        changed = {"decisions": [{"type": "edit", "edited_action": edited}]} if given == EDIT else given
        return await self._wait(command={"resume": changed})

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


PROTOCOLS = pytest.mark.parametrize("protocol", [Responses, LangGraph, LangGraphEvents, AgUi, Mcp])


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as it:
        yield it


@PROTOCOLS
async def test_small_talk_is_the_answer_alone(http: httpx.AsyncClient, model: OpenAIServer, protocol: Any):
    model.reset({"coordinator": [reply(TALK)]})
    assert await protocol(http).ask("Hi") == TALK


@PROTOCOLS
async def test_a_question_is_answered(http: httpx.AsyncClient, model: OpenAIServer, protocol: Any):
    model.reset(ASKS)
    client = protocol(http)
    assert ASKED in await client.ask("1+3=?")
    assert ANSWER in await client.answer("1 and 3")
    assert "1 and 3" in json.dumps(model.requests)


@PROTOCOLS
async def test_a_plan_is_reviewed(http: httpx.AsyncClient, model: OpenAIServer, protocol: Any):
    client = protocol(http)
    assert "Compute" in await client.ask("1+3=?", review=True)
    assert model.stats["by_role"].get("coder") is None
    assert ANSWER in await client.answer("accept")


@PROTOCOLS
async def test_a_tool_call_is_approved_with_other_arguments(
    http: httpx.AsyncClient, model: OpenAIServer, protocol: Any
):
    model.reset(APPROVAL)
    client = protocol(http)
    assert "echo 5" in await client.ask("1+3=?")
    assert ANSWER in await client.answer(EDIT)
    assert "edited" in json.dumps(model.requests)


async def test_a_run_that_fails_ends_the_second_protocol_s_run(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    thread, sent = await second.start(http)
    found = await second.read_run(http, thread, since=sent["meta"]["applied_through_seq"])
    [failed] = [one for one in second.data(found, "lifecycle") if one["event"] == "failed"]
    assert failed["error"]
