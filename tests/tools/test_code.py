import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypedDict

import pytest
from langchain_core.tools import BaseTool
from langgraph.graph import START, StateGraph

from maniple.config.sandbox_settings import SandboxSettings
from maniple.errors import FileError, SandboxError
from maniple.sandbox import Sandbox, open_sandbox
from maniple.scope.run_scope import thread_key
from maniple.tools.code import figure_reader, unwrap_code
from maniple.tools.registry import PreparedTool
from maniple.workspace import Workspace, Workspaces
from tests.sandbox.figures import DRAW_ONE, plant_fake_matplotlib
from tests.tools.built import build_code_tools, build_file_tools

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox(anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with open_sandbox(SandboxSettings()) as sandbox:
        yield sandbox


@pytest.fixture
def tools(sandbox: Sandbox, tmp_path: Path) -> dict[str, BaseTool]:
    workspaces = Workspaces(tmp_path)
    return {
        tool.name: tool for tool in [*build_code_tools(sandbox, workspaces), *build_file_tools(workspaces)]
    }


async def test_the_tools_have_the_names_and_arguments_of_the_wire(tools: dict[str, BaseTool]) -> None:
    ours = {name: list(tools[name].args) for name in ("python_repl_tool", "bash_tool")}
    assert ours == {"python_repl_tool": ["code"], "bash_tool": ["cmd"]}
    assert all(len(tools[name].description.split()) < 25 for name in ours)
    limits = [(tools[name].metadata or {})["timeout_seconds"] for name in ours]
    assert limits == [None, None], "the sandbox bounds them"


@pytest.mark.parametrize("name", ["python_repl_tool", "bash_tool"])
async def test_a_call_finds_the_sandbox_that_its_preparation_started(
    sandbox: Sandbox, tools: dict[str, BaseTool], name: str
) -> None:
    tool = tools[name]
    assert isinstance(tool, PreparedTool)
    await tool.prepare()
    (slot,) = sandbox._slots.values()
    session = slot.session
    await tool.ainvoke({"code": "1", "cmd": "true"})
    assert session is not None
    assert slot.session is session


def test_a_description_lists_packages_and_reachable_hosts(sandbox: Sandbox, tmp_path: Path) -> None:
    packages, network = "There are numpy and pandas.", "Only pypi.org can be reached."
    python, bash = build_code_tools(sandbox, Workspaces(tmp_path), packages=packages, network=network)
    assert python.description.endswith(f"{packages} {network}")
    assert bash.description.endswith(network)


async def test_python_and_bash_share_a_workspace_with_the_file_tools(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    await tools["write_file"].ainvoke({"path": "n.txt", "content": "20"})
    said = await tools["python_repl_tool"].ainvoke({"code": "print(int(open('n.txt').read()) + 1)"})
    assert said == "21"
    said = await tools["bash_tool"].ainvoke({"cmd": "wc -c < n.txt; echo sum > made.txt"})
    assert said == "2\n[files written: made.txt]"
    assert await tools["list_files"].ainvoke({}) == "made.txt (4 bytes)\nn.txt (2 bytes)"


async def test_for_code_without_output_the_written_files_are_listed(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    code = "for name in ('a.txt', 'line\\nbreak'): open(name, 'w').write('a')"
    said = await tools["python_repl_tool"].ainvoke({"code": code})
    assert said == "[files written: a.txt, line\\nbreak]"
    again = await tools["python_repl_tool"].ainvoke({"code": "open('a.txt', 'w').write('z');"})
    assert again == "[files written: a.txt]", "as long as before, but new"
    silent = await tools["python_repl_tool"].ainvoke({"code": "x = open('a.txt').read()"})
    assert silent.startswith("[no output; ")


async def test_each_of_several_calls_at_once_names_what_it_wrote_itself(tools: dict[str, BaseTool]) -> None:
    calls = [tools["bash_tool"].ainvoke({"cmd": f"echo x > {name}.txt"}) for name in "abcd"]
    assert await asyncio.gather(*calls) == [f"[files written: {name}.txt]" for name in "abcd"]


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

    python, _ = build_code_tools(sandbox, Gone(tmp_path))
    with pytest.raises(SandboxError, match="not run the code"):
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
        return {"said": await tools["bash_tool"].ainvoke({"cmd": "ls w*; cat who"})}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()
    configurations = [{"thread_id": "one"}, {"run_id": "two"}, {"thread_id": "three", "run_id": "two"}]
    results = await asyncio.gather(
        *(graph.ainvoke({"said": ""}, {"configurable": configurable}) for configurable in configurations)
    )
    assert [result["said"] for result in results] == ["who\none", "who\ntwo", "who\nthree"]


async def test_outside_a_graph_the_thread_is_local() -> None:
    assert thread_key() == "local"


async def test_a_figure_is_named_in_the_text_and_is_the_messages_artifact(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    plant_fake_matplotlib(Workspaces(tmp_path).open("local"))
    call = {"name": "python_repl_tool", "args": {"code": DRAW_ONE}, "id": "1", "type": "tool_call"}
    message = await tools["python_repl_tool"].ainvoke(call)
    assert "[figures drawn: figures/figure-1.png]" in message.content
    assert message.artifact == ["figures/figure-1.png"]
    assert (await figure_reader(Workspaces(tmp_path))("figures/figure-1.png")).startswith(b"\x89PNG")


async def test_a_figure_too_large_for_the_model_is_stored_and_named(
    tools: dict[str, BaseTool], tmp_path: Path
) -> None:
    plant_fake_matplotlib(Workspaces(tmp_path).open("local"))
    code = f"{DRAW_ONE}\nplt.figure(2).padding = bytes(2_000_000);"
    said = await tools["python_repl_tool"].ainvoke({"code": code})
    assert "[figures drawn: figures/figure-1.png, figures/figure-2.png]" in said
    assert "not shown to you: figures/figure-2.png; " in said
    assert await figure_reader(Workspaces(tmp_path))("figures/figure-2.png") == b""


async def test_what_is_no_picture_is_not_read_as_one(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    workspaces.open("local").write("figures/figure-1.png", b"<svg>")
    assert await figure_reader(workspaces)("figures/figure-1.png") == b""
    with pytest.raises(FileError, match="no file"):
        await figure_reader(workspaces)("figures/figure-2.png")


async def test_variables_of_a_thread_stay_and_another_thread_has_none(tools: dict[str, BaseTool]) -> None:
    class State(TypedDict):
        said: str

    async def node(state: State) -> State:
        code = f"x = {thread_key()!r}" if state["said"] == "" else "globals().get('x')"
        return {"said": await tools["python_repl_tool"].ainvoke({"code": code})}

    graph = StateGraph(State).add_node("node", node).add_edge(START, "node").compile()

    async def run(thread: str, said: str) -> str:
        return (await graph.ainvoke({"said": said}, {"configurable": {"thread_id": thread}}))["said"]

    await run("one", "")
    assert await run("one", "again") == "'one'"
    assert (await run("two", "again")).startswith("[no output")


PROGRAM = "if True:\n    print(40 + 2)"


@pytest.mark.parametrize(
    "text",
    [
        f"```python\n{PROGRAM}\n```",
        f"\n\n```py\r\n{PROGRAM.replace(chr(10), chr(13) + chr(10))}\r\n```\r\n",
        f"~~~\n{PROGRAM}\n~~~",
        f'````python title="a.py"\n{PROGRAM}\n````\n',
        f"```python\n{PROGRAM}",
        f"```python\n{PROGRAM}\n```\nThis prints the answer.",
        "  ```python\n  if True:\n      print(40 + 2)\n  ```",
        "    if True:\n        print(40 + 2)",
        "\tif True:\n\t\tprint(40 + 2)",
        f"\ufeff{PROGRAM}",
        PROGRAM.replace("\n", "\r\n"),
        "```python\nif True:\n```\nand then\n```python\n    print(40 + 2)\n```",
    ],
)
async def test_what_models_write_around_a_program_is_no_part_of_it(
    tools: dict[str, BaseTool], text: str
) -> None:
    assert await tools["python_repl_tool"].ainvoke({"code": text}) == "42"


@pytest.mark.parametrize("text", ["```bash\necho one\n```", "echo one\r\n", "  echo one\n  true"])
async def test_what_models_write_around_a_command_is_no_part_of_it(
    tools: dict[str, BaseTool], text: str
) -> None:
    assert await tools["bash_tool"].ainvoke({"cmd": text}) == "one"


@pytest.mark.parametrize(
    "program",
    [
        "text = '''\n```python\nx\n```\n'''\nprint(text)",
        "print('''\n   \n  kept  \n''')",
        "x = [\n    1,\n]\n",
        "\nprint(1)\n",
        "",
    ],
)
def test_a_program_without_anything_around_it_stays_as_it_is(program: str) -> None:
    assert unwrap_code(program) == program


@pytest.mark.parametrize(
    "inner", ["```\nx  \n```", "```python\nx\n```", "```python\nx\n```\n\n```python\ny\n```"]
)
@pytest.mark.parametrize("closing", ["```", "```\n\nIt prints them."])
def test_a_fenced_program_may_print_fences(inner: str, closing: str) -> None:
    program = f"print('''\n{inner}\n''')"
    assert unwrap_code(f"```python\n{program}\n{closing}") == program


@pytest.mark.parametrize("closing", ["    ```", "````", "```  ", ""])
def test_a_closing_fence_need_not_be_exact(closing: str) -> None:
    assert unwrap_code(f"```python\nprint(1)\n{closing}").rstrip() == "print(1)"


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("python_repl_tool", {"code": "open('results/out.csv', 'w')"}),
        ("bash_tool", {"cmd": "echo 1 > reports/out.txt"}),
    ],
)
async def test_code_that_writes_among_the_records_is_told_where_to_write(
    tools: dict[str, BaseTool], name: str, call: dict[str, str]
) -> None:
    assert "write to another folder" in await tools[name].ainvoke(call)


async def test_code_that_fails_to_write_elsewhere_is_told_nothing_about_records(
    tools: dict[str, BaseTool],
) -> None:
    said = await tools["bash_tool"].ainvoke({"cmd": "echo the results; echo 1 > /usr/out.txt"})
    assert "write to another folder" not in said
