"""What settings may name is what tools are called."""

from typing import Any, cast

from langchain_core.utils.function_calling import convert_to_openai_function

from maniple.config.service_settings import BUILT_IN_TOOLS
from maniple.sandbox import Workspaces
from maniple.tools.browser import browser_tool, browser_use_tool
from maniple.tools.code import code_tools
from maniple.tools.files import file_search_tool, file_tools
from maniple.tools.interaction import ask_tools, terminate_tool
from maniple.tools.skills import skill_tool
from maniple.tools.text_editor import editor_tool
from maniple.tools.thread_browser import ThreadBrowser
from maniple.tools.web import crawl_tool, search_tool
from tests.agents.browsing.shop import Shop


def test_every_tool_can_be_put_under_approval_and_nothing_else_can(tmp_path):
    nothing = cast("Any", None)  # nobody is asked for its name alone
    workspaces = Workspaces(tmp_path)
    tools = [
        *ask_tools(1),
        browser_tool(nothing),
        browser_use_tool(ThreadBrowser(Shop())),
        *code_tools(nothing, workspaces),
        crawl_tool(nothing),
        editor_tool(workspaces),
        file_search_tool(workspaces),
        *file_tools(workspaces),
        search_tool(nothing, 1),
        skill_tool([], workspaces),
        terminate_tool(),
    ]
    assert sorted(tool.name for tool in tools) == sorted(BUILT_IN_TOOLS)


def test_everybody_who_works_alone_ends_with_a_status_and_a_result():
    function = convert_to_openai_function(terminate_tool())
    assert list(function["parameters"]["properties"]) == ["status", "result"]
