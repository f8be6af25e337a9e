"""`--out DIR`: the report and the files of a run in a folder of the user."""

import io
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from maniple.cli.chat.output_folder import require_output_folder, write_run_files
from maniple.cli.process import WrongUsage
from maniple.errors import FileError
from maniple.store import RunRecord, Store, Thread, open_store
from maniple.workspace import Workspaces
from tests.cli.processes import environment
from tests.cli.test_threads import STARTS, run
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
RUN = RunRecord("1", "t", "", "chat", "p", "completed", "{}", 1.0, ended_at=2.0)
FILES = {"Report.md": b"# Mine", "out/data.csv": b"1", "other/data.csv": b"2"}
TEXT = "See [mine](Report.md) and [data](out/data.csv)."


class Finished:
    """A run that has ended, with its files."""

    def __init__(self, store: Store, folder: Path) -> None:
        self.store = store
        self.workspaces = Workspaces(folder / "workspaces")

    async def write(self, folder: Path, report: str = TEXT) -> list[str]:
        return await write_run_files(self.store, self.workspaces, RUN, report, folder)


@pytest.fixture
async def finished(tmp_path: Path) -> AsyncIterator[Finished]:
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        await store.threads.create(Thread("t", "", "A question", 1.0, 1.0))
        await store.runs.add(RUN)
        made = Finished(store, tmp_path)
        workspace = made.workspaces.open("t")
        made.workspaces.uploads("t").add([("mine.csv", io.BytesIO(b"m"))])
        for path, content in FILES.items():
            workspace.write(path, content)
            await store.artifacts.add(RUN, path, "text/plain", content)
        await store.artifacts.add(RUN, "screenshot.jpg", "image/jpeg", b"picture")
        await store.evidence("1").add("https://a.test/", "A page", "page", "Text.")
        await store.artifacts.add(RUN, "A page.md", "text/markdown", b"Source: https://a.test/\n\nText.")
        yield made


