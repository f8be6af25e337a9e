"""AG-UI: its events, checked with its own types and its own client."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from ag_ui.core import Event, RunAgentInput
from pydantic import TypeAdapter

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.anyio
EVENT: TypeAdapter[Any] = TypeAdapter(Event)
STORED_PICTURE = {"type": "image", "source": {"type": "file", "fileId": "f"}}
APPROVAL = {**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as client:
        yield client


def asking(text: str = "1+3=?", thread: str = "", **more: Any) -> dict[str, Any]:
    messages = [{"id": str(uuid4()), "role": "user", "content": text}] if text else []
    given = {"threadId": thread or str(uuid4()), "runId": str(uuid4()), "messages": messages, **more}
    return RunAgentInput.model_validate(given).model_dump(mode="json", by_alias=True)


async def run(http: httpx.AsyncClient, given: dict[str, Any]) -> list[Any]:
    response = await http.post("/ag-ui", json=given)
    assert response.status_code == 200, response.text
    frames = [one.removeprefix("data: ") for one in response.text.split("\n\n") if one.startswith("data: ")]
    return [EVENT.validate_json(one) for one in frames]


def kinds(events: list[Any]) -> list[str]:
    return [event.type.value for event in events]


def text(events: list[Any]) -> str:
    return "".join(event.delta for event in events if event.type == "TEXT_MESSAGE_CONTENT")


async def test_a_task_is_steps_calls_a_plan_and_one_message(http: httpx.AsyncClient):
    events = await run(http, asking())
    found = kinds(events)
    assert (found[0], found[-1]) == ("RUN_STARTED", "RUN_FINISHED")
    assert {"STATE_SNAPSHOT", "STATE_DELTA", "STEP_STARTED", "TOOL_CALL_START", "TOOL_CALL_RESULT"} <= {
        *found
    }
    assert found.count("TEXT_MESSAGE_START") == found.count("TEXT_MESSAGE_END") == 1
    assert found.count("STEP_STARTED") == found.count("STEP_FINISHED")
    assert "4" in text(events)
    assert events[-1].outcome.type == "success"
    assert events[-1].usage[0].input_tokens > 0


async def test_the_state_after_all_deltas_is_the_plan_of_the_run(http: httpx.AsyncClient):
    state = state_after(await run(http, asking()))
    assert [step["status"] for step in state["plan"]["steps"]] == ["completed", "completed"]


def state_after(events: list[Any]) -> Any:
    """Return the state that a client has after these events."""
    state: Any = {}
    for event in events:
        if event.type == "STATE_SNAPSHOT":
            state = json.loads(json.dumps(event.snapshot))
        for change in event.delta if event.type == "STATE_DELTA" else ():
            if change.path == "/plan":
                state["plan"] = change.value
            else:
                state["plan"]["steps"][int(change.path.rsplit("/", 1)[1])] = change.value
    return state


async def test_an_approval_is_an_interrupt_that_the_next_run_answers_with_an_edit(
    http: httpx.AsyncClient, model: OpenAIServer
):
    model.reset(APPROVAL)
    given = asking()
    asked = (await run(http, given))[-1].outcome
    assert asked.type == "interrupt"
    edit = {"type": "edit", "args": {"cmd": "echo edited"}}
    entry = {"interruptId": asked.interrupts[0].id, "status": "resolved", "payload": edit}
    events = await run(http, asking("", given["threadId"], resume=[entry]))
    assert "4" in text(events)
    assert "edited" in json.dumps(model.requests)


@pytest.mark.parametrize("payload", ["1 and 3", {"answer": "1 and 3"}])
async def test_a_question_is_answered_by_its_form(http: httpx.AsyncClient, model: OpenAIServer, payload: Any):
    model.reset(ASKS)
    given = asking()
    asked = (await run(http, given))[-1].outcome.interrupts[0]
    assert "Which numbers?" in asked.message
    entry = {"interruptId": asked.id, "status": "resolved", "payload": payload}
    assert "4" in text(await run(http, asking("", given["threadId"], resume=[entry])))
    assert "1 and 3" in json.dumps(model.requests)


async def test_the_same_run_is_joined_and_not_done_twice(http: httpx.AsyncClient, model: OpenAIServer):
    given = asking()
    first, second = await run(http, given), await run(http, given)
    assert text(first) == text(second)
    assert model.stats["by_role"]["planner"] == 1


async def test_a_conversation_is_sent_to_a_client_that_has_none_of_it(http: httpx.AsyncClient):
    given = asking()
    await run(http, given)
    events = await run(http, asking("", given["threadId"]))
    [snapshot] = [event for event in events if event.type == "MESSAGES_SNAPSHOT"]
    assert [one.role for one in snapshot.messages] == ["user", "assistant"]
    assert "TEXT_MESSAGE_START" not in kinds(events)


@pytest.mark.parametrize(
    ("script", "options"),
    [(APPROVAL, {}), (ASKS, {}), (SIMPLE, {"auto_accepted_plan": False})],
    ids=["approval", "question", "plan"],
)
async def test_a_client_that_is_loaded_in_a_pause_gets_what_the_run_asks(
    http: httpx.AsyncClient, model: OpenAIServer, script: Any, options: Any
):
    model.reset(script)
    given = asking(forwardedProps=options)
    before = await run(http, given)
    loaded = await run(http, asking("", given["threadId"]))
    assert loaded[-1].outcome == before[-1].outcome
    assert state_after(loaded) == state_after(before)
    [snapshot] = [event for event in loaded if event.type == "MESSAGES_SNAPSHOT"]
    assert [one.role for one in snapshot.messages] == ["user"]
    assert text(loaded) == text(before)


@pytest.mark.slow
async def test_a_client_that_is_loaded_while_its_run_waits_for_a_place_has_its_question(
    model: OpenAIServer, tmp_path: Path
):
    model.reset({"coordinator": [reply("Hello!"), {**reply("Wait."), "hang": True}]})
    env = environment(model.base_url, tmp_path, MANIPLE_SERVER__MAX_RUNS="1")
    with server_process(env, tmp_path) as process:
        async with httpx.AsyncClient(base_url=process.url, timeout=100) as http, asyncio.TaskGroup() as tasks:
            given = asking("Hi")
            await run(http, given)
            at_work = asking("Work")
            tasks.create_task(run(http, at_work))
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"]["coordinator"] == 2)
            waiting = asking("And now?", given["threadId"])
            tasks.create_task(run(http, waiting))
            async with asyncio.timeout(30):
                while len((await load(http, given["threadId"]))[1].messages) < 3:
                    pass  # until the run is accepted
            snapshot = (await load(http, given["threadId"]))[1]
            assert [one.content for one in snapshot.messages] == ["Hi", "Hello!", "And now?"]
            for one in (waiting, at_work):
                started = (await load(http, one["threadId"]))[0]
                await http.post(f"/api/runs/{started.metadata['maniple']['runId']}/cancel")


async def load(http: httpx.AsyncClient, thread: str) -> list[Any]:
    """Return the first two events that a client gets which has nothing: the start, and the conversation."""
    found: list[Any] = []
    async with http.stream("POST", "/ag-ui", json=asking("", thread)) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ") and len(found) < 2:
                found.append(EVENT.validate_json(line.removeprefix("data: ")))
            if len(found) == 2:
                break
    return found


async def test_an_answer_begins_with_the_plan_as_it_stands(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset(APPROVAL)
    given = asking()
    before = await run(http, given)
    entry = {"interruptId": before[-1].outcome.interrupts[0].id, "status": "resolved"}
    events = await run(
        http, asking("", given["threadId"], resume=[{**entry, "payload": {"type": "approve"}}])
    )
    [snapshot] = [event for event in events if event.type == "STATE_SNAPSHOT"]
    assert snapshot.snapshot == state_after(before)
    assert [step["status"] for step in state_after(events)["plan"]["steps"]] == ["completed", "completed"]
    assert state_after(await run(http, asking("", given["threadId"]))) == state_after(events)


async def test_a_run_that_fails_is_an_error_event(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    events = await run(http, asking())
    assert events[-1].type == "RUN_ERROR"
    assert events[-1].code


@pytest.mark.parametrize(
    "messages",
    [
        [{"id": "1", "role": "assistant", "content": "Hi"}],
        [{"id": "1", "role": "user", "content": " "}],
        [
            {
                "id": "1",
                "role": "user",
                "content": [{"type": "image", "source": {"type": "file", "fileId": "f"}}],
            }
        ],
    ],
)
async def test_an_input_that_asks_nothing_is_refused(http: httpx.AsyncClient, messages: Any):
    given = {**asking(), "messages": messages}
    assert (await http.post("/ag-ui", json=given)).status_code == 422


async def test_an_option_that_cannot_be_is_refused_in_the_service_s_form(http: httpx.AsyncClient):
    refused = await http.post("/ag-ui", json=asking(forwardedProps={"depth": "bottomless"}))
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")
    assert "forwardedProps.depth" in refused.json()["detail"]


async def test_what_has_no_effect_is_named_at_the_start(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset({"coordinator": [reply("Hello!")]})
    tool = {"name": "f", "description": "F", "parameters": {}}
    context = [{"description": "Where", "value": "Rome"}]
    options = {"depth": "quick", "colour": "red"}
    events = await run(http, asking(tools=[tool], context=context, forwardedProps=options))
    assert events[0].metadata["maniple"]["notUsed"] == ["forwardedProps.colour", "context"]
