"""What /readyz reports about MCP servers and web search."""

import pytest

from maniple.installation import installing
from tests.api.in_process import open_service
from tests.egress.proxy_servers import ProxyVariables
from tests.mcp.open_servers import misbehaving
from tests.openai_server import SIMPLE, serving

pytestmark = pytest.mark.anyio


async def test_each_server_is_listed_and_a_dead_one_leaves_the_service_ready(tmp_path):
    servers = {
        "bad": misbehaving(),
        "nobody": {"url": "http://127.0.0.1:9/canary-0123456789", "headers": {"x-key": "ConnectError"}},
    }
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, mcp={"servers": servers}) as it:
            ready = await it.get("/readyz")
    assert ready["ready"] is True
    assert ready["mcp"]["bad"] == {"ready": True, "why": ""}
    assert ready["mcp"]["nobody"]["ready"] is False
    assert ready["mcp"]["nobody"]["why"].startswith("***")  # what is said of it is said without secrets


async def test_without_servers_there_are_none(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            assert (await it.get("/readyz"))["mcp"] == {}


async def test_without_the_sdk_each_server_names_the_missing_package(tmp_path, monkeypatch):
    monkeypatch.setattr("maniple.capabilities.mcp.find_spec", lambda name: None)
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, mcp={"servers": {"bad": misbehaving()}}) as it:
            ready = await it.get("/readyz")
    assert ready["ready"] is True
    assert installing("mcp") in ready["mcp"]["bad"]["why"]


async def test_a_search_that_cannot_be_reached_is_not_ready_and_the_service_is(
    tmp_path, free_tcp_port, monkeypatch
):
    ProxyVariables(monkeypatch)  # none
    search = {"providers": ["searxng"], "searxng_url": f"http://127.0.0.1:{free_tcp_port}"}
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, search=search) as it:
            ready = await it.get("/readyz")
    assert ready["ready"] is True
    assert ready["search"]["ready"] is False
    assert "search.providers" in ready["search"]["why"]
