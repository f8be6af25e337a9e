"""A better model is connected while the service runs: tested, saved in `.env`, and used by the next run."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from maniple.api import create_app
from maniple.config import load_settings
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import OpenAIServer, call, reply, serving

pytestmark = pytest.mark.anyio
KEY = "sk-canary-of-the-better-model"
TALK = {"other": [reply("ok")], "coordinator": [reply("Hello.")]}
_PLAIN = """
models: {basic: {max_retries: 0, timeout_seconds: 60}}
sandbox: {backend: 'off'}
browser: {enabled: false}
search: {providers: []}
"""


@asynccontextmanager
async def opened(
    home: Path, base_url: str, environment: dict[str, str] | None = None, **more: str
) -> AsyncIterator[InProcessService]:
    """Open a service over the settings files in `home`, with the first model in its `.env`."""
    folders = f"data_dir: {home / 'data'}\ncache_dir: {home / 'cache'}\n"
    (home / "conf.yaml").write_text(_PLAIN + folders)
    (home / ".env").write_text(
        f"# mine\nBASIC_MODEL=small\nBASIC_BASE_URL={base_url}\nBASIC_API_KEY=sk-of-small\n"
    )
    app = create_app(load_settings(home / "conf.yaml", env_file=home / ".env"))
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app, client=(more.get("client", "127.0.0.1"), 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=60) as client:
            yield InProcessService(app, app.state.service, client)


@pytest.fixture
async def better() -> AsyncIterator[OpenAIServer]:
    with serving(TALK) as server:
        yield server


@pytest.fixture
async def here(tmp_path: Path, model: OpenAIServer) -> AsyncIterator[InProcessService]:
    model.reset(TALK)
    async with opened(tmp_path, model.base_url) as it:
        yield it


def asked(server: OpenAIServer, **more: str) -> dict[str, str]:
    return {"model": "large", "base_url": server.base_url, "api_key": KEY, **more}


async def hello(it: InProcessService) -> list[Any]:
    return await it.events_of((await it.run(messages=[{"role": "user", "content": "Hello"}]))["run_id"])


async def test_the_next_run_uses_the_saved_model_and_one_at_work_ends_with_its_own(
    here: InProcessService, model: OpenAIServer, better: OpenAIServer, tmp_path: Path
):
    model.reset({**TALK, "coordinator": [{**reply("Hello."), "hang": True}]})
    accepted = await here.run(messages=[{"role": "user", "content": "Hello"}])
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    response = await here.client.put("/api/models/basic", json=asked(better))
    assert response.json() == {
        "model": "large", "file": str(tmp_path / ".env"), "overruled": [], "notices": []
    }  # fmt: skip
    calls = better.stats["calls"]
    await hello(here)
    assert better.stats["calls"] == calls + 1
    assert model.stats["active"] == 1
    model.release()
    await here.events_of(accepted["run_id"])
    assert (await here.get(f"/api/runs/{accepted['run_id']}"))["status"] == "completed"
    assert ((await here.get("/healthz"))["model"], (await here.get("/readyz"))["ready"]) == ("large", True)
    variables = (tmp_path / ".env").read_text()
    assert variables.startswith("# mine\n")
    assert f"BASIC_API_KEY={KEY}\n" in variables
    assert load_settings(tmp_path / "conf.yaml", env_file=tmp_path / ".env").models.basic.model == "large"  # type: ignore[union-attr]


async def test_nothing_of_the_key_is_in_logs_events_or_answers(
    here: InProcessService, better: OpenAIServer, caplog: pytest.LogCaptureFixture
):
    better.reset({**TALK, "coordinator": [reply(f"The key is {KEY}.")]})
    with caplog.at_level(logging.DEBUG):
        tested = await here.client.post("/api/models/test", json=asked(better))
        saved = await here.client.put("/api/models/basic", json=asked(better))
        frames = await hello(here)
        wrong = [
            await here.client.put("/api/models/basic", json=body)
            for body in (
                asked(better, model=""),
                [KEY],
                {"api_key": {"a": KEY}},
                asked(better, api_key=KEY + "é"),
            )
        ]
    assert [one.status_code for one in (tested, saved, *wrong)] == [200, 200, 422, 422, 422, 422]
    assert "The key is ***." in json.dumps(frames)
    for text in (tested.text, saved.text, json.dumps(frames), *(one.text for one in wrong), caplog.text):
        assert KEY not in text


async def test_a_test_says_what_the_model_can_do_and_saves_nothing(
    here: InProcessService, better: OpenAIServer, tmp_path: Path
):
    before = (tmp_path / ".env").read_text()
    better.reset({"other": [reply("ok"), reply("ok"), call("ping"), reply("{}"), reply("{}"), reply("ok")]})
    found = (await here.client.post("/api/models/test", json=asked(better))).json()
    assert (found["works"], found["code"], found["models"]) == (True, "", ["scripted"])
    assert found["features"] == dict.fromkeys(
        ("stream_usage", "tools", "json_schema", "json_object", "vision"), True
    )
    assert (tmp_path / ".env").read_text() == before
    assert (await here.get("/healthz"))["model"] == "small"


@pytest.mark.parametrize(
    ("status", "code"), [(401, "model_auth"), (404, "model_not_found"), (500, "model_overloaded")]
)
async def test_a_model_that_does_not_answer_is_neither_usable_nor_saved(
    here: InProcessService, better: OpenAIServer, tmp_path: Path, status: int, code: str
):
    before = (tmp_path / ".env").read_text()
    better.reset({"other": [{"status": status, "error": "no", "times": 9}]})
    found = (await here.client.post("/api/models/test", json=asked(better))).json()
    assert (found["works"], found["features"]) == (False, {})
    assert found["code"] == code or status == 500
    assert found["detail"]
    if status == 404:
        assert "scripted" in found["detail"]
    response = await here.client.put("/api/models/basic", json=asked(better))
    assert (response.status_code, response.json()["code"]) == (409, "model_unusable")
    assert (tmp_path / ".env").read_text() == before
    assert (await here.get("/healthz"))["model"] == "small"


async def test_an_endpoint_that_is_away_or_no_address_is_refused_in_words(here: InProcessService):
    away = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    found = (await here.client.post("/api/models/test", json=away)).json()
    assert (found["works"], found["code"]) == (False, "model_unreachable")
    for wrong in ("ftp://host/v1", "nothing", "http://127.0.0.1:9/v1/chat/completions", "http://h/\nA=1"):
        response = await here.client.post("/api/models/test", json={"model": "m", "base_url": wrong})
        assert (response.status_code, response.json()["code"]) == (422, "invalid_model"), wrong
        assert isinstance(response.json()["detail"], str)


async def test_a_key_goes_to_no_other_address_than_its_own(
    here: InProcessService, model: OpenAIServer, better: OpenAIServer, tmp_path: Path
):
    await here.client.put("/api/models/basic", json={"model": "large", "base_url": better.base_url})
    assert "BASIC_API_KEY=not-needed" in (tmp_path / ".env").read_text()
    await here.client.put("/api/models/basic", json=asked(better))
    await here.client.put("/api/models/basic", json={"model": "larger", "base_url": better.base_url})
    assert f"BASIC_API_KEY={KEY}" in (tmp_path / ".env").read_text()
    assert (await here.get("/api/models"))["answering"] == "larger"


async def test_variables_of_the_environment_win_and_the_answer_says_so(
    tmp_path: Path, model: OpenAIServer, better: OpenAIServer, monkeypatch: pytest.MonkeyPatch
):
    model.reset(TALK)
    monkeypatch.setenv("BASIC_MODEL", "of-the-environment")
    async with opened(tmp_path, model.base_url) as it:
        saved = (await it.client.put("/api/models/basic", json=asked(better))).json()
        assert (saved["model"], saved["overruled"]) == ("of-the-environment", ["BASIC_MODEL"])


async def test_only_an_admin_may_change_the_model(
    here: InProcessService, better: OpenAIServer, tmp_path: Path
):
    assert (await here.get("/api/models"))["fixed"] == ""
    through_proxy = {"x-forwarded-for": "203.0.113.5"}
    plain, admin = await here.key("ann"), await here.key("eve", admin=True)
    for headers, status in ((plain, 403), (admin, 200), ({**admin, **through_proxy}, 200)):
        for method, path in (("POST", "/api/models/test"), ("PUT", "/api/models/basic")):
            response = await here.client.request(method, path, json=asked(better), headers=headers)
            assert response.status_code == status, (headers, path)
    assert (await here.get("/api/models", plain))["fixed"] != ""
    assert (await here.client.put("/api/models/basic", json=asked(better))).status_code == 401


@pytest.mark.parametrize(
    ("client", "headers"), [("192.0.2.7", {}), ("127.0.0.1", {"x-forwarded-for": "203.0.113.5"})]
)
async def test_without_keys_only_this_machine_is_an_admin(
    tmp_path: Path, model: OpenAIServer, better: OpenAIServer, client: str, headers: dict[str, str]
):
    async with opened(tmp_path, model.base_url, client=client) as it:
        response = await it.client.put("/api/models/basic", json=asked(better), headers=headers)
        assert (response.status_code, response.json()["code"]) == (403, "not_admin")


async def test_settings_that_cannot_be_written_are_refused_with_the_reason(
    here: InProcessService, model: OpenAIServer, better: OpenAIServer, tmp_path: Path
):
    (tmp_path / ".env").chmod(0o400)
    response = await here.client.put("/api/models/basic", json=asked(better))
    assert (response.status_code, response.json()["code"]) == (409, "settings_not_writable")
    assert (await here.get("/api/models"))["fixed"] == response.json()["detail"]
    async with open_service(model.base_url, tmp_path / "program") as it:
        response = await it.client.put("/api/models/basic", json=asked(better))
        assert (response.status_code, response.json()["code"]) == (409, "settings_not_writable")
