import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypedDict

import pytest
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph

from maniple.config.settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox import Sandbox, Unavailable, Workspace, Workspaces, open_sandbox
from maniple.tools.code import code_tools
from maniple.tools.files import file_tools
from maniple.tools.scope import thread_key

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox(anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with open_sandbox(SandboxSettings()) as sandbox:
        if isinstance(sandbox, Unavailable):
            pytest.fail(f"The tests need a working sandbox. {sandbox}")
        yield sandbox


@pytest.fixture
def tools(sandbox: Sandbox, tmp_path: Path) -> dict[str, BaseTool]:
    workspaces = Workspaces(tmp_path)
    return {tool.name: tool for tool in [*code_tools(sandbox, workspaces), *file_tools(workspaces)]}


async def test_the_tools_have_the_names_and_arguments_that_clients_know(tools: dict[str, BaseTool]) -> None:
    assert {name: list(tool.args) for name, tool in tools.items()} == {
        "python_repl_tool": ["code"],
        "bash_tool": ["cmd"],
        "write_file": ["path", "content"],
        "read_file": ["path"],
        "list_files": [],
    }
    assert all(len(tool.description.split()) < 25 for tool in tools.values())


async def test_python_and_bash_share_a_workspace_with_the_file_tools(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    await tools["write_file"].ainvoke({"path": "n.txt", "content": "20"})
    said = await tools["python_repl_tool"].ainvoke({"code": "print(int(open('n.txt').read()) + 1)"})
    assert said == "21"
    said = await tools["bash_tool"].ainvoke({"cmd": "wc -c < n.txt; echo sum > made.txt"})
    assert said == f"2\n[files written: made.txt; the user finds them in {tmp_path / 'local'}]"
    assert await tools["list_files"].ainvoke({}) == "made.txt (4 bytes)\nn.txt (2 bytes)"


async def test_silent_code_that_writes_says_what_it_wrote(tools: dict[str, BaseTool], tmp_path: Path) -> None:
    code = "open('a.txt', 'w').write('a')\nopen('line\\nbreak', 'w').write('b')"
    said = await tools["python_repl_tool"].ainvoke({"code": code})
    place = tmp_path / "local"
    assert said == f"[files written: a.txt, line\\nbreak; the user finds them in {place}]"
    again = await tools["python_repl_tool"].ainvoke({"code": "open('a.txt', 'w').write('z')"})
    assert again == f"[files written: a.txt; the user finds them in {place}]", "as long as before, but new"
    assert (await tools["python_repl_tool"].ainvoke({"code": "open('a.txt').read()"})).startswith(
        "[no output"
    )


async def test_failing_code_is_a_result_the_model_can_read(tools: dict[str, BaseTool]) -> None:
    said = await tools["bash_tool"].ainvoke({"cmd": "echo tried; echo why >&2; exit 4"})
    assert said == "tried\n[stderr]\nwhy\n[exit code 4]"


async def test_a_sandbox_that_cannot_run_is_an_error(sandbox: Sandbox, tmp_path: Path) -> None:
    class Gone(Workspaces):
        """Hands out directories that somebody has removed by the time they are used."""

        def open(self, key: str) -> Workspace:
            workspace = super().open(key)
            workspace.path.rmdir()
            return workspace

    python, _ = code_tools(sandbox, Gone(tmp_path))
    with pytest.raises(SandboxError, match="could not run the code"):
        await python.ainvoke({"code": "print(1)"})


async def test_a_symlink_planted_by_code_is_not_read_by_the_host(tools: dict[str, BaseTool]) -> None:
    await tools["bash_tool"].ainvoke({"cmd": "ln -s /etc/passwd planted"})
    with pytest.raises(FileError, match="leads through a link"):
        await tools["read_file"].ainvoke({"path": "planted"})


async def test_each_thread_of_a_graph_has_its_own_workspace(tools: dict[str, BaseTool]) -> None:
    class State(TypedDict):
        said: str

    async def node(state: State) -> State:
        await tools["write_file"].ainvoke({"path": "who", "content": thread_key()})
        return {"said": await tools["bash_tool"].ainvoke({"cmd": "ls; cat who"})}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    configurations = [{"thread_id": "one"}, {"run_id": "two"}, {"thread_id": "three", "run_id": "two"}]
    results = await asyncio.gather(
        *(graph.ainvoke({"said": ""}, {"configurable": configurable}) for configurable in configurations)
    )
    assert [result["said"] for result in results] == ["who\none", "who\ntwo", "who\nthree"]


async def test_outside_a_graph_the_thread_is_local() -> None:
    assert thread_key() == "local"
