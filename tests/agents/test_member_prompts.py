"""A member's prompt says what it can do with the tools that it has now."""

import json
import re

import pytest
from langchain_core.tools import tool

from maniple.agents.browsing import BrowsingResources
from maniple.agents.offers import Offer
from maniple.config import TeamSettings
from maniple.tools.thread_browser import ThreadBrowser
from tests.openai_server import call, reply
from tests.team import TOOLS, plan, python_repl_tool, scripted_team, step, tavily_search

pytestmark = pytest.mark.anyio
TEAM = TeamSettings(members=["researcher", "coder", "manus"])


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return "A page."


@tool
async def browser_use(action: str) -> str:
    """Use the browser."""
    return "A page."


async def prompt_of(member: str, toolbox: Offer) -> str:
    script = {
        "coordinator": [call("handoff_to_planner")],
        "planner": [reply(json.dumps(plan(step(member), step("reporter"))))],
        member: [reply("STEP FAILED: no")],
        "supervisor": [reply('{"decision": "finish"}')],
        "reporter": [reply("# No")],
    }
    async with scripted_team(script, toolbox=toolbox, settings=TEAM) as it:
        await it.run()
        systems = [str(one["messages"][0]["content"]) for one in it.server.requests]
    beginnings = (f"You are {member}", f"You are the {member}")
    return next(text for text in systems if text.startswith(beginnings))


def with_browser(outage: str) -> Offer:
    async def find_outage() -> str:
        return outage

    browsing = BrowsingResources(ThreadBrowser.__new__(ThreadBrowser), find_outage=find_outage)
    tools = {"manus": [tavily_search, browser_use]}
    return Offer({**TOOLS.tools_by_role, **tools}, services={BrowsingResources: browsing})


@pytest.mark.parametrize(
    ("tools", "can", "cannot"),
    [
        ([python_repl_tool], ["Python"], ["search the", "read web", "browser", "bash"]),
        ([crawl_tool], ["read web"], ["search the", "Python", "browser", "with code"]),
        ([tavily_search, crawl_tool], ["search", "read web"], ["Python", "browser"]),
        ([], [], ["search the", "read web", "Python", "browser"]),
    ],
)
async def test_a_member_that_works_with_all_tools_is_told_of_those_that_are_there(tools, can, cannot):
    prompt = await prompt_of("manus", Offer({**TOOLS.tools_by_role, "manus": tools}))
    assert [word for word in can if word not in prompt] == []
    assert [word for word in cannot if word in prompt] == []


@pytest.mark.parametrize("outage", ["", "It does not answer."])
async def test_a_search_that_is_hidden_while_it_is_out_is_not_in_the_prompt_either(outage):
    prompt = await prompt_of("manus", with_browser(outage))
    assert "browser" in prompt
    assert ("search the web" in prompt) == (not outage)


@pytest.mark.parametrize(
    ("tools", "says", "omits"),
    [
        ([tavily_search, crawl_tool], "queries", "no web search"),
        ([crawl_tool], "no web search", "queries"),
        ([tavily_search], "queries", "open the pages"),
        ([python_repl_tool], "with your tools", "web search"),
        ([], "no tools", "Read the pages"),
    ],
)
async def test_a_researcher_is_told_what_its_tools_can_find(tools, says, omits):
    prompt = await prompt_of("researcher", Offer({"coder": [python_repl_tool], "researcher": tools}))
    assert says in prompt
    assert omits not in prompt


@pytest.mark.parametrize("toolbox", [TOOLS, Offer({"coder": [python_repl_tool]}), Offer()])
async def test_a_member_whose_work_is_no_search_reads_nothing_about_one(toolbox):
    assert not re.search(r"\bsearch", await prompt_of("coder", toolbox))
