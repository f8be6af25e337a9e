"""Health, readiness, metrics and the API document of the service."""

import asyncio
import contextlib
import json
import re
import threading
from typing import Any

import httpx
import pytest
from fastapi.openapi.utils import get_openapi

from maniple.agents.team_models import ModelUse
from maniple.api import app as api_app
from maniple.service import readiness
from maniple.store import error_translation
from maniple.workspace import Workspaces
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio
# fmt: off
COMPONENTS = [
    "AgentUsageView", "Answer", "ArtifactView", "BudgetIn", "ChatMessageIn", "ChatRequest",
    "ContentPart", "ErrorView", "GapView", "Health", "InterruptView", "MessageAccepted",
    "MessageCreate", "Missing", "NewThread",
    "PlanChangeIn", "PlanStep", "PlanView", "Problem", "Readiness", "Ready", "ReportView", "RunAccepted",
    "RunBody", "RunPage", "RunStub", "RunSummary", "RunView", "SaidView", "SourceView", "Sources",
    "StoredFile", "StoredFiles", "TeamMember", "TeamMembers", "ThreadChange", "ThreadDetail",
    "ThreadFile", "ThreadFiles", "ThreadPage", "ThreadView", "UploadLimits", "UsageView",
]
# fmt: on


async def test_readiness_names_each_part_and_why_it_is_not_there(it: InProcessService):
    ready = await it.get("/readyz")
    assert (ready["ready"], ready["model"], ready["store"]) == (True, *[{"ready": True, "why": ""}] * 2)
    assert ready["sandbox"]["ready"] is False
    assert "sandbox" in ready["sandbox"]["why"]
    assert "search.providers" in ready["search"]["why"]
    assert ready["browser"]["ready"] is False
    assert ready["files"]["ready"] is True


async def test_a_service_whose_model_is_gone_is_not_ready(tmp_path, monkeypatch):
    monkeypatch.setattr(readiness, "RECHECK_SECONDS", -1.0)
    with contextlib.ExitStack() as stack:
        model = stack.enter_context(serving(SIMPLE))
        async with open_service(model.base_url, tmp_path) as it:
            assert (await it.client.get("/readyz")).status_code == 200
            await asyncio.to_thread(stack.close)
            response = await it.client.get("/readyz")
            assert response.status_code == 503
            assert "unreachable" in response.json()["model"]["why"]
            assert response.json()["store"]["ready"] is True


