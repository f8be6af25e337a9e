"""The folder of documents as the researcher meets it."""

import asyncio
import json
import mimetypes
from contextlib import aclosing
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from maniple.app import open_runtime
from maniple.cli.doctor.checks import check_document_folder
from maniple.config import FetchSettings, ModelSettings, ModelsSettings, SearchSettings, Settings
from maniple.crawler import Crawler
from maniple.errors import ToolFailure
from maniple.runs.turn import stream_run
from maniple.search import SearchContext, open_search
from maniple.tools.web import DocumentReader, open_document_folder
from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply, serving
from tests.reading.files import docx, paragraph
from tests.team import checked, data, plan, step
from tests.tools.built import build_search

pytestmark = pytest.mark.anyio

PAGE = "<html><title>Tolls</title><body><h1>Tolls</h1><p>" + "A lorry pays nine crowns. " * 10 + "</p></html>"


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    place = tmp_path / "documents"
    place.mkdir()
    (place / "tolls 2026.html").write_text(PAGE)
    (place / "notes.md").write_text("# Notes\n\nThe bridge was built in 1901.")
    return place


def settings_of(documents: Path, base_url: str = "http://127.0.0.1:9/v1") -> Settings:
    return Settings.model_validate(
        {
            "models": ModelsSettings(basic=ModelSettings(model="m", base_url=base_url, max_retries=0)),
            "search": SearchSettings(providers=("folder",), folder=documents),
            "sandbox": {"backend": "off"},
            "browser": {"enabled": False},
            "data_dir": documents.parent / "data",
            "cache_dir": documents.parent / "cache",
        }
    )


async def test_the_researcher_finds_a_document_and_reads_it(documents: Path) -> None:
    address = "folder:tolls%202026.html"
    calls = [call("tavily_search", query="lorry toll"), call("crawl_tool", url=address), reply("Nine.")]
    told = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": calls,
        "reporter": [reply("# Report")],
    }
    with serving(told) as server:
        async with open_runtime(settings_of(documents, server.base_url)) as runtime:
            events = stream_run(runtime.graph, [HumanMessage("What does a lorry pay?")], thread_id="t")
            frames = checked([event async for event in events])
    hits, page = [one["tool_result"] for one in data(frames, "tool_call_result")]
    [hit] = json.loads(hits)
    assert (hit["title"], hit["url"], hit["source"]) == ("Tolls", address, "folder")
    assert "nine crowns" in hit["content"]
    assert page.startswith(f"# Tolls\n\nSource [1]: {address}\n\n")
    assert "nine crowns" in page


async def test_documents_are_known_by_their_names_where_the_system_has_no_table_of_types(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mimetypes, "guess_type", lambda name: (None, None))
    (documents / "Tunnel.DOCX").write_bytes(docx(paragraph("A tunnel under the strait.")))
    folder = await asyncio.to_thread(open_document_folder, settings_of(documents))
    assert folder is not None
    async with aclosing(folder):
        [hit] = await folder.search("strait tunnel", limit=5)
        assert (hit.url, hit.content) == ("folder:Tunnel.DOCX", "A tunnel under the strait.")
        reader = DocumentReader(Crawler(FetchSettings()), folder, 1_000)
        assert (await reader.crawl(hit.url)).markdown == "A tunnel under the strait."


async def test_a_partly_read_document_is_marked_in_the_results(documents: Path) -> None:
    rows = "".join(f"station {number},{number} crowns\n" for number in range(5_500))
    (documents / "tolls.csv").write_text(rows)
    folder = await asyncio.to_thread(open_document_folder, settings_of(documents))
    assert folder is not None
    async with aclosing(folder):
        [hit] = await folder.search("station crowns", limit=1)
    assert hit.content.endswith("Only the first 5,000 rows were read. Read on: crawl_tool(url, section).]")


async def test_the_end_of_a_long_text_is_found_and_read(documents: Path) -> None:
    long = "A line about nothing much.\n" * 20_000 + "# Anchorage\n\nThe eastern anchorage weighs most."
    (documents / "long.md").write_text(long)
    folder = await asyncio.to_thread(open_document_folder, settings_of(documents))
    assert folder is not None
    async with aclosing(folder):
        [hit] = await folder.search("eastern anchorage", limit=5)
        assert "The eastern anchorage weighs most." in hit.content
        reader = DocumentReader(Crawler(FetchSettings()), folder, 1_000)
        assert "The eastern anchorage weighs most." in (await reader.crawl(hit.url, "Anchorage")).markdown


async def test_pages_are_read_beside_documents_and_nothing_else_is(documents: Path) -> None:
    folder = await asyncio.to_thread(open_document_folder, settings_of(documents))
    assert folder is not None
    reader = DocumentReader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))), folder, 1_000)
    async with open_site({"/": Reply("<title>T</title><p>Some text.")}) as site:
        assert (await reader.crawl(site.url)).markdown == "Some text."
    assert (await reader.crawl("folder:notes.md")).markdown.endswith("built in 1901.")
    for address in ("folder:../x.md", f"file://{documents}/notes.md"):
        with pytest.raises(ToolFailure):
            await reader.crawl(address)


def test_a_document_folder_without_its_provider_is_not_opened(documents: Path) -> None:
    settings = settings_of(documents)
    own = settings.search.model_copy(update={"providers": ("wikipedia",)})
    assert open_document_folder(settings.model_copy(update={"search": own})) is None


async def test_a_search_says_which_documents_it_cannot_find(documents: Path) -> None:
    (documents / "scan.pdf").write_bytes(b"%PDF-1.7 damaged")
    settings = settings_of(documents)
    folder = await asyncio.to_thread(open_document_folder, settings)
    async with open_search(settings.search, SearchContext(folder=folder)) as search:
        tool = build_search(search, 5)
        found = json.loads(await tool.ainvoke({"query": "bridge 1901"}))
        nothing = json.loads(await tool.ainvoke({"query": "zeppelins"}))
    assert [list(one) for one in nothing] == [["note"]]
    assert found[0]["url"] == "folder:notes.md"
    assert "scan.pdf" in found[-1]["note"]


async def test_doctor_lists_the_documents_that_cannot_be_read(documents: Path) -> None:
    (documents / "scan.pdf").write_bytes(b"%PDF-1.7 damaged")
    settings = settings_of(documents)
    [before] = await check_document_folder(settings)
    assert (before.status, before.detail.split(" of ")[0]) == ("ok", "0")
    folder = await asyncio.to_thread(open_document_folder, settings)
    assert folder is not None
    async with aclosing(folder):
        await folder.search("bridge", limit=1)
    [after] = await check_document_folder(settings)
    assert (after.status, after.detail.split(" of ")[0]) == ("warning", "2")
    assert "scan.pdf: is a" in after.detail
