"""The HTTP service answers MCP clients at `/mcp`."""

from pathlib import Path

import httpx
import pytest
from mcp import Client

from tests.mcp_server.hosts import QUESTION, Host
from tests.openai_server import SIMPLE, serving
from tests.serving import environment, server_process

pytestmark = pytest.mark.anyio


async def test_an_mcp_client_asks_the_team_of_the_http_service(tmp_path: Path):
    with serving(SIMPLE) as model, server_process(environment(model.base_url, tmp_path), tmp_path) as server:
        async with Client(f"{server.url}/mcp", mode="legacy") as client:
            answer = await Host(client).run(**QUESTION)
        async with httpx.AsyncClient(base_url=server.url) as http:
            run = (await http.get(f"/api/runs/{answer['run_id']}")).json()
            origin = await http.post("/mcp", headers={"origin": "http://evil.example"}, json={})
    assert "The answer is **4**." in answer["answer"]
    assert run["status"] == "completed"
    assert origin.status_code == 403
