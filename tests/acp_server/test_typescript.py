"""The protocol's TypeScript client as an editor."""

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acp_server.editors import SECONDS
from tests.acp_server.test_agent import APPROVAL, ASKS, SETTINGS, TASK
from tests.cli.processes import MANIPLE, environment
from tests.openai_server import SIMPLE, OpenAIServer, reply
from tests.protocols.javascript import CLIENT_MODULES, ClientError, JavaScriptClient
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


@pytest.fixture
async def client(model: OpenAIServer, tmp_path: Path) -> AsyncIterator[JavaScriptClient]:
    """The client in a session, which leaves each decision to the next prompt."""
    (tmp_path / "conf.yaml").write_text(SETTINGS, encoding="utf-8")
    env = environment(tmp_path, model.base_url, PYTHONPATH=str(ROOT))
    it = JavaScriptClient("acp", str(MANIPLE), "acp", modules=CLIENT_MODULES, folder=tmp_path, env=env)
    yield it
    await it.close()


@pytest.mark.slow
async def test_small_talk_is_the_answer_alone(client: JavaScriptClient, model: OpenAIServer):
    model.reset({"coordinator": [reply("Hello!")]})
    assert await client.ask("Hi") == "Hello!"


@pytest.mark.slow
async def test_a_question_an_edit_and_a_plan_are_answered_by_the_next_prompt(
    client: JavaScriptClient, model: OpenAIServer
):
    model.reset(ASKS)
    assert "Which numbers?" in await client.ask(TASK)
    assert "The answer is **4**." in await client.answer("1 and 3")
    model.reset(APPROVAL)
    assert "echo 5" in await client.ask(TASK)
    assert "The answer is **4**." in await client.answer({"type": "edit", "args": {"cmd": "echo edited"}})
    assert "edited" in json.dumps(model.requests)
    model.reset(SIMPLE)
    assert "Compute" in await client.ask(TASK, review=True)
    assert "coder" not in model.stats["by_role"]
    assert "The answer is **4**." in await client.answer("accept")


@pytest.mark.slow
async def test_a_run_that_fails_is_an_error_and_a_cancelled_one_a_reason(
    client: JavaScriptClient, model: OpenAIServer
):
    model.reset({"coordinator": [{"status": 400, "error": "no such thing"}]})
    with pytest.raises(ClientError, match="no such thing"):
        await client.ask(TASK)
    model.reset({"coordinator": [{"hang": True}]})
    await client.start("Hi")
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 1)
    assert await client.cancel() == "cancelled"
    await asyncio.to_thread(model.wait_for, lambda stats: stats["active"] == 0)