async def test_a_service_whose_disk_has_no_room_is_not_ready_until_there_is_some(
    it: InProcessService, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(error_translation, "RESERVE_BYTES", 2**62)
        response = await it.client.get("/readyz")
    assert response.status_code == 503
    assert "the disk is full" in response.json()["store"]["why"]
    assert (await it.get("/readyz"))["store"] == {"ready": True, "why": ""}


async def test_the_roles_whose_endpoint_is_gone_are_named_and_others_still_work(tmp_path, model):
    nowhere = {"model": "deep", "base_url": "http://127.0.0.1:9/v1"}
    basic = {"model": "scripted", "base_url": model.base_url, "max_retries": 0}
    deaf = {"models": {"basic": basic, "reasoning": nowhere}}
    unreachable = "is unreachable: ConnectError. See `maniple doctor`."
    async with open_service(model.base_url, tmp_path / "deep", **deaf) as it:
        ready = await it.get("/readyz")
        assert ready["ready"] is True
        why = f"The endpoint of planner (deep thinking) {unreachable}"
        assert ready["model"] == {"ready": False, "why": why}
    async with open_service(
        model.base_url, tmp_path / "reporter", **deaf, team={"llms": {"reporter": "reasoning"}}
    ) as it:
        response = await it.client.get("/readyz")
        why = f"The endpoint of reporter, planner (deep thinking) {unreachable}"
        assert (response.status_code, response.json()["model"]["why"]) == (503, why)
    spare = {"models": {"basic": basic, "reasoning": {**nowhere, "fallbacks": [basic]}}}
    async with open_service(model.base_url, tmp_path / "spare", **spare) as it:
        assert (await it.get("/readyz"))["model"] == {"ready": True, "why": ""}


async def test_the_readiness_of_the_model_has_what_calls_have_shown_of_it(it: InProcessService, model):
    model.refuse = lambda body: "'temperature' is not supported" if "temperature" in body else ""
    await it.client.post("/api/chat/stream", json={"messages": [{"role": "user", "content": "1+3=?"}]})
    learned = (await it.get("/readyz"))["model"]["learned"]
    assert learned == {f"model 'scripted' at {model.base_url}": {"temperature": False}}


async def test_each_endpoint_is_checked_once_for_all_its_roles_and_cached():
    asked = []

    async def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return httpx.Response(503 if "b" in request.url.host else 401)

    uses = [
        ModelUse("planner", ("http://a/v1",), vital=True),
        ModelUse("coder", ("http://b/v1/",)),
        ModelUse("reporter", ("http://b/v1/", "http://a/v1"), vital=True),
    ]
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        reach = readiness.ModelReach(client, uses)
        found = await asyncio.gather(*(reach.reached() for _ in range(3)))
    assert sorted(asked) == ["http://a/v1/models", "http://b/v1/models"]
    assert {one.model.why for one in found} == {"The endpoint of coder answers HTTP 503."}
    assert all(one.suffices for one in found)


async def test_figures_are_counted_from_runs(it: InProcessService):
    run = await it.run()
    await it.events_of(run["run_id"])
    response = await it.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    assert 'maniple_runs_ended_total{status="completed"} 1.0' in response.text
    assert "maniple_stream_clients 0.0" in response.text


async def test_runs_that_wait_for_their_turn_or_a_place_are_queued_and_do_not_work(tmp_path):
    with serving({"coordinator": [{"hang": True}]}) as model:
        async with open_service(model.base_url, tmp_path, server={"max_runs": 1}) as it:
            works = await it.run()
            waiting = [await it.run(thread_id=works["thread_id"]), await it.run()]
            await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
            now = await figures(it)
            assert [now[f"runs_{name}"] for name in ("running", "queued", "started_total")] == [1, 2, 1]
            for run in waiting:
                await it.client.post(f"/api/runs/{run['run_id']}/cancel")
            now = await figures(it)
            assert [now[f"runs_{name}"] for name in ("running", "queued", "started_total")] == [1, 0, 1]
            assert now['runs_ended_total{status="cancelled"}'] == 2
            assert 'run_seconds_count{status="cancelled"}' not in now
            await it.client.post(f"/api/runs/{works['run_id']}/cancel")
            now = await figures(it)
            assert (now["runs_running"], now['run_seconds_count{status="cancelled"}']) == (0, 1)


async def figures(it: InProcessService) -> dict[str, float]:
    lines = (await it.client.get("/metrics")).text.splitlines()
    ours = [line.removeprefix("maniple_").rsplit(" ", 1) for line in lines if line.startswith("maniple_")]
    return {name: float(value) for name, value in ours}


async def test_the_openapi_document_is_made_for_its_first_request_outside_the_event_loop(
    tmp_path, model, monkeypatch
):
    makers: list[int] = []

    def make(**options: Any) -> dict[str, Any]:
        makers.append(threading.get_ident())
        return get_openapi(**options)

    monkeypatch.setattr(api_app, "get_openapi", make)
    api_app._describe_api.cache_clear()
    async with open_service(model.base_url, tmp_path) as it:
        assert (await it.client.delete("/healthz")).status_code == 405
        assert makers == []
        first = await it.get("/openapi.json")
        assert await it.get("/openapi.json") == first == it.app.openapi()
    assert len(makers) == 1
    assert threading.get_ident() not in makers


async def test_the_document_names_the_path_below_which_the_service_is_mounted(it: InProcessService):
    transport = httpx.ASGITransport(it.app, root_path="/team")
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/team/openapi.json")).json()["servers"] == [{"url": "/team"}]
    assert "servers" not in await it.get("/openapi.json")


async def test_a_method_that_a_path_lacks_is_refused_with_all_those_it_has(it: InProcessService):
    response = await it.client.put("/api/threads/t")
    assert response.status_code == 405
    assert set(response.headers["allow"].split(", ")) == {"DELETE", "GET", "PATCH"}


async def test_an_address_that_does_not_exist_is_answered_with_where_to_look(it: InProcessService):
    for method, path, status in (
        ("GET", "/api/nothing", 404),
        ("POST", "/v2/chat/completions", 404),
        ("GET", "/%ff%0a", 404),
        ("PUT", "/api/threads/t", 405),
    ):
        response = await it.client.request(method, path)
        assert response.status_code == status
        body = response.json()
        assert body["code"] == {404: "not_found", 405: "method_not_allowed"}[status]
        assert "/docs" in body["detail"]
        assert method in body["detail"]
    assert "PATCH" in (await it.client.put("/api/threads/t")).json()["detail"]


@pytest.mark.parametrize("path", ["/api/threads", "/api/chat/stream", "/api/threads/{}/runs"])
@pytest.mark.parametrize(
    "media_type", ["application/x-www-form-urlencoded", "text/plain", "x/" + "y" * 900, ""]
)
async def test_a_body_that_is_not_sent_as_json_is_answered_with_the_header_that_is_missing(
    it: InProcessService, path, media_type
):
    headers = {"content-type": media_type} if media_type else {}
    address = path.format(await it.thread())
    response = await it.client.post(address, content=b'{"input": "1+3=?"}', headers=headers)
    body = response.json()
    assert (response.status_code, body["code"]) == (422, "invalid_request")
    assert "content-type: application/json" in body["detail"]
    assert media_type[:50] in body["detail"]
    assert len(body["detail"]) < 300


async def test_a_json_body_with_mistakes_is_still_answered_with_their_places(it: InProcessService):
    for content in (b"[]", b"{", b'{"input": 3}'):
        for media_type in ("application/json; charset=utf-8", "Application/Merge+JSON"):
            address = f"/api/threads/{await it.thread()}/runs"
            response = await it.client.post(address, content=content, headers={"content-type": media_type})
            assert response.status_code == 422
            assert response.json()["detail"][0]["loc"][0] == "body"


async def test_every_route_is_described_with_its_answers_and_refusals(it: InProcessService):
    document = it.app.openapi()
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            assert route["summary"], (method, path)
            assert route["description"], (method, path)
            answers = route["responses"]
            good = [status for status in answers if status in ("200", "201", "202", "204")]
            assert good or route["summary"].startswith("Refuse"), (method, path)
            assert all(status == "204" or answers[status].get("content") for status in good), (method, path)
            for status in ("401", "413", "422"):
                schema = answers[status]["content"]["application/json"]["schema"]
                problem = "OpenAIErrorView" if path.startswith("/v1/") else "Problem"
                assert schema == {"$ref": f"#/components/schemas/{problem}"}, (method, path, status)
            if "{" in path:
                assert "404" in answers, (method, path)


async def test_the_components_of_the_document_keep_their_names(it: InProcessService):
    """A client generated from an earlier document has types of these names."""
    document = it.app.openapi()
    names = set(document["components"]["schemas"])
    assert set(COMPONENTS) - names == set()
    targets = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(document)))
    assert targets <= names


async def test_a_fault_of_ours_is_an_answer_without_its_innards(tmp_path, model, monkeypatch):
    async with open_service(model.base_url, tmp_path) as it:

        async def broken(*_: object) -> None:
            raise RuntimeError("secret innards")

        monkeypatch.setattr(type(it.service.store.threads), "list", broken)
        transport = httpx.ASGITransport(it.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            response = await client.get("/api/threads")
        assert (response.status_code, response.json()["code"]) == (500, "internal")
        assert "innards" not in response.text


async def test_uploads_and_the_work_of_the_team_share_one_set_of_workspaces(it: InProcessService):
    assert it.service.workspaces is it.service.runtime.offer.service(Workspaces)
