"""The cases of Open Responses' compliance tests: the requests of its runner, and its checks.

Source: src/lib/compliance-tests.ts of https://github.com/openresponses/openresponses. In place of its schemas
stand those of OpenAI's client, with the fields that Open Responses requires beyond them.
"""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from openai.types.responses import Response, ResponseCompactionItem, ResponseStreamEvent, ResponseUsage
from openai.types.responses.responses_server_event import ResponseWsError as WebSocketError
from pydantic import TypeAdapter
from websockets.asyncio.client import ClientConnection, connect

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.protocols.test_chat_completions import PICTURE
from tests.serving import ServerProcess

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello, how are you?")] * 2}
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
REQUIRED = {
    *("id", "object", "created_at", "completed_at", "status", "incomplete_details", "model"),
    *("previous_response_id", "instructions", "output", "error", "tools", "tool_choice", "truncation"),
    *("parallel_tool_calls", "text", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"),
    *("temperature", "reasoning", "usage", "max_output_tokens", "max_tool_calls", "store", "background"),
    *("service_tier", "metadata", "safety_identifier", "prompt_cache_key"),
}
NULLABLE = {
    *("completed_at", "incomplete_details", "previous_response_id", "instructions", "error", "reasoning"),
    *("usage", "max_output_tokens", "max_tool_calls", "safety_identifier", "prompt_cache_key"),
}
PDF = base64.b64encode(b"%PDF-1.1\ntrailer\n<< >>\n%%EOF").decode()
LOCATION = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}
WEATHER = {"type": "function", "name": "get_weather", "description": "The weather", "parameters": LOCATION}


def message(role: str, content: Any, **more: str) -> dict[str, Any]:
    return {"type": "message", "role": role, "content": content, **more}


def parts(text: str, part: dict[str, str]) -> list[dict[str, Any]]:
    return [message("user", [{"type": "input_text", "text": text}, part])]


