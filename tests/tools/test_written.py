from pathlib import Path

import pytest

from maniple.tools.code import WorkspaceWrites, changed_paths
from maniple.workspace import Workspaces

pytestmark = pytest.mark.anyio


async def test_removing_some_of_many_files_writes_none(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path).open("thread")
    files = [workspace.path / f"{number}" for number in range(1_500)]
    for file in files:
        file.touch()
    writes = WorkspaceWrites(workspace)
    async with writes:
        for file in files[:700]:
            file.unlink()
        (workspace.path / "new").touch()
    assert writes.paths == ["new"]


def test_of_more_files_than_are_watched_only_those_count_that_were_seen_twice() -> None:
    before = {("changed", 1, 1), ("removed", 1, 1), ("same", 1, 1)}
    after = {("changed", 2, 2), ("same", 1, 1), ("seen only now", 1, 1)}
    assert changed_paths(before, after, most=3) == ["changed"]
    assert changed_paths(before, after, most=4) == ["changed", "seen only now"]


async def test_what_python_keeps_for_itself_is_nothing_that_was_written(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path).open("thread")
    writes = WorkspaceWrites(workspace)
    async with writes:
        workspace.write("__pycache__/a.pyc", b"")
        workspace.write(".pytest_cache/v/nodeids", b"")
        workspace.write("a.py", b"")
    assert writes.paths == ["a.py"]
