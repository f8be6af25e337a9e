"""A server that is not root; when the tests themselves are not, every other test shows the same."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.config.settings import SandboxSettings
from maniple.sandbox import Unavailable, Workspaces, open_sandbox
from tests.sandbox.attacks.targets import all_tried
from tests.sandbox.nobody import NOBODY, as_nobody, home_of_nobody, needs_root

pytestmark = needs_root


@pytest.fixture
def home() -> Iterator[Path]:
    with home_of_nobody() as home:
        yield home


def test_the_sandbox_works_and_is_probed_for_an_ordinary_user(home: Path) -> None:
    async def run() -> str:
        async with open_sandbox(SandboxSettings()) as sandbox:
            if isinstance(sandbox, Unavailable):
                return str(sandbox)
            workspace = Workspaces(home / "workspaces").open("thread")
            workspace.write("a.txt", b"kept")
            completed = await sandbox.run_bash(
                "id -u; cat a.txt; echo made > b.txt", key="thread", workspace=workspace
            )
            return completed.text() + " " + workspace.read("b.txt", 100).content.decode()

    assert as_nobody(lambda: asyncio.run(run())) == "1000\nkept made\n"
    made = home / "workspaces" / "thread" / "b.txt"
    assert made.stat().st_uid == NOBODY


def test_no_attack_gets_anything_from_an_ordinary_user(home: Path) -> None:
    outcomes = json.loads(as_nobody(lambda: json.dumps(asyncio.run(all_tried(home)))))
    assert len(outcomes) > 100
    assert [name for name, stopped in outcomes.items() if not stopped] == []


def test_the_watchdog_sees_an_ordinary_users_sandbox(home: Path) -> None:
    code = "import os\nfor _ in range(3): os.fork()\nx = bytearray(b'1') * (60 << 20)\nwhile True: pass"

    async def run() -> str:
        async with open_sandbox(SandboxSettings(memory_mb=192)) as sandbox:
            assert not isinstance(sandbox, Unavailable)
            workspace = Workspaces(home / "workspaces").open("thread")
            return (await sandbox.run_python(code, key="thread", workspace=workspace)).lost

    assert "more than 192 MB of memory together" in as_nobody(lambda: asyncio.run(run()))


def test_files_made_by_roots_sandbox_belong_to_no_account(tmp_path: Path) -> None:
    async def run() -> None:
        async with open_sandbox(SandboxSettings()) as sandbox:
            assert not isinstance(sandbox, Unavailable)
            await sandbox.run_bash("touch made; rm given", key="thread", workspace=workspace)

    workspace = Workspaces(tmp_path).open("thread")
    workspace.write("given", b"")
    assert (workspace.path / "given").stat().st_uid == 65533
    asyncio.run(run())
    assert [(path.name, path.stat().st_uid) for path in workspace.path.iterdir()] == [("made", 65533)]
