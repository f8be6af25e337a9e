"""Code that closes its own workspace, to everybody who is the same user or runs after it."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from maniple.config.sandbox_settings import SandboxSettings
from maniple.sandbox import Sandbox, open_sandbox
from maniple.workspace import Workspaces
from tests.sandbox.nobody import as_nobody, home_of_nobody, needs_root

CLOSE_ALL = "mkdir -p a/b; echo x > a/b/kept; chmod 000 a/b a /workspace"


@pytest.fixture
def home() -> Iterator[Path]:
    with home_of_nobody() as home:
        yield home


@pytest.mark.anyio
async def test_the_next_session_works_where_one_has_closed_the_workspace(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    workspaces = Workspaces(tmp_path)
    await sandbox.run_bash(CLOSE_ALL, key="thread", workspace=workspaces.open("thread"))
    await sandbox.stop("thread")
    completed = await sandbox.run_bash(
        "echo y > new; ls -d a new", key="thread", workspace=workspaces.open("thread")
    )
    assert completed.stdout == "a\nnew\n", completed.text()
    assert workspaces.files("thread", 10).found == (("a/b/kept", 2), ("new", 2))
    await sandbox.stop("thread")
    workspaces.remove("thread")
    assert not (tmp_path / "thread").exists()


class TestOrdinaryUser:
    pytestmark = needs_root

    def test_a_workspace_that_was_closed_is_used_listed_and_removed(self, home: Path) -> None:
        async def run() -> str:
            workspaces = Workspaces(home / "workspaces")
            async with open_sandbox(SandboxSettings()) as sandbox:
                await sandbox.run_bash(CLOSE_ALL, key="thread", workspace=workspaces.open("thread"))
                listed = workspaces.files("thread", 10).found
                await sandbox.stop("thread")
                again = await sandbox.run_bash(
                    "ls -d a*; chmod 000 a .", key="thread", workspace=workspaces.open("thread")
                )
            workspaces.remove("thread")
            return f"{listed} {again.stdout} {(home / 'workspaces' / 'thread').exists()}"

        assert as_nobody(lambda: asyncio.run(run())) == "(('a/b/kept', 2),) a\n False"

    @pytest.mark.parametrize("mode", ["300", "000", "400"])
    def test_what_is_written_into_a_closed_folder_counts(self, home: Path, mode: str) -> None:
        command = (
            "mkdir a; cd a; for n in 1 2 3 4; do head -c 10000000 /dev/zero > $n; done; "
            f"chmod {mode} . /workspace; read -t 10 < <(tail -f /dev/null)"
        )

        async def run() -> str:
            async with open_sandbox(SandboxSettings(disk_mb=20)) as sandbox:
                workspace = Workspaces(home / "workspaces").open("thread")
                return (await sandbox.run_bash(command, key="thread", workspace=workspace)).lost

        assert "workspace take more than 20 MB" in as_nobody(lambda: asyncio.run(run()))

    def test_the_host_writes_reads_and_deletes_where_code_has_closed_a_folder(self, home: Path) -> None:
        def act() -> str:
            workspaces = Workspaces(home / "workspaces")
            workspace = workspaces.open("thread")
            workspace.write("a/b/old", b"old")
            for mode in (0, 0o300, 0o400, 0o500):
                for closed in ("a/b", "a", "."):
                    (workspace.path / closed).chmod(mode)
                workspace.write("a/b/new", workspace.read("a/b/old", 10).content)
                for closed in ("a/b", "a", "."):
                    (workspace.path / closed).chmod(mode)
                workspace.delete("a/b/new")
            return str(workspace.files(10))

        with home_of_nobody() as home:
            assert as_nobody(act) == "[('a/b/old', 3)]"
