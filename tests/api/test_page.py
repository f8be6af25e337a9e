"""The page as the service gives it out: to everybody, guarded, and small."""

import asyncio
import re
from threading import Event

import pytest
from langchain_core.language_models import BaseChatModel

from maniple.api.routes.page import BUILD
from maniple.llms.endpoints import DeferredModel
from maniple.replay.player import load_player
from maniple.runs import NotFound
from tests.api.in_process import InProcessService

pytestmark = pytest.mark.anyio
FIRST_PAINT_BYTES = 120_000


async def test_the_page_is_open_to_who_has_no_key_and_the_service_is_not(it: InProcessService):
    await it.key("somebody")
    html = await it.client.get("/")
    assert html.headers["content-type"].startswith("text/html")
    loaded = re.findall(r'(?:src|href)="\./([^"]+)"', html.text)
    assert len(loaded) == 3
    for path in loaded:
        assert (await it.client.get(f"/{path}")).status_code == 200
    assert (await it.client.get("/api/threads")).status_code == 401


async def test_the_page_lets_nothing_in_from_elsewhere(it: InProcessService):
    headers = (await it.client.get("/")).headers
    policy = headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


async def test_the_page_loads_the_clients_of_the_models_before_the_first_question(it: InProcessService):
    began, model = Event(), it.service.runtime.models.get("basic")
    assert isinstance(model, DeferredModel)
    open_client = model.open_client

    def open_and_report() -> BaseChatModel:
        began.set()
        return open_client()

    model.open_client = open_and_report
    assert (await it.client.get("/healthz")).status_code == 200
    assert (await it.client.get("/api/threads")).status_code == 200
    assert not began.is_set()
    assert (await it.client.get("/")).status_code == 200
    assert await asyncio.to_thread(began.wait, 30)
    run = await it.run()
    assert (await it.events_of(run["run_id"]))[-1][0] == "final_session_state"


async def test_what_the_page_needs_for_its_first_paint_is_small(it: InProcessService):
    html = await it.client.get("/")
    assert html.headers["content-encoding"] == "gzip"
    sent = int(html.headers["content-length"])
    for path in re.findall(r'(?:src|href)="\./([^"]+)"', html.text):
        sent += int((await it.client.get(f"/{path}")).headers["content-length"])
    assert sent < FIRST_PAINT_BYTES


async def test_the_page_is_revalidated_and_its_assets_are_immutable(it: InProcessService):
    html = await it.client.get("/")
    assert html.headers["cache-control"] == "no-cache"
    again = await it.client.get("/", headers={"if-none-match": html.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    script = re.search(r'src="\./([^"]+)"', html.text)
    assert script is not None
    loaded = await it.client.get(f"/{script[1]}", headers={"accept-encoding": "identity"})
    assert "immutable" in loaded.headers["cache-control"]
    assert loaded.content == (BUILD / script[1]).read_bytes()


@pytest.mark.parametrize("path", ["/assets/none.js", "/assets/..%2Findex.html", "/assets/..%2F..%2Fapp.py"])
async def test_nothing_but_the_build_is_given_out(it: InProcessService, path):
    assert (await it.client.get(path)).status_code == 404


async def test_the_frame_that_draws_has_no_origin_no_network_and_styles_of_its_own(it: InProcessService):
    frame = await it.client.get("/diagram.html")
    policy = set(frame.headers["content-security-policy"].split("; "))
    assert policy >= {
        "default-src 'none'",
        "script-src 'self'",
        "sandbox allow-scripts",
        "frame-ancestors 'self'",
    }
    assert "style-src 'unsafe-inline'" in policy
    assert (await it.client.get("/diagram.js")).headers["content-type"].startswith("text/javascript")
    # What draws is no part of the first paint.
    assert "diagram" not in (await it.client.get("/")).text


async def test_a_clone_without_the_build_names_the_command_that_makes_it(
    it: InProcessService, monkeypatch: pytest.MonkeyPatch, tmp_path
):
    monkeypatch.setattr("maniple.api.routes.page._paths", dict)
    answer = await it.client.get("/")
    assert answer.status_code == 404
    assert "`make page`" in answer.text
    monkeypatch.setattr("maniple.replay.player.ASSETS", tmp_path / "none")
    with pytest.raises(NotFound, match="`make page`"):
        load_player.__wrapped__()
