"""What a run reads is recorded, survives its process, and is available to clients."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.graph import RunOptions
from maniple.redaction import Redactor
from maniple.runs import EngineConfig, InProcessEngine, RunRequest, open_engine
from maniple.search import SearchHit
from maniple.store import Store, open_store
from maniple.tools.evidence import cited, source_line
from maniple.tools.registry import load_tools
from tests.agents.test_compact import COMPACT
from tests.openai_server import OpenAIServer, call, reply, serving
from tests.runs.test_recovery import events_of
from tests.team import checked, data, names, plan, scripted_team, status, step

pytestmark = pytest.mark.anyio
KEY = "sk-canary-0123456789"
PAGE = f"# Tea\n\nTea costs 3 euros. {KEY}"
MASKED = "# Tea\n\nTea costs 3 euros. ***"


@tool
async def tavily_search(query: str) -> str:
    """Search."""
    return json.dumps(await cited([{"title": "Tea", "url": "https://e.test/tea", "content": "3 euros"}]))


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return f"{await source_line(url, 'Tea / prices', PAGE)}\n\n{PAGE}"


crawl_tool.metadata = {"idempotent": True}


def script(*replies: dict) -> dict:
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [*replies, reply("3 euros [1]")],
        "reporter": [reply("# Report")],
    }


@asynccontextmanager
async def process(
    folder: Path, server: OpenAIServer, **options: Any
) -> AsyncIterator[tuple[InProcessEngine, Store]]:
    noting = load_tools()["note_finding"].build({})
    assert noting is not None
    toolbox = Offer({"researcher": [tavily_search, crawl_tool]}, extra_tools={"researcher": [noting]})
    rules = EngineConfig(drain_seconds=0, redactor=Redactor([KEY]))
    async with (
        open_store(folder / "maniple.db", folder / "artifacts", server=True) as store,
        scripted_team({}, server=server, checkpointer=store.checkpointer, toolbox=toolbox, **options) as it,
        open_engine(it.team, store, kind="server", config=rules) as engine,
    ):
        yield engine, store


async def begun(engine: InProcessEngine, **options: Any) -> str:
    asked = RunRequest([HumanMessage("What does tea cost?")], options=RunOptions(**options))
    return (await engine.submit(asked)).run.run_id


async def test_searches_and_pages_are_sources_and_a_page_is_an_artifact_once(tmp_path):
    calls = [call("tavily_search", query="tea"), *[call("crawl_tool", url="https://www.e.test/tea#top")] * 2]
    with serving(script(*calls)) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = await begun(engine)
            frames = checked(await events_of(engine, run_id))
            evidence = store.evidence(run_id)
            (source,) = await evidence.sources()
            texts = await evidence.texts(1)
            (artifact,) = await store.artifacts.list_by_run(run_id)
            content = (await (await store.artifacts.open(artifact)).read()).decode()
    assert status(frames) == "completed"
    results = [one["tool_result"] for one in data(frames, "tool_call_result")]
    assert json.loads(results[0])[0]["cite"] == 1
    assert results[1].startswith("Source [1]: https://www.e.test/tea#top")
    assert (source.url, source.title, source.kind) == ("https://e.test/tea", "Tea / prices", "page")
    assert source.sha256 == hashlib.sha256(MASKED.encode()).hexdigest()
    assert texts == ["3 euros", MASKED]
    assert (artifact.name, artifact.media_type) == ("Tea - prices.md", "text/markdown")
    assert content == f"Source: https://e.test/tea\n\n{MASKED}"
    order = [name for name in names(frames) if name in ("tool_call_result", "artifact")]
    assert order == ["tool_call_result", "tool_call_result", "artifact", "tool_call_result"]
    assert data(frames, "artifact")[0]["artifact_id"] == artifact.artifact_id


async def test_a_run_resumed_in_another_process_has_its_sources(tmp_path):
    crawl = call("crawl_tool", url="https://e.test/tea")
    with serving(script(crawl, {"hang": True})) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = await begun(engine)
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("researcher") == 2)
            before = await store.evidence(run_id).sources()
        server.reset(script(crawl, call("crawl_tool", url="https://e.test/coffee")))
        async with process(tmp_path, server) as (engine, store):
            frames = checked(await events_of(engine, run_id))
            after = await store.evidence(run_id).sources()
            kept = await store.artifacts.list_by_run(run_id)
    assert status(frames) == "completed"
    assert [source.url for source in before] == ["https://e.test/tea"]
    assert [(source.number, source.url) for source in after] == [
        (1, "https://e.test/tea"),
        (2, "https://e.test/coffee"),
    ]
    assert [one["artifact_id"] for one in data(frames, "artifact")] == [one.artifact_id for one in kept]
    assert len(kept) == 2


async def test_each_run_has_a_record_of_its_own_though_the_thread_is_one(tmp_path):
    with serving(script()) as server:
        async with process(tmp_path, server) as (engine, store):
            found = []
            for _ in range(2):
                server.reset(script(call("tavily_search", query="tea")))
                asked = RunRequest([HumanMessage("What does tea cost?")], thread_id="t")
                run_id = (await engine.submit(asked)).run.run_id
                checked(await events_of(engine, run_id))
                found.append(await store.evidence(run_id).sources())
    assert [[source.number for source in sources] for sources in found] == [[1], [1]]


class Search:
    async def search(self, query: str, *, limit: int) -> list[SearchHit]:
        return [SearchHit("Tea", "https://e.test/tea", "3 euros", None)]


async def test_what_is_found_before_planning_is_a_source_too(tmp_path):
    with serving(script()) as server:
        async with process(tmp_path, server, search=Search()) as (engine, store):
            run_id = await begun(engine, search_before_planning=True)
            checked(await events_of(engine, run_id))
            assert [source.url for source in await store.evidence(run_id).sources()] == ["https://e.test/tea"]


async def test_small_models_read_extracts_of_what_is_recorded_alike(tmp_path):
    sort = reply(json.dumps({"kind": "researcher", "language": "English"}))
    told_by = {**script(), "other": [sort, reply("3 euros.")], "planner": script()["planner"]}
    with serving(told_by) as server:
        async with process(tmp_path, server, models=COMPACT, search=Search()) as (engine, store):
            run_id = await begun(engine)
            frames = checked(await events_of(engine, run_id))
            sources = await store.evidence(run_id).sources()
    assert [source.url for source in sources] == ["https://e.test/tea"], frames
    assert "[1] Tea — https://e.test/tea\n3 euros" in server.requests[-1]["messages"][-1]["content"]


async def test_a_run_resumed_in_another_process_has_its_findings(tmp_path):
    crawl = call("crawl_tool", url="https://e.test/tea")
    note = call("note_finding", statement="Tea costs 3 euros.", source=1, quote="Tea costs 3 euros")
    wrong = call("note_finding", statement="Tea costs 4 euros.", source=1, quote="Tea costs 3 euros")
    with serving(script(crawl, wrong, note, {"hang": True})) as server:
        async with process(tmp_path, server) as (engine, store):
            run_id = await begun(engine)
            await asyncio.to_thread(server.wait_for, lambda stats: stats["by_role"].get("researcher") == 4)
            before = await store.evidence(run_id).findings()
        server.reset(script(crawl, wrong, note))
        async with process(tmp_path, server) as (engine, store):
            frames = checked(await events_of(engine, run_id))
            after = await store.evidence(run_id).findings()
        shown = [one for one in server.requests if "You are the reporter" in str(one["messages"][0])]
    assert status(frames) == "completed"
    assert [(one.source, one.statement, one.quote) for one in before] == [
        (1, "Tea costs 3 euros.", "Tea costs 3 euros")
    ]
    assert [(one.statement, one.start) for one in after] == [(before[0].statement, before[0].start)]
    assert "- Tea costs 3 euros." in str(shown[0]["messages"])
    assert "4 euros" not in str(shown[0]["messages"])
    assert any("4 euros" in one["tool_result"] for one in data(frames, "tool_call_result"))
