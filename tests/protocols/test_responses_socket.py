"""Responses over a WebSocket, with OpenAI's own client and with the bare protocol.

The cases of Open Responses' compliance tests are in `test_open_responses.py`.
"""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from openai import AsyncOpenAI
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from maniple.api.protocols import responses_socket
from maniple.api.protocols.conversations import AnsweredRuns
from maniple.api.protocols.responses_socket import MAX_SOCKETS, OpenSockets, ResponseSocket
from maniple.service.callers import Caller
from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ServerProcess, environment, server_process

pytestmark = pytest.mark.anyio
TALK = {"coordinator": [reply("Hello, how are you?")] * 2}
ASKS = {**SIMPLE, "coordinator": [call("ask_user", question="Which numbers?"), *SIMPLE["coordinator"]]}
HANGS = {**SIMPLE, "coder": [{"hang": True}]}
END = ("response.completed", "response.failed", "response.incomplete", "error")


def address(server: ServerProcess, path: str = "/v1/responses") -> str:
    return server.url.replace("http", "ws", 1) + path


@pytest.fixture
async def socket(server: ServerProcess) -> AsyncIterator[ClientConnection]:
    async with connect(address(server)) as it:
        yield it


@pytest.fixture
async def http(server: ServerProcess) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=server.url, timeout=100) as it:
        yield it


async def send(socket: ClientConnection, given: Any = "1+3=?", **more: Any) -> None:
    await socket.send(json.dumps({"type": "response.create", "model": "maniple", "input": given, **more}))


async def read(socket: ClientConnection, ends: tuple[str, ...] = END) -> list[Any]:
    """Return the next events, up to one of the types `ends`."""
    events: list[Any] = []
    while not events or events[-1]["type"] not in ends:
        events.append(json.loads(await socket.recv()))
    return events


async def ask(socket: ClientConnection, given: Any = "1+3=?", **more: Any) -> Any:
    """Return the last event of a request."""
    await send(socket, given, **more)
    return (await read(socket))[-1]


async def refusal(socket: ClientConnection, given: Any = "1+3=?", **more: Any) -> tuple[int, str, str | None]:
    event = await ask(socket, given, **more)
    assert event["type"] == "error", event
    return event["status"], event["error"]["code"], event["error"]["param"]


async def test_openais_client_has_a_conversation_over_one_socket(server: ServerProcess, model: OpenAIServer):
    async with (
        AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none") as client,
        client.responses.connect() as connection,
    ):
        await connection.response.create(model="maniple", input="1+3=?")
        first = [event async for event in until_end(connection)]
        assert [event.sequence_number for event in first] == [*range(len(first))]
        assert "4" in first[-1].response.output_text
        model.reset(TALK)
        await connection.response.create(
            model="maniple", input="And now?", previous_response_id=first[-1].response.id
        )
        second = [event async for event in until_end(connection)]
        assert second[-1].response.conversation == first[-1].response.conversation


async def until_end(connection: Any) -> AsyncIterator[Any]:
    async for event in connection:
        yield event
        if event.type in END:
            return


async def test_the_events_are_those_of_the_stream_over_http(
    socket: ClientConnection, http: httpx.AsyncClient
):
    await send(socket)
    events = await read(socket)
    again = await http.get(f"/v1/responses/{events[-1]['response']['id']}", params={"stream": True})
    frames = [json.loads(one.split("data: ")[1]) for one in again.text.split("\n\n") if "data: " in one]
    assert [one["type"] for one in frames] == [one["type"] for one in events]
    assert frames[-1]["response"]["output"] == events[-1]["response"]["output"]


async def test_a_question_is_the_answer_and_the_next_message_answers_it(
    socket: ClientConnection, model: OpenAIServer
):
    model.reset(ASKS)
    asked = (await ask(socket, store=False))["response"]
    assert "Which numbers?" in json.dumps(asked["output"])
    answered = (await ask(socket, "1 and 3", store=False, previous_response_id=asked["id"]))["response"]
    assert "4" in json.dumps(answered["output"])


