"""Who is let in, and what another key's objects look like."""

import asyncio
import json

import httpx
import pytest

from tests.api.in_process import QUESTION, InProcessService, open_service
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
NOBODYS = "00000000-0000-4000-8000-000000000000"
OPEN = {"/healthz"}
OBJECTS = [
    ("GET", "/api/threads/{thread}", None),
    ("POST", "/api/threads/{thread}/runs", QUESTION),
    ("GET", "/api/runs/{run}", None),
    ("GET", "/api/runs/{run}/events", None),
    ("GET", "/api/runs/{run}/report", None),
    ("POST", "/api/runs/{run}/cancel", None),
    ("POST", "/api/runs/{run}/resume", {"answer": "accept"}),
    ("POST", "/api/runs/{run}/plan", {"action": "skip", "step_id": 1}),
    ("GET", "/api/artifacts/{artifact}", None),
    ("GET", "/api/threads/{thread}/files", None),
    ("GET", "/api/threads/{thread}/files/a.txt", None),
    ("DELETE", "/api/threads/{thread}/files/a.txt", None),
    ("PATCH", "/api/threads/{thread}", {"title": "Mine"}),
    ("DELETE", "/api/threads/{thread}", None),
]


def every_route(it: InProcessService) -> list[tuple[str, str]]:
    paths = it.app.openapi()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def filled(path: str) -> str:
    for name in ("thread_id", "run_id", "artifact_id", "name", "path"):
        path = path.replace(f"{{{name}}}", NOBODYS)
    return path


def code_of(response: httpx.Response) -> str:
    """Return the code of a refusal, which is inside `error` for OpenAI's clients."""
    body = response.json()
    return body.get("error", body)["code"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "key_needed"),
        ({"x-api-key": "mk_wrong"}, "key_unknown"),
        ({"authorization": "Bearer mk_wrong"}, "key_unknown"),
        ({"authorization": "Bearer " + "x" * 5_000}, "key_unknown"),
        ({"authorization": "Basic bWs6"}, "key_needed"),
    ],
)
async def test_no_route_but_health_is_open_once_a_key_exists(it: InProcessService, headers, code):
    await it.key("somebody")
    for method, path in every_route(it):
        response = await it.client.request(method, filled(path), headers=headers, content=b"{")
        if path in OPEN:
            assert response.json() == {"status": "ok", "model": "", "notices": []}
            continue
        assert (response.status_code, code_of(response)) == (401, code), path
        assert response.headers["www-authenticate"].startswith("Bearer")
        assert "maniple keys add" in response.text or "revoked" in response.text


async def test_a_path_that_does_not_exist_is_no_way_around_the_gate(it: InProcessService):
    key = await it.key("somebody")
    assert (await it.client.get("/nowhere")).status_code == 401
    response = await it.client.get("/nowhere", headers=key)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


async def test_the_documentation_is_open_and_describes_authentication(it: InProcessService):
    await it.key("somebody")
    assert (await it.client.get("/docs")).status_code == 200
    document = (await it.client.get("/openapi.json")).json()
    assert document["components"]["securitySchemes"].keys() == {"ApiKey", "Bearer"}
    routes = [(path, one) for path, methods in document["paths"].items() for one in methods.values()]
    open_routes = {path for path, one in routes if "security" not in one}
    assert open_routes == OPEN


async def test_a_key_is_taken_from_either_header_and_useless_once_revoked(it: InProcessService):
    key = await it.key("somebody")
    bearer = {"authorization": f"bearer {key['x-api-key']}"}
    other = await it.key("other")
    assert (await it.client.get("/api/threads", headers=key)).status_code == 200
    assert (await it.client.get("/api/threads", headers=bearer)).status_code == 200
    [first, _] = await it.service.store.keys.list()
    await it.service.store.keys.revoke(first.key_id)
    assert (await it.client.get("/api/threads", headers=bearer)).status_code == 401
    assert (await it.client.get("/healthz", headers=other)).json()["model"] == "scripted"


async def test_without_keys_local_requests_pass_with_any_authorization_header(
    it: InProcessService,
):
    response = await it.client.get("/api/threads", headers={"authorization": "Bearer of-the-proxy"})
    assert response.status_code == 200


async def test_the_last_key_revoked_leaves_no_open_socket_to_other_machines(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, server={"host": "0.0.0.0"}) as it:
            assert (await it.client.get("/api/threads")).status_code == 401
            key = await it.key("somebody")
            assert (await it.client.get("/api/threads", headers=key)).status_code == 200


@pytest.mark.parametrize("server", [{}, {"host": "0.0.0.0", "insecure": True}])
async def test_after_the_last_key_is_revoked_requests_are_refused(tmp_path, model, server):
    async with open_service(model.base_url, tmp_path, server=server) as it:
        assert (await it.client.get("/api/threads")).status_code == 200
        key = await it.key("only")
        keys = it.service.store.keys
        await keys.revoke((await keys.list())[0].key_id)
        for headers in ({}, key, {"x-api-key": "mk_wrong"}):
            assert (await it.client.get("/api/threads", headers=headers)).status_code == 401
            assert (
                await it.client.post("/api/chat/stream", json=QUESTION, headers=headers)
            ).status_code == 401
            assert (await it.client.get("/healthz", headers=headers)).json()["model"] == ""
        assert await keys.delete_revoked() == 1
        assert (await it.client.get("/api/threads")).status_code == 200


