"""Code cannot put its own text in the place of what the team has read, found or reported."""

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maniple.errors import FileError
from maniple.sandbox import Sandbox
from maniple.tools.items import MirroredText, StoredResults, ThreadItems
from maniple.workspace import Workspace, Workspaces
from maniple.workspace.mirrors import MIRROR_FOLDERS
from tests.sandbox.opened import opened_sandbox

pytestmark = pytest.mark.anyio
GENUINE = "# Result\n\nThe genuine text."
MIRRORS = (
    "results/1-researcher.md",
    "reports/1.md",
    "sources/3.md",
    "sources/3-table-1.csv",
    "tool-results/a.txt",
)
TRICKS = (
    "mv {path} gone",
    "mv {folder} gone-folder",
    "mv {folder} {folder}-old; mkdir {folder}; echo forged > {path}",
    "rm -rf {folder}",
    "rmdir {folder}",
    "echo forged > {path}",
    "echo forged >> {path}",
    "chmod -R 777 {folder}; echo forged > {path}",
    "chmod 000 {path}",
    "chmod 000 {folder}",
    "chmod 000 .",
    "touch -d 2001-01-01 {path}; truncate -s 0 {path}",
    "echo forged > own; ln -f own {path}",
    "echo forged > own; ln -sf /workspace/own {path}",
    "ln -sfn /tmp {folder}",
    "ln {path} second-name; echo forged > second-name",
    "echo forged > own; cp -f own {path}",
    "echo forged > own; mv -f own {path}",
    "exec 3<{path}; echo forged > /proc/self/fd/3",
    "echo forged > /proc/self/root/workspace/{path}",
    "unshare -rm sh -c 'mount --bind /tmp /workspace/{folder}'",
    "mount -o remount,rw /workspace/{folder}",
    "umount -l /workspace/{folder}; echo forged > {path}",
    "mkdir -p {folder}/request-2; echo forged > {folder}/request-2/1-coder.md",
    "echo forged > {folder}/7.md; echo forged > {folder}/7-coder.md",
    "cd {folder} && echo forged > .maniple-1 && mv .maniple-1 /workspace/{path}",
)


@pytest.fixture
def workspaces(tmp_path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces")


def write_mirrors(workspaces: Workspaces) -> Workspace:
    workspace = workspaces.open("local")
    for path in MIRRORS:
        workspace.write_read_only(path, GENUINE.encode())
    return workspace


def texts(workspace: Workspace) -> set[str]:
    return {workspace.read(path, 1_000).content.decode() for path in MIRRORS}


async def run(sandbox: Sandbox, workspace: Workspace, command: str) -> str:
    completed = await sandbox.run_bash(command, key="local", workspace=workspace)
    return completed.text()


@pytest.mark.parametrize("trick", TRICKS)
async def test_no_trick_of_code_changes_what_a_member_reads(
    sandbox: Sandbox, workspaces: Workspaces, trick: str
) -> None:
    workspace = write_mirrors(workspaces)
    for path in MIRRORS:
        await run(sandbox, workspace, trick.format(path=path, folder=path.split("/")[0]))
    assert texts(workspace) == {GENUINE}
    read_item = StoredResults(workspaces).reader()
    for path in MIRRORS:
        assert "The genuine text." in await read_item.ainvoke({"path": path})
    named = await ThreadItems(workspaces).read_named(" and ".join(MIRRORS))
    assert {one.text for one in named} == {GENUINE}
    assert {path for path, _ in workspace.files(1_000) if path.split("/")[0] in MIRROR_FOLDERS} == {*MIRRORS}
    # Also in the next call, and in a session after this one.
    shown = await run(sandbox, workspace, f"chmod 755 . ; cat {' '.join(MIRRORS)}")
    assert shown.count("The genuine text.") == len(MIRRORS)
    assert "forged" not in shown


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.sampled_from(TRICKS), st.sampled_from(MIRRORS)), min_size=2, max_size=6))
def test_no_sequence_of_tricks_changes_what_a_member_reads(
    tmp_path_factory: pytest.TempPathFactory, tricks: list[tuple[str, str]]
) -> None:
    workspaces = Workspaces(tmp_path_factory.mktemp("tricks") / "workspaces")
    workspace = write_mirrors(workspaces)

    async def play() -> str:
        async with opened_sandbox(timeout_seconds=20) as sandbox:
            for trick, path in tricks:
                await run(sandbox, workspace, trick.format(path=path, folder=path.split("/")[0]))
            workspaces.open("local")  # as before each call of a member: it opens what code has closed
            return await run(sandbox, workspace, f"chmod 755 . ; cat {' '.join(MIRRORS)}")

    shown = anyio.run(play)
    assert shown.count("The genuine text.") == len(MIRRORS)
    assert texts(workspace) == {GENUINE}


