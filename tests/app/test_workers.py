"""Each worker with its real tools: sandbox, workspace, Chromium, pages and a search over loopback."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from pydantic import SecretStr

from maniple.agents import StepFailed, Task
from maniple.agents.offers import Offer
from maniple.agents.profiles import build_workers
from maniple.app import Runtime, open_runtime
from maniple.config import (
    FetchSettings,
    ModelSettings,
    ModelsSettings,
    SearchSettings,
    Settings,
    TeamSettings,
)
from maniple.llms import open_chat_models
from maniple.runs.turn import stream_run
from tests.crawler.web import Reply, Site, open_site
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.team import checked, data, plan, status, step

pytestmark = pytest.mark.anyio
SEARCH_KEY = "tvly-hunter2"
LOOPBACK = ("127.0.0.0/8", "::1/128")
ENDED = {"status": "success", "result": "3 euros"}
PAGE = Reply(
    "<html><title>Prices</title><body><h1>Prices</h1><p>" + "Tea costs 3 euros. " * 20 + "</p></body></html>"
)
FOUND = {"results": [{"title": "Tea", "url": "https://tea.test/", "content": "Tea is 3.", "score": 0.9}]}
SEARCH = Reply(json.dumps(FOUND), "application/json")


def script(worker: str, *replies: dict) -> dict:
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step(worker), step("reporter"))))],
        worker: list(replies),
        "reporter": [reply("# Report")],
    }


@asynccontextmanager
async def team(
    told: dict, folder: Path, site: Site, *, images: bool = True
) -> AsyncIterator[tuple[Runtime, OpenAIServer]]:
    with serving(told) as server:
        basic = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        settings = Settings(
            models=ModelsSettings(basic=basic),
            fetch=FetchSettings(allow_private=LOOPBACK, images=images),
            search=SearchSettings(
                providers=("tavily",), tavily_api_key=SecretStr(SEARCH_KEY), tavily_base_url=site.url
            ),
            data_dir=folder / "data",
            cache_dir=folder / "cache",
        )
        async with open_runtime(settings) as runtime:
            yield runtime, server


@pytest.fixture
async def site(anyio_backend: str) -> AsyncIterator[Site]:
    async with open_site({"/": PAGE, "/search": SEARCH}) as site:
        yield site


async def results(told: dict, folder: Path, site: Site) -> list[str]:
    async with team(told, folder, site) as (runtime, _):
        events = stream_run(runtime.graph, [HumanMessage("What does tea cost?")], thread_id="t")
        frames = checked([event async for event in events])
    assert status(frames) == "completed", frames
    return [one["tool_result"] for one in data(frames, "tool_call_result")]


async def test_the_researcher_searches_and_reads(tmp_path, site):
    calls = [call("tavily_search", query="tea"), call("crawl_tool", url=site.url + "/"), reply("3 euros")]
    hits, article = await results(script("researcher", *calls), tmp_path, site)
    assert json.loads(hits) == [
        {"title": "Tea", "url": "https://tea.test/", "content": "Tea is 3.", "score": 0.9}
        | {"source": "tavily", "cite": 1}
    ]
    assert "Tea costs 3 euros." in article
    assert f"Source [2]: {site.url}/" in article


async def test_a_query_is_sent_once_per_run(tmp_path, site):
    calls = [call("tavily_search", query="tea"), call("tavily_search", query=" Tea"), reply("3 euros")]
    async with team(script("researcher", *calls), tmp_path, site) as (runtime, server):
        for runs in (1, 2):
            events = stream_run(runtime.graph, [HumanMessage("What does tea cost?")], thread_id="t")
            frames = checked([event async for event in events])
            assert len(data(frames, "tool_call_result")) == 2
            assert len(site.requests) == runs
            server.reset()


async def test_the_coder_computes_and_uses_the_shell(tmp_path, site):
    calls = [
        call("python_repl_tool", code="print(2**10)"),
        call("bash_tool", cmd="echo $((6*7))"),
        reply("ok"),
    ]
    assert await results(script("coder", *calls), tmp_path, site) == ["1024", "42"]


async def test_a_secret_of_the_settings_that_a_tool_prints_is_masked_for_the_model(tmp_path, site):
    key = f"{SEARCH_KEY[:5]}' + '{SEARCH_KEY[5:]}"
    told = script("coder", call("python_repl_tool", code=f"print('{key}')"), reply("Printed."))
    async with team(told, tmp_path, site) as (runtime, server):
        events = stream_run(runtime.graph, [HumanMessage("Print it.")], thread_id="t")
        checked([event async for event in events])
        heard = [one["content"] for r in server.requests for one in r["messages"] if one["role"] == "tool"]
    assert heard
    assert all("***" in one and SEARCH_KEY not in one for one in heard)


async def test_the_browser_works_in_chromium(tmp_path, site):
    ways = [call("browser_use", action="go_to_url", url=f"{site.url}/"), call("terminate", **ENDED)]
    async with team(script("browser", *ways), tmp_path, site) as (runtime, server):
        events = stream_run(runtime.graph, [HumanMessage("What does tea cost?")], thread_id="t")
        frames = checked([event async for event in events])
    (result,) = data(frames, "tool_call_result")
    assert json.loads(result["tool_result"]) == {"result_content": "3 euros", "generated_gif_path": None}
    seen = [str(one["messages"][-1]["content"]) for one in server.requests if "terminate" in str(one)]
    assert "Tea costs 3 euros." in seen[1]


async def test_the_file_manager_writes_where_the_coder_reads(tmp_path, site):
    told = script("file_manager", call("write_file", path="notes.md", content="# Tea\n"), reply("written"))
    told["planner"] = [reply(json.dumps(plan(step("file_manager"), step("coder"), step("reporter"))))]
    told["coder"] = [call("bash_tool", cmd="cat notes.md"), reply("read")]
    assert (await results(told, tmp_path, site))[1] == "# Tea"
    assert [path.read_text(encoding="utf-8") for path in (tmp_path / "data").rglob("notes.md")] == ["# Tea\n"]


async def test_an_absent_capability_is_a_notice_and_not_offered_to_the_planner(tmp_path):
    with serving(script("coder", reply("no sandbox"))) as server:
        settings = Settings.model_validate(
            {
                "models": {"basic": {"model": "m", "base_url": server.base_url}},
                "sandbox": {"backend": "off"},
                "browser": {"enabled": False},
                "search": {"providers": []},
                "data_dir": tmp_path / "data",
                "cache_dir": tmp_path / "cache",
            }
        )
        async with open_runtime(settings) as runtime:
            events = stream_run(runtime.graph, [HumanMessage("1+3=?")])
            frames = checked([event async for event in events])
        prompts = {str(r["messages"][0]["content"])[:30]: r for r in server.requests}
    assert status(frames) == "completed"
    for word in ("search.providers", "sandbox", "browser"):
        assert any(word in notice for notice in runtime.notices), word
    assert "- browser:" not in next(str(r) for name, r in prompts.items() if "planner" in name)
    coder = next(r for name, r in prompts.items() if "coder" in name)
    assert "tools" not in coder
    assert "you cannot execute anything" in str(coder["messages"])


@pytest.mark.parametrize("role", ["coder", "reporter"])
async def test_a_small_model_that_a_role_is_given_is_the_one_that_works(role):
    each = {
        "basic": ModelSettings(model="large", base_url="http://127.0.0.1:1/v1"),
        "reasoning": ModelSettings(model="small", base_url="http://127.0.0.1:1/v1", profile="compact"),
    }
    async with open_chat_models(ModelsSettings(**each)) as models:
        workers = build_workers(TeamSettings(llms={role: "reasoning"}), models, Offer())
        worker = workers[role]
    assert getattr(worker, "model", None) is models.get("reasoning")


async def test_the_settings_limit_a_step():
    @tool
    async def wait() -> str:
        """Wait for ever."""
        await asyncio.Event().wait()
        return ""

    settings = TeamSettings(max_model_calls_per_step=3, max_tool_calls_per_step=1, tool_timeout_seconds=0.05)
    with serving({"coder": [call("wait")]}) as server:
        endpoint = ModelSettings(model="m", base_url=server.base_url, max_retries=0)
        async with open_chat_models(ModelsSettings(basic=endpoint)) as models:
            coder = build_workers(settings, models, Offer({"coder": [wait]}))["coder"]
            with pytest.raises(StepFailed, match="limit of 3 model calls"):
                await coder.work(Task(request="wait", title="Wait", description="wait"))
        first, second = [one["content"] for one in server.requests[-1]["messages"] if one["role"] == "tool"]
    assert "no result within 0.05 seconds" in first
    assert "limit of 1 tool calls" in second
