"""Everything of the HTTP service but the stream's content."""

import gc
from collections import deque

import httpx
import pytest
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from maniple.api.app import GARBAGE_THRESHOLDS, BodyLimit, BodyTooLarge
from tests.openai_server import SIMPLE

pytestmark = pytest.mark.anyio
QUESTION = {"messages": [{"role": "user", "content": "1+3=?"}]}


async def test_the_streams_headers_are_what_the_old_client_and_proxies_need(client, model):
    model.reset(SIMPLE)
    async with client.stream("POST", "/api/chat/stream", json=QUESTION) as response:
        await response.aread()
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["connection"] == "keep-alive"
    assert response.headers["x-accel-buffering"] == "no"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "Field required"),
        ({"messages": []}, "at least 1 item"),
        ({"messages": "x"}, "valid list"),
        ({"messages": [{"role": "user"}]}, "Field required"),
        ({**QUESTION, "on_disconnect": "maybe"}, "'cancel' or 'continue'"),
        ({**QUESTION, "thread_id": "  "}, "pattern"),
        ({"messages": [{"role": "user", "content": " \n"}]}, "the last message is empty"),
        ({"messages": [{"role": "user", "content": []}]}, "the last message is empty"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "the last message is empty"),
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "the last message is empty"),
        ({"messages": [*QUESTION["messages"], {"role": "AI", "content": "4"}]}, "must be the user's"),
        ({**QUESTION, "locale": "; drop table"}, "pattern"),
    ],
)
async def test_a_body_that_does_not_fit_is_refused_before_any_stream(client, body, words):
    response = await client.post("/api/chat/stream", json=body)
    assert response.status_code == 422
    assert words in response.text


@pytest.mark.parametrize("path", ["/api/chat/stream?view=live", "/api/threads/t/runs"])
async def test_an_unknown_member_is_refused_to_those_who_see_errors(client, path):
    response = await client.post(path, json={**QUESTION, "team_members": ["coder", "chef"]})
    assert response.status_code == 422
    assert "chef" in response.text


async def test_an_empty_message_before_the_last_and_a_role_of_its_own_are_taken(client, model):
    model.reset(SIMPLE)
    messages = [{"role": "assistant", "content": ""}, {"role": "visitor", "content": "1+3=?"}]
    response = await client.post("/api/chat/stream", json={"messages": messages})
    assert response.status_code == 200
    assert "end_of_workflow" in response.text


async def test_a_run_whose_input_is_blank_is_refused(client):
    response = await client.post("/api/threads/t/runs", json={"input": "  "})
    assert response.status_code == 422
    assert "give messages, or input" in response.text


async def test_broken_json_is_refused(client):
    response = await client.post(
        "/api/chat/stream", content=b"{", headers={"content-type": "application/json"}
    )
    assert response.status_code == 422


async def test_what_the_old_client_sends_beyond_the_contract_is_ignored(client, model):
    model.reset(SIMPLE)
    message = {"id": "x", "type": "text", **QUESTION["messages"][0]}
    body = {"messages": [message], "debug": None, "team_members": None, "deep_thinking_mode": None, "new": 1}
    response = await client.post("/api/chat/stream", json=body)
    assert response.status_code == 200


async def test_pictures_and_text_parts_are_taken(client, model):
    model.reset(SIMPLE)
    parts = [{"type": "text", "text": "1+3=?"}, {"type": "image", "image_url": "data:image/png;base64,AAAA"}]
    response = await client.post("/api/chat/stream", json={"messages": [{"role": "user", "content": parts}]})
    assert "end_of_workflow" in response.text
    assert model.requests[0]["messages"][-1]["content"][1]["type"] == "image_url"


async def test_a_body_that_is_too_large_is_refused(client):
    body = {"messages": [{"role": "user", "content": "x" * 1_100_000}]}
    response = await client.post("/api/chat/stream", json=body)
    assert response.status_code == 413
    assert "server.max_body_bytes" in response.json()["detail"]


@pytest.mark.parametrize(("path", "limit"), [("/api/threads", 10), ("/api/threads/t/files", 20)])
@pytest.mark.parametrize("is_declared", [True, False])
@pytest.mark.parametrize("is_over", [True, False])
async def test_a_body_of_just_the_limit_is_taken(path: str, limit: int, is_declared: bool, is_over: bool):
    async def read(scope, receive, send):
        body = await Request(scope, receive).body()
        await PlainTextResponse(str(len(body)))(scope, receive, send)

    async def answer_too_large(request, error):
        return PlainTextResponse("", status_code=413)

    handled = ExceptionMiddleware(read, handlers={BodyTooLarge: answer_too_large})
    app = BodyLimit(handled, max_bytes=10, max_upload_bytes=20)
    size = limit + is_over

    async def in_pieces():
        yield b"x" * (size - 1)
        yield b"x"

    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        answer = await client.post(path, content=b"x" * size if is_declared else in_pieces())
    assert answer.status_code == (413 if is_over else 200)
    assert is_over or answer.text == str(limit)


