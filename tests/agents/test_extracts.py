"""What agents are shown of what is found on the web."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from langchain_core.tools import BaseTool, StructuredTool, tool

from maniple.agents.offers import Offer
from maniple.config import FetchSettings
from maniple.crawler import Crawler
from maniple.tools.evidence import cited, source_line
from maniple.tools.items import ThreadItems
from maniple.workspace import Workspaces
from tests.crawler.web import Reply, open_site
from tests.openai_server import call, reply
from tests.team import Scripted, data, plan, scripted_team, status, step
from tests.tools.built import build_reader as reader

pytestmark = pytest.mark.anyio
FILLER = "Nothing of interest is said here about gardens. " * 10
ANSWER = "Black tea costs 3 euros in this shop."
PAGE = "\n\n".join(
    ["# Shop", *[FILLER] * 40, "## Prices", ANSWER, *[FILLER] * 40, "## History", *[FILLER] * 9]
)


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return PAGE


@tool("crawl_tool")
async def crawl_sections(url: str, section: str = "") -> str:
    """Read a page."""
    return PAGE


@tool
async def browser(instruction: str) -> str:
    """Open a page."""
    return json.dumps({"result_content": PAGE, "generated_gif_path": None})


@tool
async def tavily_search(query: str) -> str:
    """Search."""
    hits = [("a", PAGE), ("b", "short")] if query == "first" else [("a", PAGE), (query, "short")]
    found = [{"title": "T", "url": f"https://e.test/{path}", "content": text} for path, text in hits]
    return json.dumps(await cited(found))


def script(*replies: dict, worker: str = "researcher", description: str = "What does tea cost?") -> dict:
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step(worker, "Find", description), step("reporter"))))],
        worker: [*replies, reply("3 euros")],
        "reporter": [reply("# Report")],
    }


def shown(it: Scripted) -> list[str]:
    """Return the results that the worker's last prompt held, without the marks around them."""
    body = [one for one in it.server.requests if "tools" in one and one["messages"][-1]["role"] == "tool"][-1]
    results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    return [result.partition("\n")[2].rpartition("\n")[0] for result in results]


def results(it: Scripted) -> list[dict]:
    """Return every result as a prompt held it first."""
    told = [one for body in it.server.requests for one in body["messages"] if one["role"] == "tool"]
    return list({one["tool_call_id"]: one for one in reversed(told)}.values())


@pytest.mark.parametrize("reads", [crawl_tool, crawl_sections])
async def test_the_model_reads_the_relevant_part_of_a_page_and_clients_get_all(reads: BaseTool):
    told = script(call("crawl_tool", url="https://e.test/"))
    async with scripted_team(told, toolbox=Offer({"researcher": [reads]})) as it:
        frames = await it.run("Compare shops.")
        (said,) = shown(it)
    assert status(frames) == "completed"
    assert data(frames, "tool_call_result")[0]["tool_result"] == PAGE
    assert f"## Prices\n\n{ANSWER}" in said
    assert said.startswith("# Shop\n\nNothing of interest")
    assert len(said) < 6_500
    how = " To read more: crawl_tool(url, section)." if reads is crawl_sections else ""
    assert said.endswith(f" of {len(PAGE):,} characters. Sections left out: History.{how}]")


ROWS = [f"| Lighthouse {n} | {n} m |" for n in range(1, 421)]


@tool("crawl_tool")
async def crawl_table(url: str) -> str:
    """Read a page."""
    page = "\n".join(["| name | height |", "| --- | --- |", *ROWS])
    line = await source_line(url, "Lighthouses", page)
    return f"# Lighthouses\n\n{line}\n\n{page}"


@pytest.mark.parametrize("keeps", [True, False])
async def test_of_a_long_table_the_model_reads_which_rows_it_sees_and_what_keeps_the_others(
    keeps: bool, tmp_path: Path
):
    told = script(call("crawl_tool", url="https://e.test/"))
    items = ThreadItems(Workspaces(tmp_path)) if keeps else None
    async with scripted_team(told, toolbox=Offer({"researcher": [crawl_table]}), items=items) as it:
        await it.run("Compare lighthouses.")
        (said,) = shown(it)
    seen = [row for row in ROWS if row in said]
    assert seen == ROWS[: len(seen)] and 0 < len(seen) < 420
    assert f", with rows 1–{len(seen)} of the table's 420" in said
    assert ("sources/1.md" in said, "sources/1-table-1.csv (420 rows)" in said) == (keeps, keeps)


