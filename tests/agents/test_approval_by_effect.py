"""Where `write_file` needs approval, so does every other call that puts content into files."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.runnables.config import var_child_runnable_config

from maniple.agents.middleware.tool_calls import call_once
from maniple.reading.fork_server import ForkServer
from maniple.scope.context import SCOPE_KEY
from maniple.scope.run_scope import RunScope
from maniple.tools.documents import WorkspaceDocuments
from maniple.tools.registry import load_tools
from maniple.workspace import EditHistory, Workspace, Workspaces

pytestmark = pytest.mark.anyio
KEY = "local"
EDITOR = "str_replace_editor"


def services_of(workspaces: Workspaces) -> dict[type[Any], Any]:
    return {Workspaces: workspaces, WorkspaceDocuments: WorkspaceDocuments(ForkServer())}


CALLS: list[tuple[str, Mapping[str, Any]]] = [
    ("write_file", {"path": "new", "content": "x"}),
    ("read_file", {"path": "a"}),
    ("list_files", {}),
    ("search_files", {"pattern": "one"}),
    ("move_file", {"source": "a", "destination": "b"}),
    ("copy_file", {"source": "a", "destination": "b"}),
    ("delete_file", {"path": "a"}),
    ("create_directory", {"path": "folder"}),
    ("directory_tree", {}),
    ("undo_file_operations", {}),
    ("file_operations", {"operations": [{"action": "copy", "path": "a", "destination": "b"}]}),
    ("file_operations", {"operations": [{"action": "move", "path": "a", "destination": "b"}]}),
    ("file_operations", {"operations": [{"action": "delete", "path": "a"}]}),
    ("file_operations", {"operations": [{"action": "create_directory", "path": "b"}]}),
    (EDITOR, {"command": "view", "path": "a"}),
    (EDITOR, {"command": "create", "path": "new", "file_text": "x"}),
    (EDITOR, {"command": "str_replace", "path": "a", "old_str": "one", "new_str": "two"}),
    (EDITOR, {"command": "insert", "path": "a", "insert_line": 0, "new_str": "x\n"}),
    (EDITOR, {"command": "undo_edit", "path": "a"}),
]
"""Calls of every tool that has the workspace alone, each of which works; a new tool needs one here."""
NO_FILES = {"note_finding"}
"""Tools that need no workspace: a finding goes into the record of the run's sources."""


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    made = Workspaces(tmp_path)
    history, place = EditHistory.of(made, KEY), made.open(KEY)
    history.write(place, "a", b"zero\n")
    history.write(place, "a", b"one\n")
    return made


@pytest.fixture
def approving() -> Iterator[None]:
    """A run in which `write_file` needs approval, and nobody can be asked."""
    scope = RunScope(approval=frozenset({"write_file"}), can_pause=False, thread_id=KEY)
    token = var_child_runnable_config.set({"configurable": {SCOPE_KEY: scope}})
    yield
    var_child_runnable_config.reset(token)


def contents(place: Workspace) -> Counter[bytes]:
    return Counter(place.read(name, 10**6).content for name, _ in place.files(1_000))


async def refused(run: Callable[[], Awaitable[Any]], workspaces: Workspaces, name: str, given: Any) -> bool:
    """Return whether the middleware refuses the call, which it else runs."""
    tool = load_tools().build(services_of(workspaces))[name]

    async def call(_: Mapping[str, Any]) -> ToolMessage:
        return ToolMessage(str(await run()), tool_call_id="1")

    answer = (await call_once(tool, "1", given, call)).answer
    assert isinstance(answer, ToolMessage)
    return answer.status == "error"


@pytest.mark.parametrize(("name", "given"), CALLS)
async def test_a_call_needs_the_approval_of_write_file_exactly_if_it_puts_content_into_files(
    workspaces: Workspaces, approving: None, name: str, given: Mapping[str, Any]
) -> None:
    tool = load_tools().build(services_of(workspaces))[name]
    place = workspaces.open(KEY)
    before = contents(place)
    was_refused = await refused(lambda: tool.ainvoke(dict(given)), workspaces, name, given)
    if was_refused:
        assert contents(place) == before
        await tool.ainvoke(dict(given))
    assert was_refused == bool(contents(place) - before)


async def test_every_tool_that_has_the_workspace_alone_is_tried(workspaces: Workspaces) -> None:
    tools = set(load_tools().build(services_of(workspaces))) - NO_FILES
    assert tools == {name for name, _ in CALLS}


@pytest.mark.parametrize("command", ["", "no_such", None, ["view"]])
async def test_an_editor_command_that_is_not_known_to_read_counts_as_writing(
    workspaces: Workspaces, approving: None, command: object
) -> None:
    async def run() -> str:
        return "ran"

    assert await refused(run, workspaces, EDITOR, {"command": command, "path": "a"})
