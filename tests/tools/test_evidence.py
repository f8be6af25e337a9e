"""Sources that tools read are recorded in their run and numbered in the results."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool

from maniple.browser import PageText
from maniple.config.settings import FetchSettings
from maniple.crawler import Crawler
from maniple.errors import FetchError
from maniple.evidence import MemoryEvidence
from maniple.evidence.check import SourceCheck
from maniple.reading.fork_server import ForkServer
from maniple.scope.run_scope import SCOPE_KEY, RunScope
from maniple.search import SearchHit
from maniple.tools.browser import browser_tool
from maniple.tools.documents import WorkspaceDocuments
from maniple.tools.evidence import current_evidence
from maniple.tools.items import StoredResults
from maniple.workspace import Workspaces
from tests.crawler.web import Reply, open_site, redirect
from tests.reading.files import pdf
from tests.tools.built import build_file_tools, build_reader, build_search
from tests.tools.test_browser import Window
from tests.tools.test_search import Shelf

pytestmark = pytest.mark.anyio


async def call_tool(tool: BaseTool, evidence: MemoryEvidence, **arguments: object) -> str:
    return await tool.ainvoke(arguments, {"configurable": {SCOPE_KEY: RunScope(evidence=evidence)}})


async def test_each_hit_has_its_number_and_keeps_it() -> None:
    evidence, tool = MemoryEvidence(), build_search(Shelf(), 5)
    for _ in range(2):
        hits = json.loads(await call_tool(tool, evidence, query="bridges"))
        assert [(hit["url"], hit["cite"]) for hit in hits] == [("https://a.test/", 1), ("https://b.test/", 2)]
    assert [source.kind for source in await evidence.sources()] == ["result", "result"]
    assert await evidence.texts(2) == ["more"]


async def test_what_a_catalogue_says_of_a_paper_describes_the_source() -> None:
    class Library:
        async def search(self, query: str, *, limit: int) -> list[SearchHit]:
            hit = SearchHit("Stone", "https://a.test/", "An abstract.", published="2017-06-12")
            paper = replace(hit, author="Ada Ito", publisher="Arches", kind="paper")
            return [paper, replace(hit, url="https://b.test/")]

    evidence = MemoryEvidence()
    await call_tool(build_search(Library(), 5), evidence, query="stone")
    (source, page) = await evidence.sources()
    assert (source.published, source.author, source.publisher) == ("2017-06-12", "Ada Ito", "Arches")
    assert page.published == ""
    [text] = await evidence.texts(1)
    assert ("2017-06-12" in text, "Ada Ito" in text, text.endswith("An abstract.")) == (True, True, True)


async def test_a_page_is_recorded_as_it_was_read() -> None:
    evidence = MemoryEvidence()
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/a": Reply("<title>Title</title><p>Some <b>text</b>.")}) as site:
        page = await call_tool(tool, evidence, url=f"{site.url}/a")
        assert f"\n\nSource [1]: {site.url}/a\n\n" in page
    (source,) = await evidence.sources()
    assert (source.url, source.title, source.kind) == (f"{site.url}/a", "Title", "page")
    assert await evidence.texts(1) == ["Some **text**."]


async def test_of_a_page_that_is_read_in_part_all_is_recorded_once() -> None:
    evidence = MemoryEvidence()
    chapters = "".join(f"<h2>Chapter {n}</h2><p>{f'Words of chapter {n}, ' * 20}</p>" for n in range(1, 6))
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",), max_characters=1_000)))
    async with open_site({"/": Reply(f"<title>Long</title><article>{chapters}</article>")}) as site:
        first = await call_tool(tool, evidence, url=site.url)
        await call_tool(tool, evidence, url=site.url, section="3")
    assert "Words of chapter 5" not in first
    (text,) = await evidence.texts(1)
    assert [text.count(f"Words of chapter {n}") for n in range(1, 6)] == [20] * 5
    check = await SourceCheck.of(evidence)
    assert await check.findings("It ends with “words of chapter 5, words of chapter 5” [1].") == []


@pytest.mark.parametrize("leads", [redirect("/b"), Reply('<meta http-equiv="refresh" content="0; url=/b">')])
async def test_an_address_that_leads_elsewhere_is_one_of_the_source(leads: Reply) -> None:
    evidence = MemoryEvidence()
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/a": leads, "/b": Reply("<title>Title</title><p>Some text.")}) as site:
        page = await call_tool(tool, evidence, url=f" {site.url}/a#top")
    assert f"Source [1]: {site.url}/b" in page
    (source,) = await evidence.sources()
    assert (source.url, source.also) == (f"{site.url}/b", (f"{site.url}/a",))


async def test_after_a_redirect_the_requested_address_belongs_to_the_source() -> None:
    evidence = MemoryEvidence()
    window = Window(PageText("https://a.test/de", "Title", "Text.", ()))
    await call_tool(browser_tool(window), evidence, instruction="Open https://a.test/, please.")
    (source,) = await evidence.sources()
    assert (source.url, source.also) == ("https://a.test/de", ("https://a.test/",))


async def test_a_page_that_the_browser_showed_is_recorded_whole() -> None:
    evidence = MemoryEvidence()
    page = PageText("https://a.test/", "Title", "word " * 10_000, (), 404)
    shown = json.loads(
        await call_tool(browser_tool(Window(page)), evidence, instruction="open https://a.test/")
    )
    assert "[1]: https://a.test/ (the server answered 404)" in shown["result_content"]
    assert await evidence.texts(1) == [page.text]


async def test_outside_of_a_run_nothing_is_recorded() -> None:
    hits = json.loads(await build_search(Shelf(), 5).ainvoke({"query": "bridges"}))
    assert [hit for hit in hits if "cite" in hit] == []
    assert current_evidence() is None


WALL = "<title>Just a moment...</title><p>Checking if the site connection is secure</p><script>x()</script>"


async def test_a_wall_is_shown_but_never_numbered() -> None:
    evidence = MemoryEvidence()
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/": Reply(WALL)}) as site:
        page = await call_tool(tool, evidence, url=site.url)
    assert "Source [" not in page
    assert "(bot check)" in page
    assert "Checking if the site" in page
    assert await evidence.sources() == []
    assert ["(bot check)" in one.reason for one in await evidence.unread()] == [True]


@pytest.mark.parametrize(
    "page",
    [
        PageText("http://a.test/", "Error", "The site is down.", (), 503),
        PageText("http://a.test/", "Page not found", "We can't find the page you requested.", ()),
        PageText("chrome-error://chromewebdata/", "a.test", "This site can't be reached.", ()),
    ],
)
async def test_an_error_page_in_the_browser_is_shown_but_never_numbered(page: PageText) -> None:
    evidence = MemoryEvidence()
    tool = browser_tool(Window(page))
    shown = await call_tool(tool, evidence, instruction="Open http://a.test/ and read it.")
    assert page.text in json.loads(shown)["result_content"]
    assert "Source [" not in shown
    assert await evidence.sources() == []


async def test_an_address_that_failed_supports_nothing_though_the_user_named_it() -> None:
    evidence = MemoryEvidence()
    tool = build_reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/a": Reply("", status=503)}) as site:
        url = f"{site.url}/a"
        with pytest.raises(FetchError):
            await call_tool(tool, evidence, url=url)
        (page,) = await evidence.unread()
        check = await SourceCheck.of(evidence, [f"Read {url} please."])
        (finding,) = await check.findings(f"The mill has 12 wheels ({url}).")
        assert page.url == url and "503" in page.reason
        assert "503" in finding.reason
        site.pages["/a"] = Reply("<title>Mill</title><p>The mill has 12 wheels.")
        await call_tool(tool, evidence, url=url)
        check = await SourceCheck.of(evidence)
        assert await check.findings(f"The mill has 12 wheels ({url}).") == []


@pytest.mark.parametrize("is_read_by", ["read_file", "read_item"])
async def test_a_file_of_the_user_is_a_source_whichever_tool_reads_it(
    is_read_by: str, tmp_path: Path
) -> None:
    workspaces = Workspaces(tmp_path)
    workspaces.open("local").write("own.txt", b"made by the team")
    files = {"the rent.pdf": pdf("The rent is 940.", "It rises in May."), "note.txt": b"Nine\ncrowns."}
    workspaces.uploads("local").add([(name, io.BytesIO(body)) for name, body in files.items()])
    tool = next(one for one in build_readers(workspaces) if one.name == is_read_by)
    evidence = MemoryEvidence()
    shown = await call_tool(tool, evidence, path="the rent.pdf", end_line=3)
    assert shown.startswith("Source [1]: upload:the%20rent.pdf\n")
    assert "rises" not in shown
    later = await call_tool(tool, evidence, path="the rent.pdf", start_line=7)
    assert later.startswith("Source [1]: ")
    assert "in: Page 2]" in later
    assert "Source [2]: upload:note.txt" in await call_tool(tool, evidence, path="note.txt", start_line=2)
    if is_read_by == "read_file":
        assert "Source" not in await call_tool(tool, evidence, path="own.txt")
    assert [(one.title, one.kind) for one in await evidence.sources()] == [
        ("On bridges", "page"),
        ("note.txt", "page"),
    ]
    (text,) = await evidence.texts(1)
    assert "The rent is 940." in text
    assert "It rises in May." in text
    assert await evidence.texts(2) == ["Nine\ncrowns."]


async def test_a_report_may_cite_a_file_of_the_user_by_its_number_and_address() -> None:
    evidence = MemoryEvidence()
    await evidence.add("upload:rent.pdf", "Rent", "page", "The rent is 940.")
    check = await SourceCheck.of(evidence)
    assert await check.findings("The rent is 940 [1].\n") == []
    assert await check.cited("See upload:rent.pdf.\n") == {1}
    assert await check.findings("See upload:other.pdf.\n") != []


def build_readers(workspaces: Workspaces) -> list[BaseTool]:
    documents = WorkspaceDocuments(ForkServer())
    return [*build_file_tools(workspaces), StoredResults(workspaces, documents=documents).reader()]
