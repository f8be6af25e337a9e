"""The examples of the guide to other protocols: what can be run runs, and the rest names what there is."""

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import httpx2
import pytest
import yaml
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.sync_api import expect, sync_playwright
from typer.testing import CliRunner

from maniple.cli.app import app
from tests.docs.guides import read_guide
from tests.openai_server import SIMPLE, OpenAIServer, serving
from tests.protocols.react_page import CHROMIUM, PACKAGES, build_page, serve_page
from tests.serving import ROOT, ServerProcess, environment, server_process

SERVICE = "http://127.0.0.1:8000"
ANSWER = "The answer is **4**"
_MOUNT = """import { createElement } from "react";
import { createRoot } from "react-dom/client";
import { Chat } from "./chat.jsx";
createRoot(document.getElementById("root")).render(createElement(Chat));
"""


@pytest.fixture(scope="module")
def model() -> Iterator[OpenAIServer]:
    with serving(SIMPLE) as server:
        yield server


@pytest.fixture(scope="module")
def server(model: OpenAIServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("home")
    with server_process(environment(model.base_url, home), home) as process:
        yield process


def blocks(page: str, language: str) -> list[str]:
    """Return the code of a language on a page of the manual."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("node"), reason="Node.js is not there")
def test_each_program_of_a_client_prints_the_answer(model: OpenAIServer, tmp_path: Path):
    guide = replace(read_guide("protocols.md"), has_server=True)
    assert [language for language, _ in guide.programs] == ["python", "js", "python"]
    output = guide.run(tmp_path, environment(model.base_url, tmp_path))
    assert output.count(ANSWER) == len(guide.programs)


def test_the_settings_of_the_chat_pages_lead_to_the_models_of_the_team(server: ServerProcess):
    [librechat] = yaml.safe_load(blocks("protocols.md", "yaml")[0])["endpoints"]["custom"]
    webui = dict(line.split("=", 1) for line in blocks("protocols.md", "ini")[0].splitlines())
    for base in (librechat["baseURL"], webui["OPENAI_API_BASE_URL"]):
        listed = httpx.get(f"{base.replace(SERVICE, server.url)}/models").json()["data"]
        assert set(librechat["models"]["default"]) <= {one["id"] for one in listed}
    assert librechat["titleConvo"] is False


def test_the_command_of_the_editor_exists():
    [editor] = (json.loads(one) for one in blocks("protocols.md", "json") if "agent_servers" in one)
    agent = editor["agent_servers"]["maniple"]
    assert agent["command"].endswith("/bin/maniple")
    assert CliRunner().invoke(app, [*agent["args"], "--help"]).exit_code == 0


@pytest.mark.anyio
async def test_the_address_of_the_mcp_host_has_the_tools(server: ServerProcess):
    [host] = (json.loads(one) for one in blocks("mcp.md", "json") if "inputs" in one)
    entry = host["servers"]["maniple"]
    key = f"${{input:{host['inputs'][0]['id']}}}"
    headers = {name: value.replace(key, "none") for name, value in entry["headers"].items()}
    assert headers == {"Authorization": "Bearer none"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        address = entry["url"].replace(SERVICE, server.url)
        async with Client(streamable_http_client(address, http_client=http)) as client:
            assert "ask_team" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.slow
@pytest.mark.skipif(not PACKAGES.is_dir(), reason="setup.sh dev has not installed @langchain/react")
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here")
def test_the_component_of_react_shows_the_question_and_the_answer(model: OpenAIServer, tmp_path: Path):
    home, page = tmp_path / "home", tmp_path / "page"
    home.mkdir()
    page.mkdir()
    with serve_page(page) as origin:
        (home / "conf.yaml").write_text(f"server: {{cors_origins: ['{origin}']}}\n", encoding="utf-8")
        with server_process(environment(model.base_url, home), home) as process:
            [code] = blocks("protocols.md", "jsx")
            (page / "chat.jsx").write_text(code.replace(SERVICE, process.url), encoding="utf-8")
            (page / "mount.js").write_text(_MOUNT, encoding="utf-8")
            build_page(page / "mount.js", page)
            ask_in_the_browser(origin)


def ask_in_the_browser(origin: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, chromium_sandbox=False)
        tab = browser.new_page()
        tab.goto(origin)
        tab.get_by_role("button", name="Ask").click()
        shown = [re.compile(r"1\+3=\?"), re.compile(re.escape(ANSWER))]
        expect(tab.locator("p")).to_have_text(shown, timeout=60_000)
        browser.close()