@tool("crawl_tool")
async def crawl_short_table(url: str) -> str:
    """Read a page."""
    page = "\n".join(["| name | height |", "| --- | --- |", *ROWS[:5]])
    line = await source_line(url, "Lighthouses", page)
    return f"# Lighthouses\n\n{line}\n\n{page}"


async def test_a_page_that_is_shown_whole_names_the_files_that_keep_it_and_its_tables(tmp_path: Path):
    told = script(call("crawl_tool", url="https://e.test/"))
    items = ThreadItems(Workspaces(tmp_path))
    async with scripted_team(told, toolbox=Offer({"researcher": [crawl_short_table]}), items=items) as it:
        await it.run("Compare lighthouses.")
        (said,) = shown(it)
    assert ROWS[4] in said
    assert "sources/1-table-1.csv (5 rows)" in said


async def test_the_files_that_a_result_names_are_there_for_the_next_call_of_the_same_step(tmp_path: Path):
    @tool("look")
    async def look(file: str) -> str:
        """Read a file."""
        return await asyncio.to_thread(lambda: next(path.read_text() for path in tmp_path.rglob(file)))

    calls = [call("crawl_tool", url="https://e.test/"), call("look", file="1-table-1.csv")]
    items = ThreadItems(Workspaces(tmp_path))
    toolbox = Offer({"researcher": [crawl_table, look]})
    async with scripted_team(script(*calls), toolbox=toolbox, items=items) as it:
        await it.run("Compare lighthouses.")
        *_, last = shown(it)
    assert "Lighthouse 420,420 m" in last


async def test_a_requested_section_has_more_room_in_a_small_window():
    told = script(call("crawl_tool", url="https://e.test/", section="gardens"))
    models = {"context_tokens": 12_288}
    async with scripted_team(told, toolbox=Offer({"researcher": [crawl_sections]}), models=models) as it:
        await it.run("Compare shops.")
        (said,) = shown(it)
    assert len(said) > 10_000


async def test_more_of_a_requested_section_is_shown():
    told = script(call("crawl_tool", url="https://e.test/", section="gardens"))
    async with scripted_team(told, toolbox=Offer({"researcher": [crawl_sections]})) as it:
        await it.run("Compare shops.")
        (said,) = shown(it)
    assert 8_000 < len(said) < 12_500
    assert PAGE.startswith(said.partition("\n\n[…]")[0])
    assert "left out: Prices; History." in said


async def test_the_sections_of_a_page_without_headings_show_all_of_it():
    facts = "".join(
        f"<p>Fact F{n:03d}x of the valley: its people had much to tell of a flood.</p>" for n in range(600)
    )
    page = Reply(f"<title>The valleys of the whole region</title><article>{facts}</article>")
    crawl = reader(Crawler(FetchSettings(allow_private=("127.0.0.0/8",))))
    async with open_site({"/long": page}) as site:
        calls = [call("crawl_tool", url=f"{site.url}/long", section=str(n)) for n in range(1, 6)]
        async with scripted_team(script(*calls), toolbox=Offer({"researcher": [crawl]})) as it:
            frames = await it.run("Compare shops.")
            said = "".join(message["content"] for message in results(it))
    assert "Section 5 of 5." in data(frames, "tool_call_result")[-1]["tool_result"]
    assert set(re.findall(r"F(\d{3})x", said)) == {f"{n:03d}" for n in range(600)}


async def test_of_what_the_browser_shows_an_extract_is_read():
    told = script(call("browser", instruction="open https://e.test/"), worker="browser")
    async with scripted_team(told, toolbox=Offer({"browser": [browser]})) as it:
        frames = await it.run("Compare shops.")
        (said,) = shown(it)
    assert json.loads(data(frames, "tool_call_result")[0]["tool_result"])["result_content"] == PAGE
    assert ANSWER in json.loads(said)["result_content"]
    assert len(said) < 6_800


