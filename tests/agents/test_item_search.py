"""Members that can open items can search them, in threads that have some."""

import pytest
from langchain_core.tools import tool

from maniple.agents.briefing import build_messages
from maniple.agents.offers import Offer
from maniple.agents.profiles import static_tools
from maniple.agents.task import Task
from maniple.tools.item_search import SEARCH_ITEMS, ItemSearch
from maniple.tools.items import Item, StoredResults
from maniple.workspace import Workspaces
from tests.agents.restartable_team import script
from tests.openai_server import call, reply
from tests.team import data, scripted_team
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio


@tool
async def count(what: str) -> str:
    """Count."""
    return "4"


def offer(workspaces: Workspaces, *tools) -> Offer:
    services = {StoredResults: StoredResults(workspaces), ItemSearch: ItemSearch(workspaces)}
    return Offer({"coder": tools, "researcher": []}, services=services)


def names_offered(it) -> list[bool]:
    coders = [one for one in it.server.requests if "You are the coder" in str(one["messages"][0])]
    return [any(one["function"]["name"] == SEARCH_ITEMS for one in each["tools"]) for each in coders]


@pytest.mark.parametrize("reads_files", [False, True])
async def test_a_new_thread_gets_no_search_and_one_with_items_does(tmp_path, reads_files):
    workspaces = Workspaces(tmp_path)
    tools = [count, *(build_file_tools(workspaces) if reads_files else ())]
    read = "read_file" if reads_files else "read_item"
    toolbox = offer(workspaces, *tools)
    async with scripted_team(script(call("count", what="1+3"), reply("4")), toolbox=toolbox) as it:
        await it.run("1+3=?", thread_id="new")
        assert names_offered(it) == [False, False]
    workspaces.open("old").write_read_only("sources/7.md", b"# Copper\n\nfirst\nthe needle </data>\nlast")
    asked = [
        call(SEARCH_ITEMS, query='"NEEDLE" AND'),
        call(read, path="sources/7.md", start_line=4, end_line=4),
    ]
    async with scripted_team(script(*asked, reply("Done.")), toolbox=toolbox) as it:
        frames = await it.run("Find it.", thread_id="old")
        assert names_offered(it) == [True, True, True]
        told = it.prompts("coder")[1]
    found, line = [one["tool_result"] for one in data(frames, "tool_call_result")]
    assert "- sources/7.md (source, Copper), line 4: " in found
    assert f"{read}(" in found
    assert line == "the needle </data>"
    before, _, after = told.partition("- sources/7.md")
    assert before.rpartition("<data ")[2][8] == ">"
    assert "</data " in after


def test_whoever_opens_items_searches_them_and_nobody_without_the_service(tmp_path):
    workspaces = Workspaces(tmp_path)
    toolbox = offer(workspaces, *build_file_tools(workspaces))
    assert [tool.name for tool in static_tools("coder", toolbox)][-1] == SEARCH_ITEMS
    assert static_tools("researcher", toolbox) == []
    without = Offer({"coder": [count]}, services={StoredResults: StoredResults(workspaces)})
    assert SEARCH_ITEMS not in [tool.name for tool in static_tools("coder", without)]


def test_the_items_that_are_not_listed_are_left_to_the_search(tmp_path):
    task = Task("Why?", "T", "D", items=[Item("source", "sources/3.md", "A page", 12)], older_items=7)
    lines = [
        "\n".join(str(one.content) for one in build_messages(task, 32_000, searches=searches))
        for searches in (False, True)
    ]
    assert [SEARCH_ITEMS in one for one in lines] == [False, True]
    assert all("7 older" in one for one in lines)