async def test_a_second_request_waits_for_the_end_of_the_first(socket: ClientConnection, model: OpenAIServer):
    model.reset(TALK)
    for name in ("one", "two"):
        await send(socket, name, metadata={"name": name})
    first, second = await read(socket), await read(socket)
    assert {one["response"]["metadata"]["name"] for one in first if "response" in one} == {"one"}
    assert {one["response"]["metadata"]["name"] for one in second if "response" in one} == {"two"}


async def test_a_client_that_queues_too_many_requests_is_told_and_closed(
    socket: ClientConnection, model: OpenAIServer
):
    model.reset(HANGS)
    with pytest.raises(websockets.ConnectionClosed) as closed:
        for _ in range(20):
            await send(socket, "Many at once")  # a later test that asked the same would join this run
        while True:
            await socket.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert closed.value.rcvd.reason


async def test_a_run_goes_on_without_its_socket(
    server: ServerProcess, http: httpx.AsyncClient, model: OpenAIServer
):
    model.reset(HANGS)
    async with connect(address(server)) as socket:
        await send(socket, "Without a socket")
        response_id = (await read(socket, ("response.created",)))[-1]["response"]["id"]
        model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
    assert (await http.get(f"/v1/responses/{response_id}")).json()["status"] == "in_progress"
    assert (await http.post(f"/v1/responses/{response_id}/cancel")).json()["status"] == "cancelled"


async def test_a_conversation_that_is_not_stored_ends_with_its_socket(
    server: ServerProcess, http: httpx.AsyncClient, model: OpenAIServer
):
    model.reset(TALK)
    before = await thread_ids(http)
    async with connect(address(server)) as socket:
        response = (await ask(socket, store=False))["response"]
        assert (response["store"], response["conversation"]) == (False, None)
        assert len(await thread_ids(http) - before) == 1
        assert (await http.get(f"/v1/responses/{response['id']}")).status_code == 404
        stored = await refusal(socket, previous_response_id=response["id"])
        assert stored == (400, "previous_response_not_found", "previous_response_id")
    await until_threads_are(http, before)


async def test_a_run_that_is_not_stored_ends_with_its_socket(
    server: ServerProcess, http: httpx.AsyncClient, model: OpenAIServer
):
    model.reset(HANGS)
    before = await thread_ids(http)
    async with connect(address(server)) as socket:
        await send(socket, store=False)
        model.wait_for(lambda stats: stats["by_role"].get("coder") == 1)
        socket.transport.abort()
    await until_threads_are(http, before)


@pytest.mark.slow
@pytest.mark.parametrize("script", [TALK, HANGS], ids=["answered", "at work"])
async def test_a_conversation_that_is_not_stored_ends_with_a_killed_server(
    model: OpenAIServer, tmp_path: Path, script: Any
):
    model.reset(script)
    env = environment(model.base_url, tmp_path)
    with server_process(env, tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=100) as http:
            stored = (await http.post("/api/threads")).json()["thread_id"]
            async with connect(address(server)) as socket:
                await send(socket, store=False)
                if script is TALK:
                    await read(socket)
                else:
                    await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
                assert len(await thread_ids(http)) == 2
                server.process.kill()
    model.reset(script)
    with server_process(env, tmp_path) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=100) as http:
            await until_threads_are(http, {stored})
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 0)


async def thread_ids(http: httpx.AsyncClient) -> set[str]:
    return {one["thread_id"] for one in (await http.get("/api/threads")).json()["threads"]}


async def until_threads_are(http: httpx.AsyncClient, expected: set[str]) -> None:
    for _ in range(300):
        if await thread_ids(http) == expected:
            return
    raise AssertionError("a conversation that is not stored was not deleted")


