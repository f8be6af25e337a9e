from pathlib import Path

import pytest

from maniple.workspace import Workspace, Workspaces


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces").open("thread")
