"""A built-in tool is declared in one place; schema, workers and names in settings follow from it."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from langchain_core.utils.function_calling import convert_to_openai_function, convert_to_openai_tool

from maniple import tools as package
from maniple.agents.offers import Offer
from maniple.app import open_runtime
from maniple.capabilities import open_capabilities
from maniple.config import Settings, load_settings
from maniple.errors import ConfigError
from maniple.tools.browser import browser_tool, browser_use_tool, browsing_tool
from maniple.tools.interaction import ask_tools, inquiry_tools, terminate_tool
from maniple.tools.item_search import ItemSearch
from maniple.tools.items import StoredResults
from maniple.tools.registry import (
    TOOLS,
    ToolRegistry,
    ToolSpec,
    check_approval,
    define_tool,
    import_tools,
    load_tools,
    tool_factory,
)
from maniple.tools.skills import skill_tool
from maniple.types import GENERAL
from maniple.workspace import Workspaces
from tests.openai_server import call, reply
from tests.team import data, plan, scripted_team, step

pytestmark = pytest.mark.anyio

COUNT_LINES = '''
from maniple.workspace import Workspaces
from maniple.tools.registry import define_tool
from maniple.scope.run_scope import thread_key


class Microscope:
    pass


def describe(workspaces: Workspaces, /) -> str:
    return f"Count the lines of a file in {type(workspaces).__name__}."


@define_tool("count_lines", describe, roles=("researcher",), idempotent=True)
async def count_lines(
    workspaces: Workspaces, lens: Microscope | None, /, path: str, blank: bool = False
) -> str:
    """For engineers."""
    lines = workspaces.open(thread_key()).read(path, 1000).content.splitlines()
    return str(sum(bool(line) or blank for line in lines)) + (" seen" if lens else "")


@define_tool("magnify", "Magnify.", roles=("coder",))
async def magnify(lens: Microscope, /, path: str) -> str:
    return path
'''
OFF: dict[str, Any] = {
    "sandbox": {"backend": "off"},
    "browser": {"enabled": False},
    "search": {"providers": []},
}


@pytest.fixture
def count_lines(tmp_path: Path) -> Iterator[None]:
    """Two tools in one file, in a folder of the package of tools."""
    folder = tmp_path / "added"
    folder.mkdir()
    (folder / "counting.py").write_text(COUNT_LINES, encoding="utf-8")
    package.__path__.append(str(folder))
    try:
        import_tools([str(folder)])
        yield
    finally:
        package.__path__.remove(str(folder))
        sys.modules.pop(f"{package.__name__}.counting", None)
        TOOLS.remove("count_lines")
        TOOLS.remove("magnify")


async def opened(folder: Path, **sections: Any) -> Offer:
    values = {**OFF, **sections, "data_dir": folder / "data", "cache_dir": folder / "cache"}
    async with AsyncExitStack() as stack:
        return await open_capabilities(Settings.model_validate(values), stack)


@pytest.mark.usefixtures("count_lines")
async def test_a_tool_in_a_file_of_its_own_reaches_its_worker(tmp_path: Path) -> None:
    offer = await opened(tmp_path)
    script = {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(step("researcher"), step("reporter"))))],
        "researcher": [call("count_lines", path="poem"), reply("It has two lines.")],
        "reporter": [reply("# Lines")],
    }
    workspaces = offer.service(Workspaces)
    assert workspaces is not None
    async with scripted_team(script, toolbox=offer) as team:
        workspaces.open("t").write("poem", b"Roses\n\nViolets\n")
        frames = await team.run("How long is the poem?", thread_id="t")
    assert [one["tool_result"] for one in data(frames, "tool_call_result")] == ["2"]


@pytest.mark.usefixtures("count_lines")
async def test_the_model_sees_neither_services_nor_the_docstring(tmp_path: Path) -> None:
    offer = await opened(tmp_path)
    tool = next(one for one in offer.extra_tools["researcher"] if one.name == "count_lines")
    assert convert_to_openai_tool(tool)["function"] == {
        "name": "count_lines",
        "description": "Count the lines of a file in Workspaces.",
        "parameters": {
            "properties": {"path": {"type": "string"}, "blank": {"default": False, "type": "boolean"}},
            "required": ["path"],
            "type": "object",
        },
    }
    assert tool.metadata == {"idempotent": True}


@pytest.mark.usefixtures("count_lines")
async def test_a_tool_whose_service_is_absent_is_not_offered(tmp_path: Path) -> None:
    offer = await opened(tmp_path)
    assert "coder" not in offer.extra_tools
    assert "magnify" in TOOLS.names


@pytest.mark.usefixtures("count_lines")
async def test_the_general_agent_and_own_roles_can_have_it(tmp_path: Path) -> None:
    (tmp_path / "poet.md").write_text("You write.")
    role = {"name": "poet", "brief": "writes", "prompt": str(tmp_path / "poet.md"), "tools": ["count_lines"]}
    offer = await opened(tmp_path, team={"members": ["poet", GENERAL], "roles": [role]})
    assert [tool.name for tool in offer.extra_tools["poet"]] == ["count_lines"]
    assert offer.tool(GENERAL, "count_lines") is not None


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Settings]:
    def load(yaml: str = "", **environment: str) -> Settings:
        (tmp_path / "conf.yaml").write_text(yaml, encoding="utf-8")
        return load_settings(tmp_path / "conf.yaml", env_file=tmp_path / "none", environment=environment)

    return load


@pytest.mark.usefixtures("count_lines")
def test_it_can_be_put_under_approval(load: Callable[..., Settings]) -> None:
    check_approval(load("runs: {approval: [count_lines, magnify, read_item]}"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("bash_tol", "did you mean bash_tool?"),
        ("bash", "did you mean bash_tool?"),
        ("Write_File", "did you mean write_file?"),
        ("python", "did you mean python_repl_tool?"),
        ("quantum", "there are ask_human,"),
        ("sesame", "there are ask_human, bash_tool, browser,"),
    ],
)
def test_a_tool_that_does_not_exist_cannot_be_put_under_approval(
    load: Callable[..., Settings], name: str, hint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        check_approval(load(f"runs:\n  approval: [write_file, {name}]"))
    assert "conf.yaml, line 2: runs.approval.1: " in str(caught.value)
    assert hint in str(caught.value)
    with pytest.raises(ConfigError) as caught:
        check_approval(load(MANIPLE_RUNS__APPROVAL=f"write_file,{name}"))
    assert "variable MANIPLE_RUNS__APPROVAL: runs.approval.1: " in str(caught.value)


def test_all_unknown_names_are_reported_together(load: Callable[..., Settings]) -> None:
    with pytest.raises(ConfigError) as caught:
        check_approval(load("runs:\n  approval:\n  - open_door\n  - write_file\n  - sesame"))
    lines = str(caught.value).splitlines()[1:]
    places = [line.partition(": no tool")[0].rpartition("conf.yaml, ")[2] for line in lines]
    assert places == ["line 3: runs.approval.0", "line 5: runs.approval.2"]


async def test_a_team_does_not_open_with_an_unknown_name_under_approval(
    load: Callable[..., Settings],
) -> None:
    with pytest.raises(ConfigError, match=r"runs\.approval\.0"):
        async with open_runtime(load("runs: {approval: [sesame]}")):
            pass


def test_tools_of_the_user_can_be_put_under_approval(load: Callable[..., Settings], tmp_path: Path) -> None:
    (tmp_path / "poet.md").write_text("You write.")
    role = "{name: poet, brief: writes, prompt: poet.md, tools: [rhyme]}"
    check_approval(
        load(
            f"team: {{roles: [{role}]}}\ntools: ['my_tools:scan']\n"
            "mcp: {servers: {git: {command: git}}}\nruns: {approval: [rhyme, scan, git__push]}"
        )
    )


def test_every_factory_makes_the_tool_whose_name_it_registers(tmp_path: Path) -> None:
    nothing = cast("Any", None)  # nobody is asked for its name alone
    made = [
        *ask_tools(1),
        *inquiry_tools(1),
        browser_tool(nothing),
        browsing_tool(nothing),
        browser_use_tool(cast("Any", SimpleNamespace(actions=()))),
        skill_tool([], Workspaces(tmp_path)),
        terminate_tool(),
        StoredResults(Workspaces(tmp_path)).reader(),
        ItemSearch(Workspaces(tmp_path)).tool("read_item"),
    ]
    defined = {definition.name for definition in load_tools().definitions}
    assert {tool.name for tool in made} | defined == set(load_tools().names)


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_a_worker_s_tools_does_not_depend_on_imports(seed: int) -> None:
    known = load_tools()
    by_module: dict[str, list[ToolSpec]] = {}
    for definition in known.definitions:
        by_module.setdefault(definition.function.__module__, []).append(definition)
    modules = list(by_module)
    random.Random(seed).shuffle(modules)
    imported = ToolRegistry()
    for definition in (one for module in modules for one in by_module[module]):
        imported.add(definition)
    for worker in {role for definition in known.definitions for role in definition.roles}:
        assert imported.of_role(worker) == known.of_role(worker)


async def test_a_coder_without_a_sandbox_has_no_core_tool(tmp_path: Path) -> None:
    assert (await opened(tmp_path)).tools_of("coder") == []


async def answer(path: str) -> str:
    return path


async def look(lens, /, path: str) -> str:  # type: ignore[no-untyped-def]
    return f"{path}{lens}"


def look_up(path: str) -> str:
    return path


@pytest.mark.parametrize(
    ("name", "function", "roles", "kind"),
    [
        ("write_file", answer, ("coder",), ValueError),
        ("ask_human", answer, ("coder",), ValueError),
        ("git__push", answer, ("coder",), ValueError),
        ("answer", answer, ("poet",), ValueError),
        ("look", look, ("coder",), TypeError),
        ("look_up", look_up, ("coder",), TypeError),
    ],
)
def test_a_declaration_that_cannot_work_is_refused(
    name: str, function: Any, roles: tuple[str, ...], kind: type[Exception]
) -> None:
    before = load_tools().names
    with pytest.raises(kind, match=name):
        define_tool(name, "Answer.", roles=roles)(function)
    assert load_tools().names == before


@pytest.mark.parametrize("name", ["write_file", "git__push"])
def test_a_factory_cannot_take_the_name_of_another_tool(name: str) -> None:
    load_tools()
    with pytest.raises(ValueError, match=name):
        tool_factory(name)(terminate_tool)


def test_workers_that_run_alone_end_with_a_status_and_a_result() -> None:
    function = convert_to_openai_function(terminate_tool())
    assert list(function["parameters"]["properties"]) == ["status", "result", "missing", "needs"]
