"""The clients for JavaScript that other services' users have."""

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any

import pytest

from tests.openai_server import SIMPLE, OpenAIServer, call, reply
from tests.serving import ROOT, ServerProcess

MODULES = ROOT / "web/node_modules"
HERE = Path(__file__).parent
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not there"),
]


async def printed(script: str, address: str) -> Any:
    """Return the line that a client prints."""
    process = await asyncio.create_subprocess_exec(
        "node", str(HERE / script), str(MODULES), address, "1+3=?", stdout=PIPE, stderr=PIPE
    )
    async with asyncio.timeout(120):
        output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return json.loads(output)


async def test_openai_for_javascript_streams_an_answer(server: ServerProcess):
    answer = await printed("openai_client.mjs", f"{server.url}/v1")
    assert "4" in answer["text"]
    assert answer["reason"] == "stop"
    assert answer["tokens"] > 0


async def test_the_client_of_ag_ui_puts_plan_calls_and_answer_together(server: ServerProcess):
    found = await printed("ag_ui_client.mjs", f"{server.url}/ag-ui")
    roles = [one["role"] for one in found["messages"]]
    assert roles[0] == "user"
    assert "tool" in roles
    assert any("4" in (one.get("content") or "") for one in found["messages"] if one["role"] == "assistant")
    assert [step["status"] for step in found["state"]["plan"]["steps"]] == ["completed", "completed"]


async def test_a_chat_of_ag_uis_client_shows_each_message_once_after_a_reload_in_a_pause_and_at_the_end(
    server: ServerProcess, model: OpenAIServer
):
    model.reset({**SIMPLE, "by_history": True, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]})
    found = await printed("ag_ui_chat.mjs", f"{server.url}/ag-ui")
    roles = {moment: [one["role"] for one in shown["messages"]] for moment, shown in found.items()}
    assert roles["waiting"] == roles["loadedWaiting"] == ["user"]
    assert roles["ended"] == roles["loadedEnded"] == ["user", "assistant"]
    assert roles["askedAgain"] == roles["loadedLast"] == ["user", "assistant", "user"]
    assert found["waiting"]["asked"] == found["loadedWaiting"]["asked"] != []
    assert found["askedAgain"]["asked"] == found["loadedLast"]["asked"] != []
    assert found["ended"]["asked"] == found["loadedEnded"]["asked"] == []
    assert found["waiting"]["steps"] == found["loadedWaiting"]["steps"] == ["in_progress", "not_started"]
    assert found["ended"]["steps"] == found["loadedEnded"]["steps"] == ["completed", "completed"]


async def test_a_page_of_langgraphs_client_shows_an_interrupt_its_answer_and_the_conversation_alone(
    server: ServerProcess, model: OpenAIServer
):
    model.reset({**SIMPLE, "coder": [call("bash_tool", cmd="echo 5"), reply("It is 4.")]})
    found = await printed("langgraph_client.mjs", server.url)
    waiting, ended, reloaded = (found[name] for name in ("waiting", "ended", "reloaded"))
    assert (waiting["asked"], waiting["messages"]) == ("bash_tool", [["human", "1+3=?"]])
    assert waiting["steps"] == ["in_progress", "not_started"]
    assert [kind for kind, _ in ended["messages"]] == ["human", "ai"]
    assert "The answer is **4**" in ended["messages"][-1][1]
    assert (ended["error"], "asked" in ended) == (None, False)
    assert [text.strip() for _, text in reloaded["messages"]] == [
        text.strip() for _, text in ended["messages"]
    ]