async def test_a_function_is_called_and_answered_over_the_socket(
    socket: ClientConnection, model: OpenAIServer
):
    step = {"agent_name": "researcher", "title": "Look", "description": "Look."}
    member = [call("get_weather"), reply("It is sunny.")]
    coordinator = [call("handoff_to_planner", locale="en-US", step=step)]
    model.reset({"by_history": True, "coordinator": coordinator, "researcher": member})
    goes_on = {"store": False, "tools": [{"type": "function", "name": "get_weather"}]}
    first = (await ask(socket, "What is the weather?", **goes_on))["response"]
    called = first["output"][-1]
    output = {"type": "function_call_output", "call_id": called["call_id"], "output": "sunny"}
    assert (await refusal(socket, [output], **goes_on))[1] == "previous_response_not_found"
    second = (await ask(socket, [output], previous_response_id=first["id"], **goes_on))["response"]
    assert second["output"][-1]["content"][0]["text"] == "It is sunny."


@pytest.mark.parametrize(
    ("given", "status", "code", "param"),
    [
        ({"type": "response.cancel"}, 400, "invalid_request", "type"),
        ({"input": []}, 400, "invalid_request", "input.str"),
        ({"model": "gpt-4o"}, 404, "model_not_found", "model"),
        ({"background": True}, 400, "unsupported_parameter", "background"),
        ({"generate": False}, 400, "invalid_request", "generate"),
        ({"tools": [{"type": "custom", "name": "a"}]}, 400, "unsupported_parameter", "tools"),
        ({"store": False, "metadata": {"thread_id": "a"}}, 400, "unsupported_parameter", "store"),
        ({"previous_response_id": "resp_a"}, 400, "previous_response_not_found", "previous_response_id"),
    ],
)
async def test_what_cannot_be_done_is_an_error_and_the_socket_stays_open(
    socket: ClientConnection, model: OpenAIServer, given: Any, status: int, code: str, param: str
):
    assert await refusal(socket, **given) == (status, code, param)
    model.reset(TALK)
    assert (await ask(socket, f"After {param}"))["response"]["status"] == "completed"


@pytest.mark.parametrize("text", ["", "{", "[]", "1", "[" * 100_000, b"\xff", '"\\ud800"'])
async def test_a_message_that_is_no_object_is_an_error(socket: ClientConnection, text: str | bytes):
    await socket.send(text)
    event = (await read(socket))[-1]
    assert (event["status"], event["error"]["code"]) == (400, "invalid_request")


async def test_a_half_character_in_a_message_is_repaired(socket: ClientConnection, model: OpenAIServer):
    model.reset(TALK)
    event = await ask(socket, "1+3 \ud83d", instructions="\ud83d", metadata={"a": "\ud83d"})
    assert event["response"]["status"] == "completed"


async def test_transport_options_of_http_are_named_as_unused(socket: ClientConnection, model: OpenAIServer):
    model.reset(TALK)
    event = await ask(socket, stream=True, stream_id="a")
    assert {"stream", "stream_id"} <= {*event["response"]["not_used"]}


async def test_an_unknown_query_parameter_is_named_in_the_handshake(server: ServerProcess):
    async with connect(address(server, "/v1/responses?model=maniple")) as socket:
        assert socket.response is not None
        assert socket.response.headers["x-maniple-not-used"] == "model"


async def test_a_message_larger_than_the_limit_of_a_body_closes_the_socket(socket: ClientConnection):
    with pytest.raises(websockets.ConnectionClosed) as closed:
        await ask(socket, "a" * 1_100_000)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    "headers", [{"origin": "http://evil.test"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}]
)
async def test_a_page_of_another_origin_cannot_open_it(server: ServerProcess, headers: dict[str, str]):
    with pytest.raises(InvalidStatus) as refused:
        await connect(address(server), additional_headers=headers)
    response = refused.value.response
    assert response.status_code == 403
    assert json.loads(response.body or b"")["code"] == "forbidden"
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_a_page_of_the_service_can_open_it(server: ServerProcess, model: OpenAIServer):
    model.reset(TALK)
    async with connect(address(server), origin=server.url) as socket:  # type: ignore[arg-type]
        assert (await ask(socket))["type"] == "response.completed"


