from pathlib import Path

import pytest

from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import Workspaces


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces").open("thread")