async def test_anothers_object_answers_as_one_that_does_not_exist(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    run = await it.run(mine)
    await it.events_of(run["run_id"], headers=mine)
    record = await it.service.engine.status(run["run_id"], await owner(it, 0))
    artifact = await it.service.store.artifacts.add(record, "a.txt", "text/plain", b"a")
    names = {"thread": run["thread_id"], "run": run["run_id"], "artifact": artifact.artifact_id}
    nobodys = dict.fromkeys(names, NOBODYS)
    files = "/api/threads/{thread}/files"
    mines = await it.client.post(files.format(**names), files={"f": ("a.txt", b"a")}, headers=mine)
    assert mines.status_code == 201
    for place in (names, nobodys):
        refused = await it.client.post(files.format(**place), files={"f": ("b.txt", b"b")}, headers=other)
        assert (refused.status_code, refused.json()["detail"]) == (404, "There is no such thread.")
    for method, path, body in OBJECTS:
        theirs = await it.client.request(method, path.format(**names), headers=other, json=body)
        missing = await it.client.request(method, path.format(**nobodys), headers=other, json=body)
        assert theirs.status_code == 404, path
        assert (theirs.status_code, theirs.content) == (missing.status_code, missing.content), path
        assert theirs.headers == missing.headers
    assert (await it.get("/api/threads", headers=other))["threads"] == []
    assert (await it.get("/api/runs", headers=other))["runs"] == []
    for method, path, body in OBJECTS:
        response = await it.client.request(method, path.format(**names), headers=mine, json=body)
        ended = path.endswith(("/resume", "/plan"))  # nothing waits there, and no plan is open
        assert response.status_code == 409 if ended else response.status_code < 300, (path, response.text)


async def owner(it: InProcessService, number: int) -> str:
    return (await it.service.store.keys.list())[number].key_id


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"null",
        b'{"messages": 1}',
        b'{"answer": NaN, "interrupt_id": 1}',
        b'"x"',
        b"\xff",
        b"[" * 9_000,
    ],
)
async def test_what_does_not_fit_is_refused_by_every_route_that_reads_a_body(it: InProcessService, content):
    run = await it.run()
    await it.events_of(run["run_id"])
    headers = {"content-type": "application/json"}
    paths = [
        "/api/chat/stream",
        f"/api/threads/{run['thread_id']}/runs",
        f"/api/runs/{run['run_id']}/resume",
        f"/api/runs/{run['run_id']}/plan",
        *(
            ["/api/threads"]
            if content != b"null" and b'"messages"' not in content and b"answer" not in content
            else []
        ),
    ]
    for path in paths:
        response = await it.client.post(path, content=content, headers=headers)
        assert response.status_code in (400, 422), (path, response.text)
        assert response.json().keys() == {"detail", "code"}


@pytest.mark.parametrize(
    "path",
    [
        "/api/threads/a%00b",
        "/api/threads/" + "x" * 201,
        "/api/threads/%20/files",
        "/api/threads/a%0a/files/b",
        "/api/threads/a/files/" + "x" * 4_097,
        "/api/runs/%0a",
        "/api/artifacts/...",
    ],
)
async def test_a_name_that_can_be_none_is_refused(it: InProcessService, path):
    assert (await it.client.get(path)).status_code == 422


@pytest.mark.parametrize("thread_id", ["", "a\x00b", "a\nb", "x" * 201, "a/b", "\ud83d"])
async def test_a_thread_id_of_a_client_is_checked(it: InProcessService, thread_id):
    body = json.dumps({**QUESTION, "thread_id": thread_id}).encode()
    headers = {"content-type": "application/json"}
    assert (await it.client.post("/api/chat/stream", content=body, headers=headers)).status_code == 422


async def test_every_route_refuses_a_body_that_is_too_large(it: InProcessService):
    for method, path in every_route(it):
        is_upload = (method, path) == ("POST", "/api/threads/{thread_id}/files")
        content = b"x" * (25_000_001 if is_upload else 1_000_001)
        response = await it.client.request(method, filled(path), content=content)
        assert (response.status_code, code_of(response)) == (413, "too_large"), path


async def test_a_key_has_as_many_runs_at_once_as_it_may(it: InProcessService, model):
    model.reset({"coordinator": [{"hang": True}]})
    mine, other = await it.key("mine", max_runs=2), await it.key("other")
    threads = [await it.thread(mine) for _ in range(5)]
    paths = [f"/api/threads/{thread}/runs" for thread in threads]
    answers = await asyncio.gather(*(it.client.post(path, json=QUESTION, headers=mine) for path in paths))
    assert sorted(one.status_code for one in answers) == [202, 202, 429, 429, 429]
    refused = next(one for one in answers if one.status_code == 429)
    assert refused.json()["code"] == "too_many_runs"
    assert int(refused.headers["retry-after"]) > 0
    theirs = await it.run(other)
    for one in answers:
        if one.status_code == 202:
            await it.client.post(f"{one.headers['location']}/cancel", headers=mine)
    await it.client.post(f"/api/runs/{theirs['run_id']}/cancel", headers=other)
    run = await it.run(mine)
    await it.client.post(f"/api/runs/{run['run_id']}/cancel", headers=mine)