async def test_a_body_that_hides_its_size_is_refused_too(client):
    async def endless():
        for _ in range(20):
            yield b" " * 100_000

    headers = {"content-type": "application/json"}
    response = await client.post("/api/chat/stream", content=endless(), headers=headers)
    assert response.status_code == 413


async def test_the_team_is_listed_in_the_old_clients_format(client):
    members = (await client.get("/api/team_members")).json()["team_members"]
    assert set(members) == {"researcher", "coder", "browser", "file_manager", "reporter"}
    assert members["coder"].keys() == {"name", "desc", "is_optional"}
    assert {name: one["is_optional"] for name, one in members.items()} == {
        "researcher": False, "coder": True, "browser": True, "file_manager": True, "reporter": False,
    }  # fmt: skip


async def test_the_preflight_lets_the_configured_origin_send_json(client):
    headers = {
        "origin": "http://localhost:3000",
        "access-control-request-method": "POST",
        "access-control-request-headers": "cache-control,content-type",
    }
    response = await client.options("/api/chat/stream", headers=headers)
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "http://localhost:3000"
    allowed = response.headers["access-control-allow-headers"].lower()
    assert "content-type" in allowed
    assert "cache-control" in allowed


async def test_another_origin_is_not_let_in(client):
    headers = {"origin": "http://evil.test", "access-control-request-method": "POST"}
    response = await client.options("/api/chat/stream", headers=headers)
    assert "access-control-allow-origin" not in response.headers


async def test_a_page_that_names_loopback_by_its_own_domain_is_refused(server):
    async with httpx.AsyncClient(base_url=server.url, headers={"host": "rebound.evil.test"}) as client:
        assert (await client.get("/healthz")).status_code == 400


async def test_health_names_the_model_and_what_is_absent(client):
    health = (await client.get("/healthz")).json()
    assert (health["status"], health["model"]) == ("ok", "scripted")
    assert any("search.providers" in notice for notice in health["notices"])


async def test_a_recording_that_does_not_exist_is_not_found(client):
    response = await client.get("/api/browser_history/none.gif")
    assert (response.status_code, response.json()) == (404, {"detail": "File not found"})


async def test_a_path_out_of_the_recordings_is_not_found(client):
    response = await client.get("/api/browser_history/..%2F..%2Fetc%2Fpasswd")
    assert response.status_code == 404


async def test_the_service_describes_itself(client):
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert {"/api/chat/stream", "/api/team_members", "/healthz"} <= set(paths)
    assert (await client.get("/docs")).status_code == 200


@pytest.mark.parametrize("content", [b"NaN", b"1e999", b'[{"type": "text", "text": NaN}]', b"[" * 5_000])
async def test_json_that_no_response_can_repeat_is_refused(client, content):
    body = b'{"messages": [{"role": "user", "content": ' + content + b"}]}"
    headers = {"content-type": "application/json"}
    response = await client.post("/api/chat/stream", content=body, headers=headers)
    assert response.status_code in (400, 422)
    assert response.json()["detail"]


async def test_a_refusal_does_not_repeat_a_long_body(client):
    response = await client.post("/api/chat/stream", json={"messages": "x" * 100_000})
    assert response.status_code == 422
    assert len(response.content) < 1_000
    small = await client.post("/api/chat/stream", json={"messages": "x"})
    assert small.json()["detail"][0]["input"] == "x"


async def test_half_a_character_from_a_client_is_taken_as_a_sign_of_it(client, model):
    model.reset(SIMPLE)
    body = b'{"messages": [{"role": "user", "content": "1+3=? \\ud83d"}]}'
    response = await client.post(
        "/api/chat/stream", content=body, headers={"content-type": "application/json"}
    )
    assert response.status_code == 200
    assert '"status": "completed"' in response.text


def test_the_garbage_of_ended_runs_is_collected_before_it_is_much():
    """A run's graphs are cycles of about 700 objects, which hold its events and messages."""
    collections = list[int]()

    def note(phase: str, details: dict[str, int]) -> None:
        if phase == "stop" and details["generation"] == 2:
            collections.append(made)

    class Held:
        """A part of a cycle."""

        itself: "Held"

    before, made = gc.get_threshold(), 0
    active = deque[Held](maxlen=100_000)  # what outlives two collections is freed by one of the oldest
    gc.callbacks.append(note)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    try:
        while not collections and made < 2_000 * 700:
            one = Held()
            one.itself = one
            active.append(one)
            made += 1
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
    assert collections, "2,000 runs would leave 300 MB"
