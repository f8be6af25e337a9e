"""The protocol's TypeScript client as an editor."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.acp_server.editors import SECONDS
from tests.acp_server.test_agent import APPROVAL, SETTINGS, TASK
from tests.cli.processes import MANIPLE, environment
from tests.openai_server import OpenAIServer
from tests.serving import ROOT

SDK = Path(sys.prefix, "mcp-servers/node_modules/@agentclientprotocol/sdk")
EDITOR = Path(__file__).with_name("editor.mjs")
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not (SDK.exists() and shutil.which("node")), reason="the TypeScript SDK is not there"),
]


@pytest.mark.slow
async def test_an_editor_in_typescript_puts_plan_calls_and_answer_together(
    model: OpenAIServer, tmp_path: Path
):
    model.reset(APPROVAL)
    (tmp_path / "conf.yaml").write_text(SETTINGS, encoding="utf-8")
    command = ("node", str(EDITOR), str(SDK), str(tmp_path), TASK, str(MANIPLE), "acp")
    env = environment(tmp_path, model.base_url, PYTHONPATH=str(ROOT))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, stderr=PIPE, env=env)
    async with asyncio.timeout(SECONDS):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    found = json.loads(output)
    assert found["reason"] == "end_turn"
    assert "The answer is **4**." in found["text"]
    assert found["plan"] == ["completed", "completed"]
    assert {*found["calls"].values()} == {"completed"}
    assert len(found["asked"]) == 1