async def test_a_mirror_that_is_written_while_code_runs_is_seen_by_its_next_call(
    sandbox: Sandbox, workspaces: Workspaces
) -> None:
    workspace = workspaces.open("local")
    await run(sandbox, workspace, "mkdir -p results; echo forged > results/1-researcher.md")
    await ThreadItems(workspaces).update(None, [MirroredText("results/1-researcher.md", GENUINE)])
    assert await run(sandbox, workspace, "cat results/1-researcher.md") == GENUINE


async def test_mirrors_of_a_former_version_and_files_beside_them_are_still_read(
    sandbox: Sandbox, workspaces: Workspaces
) -> None:
    workspace = workspaces.open("local")
    for path in ("results/1-researcher.md", "results/request-2/1-coder.md", "results/out.csv"):
        (workspace.path / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace.path / path).write_text(path)
    before = workspace.files(10)
    assert len(before) == 3
    assert await run(sandbox, workspace, "cat results/*.md results/*/*.md results/out.csv") == "".join(
        ("results/1-researcher.md", "results/request-2/1-coder.md", "results/out.csv")
    )
    assert workspace.files(10) == before
    workspace.write("results/by-a-tool.csv", b"1,2")
    assert await run(sandbox, workspace, "cat results/by-a-tool.csv") == "1,2"


def test_file_tools_do_not_write_where_the_records_are(workspaces: Workspaces) -> None:
    workspace = write_mirrors(workspaces)
    for change in (
        lambda: workspace.write("results/1-researcher.md", b"forged"),
        lambda: workspace.write("results/./2-coder.md", b"forged"),
        lambda: workspace.delete("/workspace/reports/1.md"),
        lambda: workspace.move("results", "elsewhere"),
        lambda: workspace.move("sources/3.md", "mine.md"),
        lambda: workspace.create("reports/2.md", b"forged"),
    ):
        with pytest.raises(FileError, match="read-only"):
            change()
    assert texts(workspace) == {GENUINE}


async def test_without_mounts_code_has_copies_and_the_host_reads_the_record(tmp_path) -> None:
    workspaces = Workspaces(tmp_path / "workspaces", copies=True)
    workspace = write_mirrors(workspaces)
    for path in MIRRORS:
        copy = workspace.path / path
        assert copy.read_text() == GENUINE
        copy.unlink()
        copy.write_text("forged")
    (workspace.path / "results/9-coder.md").write_text("forged")
    (workspace.path / "results/out.csv").write_text("1,2")
    assert texts(workspace) == {GENUINE}
    assert {path for path, _ in workspace.files(100)} == {*MIRRORS, "results/out.csv"}
    assert workspace.is_missing("results/9-coder.md")


def test_a_workspace_with_nothing_in_it_is_discarded_after_a_session(workspaces: Workspaces) -> None:
    workspace = workspaces.open("local")
    assert len(workspace.mounts()) == len(MIRROR_FOLDERS)
    workspaces.discard_if_empty("local")
    assert not workspace.path.exists()
