import time
from pathlib import Path

import pytest

from maniple.cli.chat.attachments import Attachments, open_attachments
from maniple.workspace import EditHistory, FileOperation, Workspaces

pytestmark = pytest.mark.anyio


async def test_a_file_is_reported_once_and_again_when_it_has_grown(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    attachments = Attachments(workspaces)
    assert await attachments.new_files("thread") == []

    workspace = workspaces.open("thread")
    workspace.write("a.txt", b"x")
    workspace.write("deep/b.csv", b"x" * 1_500_000)
    folder = f"Files in {tmp_path}/thread:"
    assert await attachments.new_files("thread") == [folder, "  a.txt  1 byte", "  deep/b.csv  1.5 MB"]
    assert await attachments.new_files("thread") == []
    workspace.write("a.txt", b"xx")
    assert await attachments.new_files("thread") == [folder, "  a.txt  2 bytes"]


async def test_a_file_name_is_one_line_and_a_long_list_is_cut(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    for number in range(30):
        workspaces.open("thread").write(f"{number:02}\n✔ completed", b"x")
    lines = await Attachments(workspaces).new_files("thread")
    assert lines[1] == "  00 ⏎ ✔ completed  1 byte"
    assert (len(lines), lines[-1]) == (22, "  … and 10 more")


async def test_of_many_files_folders_are_counted_and_each_file_is_listed_on_demand(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    workspace = workspaces.open("thread")
    for number in range(10):
        for kind in ("csv", "md"):
            workspace.write(f"files/{kind}/{number}.{kind}", b"xx")
    workspace.write("readme", b"x")
    attachments = Attachments(workspaces)
    folders = ["  files/csv/  10 files  20 bytes", "  files/md/  10 files  20 bytes", "  readme  1 byte"]
    assert await attachments.new_files("thread") == [f"Files in {workspace.path}:", *folders]
    assert (await attachments.all_files("thread"))[1:4] == folders
    every = await attachments.all_files("thread", each=True)
    assert len(every) == 22
    assert "  files/md/9.md  2 bytes" in every


async def test_files_of_the_user_are_listed_where_a_run_moved_them(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    for name in ("moved.txt", "left.txt"):
        (tmp_path / name).write_text(name)
        await Attachments(workspaces).add("thread", tmp_path / name)
    attachments = Attachments(workspaces)  # of another process, to which all files are new
    await attachments.track("thread")
    move = FileOperation("move", "moved.txt", "done/")
    report = EditHistory.of(workspaces, "thread").carry_out(workspaces.open("thread"), [move])
    workspaces.uploads("thread").follow(report.moves)
    assert (await attachments.new_files("thread"))[1:] == ["  done/moved.txt  9 bytes"]


async def test_empty_workspaces_go_with_the_session_and_used_ones_stay(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    empty, used, foreign = (workspaces.open(thread).path for thread in ("empty", "used", "foreign"))
    with pytest.raises(KeyboardInterrupt):
        async with open_attachments(workspaces) as attachments:
            for thread in ("empty", "used"):
                await attachments.track(thread)
            workspaces.open("used").write("a", b"x")
            raise KeyboardInterrupt
    assert [path.exists() for path in (empty, used, foreign)] == [False, True, True]


async def test_the_team_s_own_records_are_not_listed_and_files_among_many_are(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    attachments = Attachments(workspaces)
    for number in range(100):
        workspaces.open("thread").write(f"{number:03}", b"x")
    await attachments.new_files("thread")
    workspaces.open("thread").write_read_only("reports/1.md", b"the report before")
    workspaces.open("thread").write_read_only("sources/1.md", b"page")
    assert await attachments.new_files("thread") == []
    workspaces.open("thread").write("z/chart.png", b"x")
    assert (await attachments.new_files("thread"))[1:] == ["  z/chart.png  1 byte"]


async def test_only_what_the_run_wrote_is_listed(tmp_path: Path) -> None:
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    workspaces = Workspaces(tmp_path / "workspaces")
    workspace = workspaces.open("thread")
    await Attachments(workspaces).add("thread", mine)
    for path in ("a.py", "__pycache__/a.pyc", "b/.pytest_cache/c", ".ipynb_checkpoints/d", ".ruff_cache/e"):
        workspace.write(path, b"x")
    # Of another process, to which all files are new.
    attachments = Attachments(workspaces)
    assert (await attachments.new_files("thread"))[1:] == ["  a.py  1 byte"]
    assert await Attachments(workspaces).new_files("thread", since=time.time() + 60) == []
    workspace.write("mine.txt", b"ours")
    assert (await Attachments(workspaces).new_files("thread"))[1:] == [
        "  a.py  1 byte",
        "  mine.txt  4 bytes",
    ]