FILE = {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
CASES: dict[str, Any] = {
    "basic-response": [message("user", "Say hello in exactly 3 words.")],
    "streaming-response": [message("user", "Count from 1 to 5.")],
    "assistant-phase": [
        message("assistant", "I should answer with the saved number.", phase="commentary"),
        message("assistant", "The number is four.", phase="final_answer"),
        message("user", "Repeat only the number."),
    ],
    "system-prompt": [
        message("system", "You are a pirate. Always respond in pirate speak."),
        message("user", "Say hello."),
    ],
    "image-input": parts(
        "What do you see in this image? Answer in one sentence.",
        {"type": "input_image", "image_url": PICTURE},
    ),
    "file-input": parts("Read the attached file and answer with its title only.", FILE),
    "multi-turn": [
        message("user", "My name is Alice."),
        message("assistant", "Hello Alice! Nice to meet you. How can I help you today?"),
        message("user", "What is my name?"),
    ],
}
ASKED = {"input": [message("user", "What's the weather like in San Francisco?")]}
LEFT_OUT: dict[str, Any] = {
    "function-call-roundtrip": (
        {"input": "Use it.", "tools": [WEATHER], "tool_choice": {"type": "function", "name": "get_weather"}},
        "tool_choice",
    ),
    "file-search": (
        {
            "input": "Search.",
            "tools": [{"type": "file_search", "vector_store_ids": ["vs_1"]}],
            "tool_choice": {"type": "file_search"},
        },
        "tool_choice",
    ),
    "offline-web-search": (
        {
            "input": "Find.",
            "tools": [{"type": "web_search", "external_web_access": False}],
            "tool_choice": {"type": "web_search"},
        },
        "tool_choice",
    ),
    "store-false": ({"input": "Reply with exactly: first", "store": False}, "store"),
}


@pytest.fixture
async def http(server: ServerProcess, model: OpenAIServer) -> AsyncIterator[httpx.AsyncClient]:
    model.reset(TALK)
    headers = {"authorization": "Bearer none"}
    async with httpx.AsyncClient(base_url=server.url, headers=headers, timeout=100) as it:
        yield it


async def respond(http: httpx.AsyncClient, **body: Any) -> Any:
    """Return the whole answer to a request, after the runner's checks."""
    answer = await http.post("/v1/responses", json={"model": "maniple", "stream": False, **body})
    assert answer.status_code == 200, answer.text
    return check_response(answer.json())


def check_response(response: Any) -> Any:
    Response.model_validate(response)
    assert set(response) >= REQUIRED
    assert {name for name in REQUIRED - NULLABLE if response[name] is None} == set()
    assert response["output"]
    assert response["status"] == "completed"
    return response


@pytest.mark.parametrize("case", CASES)
async def test_a_case_is_completed(http: httpx.AsyncClient, case: str):
    assert "Hello, how are you?" in json.dumps(await respond(http, input=CASES[case]))


@pytest.mark.parametrize("case", CASES)
async def test_the_events_of_a_case_fit_the_schema_and_end_with_the_response(
    http: httpx.AsyncClient, case: str
):
    await stream_response(http, input=CASES[case])


async def test_the_events_of_a_whole_task_fit_the_schema(http: httpx.AsyncClient, model: OpenAIServer):
    model.reset(SIMPLE)
    response = await stream_response(http, input="1+3=?")
    assert {one["type"] for one in response["output"]} == {"reasoning", "code_interpreter_call", "message"}


async def stream_response(http: httpx.AsyncClient, **asked: Any) -> Any:
    """Return the answer at the end of a stream, after the runner's checks."""
    answer = await http.post("/v1/responses", json={"model": "maniple", "stream": True, **asked})
    frames = [dict(line.split(": ", 1) for line in one.splitlines()) for one in frames_of(answer.text)]
    events = [json.loads(one["data"]) for one in frames]
    for frame, event in zip(frames, events, strict=True):
        assert frame["event"] == event["type"]
        EVENT.validate_python(event)
    return check_response(events[-1]["response"])


def frames_of(text: str) -> list[str]:
    """Return the frames of server-sent events, without comments."""
    return [one for one in text.split("\n\n") if one.strip() and not one.startswith(":")]


@pytest.mark.parametrize("stream", [False, True])
async def test_tool_calling(http: httpx.AsyncClient, model: OpenAIServer, stream: bool):
    step = {"agent_name": "researcher", "title": "Look", "description": "Look."}
    coordinator = [call("handoff_to_planner", locale="en-US", step=step)]
    model.reset(
        {"coordinator": coordinator, "researcher": [call("get_weather", location="San Francisco, CA")]}
    )
    asked = {**ASKED, "tools": [WEATHER]}
    response = await (stream_response(http, **asked) if stream else respond(http, **asked))
    assert "function_call" in [one["type"] for one in response["output"]]


async def test_previous_response_id_goes_on(http: httpx.AsyncClient, model: OpenAIServer):
    first = await respond(http, input="Remember this code word: papaya. Reply with only OK.")
    question = "What code word did I ask you to remember?"
    second = await respond(http, previous_response_id=first["id"], input=question)
    assert second["previous_response_id"] == first["id"]
    assert "papaya" in json.dumps(model.requests[-1])


@pytest.mark.parametrize("case", LEFT_OUT)
async def test_a_case_that_the_team_cannot_do_is_refused_by_name(http: httpx.AsyncClient, case: str):
    body, param = LEFT_OUT[case]
    answer = await http.post("/v1/responses", json={"model": "maniple", **body})
    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == param


def create(given: Any, **more: Any) -> dict[str, Any]:
    return {"type": "response.create", "model": "maniple", "input": given, **more}


@pytest.fixture
async def socket(server: ServerProcess, model: OpenAIServer) -> AsyncIterator[ClientConnection]:
    model.reset(TALK)
    async with open_socket(server) as it:
        yield it


def open_socket(server: ServerProcess) -> Any:
    """Open a WebSocket with the headers of the runner."""
    headers = {"authorization": "Bearer none", "content-type": "application/json"}
    return connect(server.url.replace("http", "ws", 1) + "/v1/responses", additional_headers=headers)


async def turn(socket: ClientConnection, body: dict[str, Any]) -> Any:
    """Return the whole response to a message, after the runner's checks, or the code of its error."""
    await socket.send(json.dumps(body))
    while True:
        event = json.loads(await socket.recv())
        if event["type"] == "error":
            WebSocketError.model_validate(event)
            return event["error"]["code"]
        EVENT.validate_python(event)
        if event["type"] in ("response.completed", "response.failed", "response.incomplete"):
            return check_response(event["response"])


async def test_websocket_response(socket: ClientConnection):
    assert await turn(socket, create([message("user", "Count from 1 to 3.")]))


async def test_websocket_sequential_responses(socket: ClientConnection):
    first = await turn(socket, create("Reply with exactly: first", store=False))
    second = await turn(socket, create("Reply with exactly: second", store=False))
    assert first["id"] != second["id"]


async def test_websocket_continuation(socket: ClientConnection, model: OpenAIServer):
    first = await turn(socket, create("Remember the code word: cobalt. Reply with OK.", store=False))
    question = "What is the code word? Reply with only the code word."
    second = await turn(socket, create(question, store=False, previous_response_id=first["id"]))
    assert second["previous_response_id"] == first["id"]
    assert "cobalt" in json.dumps(model.requests[-1])


async def test_websocket_reconnect_store_false_recovery(socket: ClientConnection, server: ServerProcess):
    first = await turn(socket, create("Remember the code word: copper. Reply with OK.", store=False))
    async with open_socket(server) as again:
        lost = create("Try to continue.", store=False, previous_response_id=first["id"])
        assert await turn(again, lost) == "previous_response_not_found"
        assert await turn(again, create([message("user", "Start a new response.")], store=False))


async def test_websocket_previous_response_not_found(socket: ClientConnection):
    body = create("This should fail.", store=False, previous_response_id="resp_openresponses_missing_1")
    assert await turn(socket, body) == "previous_response_not_found"


async def test_websocket_failed_continuation_evicts_cache(socket: ClientConnection):
    first = await turn(socket, create("Remember the code word: ember. Reply with OK.", store=False))
    output = {"type": "function_call_output", "call_id": "call_openresponses_missing", "output": "None."}
    goes_on = {"store": False, "previous_response_id": first["id"]}
    assert await turn(socket, create([output], **goes_on)) == "unknown_call"
    assert await turn(socket, create("Try again.", **goes_on)) == "previous_response_not_found"


async def test_compact_response(http: httpx.AsyncClient):
    given = [
        message("user", "We agreed to launch on Tuesday and notify support first."),
        message("assistant", "Understood. The launch is Tuesday, with support notified beforehand."),
    ]
    compacted = await compact(http, given, prompt_cache_key="openresponses-compact-test")
    assert [one["type"] for one in compacted["output"]] == ["message", "compaction"]


async def compact(http: httpx.AsyncClient, given: Any, **more: Any) -> Any:
    """Return the answer to a request to compact, after the runner's checks."""
    answer = await http.post("/v1/responses/compact", json={"model": "maniple", "input": given, **more})
    assert answer.status_code == 200, answer.text
    compacted = answer.json()
    assert compacted["object"] == "response.compaction"
    assert {"id", "created_at"} < set(compacted)
    ResponseUsage.model_validate(compacted["usage"])
    *messages, item = compacted["output"]
    ResponseCompactionItem.model_validate(item)
    for one in messages:
        assert {"id", "status", "role", "content"} < set(one)
    return compacted


async def test_compact_missing_model(http: httpx.AsyncClient):
    given = [message("user", "Compact this conversation.")]
    assert (await http.post("/v1/responses/compact", json={"input": given})).status_code == 400


async def test_websocket_compact_new_chain(
    http: httpx.AsyncClient, socket: ClientConnection, model: OpenAIServer
):
    given = [
        message("user", [{"type": "input_text", "text": "Remember the compaction code word: slate."}]),
        message("assistant", [{"type": "output_text", "text": "OK."}]),
        message("user", [{"type": "input_text", "text": "Compress this conversation for later."}]),
    ]
    compacted = await compact(http, given)
    goes_on = message("user", "Continue from here. Reply with exactly: compacted")
    answered = await turn(socket, create([*compacted["output"], goes_on], store=False, tools=[]))
    assert answered["previous_response_id"] is None
    assert "slate" in json.dumps(model.requests[-1])
