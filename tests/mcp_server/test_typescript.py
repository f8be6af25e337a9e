"""The official TypeScript SDK as a client that gives up a call: the run goes on, and the client finds it."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import MANIPLE, environment
from tests.mcp_server.site import site
from tests.openai_server import SIMPLE
from tests.serving import ROOT

SDK = Path(sys.prefix, "mcp-servers/node_modules/@modelcontextprotocol/sdk")
CLIENT = Path(__file__).with_name("impatient_client.mjs")
TIMEOUT_MILLISECONDS = 5_000
HANGING_ONCE = {**SIMPLE, "coder": [{"hang": True}, *SIMPLE["coder"]]}
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not (SDK.exists() and shutil.which("node")), reason="the TypeScript SDK is not there"),
]


async def client(*target: str, env: dict[str, str] | None = None) -> Process:
    command = ("node", str(CLIENT), str(SDK), str(TIMEOUT_MILLISECONDS), *target)
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=env)


async def results(process: Process, model: Any) -> list[dict[str, Any]]:
    """Return what the calls returned; the model answers after the call that times out."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        async with asyncio.timeout(120):
            found = [json.loads(await process.stdout.readline()) for _ in range(3)]
            model.release()
            process.stdin.write(b"go on\n")
            found.append(json.loads(await process.stdout.readline()))
            await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return found


def check_that_the_run_went_on(found: list[dict[str, Any]]) -> None:
    none, timed_out, meanwhile, after = found
    assert none["status"] == ""
    assert timed_out == {"error": -32001}
    assert meanwhile["status"] == "running"
    assert after["status"] == "completed"
    assert after["run"] == meanwhile["run"]
    assert "4" in after["answer"]


async def test_over_http_a_call_that_times_out_leaves_its_run(model, tmp_path):
    model.reset(HANGING_ONCE)
    async with site(model.base_url, tmp_path) as here:
        check_that_the_run_went_on(await results(await client("http", here.url), model))
        assert len(await here.service.store.runs.list("", 10)) == 1


@pytest.mark.slow
async def test_over_stdio_a_call_that_times_out_leaves_its_run(model, tmp_path):
    model.reset(HANGING_ONCE)
    env = environment(tmp_path, model.base_url, MANIPLE_SANDBOX__BACKEND="off", PYTHONPATH=str(ROOT))
    process = await client("stdio", str(MANIPLE), "mcp", "serve", env=env)
    check_that_the_run_went_on(await results(process, model))