def content_of(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


async def test_the_report_and_the_files_of_the_run_are_written_and_nothing_else(
    finished: Finished, tmp_path: Path
) -> None:
    (line,) = await finished.write(tmp_path / "new/out")
    assert str(tmp_path / "new/out") in line and "4" in line
    report = b"See [mine](Report-1.md) and [data](out/data.csv)."
    assert content_of(tmp_path / "new/out") == {
        "report.md": report,
        "Report-1.md": b"# Mine",
        "out/data.csv": b"1",
        "other/data.csv": b"2",
    }


async def test_without_a_report_the_files_are_written(finished: Finished, tmp_path: Path) -> None:
    await finished.write(tmp_path / "out", "")
    assert content_of(tmp_path / "out") == FILES


async def test_files_of_one_name_and_content_are_all_written_and_an_upload_is_not(
    finished: Finished, tmp_path: Path
) -> None:
    workspace = finished.workspaces.locate("t")
    for path in ("pkg/__init__.py", "pkg/sub/__init__.py"):
        workspace.write(path, b"")
    workspace.write("out/mine.csv", b"sums")
    workspace.write("copy/other.csv", b"o")
    finished.workspaces.uploads("t").add([("other.csv", io.BytesIO(b"o"))])
    for path, content in (("__init__.py", b""), ("mine.csv", b"sums"), ("other.csv", b"o")):
        await finished.store.artifacts.add(RUN, path, "text/plain", content)
    await finished.write(tmp_path / "out", "")
    assert content_of(tmp_path / "out") == FILES | {
        "pkg/__init__.py": b"",
        "pkg/sub/__init__.py": b"",
        "out/mine.csv": b"sums",
        "copy/other.csv": b"o",
    }


async def test_names_that_some_system_reserves_are_changed(finished: Finished, tmp_path: Path) -> None:
    for name in ("COM\N{SUPERSCRIPT ONE}.txt", "conin$", "nul .txt", "console.txt"):
        finished.workspaces.locate("t").write(name, name.encode())
        await finished.store.artifacts.add(RUN, name, "text/plain", name.encode())
    await finished.write(tmp_path / "out", "")
    names = {"_COM\N{SUPERSCRIPT ONE}.txt", "_conin$", "_nul .txt", "console.txt"}
    assert names <= content_of(tmp_path / "out").keys()


async def test_no_existing_file_is_replaced_and_links_follow_the_new_names(
    finished: Finished, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    (folder / "OUT").mkdir(parents=True)
    (folder / "OUT/DATA.csv").write_bytes(b"old")
    (folder / "Report.MD").write_bytes(b"old")
    lines = await finished.write(folder)
    assert any("report-1.md" in line for line in lines)
    found = content_of(folder)
    assert found["OUT/DATA.csv"] == found["Report.MD"] == b"old"
    assert b"[data](out-1/data.csv)" in found["report-1.md"]
    assert found["out-1/data.csv"] == b"1"
    assert len({one.casefold() for one in found}) == len(found) == 6
    await finished.write(folder)
    again = content_of(folder)
    assert {path: again[path] for path in found} == found
    assert len(again) == 10


async def test_nothing_is_written_through_links_in_the_folder(finished: Finished, tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "out"
    outside.mkdir()
    folder.mkdir()
    (folder / "out").symlink_to(outside)
    (folder / "report.md").symlink_to(outside / "report.md")
    (folder / "other").symlink_to(tmp_path / "nowhere")
    await finished.write(folder)
    assert not list(outside.iterdir())
    assert not (tmp_path / "nowhere").exists()
    assert (folder / "report-1.md").is_file() and (folder / "out-1/data.csv").read_bytes() == b"1"


async def test_a_file_that_is_no_artifact_is_named_as_left_out(finished: Finished, tmp_path: Path) -> None:
    finished.workspaces.open("t").write("big.bin", b"x")
    running = RunRecord("2", "t", "", "chat", "p", "completed", "{}", 1.0)
    await finished.store.runs.add(running)
    lines = await write_run_files(finished.store, finished.workspaces, running, "Text.", tmp_path / "out")
    assert "big.bin" in lines[-1] and "mine.csv" not in lines[-1]
    assert (tmp_path / "out/not-included.txt").read_text() == "big.bin\n"


async def test_a_folder_that_cannot_be_written_to_is_an_error_that_says_so(
    finished: Finished, tmp_path: Path
) -> None:
    (tmp_path / "out").write_bytes(b"a file")
    with pytest.raises(FileError, match="--out"):
        await finished.write(tmp_path / "out")


def test_folders_that_cannot_take_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dead").symlink_to(tmp_path / "nowhere")
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    names = ["file", "file/below", "dead", "data", "data/workspaces/x", "link/x"]
    if os.geteuid():
        (tmp_path / "closed").mkdir(mode=0o500)
        names.append("closed/x")
    for name in names:
        with pytest.raises(WrongUsage, match="--out"):
            require_output_folder(tmp_path / name, tmp_path / "data")
    require_output_folder(tmp_path / "new/folder", tmp_path / "data")
    assert not (tmp_path / "new").exists()


async def test_the_command_writes_the_folder_and_refuses_a_wrong_one_before_the_team_opens(
    tmp_path: Path,
) -> None:
    with serving({"coordinator": [reply("I am *one*.")]}) as server:
        env = environment(tmp_path, server.base_url)
        status, _, notes = await run("Who are you?", "--out", "made", folder=tmp_path, env=env)
        assert (status, (tmp_path / "made/report.md").read_text()) == (0, "I am *one*.")
        thread_id = notes.partition("--thread ")[2].split()[0]
        status, output, notes = await run("--thread", thread_id, "--out", "again", folder=tmp_path, env=env)
        assert (status, output, (tmp_path / "again/report.md").exists()) == (0, "", True), notes
        (tmp_path / "file").write_bytes(b"")
        status, _, notes = await run("Who are you?", "--out", "file", folder=tmp_path, env=env)
        assert (status, STARTS in notes, "--out" in notes) == (2, False, True)