async def test_a_host_that_names_this_machine_by_another_domain_is_refused(server: ServerProcess):
    port = server.url.rpartition(":")[2]
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"ws://rebound.test:{port}/v1/responses", host="127.0.0.1")
    assert refused.value.response.status_code == 400


async def test_another_path_has_no_socket(server: ServerProcess):
    with pytest.raises(InvalidStatus) as refused:
        await connect(address(server, "/api/chat/stream"))
    assert refused.value.response.status_code == 404
    assert json.loads(refused.value.response.body or b"")["code"] == "not_found"


async def test_the_key_is_checked_before_the_handshake_and_with_each_message(
    model: OpenAIServer, tmp_path: Path
):
    model.reset(TALK)
    env = environment(model.base_url, tmp_path)
    with server_process(env, tmp_path) as server:
        async with connect(address(server)) as keyless:
            assert (await ask(keyless))["type"] == "response.completed"
            secret = add_key(env, tmp_path, "desk")
            for headers, code in (({}, "key_needed"), ({"x-api-key": "wrong"}, "key_unknown")):
                with pytest.raises(InvalidStatus) as refused:
                    await connect(address(server), additional_headers=headers)
                assert refused.value.response.status_code == 401
                assert json.loads(refused.value.response.body or b"")["error"]["code"] == code
            await expect_closed(keyless)
        model.reset(TALK)
        async with connect(address(server), additional_headers={"x-api-key": secret}) as keyed:
            assert (await ask(keyed))["type"] == "response.completed"
            run_keys(env, tmp_path, "revoke", key_id_of(run_keys(env, tmp_path, "list")))
            await expect_closed(keyed)


async def expect_closed(socket: ClientConnection) -> None:
    assert await refusal(socket) == (401, "key_revoked", None)
    with pytest.raises(websockets.ConnectionClosed):
        await socket.recv()


def add_key(env: dict[str, str], home: Path, name: str) -> str:
    found = re.search(r"mk_[A-Za-z0-9_-]+", run_keys(env, home, "add", name))
    assert found
    return found[0]


def key_id_of(listed: str) -> str:
    found = re.search(r"\b[0-9a-f]{8}\b", listed)
    assert found, listed
    return found[0]


def run_keys(env: dict[str, str], home: Path, *words: str) -> str:
    command = [str(Path(sys.executable).with_name("maniple")), "keys", *words]
    return subprocess.run(command, env=env, cwd=home, check=True, capture_output=True, text=True).stdout


async def test_a_socket_whose_time_is_over_is_told_and_closed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(responses_socket, "SOCKET_SECONDS", 0.0)
    sent: list[Any] = []
    connected = iter([{"type": "websocket.connect"}])

    async def receive() -> Any:
        return next(connected, None) or await asyncio.Event().wait()

    async def put(message: Any) -> None:
        sent.append(message)

    accepted = WebSocket({"type": "websocket"}, receive, put)
    await accepted.accept()
    nobody: Any = None
    await ResponseSocket(accepted, nobody, Caller(), AnsweredRuns(), nobody).serve()
    assert [one["type"] for one in sent] == ["websocket.accept", "websocket.send", "websocket.close"]
    assert json.loads(sent[1]["text"])["error"]["code"] == "websocket_connection_limit_reached"


def test_a_key_has_so_many_sockets_and_gets_the_place_of_a_closed_one_again():
    sockets = OpenSockets()
    with ExitStack() as opened:
        assert all(opened.enter_context(sockets.place("a")) for _ in range(MAX_SOCKETS))
        with sockets.place("a") as has_place, sockets.place("b") as has_another:
            assert (has_place, has_another) == (False, True)
    with sockets.place("a") as has_place:
        assert has_place


async def test_a_client_beyond_the_sockets_of_its_key_is_refused(server: ServerProcess):
    async with AsyncExitStack() as opened:
        with pytest.raises(InvalidStatus) as refused:
            for _ in range(MAX_SOCKETS + 1):
                await opened.enter_async_context(connect(address(server)))
        assert refused.value.response.status_code == 429
        assert json.loads(refused.value.response.body or b"")["error"]["code"] == "too_many_sockets"
