"""Built-in tools, made with the services of a test."""

from typing import Any

from langchain_core.tools import BaseTool

from maniple.reading.fork_server import ForkServer
from maniple.sandbox import Sandbox
from maniple.search import SearchProvider
from maniple.tools.code import CodeEnvironment
from maniple.tools.documents import WorkspaceDocuments
from maniple.tools.registry import load_tools
from maniple.tools.web import ArticleReader, TeamReader, TeamSearch
from maniple.workspace import Workspaces


def build_file_tools(workspaces: Workspaces) -> list[BaseTool]:
    services = {Workspaces: workspaces, WorkspaceDocuments: WorkspaceDocuments(ForkServer())}
    return [_build(name, services) for name in ("write_file", "read_file", "list_files")]


def build_file_search(workspaces: Workspaces) -> BaseTool:
    return _build("search_files", {Workspaces: workspaces})


def build_editor(workspaces: Workspaces) -> BaseTool:
    return _build("str_replace_editor", {Workspaces: workspaces})


def build_code_tools(
    sandbox: Sandbox, workspaces: Workspaces, *, packages: str = "", network: str = "No network."
) -> list[BaseTool]:
    services = {
        Sandbox: sandbox,
        Workspaces: workspaces,
        CodeEnvironment: CodeEnvironment(packages, network),
    }
    return [_build(name, services) for name in ("python_repl_tool", "bash_tool")]


def build_search(provider: SearchProvider, max_results: int) -> BaseTool:
    return _build("tavily_search", {TeamSearch: TeamSearch(provider, max_results)})


def build_reader(articles: ArticleReader, search: SearchProvider | None = None) -> BaseTool:
    return _build("crawl_tool", {TeamReader: TeamReader(articles, search)})


def _build(name: str, services: dict[type[Any], Any]) -> BaseTool:
    tool = load_tools()[name].build(services)
    assert tool is not None, f"{name} lacks a service"
    return tool