async def test_a_small_window_gets_smaller_extracts():
    told = script(call("crawl_tool", url="https://e.test/"))
    models = {"context_tokens": 4_096}
    async with scripted_team(told, toolbox=Offer({"researcher": [crawl_tool]}), models=models) as it:
        await it.run("Compare shops.")
        (said,) = shown(it)
    assert ANSWER in said
    assert len(said) < 2_500


async def test_a_search_that_finds_only_known_pages_reports_that():
    told = script(*[call("tavily_search", query=query) for query in ("first", "other", "first")])
    async with scripted_team(told, toolbox=Offer({"researcher": [tavily_search]})) as it:
        frames = await it.run("Compare shops.")
        first, other, again = shown(it)
    assert [hit["cite"] for hit in json.loads(first)] == [1, 2]
    assert [hit["cite"] for hit in json.loads(other)] == [1, 3]
    assert again.endswith(": 2 of 2 known already.")
    assert all(json.loads(one["tool_result"]) for one in data(frames, "tool_call_result"))
    assert ANSWER in json.loads(first)[0]["content"]
    assert len(first) < 1_500


async def test_what_a_search_cannot_find_is_shown_once():
    async def search(query: str) -> str:
        """Search."""
        return json.dumps([*json.loads(await tavily_search.ainvoke({"query": query})), {"note": "Locked."}])

    gappy = StructuredTool.from_function(coroutine=search, name="tavily_search")
    told = script(*[call("tavily_search", query=query) for query in ("first", "other")])
    async with scripted_team(told, toolbox=Offer({"researcher": [gappy]})) as it:
        await it.run("Compare shops.")
        first, other = map(json.loads, shown(it))
    assert first[-1] == {"note": "Locked."}
    assert [hit["cite"] for hit in other] == [1, 3]


async def test_what_is_no_list_of_hits_and_what_failed_pass():
    async def search(query: str) -> str:
        """Search."""
        if query == "fail":
            raise ValueError("no network " * 100)
        return "no JSON " * 1_000

    odd = StructuredTool.from_function(coroutine=search, name="tavily_search")
    told = script(call("tavily_search", query="odd"), call("tavily_search", query="fail"))
    async with scripted_team(told, toolbox=Offer({"researcher": [odd]})) as it:
        await it.run("Compare shops.")
        text, failure = shown(it)
    assert text == "no JSON " * 1_000
    assert failure.startswith("tavily_search failed: ValueError: no")


async def test_a_page_that_several_searches_find_is_shown_once():
    searches = [call("tavily_search", query=query)["tool_calls"][0] for query in ("first", "other")]
    both = {"tool_calls": searches}
    told = script(both, call("tavily_search", query="third"))
    async with scripted_team(told, toolbox=Offer({"researcher": [tavily_search]})) as it:
        frames = await it.run("Compare shops.")
        first, other, later = map(json.loads, shown(it))
    assert [hit["cite"] for hit in first + other] == [1, 2, 1, 3]
    assert ANSWER in first[0]["content"] and "title" not in other[0]
    assert ANSWER not in later[0]["content"] and "title" not in later[0]
    results_of_clients = [json.loads(one["tool_result"]) for one in data(frames, "tool_call_result")]
    assert all(hit["title"] for hits in results_of_clients for hit in hits)


@tool("tavily_search")
async def search_by_query(query: str) -> str:
    """Search."""
    content = {"first": "Tea costs 3 euros. It is hot.", "part": "It is hot."}.get(query, "Cups are round.")
    return json.dumps(await cited([{"title": "T", "url": "https://e.test/a", "content": content}]))


async def test_another_extract_of_the_same_page_is_shown_and_what_repeats_is_not():
    queries = ("first", "part", "other", "other again")
    searches = [call("tavily_search", query=query)["tool_calls"][0] for query in queries]
    told = script({"tool_calls": searches})
    async with scripted_team(told, toolbox=Offer({"researcher": [search_by_query]})) as it:
        await it.run("Compare shops.")
        first, part, other, again = map(json.loads, shown(it))
    assert first[0]["title"] == "T"
    assert other == [{"url": "https://e.test/a", "cite": 1, "content": "Cups are round."}]
    assert part == again and part[0]["content"] != other[0]["content"]
    assert not any("hot" in hit["content"] for hit in part)
