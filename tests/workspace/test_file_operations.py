"""Files that are moved, copied and deleted: all or none of a call, and undone, also after a kill."""

import io
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from maniple.errors import FileError, WorkspaceFull
from maniple.workspace import (
    EditHistory,
    FileOperation,
    Workspace,
    Workspaces,
    edit_history,
    safe_open,
    transactions,
)

Contents = dict[str, bytes | None]


def limit_archive(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    for module in (edit_history, transactions):
        monkeypatch.setattr(module, "ARCHIVED_BYTES", most_bytes)


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces", max_bytes=1_000_000)


@pytest.fixture
def place(workspaces: Workspaces) -> Workspace:
    return workspaces.open("t")


@pytest.fixture
def history(workspaces: Workspaces) -> EditHistory:
    return EditHistory.of(workspaces, "t")


def move(path: str, destination: str, *, overwrite: bool = False) -> FileOperation:
    return FileOperation("move", path, destination, overwrite)


def copy(path: str, destination: str) -> FileOperation:
    return FileOperation("copy", path, destination)


def delete(path: str) -> FileOperation:
    return FileOperation("delete", path)


def make(path: str) -> FileOperation:
    return FileOperation("create_directory", path)


def contents(place: Workspace) -> Contents:
    """Return everything that is there: the content of files, None for folders."""
    return {
        one.path: place.read(one.path, 10**6).content if one.kind == "file" else None
        for one in place.tree("")
    }


@pytest.fixture(params=["renameat2", "without it"])
def way_to_rename(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param != "renameat2":
        monkeypatch.setattr(safe_open, "_load_renameat2", lambda: None)
    return request.param


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_appears_while_an_operation_is_done_is_not_overwritten_and_all_is_taken_back(
    history: EditHistory, place: Workspace, monkeypatch, way_to_rename, kind
) -> None:
    place.write("first", b"first")
    place.write("old" if kind == "file" else "old/inside", b"old")
    before = contents(place)
    whole = Workspace.move

    def overtaken(self: Workspace, source: str, destination: str, **options: bool) -> None:
        if destination == "new":
            (place.path / "new").write_bytes(b"of the thread's own code")
        whole(self, source, destination, **options)

    monkeypatch.setattr(Workspace, "move", overtaken)
    with pytest.raises(FileError, match="new"):
        history.carry_out(place, [move("first", "moved"), move("old", "new")])
    assert contents(place) == {**before, "new": b"of the thread's own code"}


@pytest.mark.parametrize("source", ["file", "folder", "link"])
def test_each_way_to_rename_refuses_a_name_that_is_taken(place: Workspace, way_to_rename, source) -> None:
    place.write("file", b"a file")
    place.write("folder/below", b"b")
    (place.path / "link").symlink_to("nowhere")
    place.make_folder("empty")
    before = contents(place)
    for taken in ("file", "folder", "link", "empty"):
        if taken != source:
            with pytest.raises(FileError):
                place.move(source, taken)
    assert contents(place) == before
    place.move(source, "moved")
    assert place.kind(source) is None
    assert place.kind("moved") == source


def test_a_file_is_moved_renamed_and_put_into_folders_that_are_made(
    history: EditHistory, place: Workspace
) -> None:
    place.write("a.txt", b"a")
    assert history.carry_out(place, [move("a.txt", "b.txt")]).done == ["Moved a.txt to b.txt"]
    history.carry_out(place, [move("b.txt", "2024/may/")])
    history.carry_out(place, [make("2025/june"), move("/workspace/2024/may/b.txt", "2025/june")])
    assert contents(place) == {
        "2024": None,
        "2024/may": None,
        "2025": None,
        "2025/june": None,
        "2025/june/b.txt": b"a",
    }


def test_what_was_done_is_undone_step_by_step_with_edits_in_their_order(
    history: EditHistory, place: Workspace
) -> None:
    place.write("a", b"a")
    states = [contents(place)]
    for change in (
        lambda: history.write(place, "a", b"edited"),
        lambda: history.carry_out(place, [move("a", "d/a"), copy("d/a", "d/b")]),
        lambda: history.write(place, "d/a", b"edited again"),
        lambda: history.carry_out(place, [delete("d")]),
        lambda: history.carry_out(place, [make("e/f")]),
    ):
        change()
        states.append(contents(place))
    assert states[-1] == {"e": None, "e/f": None}
    for before in reversed(states[:-1]):
        history.undo_newest(place)
        assert contents(place) == before
    with pytest.raises(FileError, match="nothing to undo"):
        history.undo_newest(place)


def test_several_changes_are_undone_in_one_call(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"a")
    before = contents(place)
    for name in "bcd":
        history.carry_out(place, [copy("a", name)])
    assert len(history.undo_newest(place, 2).done) == 2
    assert "d" not in contents(place) and "b" in contents(place)
    assert len(history.undo_newest(place, 9).done) == 1
    assert contents(place) == before


def test_an_undo_names_where_things_are_now(history: EditHistory, place: Workspace) -> None:
    names = [f"inbox/{number}" for number in range(5)]
    for name in (*names, "old", "kept"):
        place.write(name, b"x")
    history.carry_out(place, [*(move(name, "md/") for name in names), delete("old"), copy("kept", "copy")])
    [told] = history.undo_newest(place).done
    parts = dict(part.split(": ", 1) for part in told.removeprefix("Undone: ").split("; "))
    assert [*parts.values()] == ["md/, copy", "5 in all (0, 1, 2, …)", "old"]
    assert "inbox/" in [*parts][1], "where they are now, not where they were"


def test_names_are_exchanged_within_one_call(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"a")
    place.write("b", b"b")
    history.carry_out(place, [move("a", "c"), move("b", "a"), move("c", "b")])
    assert contents(place) == {"a": b"b", "b": b"a"}
    history.undo_newest(place)
    assert contents(place) == {"a": b"a", "b": b"b"}


def test_what_is_in_a_moved_folder_is_known_by_its_new_name(history: EditHistory, place: Workspace) -> None:
    place.write("old/a", b"a")
    place.write("old/b", b"b")
    history.carry_out(place, [move("old", "new"), delete("new/a"), move("new/b", "c")])
    assert contents(place) == {"new": None, "c": b"b"}
    history.undo_newest(place)
    assert contents(place) == {"old": None, "old/a": b"a", "old/b": b"b"}


def test_each_operation_that_cannot_be_done_is_named_and_nothing_is_changed(
    history: EditHistory, place: Workspace
) -> None:
    for name in ("a", "b", "d/c"):
        place.write(name, name.encode())
    before = contents(place)
    wanted = [move("a", "d/"), move("gone", "d/"), copy("b", "d/c"), make("a/x/y"), delete("b")]
    with pytest.raises(FileError) as refused:
        history.carry_out(place, wanted)
    lines = str(refused.value).splitlines()
    assert "2 of 5" in lines[0]
    assert [line.partition(":")[0] for line in lines[1:]] == ["2. move gone", "3. copy b"]
    assert contents(place) == before
    with pytest.raises(FileError, match="nothing to undo"):
        history.undo_newest(place)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        (move("../a", "b"), "leads out"),
        (move("a", "/etc/passwd"), "outside the workspace"),
        (move("a", ""), "destination is missing"),
        (move("a", "a"), "there already"),
        (move("d", "d/e/f"), "cannot go into itself"),
        (move("a", "d/c"), "exists"),
        (move("a", "a/b"), "no folder|into itself"),
        (delete(""), "the workspace itself"),
        (copy("link", "b"), "link"),
        (move("a", "link/b"), "no folder"),
        (delete("link/passwd"), "no file and no folder"),
        (move("a", ".maniple-a"), "not complete"),
        (FileOperation("move", "a", "d/folder", overwrite=True), "not replaced"),
    ],
    ids=lambda value: str(value) if isinstance(value, str) else f"{value.action} {value.path}",
)
def test_what_must_not_be_done_is_refused(
    history: EditHistory, place: Workspace, operation: FileOperation, words: str
) -> None:
    place.write("a", b"a")
    place.write("d/c", b"c")
    place.write("d/folder/a/b", b"a")
    (place.path / "link").symlink_to("/etc")
    before = {one.path for one in place.tree("")}
    with pytest.raises(FileError, match=words):
        history.carry_out(place, [operation])
    assert {one.path for one in place.tree("")} == before


def test_a_file_is_replaced_only_on_request_and_undo_restores_it(
    history: EditHistory, place: Workspace
) -> None:
    place.write("a", b"new")
    place.write("b", b"old")
    with pytest.raises(FileError, match="overwrite"):
        history.carry_out(place, [move("a", "b")])
    history.carry_out(place, [move("a", "b", overwrite=True)])
    assert contents(place) == {"b": b"new"}
    history.undo_newest(place)
    assert contents(place) == {"a": b"new", "b": b"old"}


def test_read_only_files_stay_where_they_are_and_can_be_copied(
    history: EditHistory, place: Workspace
) -> None:
    place.write_read_only("sources/1.md", b"page")
    place.write("a", b"a")
    for operation in (move("sources/1.md", "a2"), delete("sources"), move("sources", "pages")):
        with pytest.raises(FileError, match="read-only"):
            history.carry_out(place, [operation])
    with pytest.raises(FileError, match="read-only"):
        history.carry_out(place, [move("a", "sources/1.md", overwrite=True)])
    history.carry_out(place, [copy("sources/1.md", "mine.md")])
    history.write(place, "mine.md", b"changed")
    assert place.read("sources/1.md", 10).content == b"page"


def test_a_name_that_only_the_team_gives_is_refused(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"a")
    place.write("d/1.md", b"d")
    for operation in (move("a", "reports/1.md"), copy("d", "reports")):
        with pytest.raises(FileError, match="another name"):
            history.carry_out(place, [operation], lambda path: path == "reports/1.md")
    history.carry_out(place, [move("a", "reports/mine.md")], lambda path: path == "reports/1.md")


def test_a_copy_must_fit_into_the_workspace(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"x" * 600_000)
    with pytest.raises(WorkspaceFull):
        history.carry_out(place, [copy("a", "b")])
    history.carry_out(place, [delete("a")])
    place.write("b", b"x" * 600_000)
    with pytest.raises(WorkspaceFull):
        history.undo_newest(place)
    place.delete("b")
    history.undo_newest(place)
    assert len(contents(place)["a"] or b"") == 600_000


def test_a_deleted_folder_comes_back_with_links_programs_and_empty_folders(
    history: EditHistory, place: Workspace
) -> None:
    place.write("d/run", b"#!/bin/sh\n")
    (place.path / "d/run").chmod(0o755)
    (place.path / "d/empty").mkdir()
    (place.path / "d/link").symlink_to("run")
    history.carry_out(place, [delete("d")])
    assert place.tree("") == []
    history.undo_newest(place)
    assert [(one.path, one.kind) for one in place.tree("d")] == [
        ("empty", "folder"),
        ("link", "link"),
        ("run", "file"),
    ]
    assert (place.path / "d/run").stat().st_mode & 0o777 == 0o755
    assert (place.path / "d/link").readlink() == Path("run")


def test_what_is_too_large_or_no_file_of_its_own_is_deleted_for_good_and_that_is_reported(
    history: EditHistory, place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_archive(monkeypatch, 100_000)
    place.write("kept", b"k")
    place.write("large", b"x" * 100_001)
    place.write("d/first", b"x")
    os.link(place.path / "d/first", place.path / "d/second")
    history.carry_out(place, [move("kept", "moved")])
    for name in ("large", "d"):
        assert name in history.carry_out(place, [delete(name)]).not_undoable
    for name in ("d", "large"):
        with pytest.raises(FileError, match=f"Deleted {name}"):
            history.undo_newest(place)
    history.undo_newest(place)
    assert contents(place) == {"kept": b"k"}


def test_an_undo_never_overwrites_what_was_made_since(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"a")
    history.carry_out(place, [move("a", "b")])
    place.write("a", b"another")
    with pytest.raises(FileError, match="overwrite"):
        history.undo_newest(place)
    place.delete("a")
    history.undo_newest(place)
    history.carry_out(place, [copy("a", "c")])
    (place.path / "c").write_bytes(b"worked on")
    with pytest.raises(FileError, match="changed since"):
        history.undo_newest(place)
    assert contents(place) == {"a": b"a", "c": b"worked on"}


@pytest.mark.parametrize(
    "operations",
    [
        [move("d/a", "e/a"), move("d/b/c", "f"), delete("d")],
        [move("d/b", "t"), delete("d"), move("t", "d")],
        [delete("d/a"), delete("d/b/c"), delete("d")],
    ],
)
def test_what_was_moved_out_of_a_deleted_folder_goes_back_into_it(
    history: EditHistory, place: Workspace, operations: list[FileOperation]
) -> None:
    place.write("d/a", b"a")
    place.write("d/b/c", b"c")
    before = contents(place)
    history.carry_out(place, operations)
    history.undo_newest(place)
    assert contents(place) == before


@pytest.mark.parametrize(
    ("operations", "changed"),
    [
        ([copy("d", "e"), move("e", "f")], "f/a"),
        ([copy("d", "e"), move("e/a", "f"), move("f", "g")], "g"),
        ([copy("d", "e/x"), move("e", "f")], "f/x/a"),
    ],
)
def test_an_undo_keeps_a_copy_that_was_moved_and_then_worked_on(
    history: EditHistory, place: Workspace, operations: list[FileOperation], changed: str
) -> None:
    place.write("d/a", b"a")
    before = contents(place)
    history.carry_out(place, operations)
    history.undo_newest(place)
    assert contents(place) == before
    history.carry_out(place, operations)
    (place.path / changed).write_bytes(b"worked on")
    with pytest.raises(FileError, match="changed since"):
        history.undo_newest(place)
    assert (place.path / changed).read_bytes() == b"worked on"


def test_what_was_deleted_from_a_full_workspace_fits_into_it_again(
    history: EditHistory, place: Workspace
) -> None:
    place.write("large", b"x" * 999_000)
    place.write("small", b"x" * 1_000)
    history.carry_out(place, [delete("small")])
    history.undo_newest(place)
    assert place.size("small") == 1_000


def test_an_archive_that_cannot_be_read_back_is_reported(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"a")
    history.carry_out(place, [delete("a")])
    [archive] = history.folder.glob("*/*.tar")
    archive.write_bytes(b"no archive")
    with pytest.raises(FileError, match="cannot be read back"):
        history.undo_newest(place)


def test_a_folder_is_not_moved_deeper_than_its_files_can_be_opened(
    history: EditHistory, place: Workspace
) -> None:
    for name in "ab":
        place.write("/".join(name * 20), b"x")
    with pytest.raises(FileError, match="levels"):
        history.carry_out(place, [move("a", "/".join("b" * 19) + "/c")])


def test_an_undo_goes_on_after_what_cannot_be_undone(history: EditHistory, place: Workspace) -> None:
    place.write("a", b"a")
    history.carry_out(place, [move("a", "b")])
    place.delete("b")
    history.carry_out(place, [make("d")])
    done = history.undo_newest(place, 2).done
    assert done[0] == "Undone: removed again: d/" and "'b'" in done[1]


def test_edits_of_a_file_are_undone_under_its_new_name(history: EditHistory, place: Workspace) -> None:
    history.write(place, "a", b"one")
    history.write(place, "a", b"two")
    history.carry_out(place, [move("a", "d/b")])
    assert history.undo(place, "d/b") == (b"two", b"one")
    history.write(place, "a", b"another file")
    assert history.undo(place, "a") == (b"another file", None)
    with pytest.raises(FileError, match="no edit"):
        history.undo(place, "a")


def test_only_so_many_bytes_of_deleted_files_are_stored(
    history: EditHistory, place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_archive(monkeypatch, 250_000)
    for number in range(5):
        place.write(f"{number}", b"x" * 100_000)
        history.carry_out(place, [delete(f"{number}")])
    stored = sum(file.stat().st_size for file in history.folder.rglob("*") if file.is_file())
    assert stored < 350_000
    history.undo_newest(place, 9)
    assert [one.path for one in place.tree("")] == ["3", "4"]


def test_an_operation_that_fails_in_its_midst_is_taken_back(
    history: EditHistory, place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        place.write(name, name.encode())
    before = contents(place)
    whole = Workspace.move

    def failing(self: Workspace, source: str, destination: str, *, make_parents: bool = False) -> None:
        if source == "c":
            raise FileError("The disk has gone.")
        whole(self, source, destination, make_parents=make_parents)

    monkeypatch.setattr(Workspace, "move", failing)
    wanted = [move("a", "d/"), delete("b"), copy("d/a", "e"), move("c", "d/")]
    with pytest.raises(FileError, match="disk has gone"):
        history.carry_out(place, wanted)
    assert contents(place) == before
    assert not [one for one in place.path.iterdir() if one.name.startswith(".")]


def test_the_records_of_uploads_follow_their_files(workspaces: Workspaces, place: Workspace) -> None:
    uploads = workspaces.uploads("t")
    uploads.add([("a.txt", io.BytesIO(b"a")), ("b.txt", io.BytesIO(b"b"))])
    report = EditHistory.of(workspaces, "t").carry_out(place, [make("d"), move("a.txt", "d"), move("d", "e")])
    uploads.follow(report.moves)
    assert [one.path for one in uploads.list_uploads()] == ["e/a.txt", "b.txt"]
    uploads.follow(EditHistory.of(workspaces, "t").undo_newest(place).moves)
    assert [one.path for one in uploads.list_uploads()] == ["a.txt", "b.txt"]


def test_records_of_uploads_that_exchange_or_take_names_stay_with_their_content(
    workspaces: Workspaces, place: Workspace
) -> None:
    uploads = workspaces.uploads("t")
    uploads.add([(name, io.BytesIO(name.encode() * size)) for size, name in enumerate("abc", start=1)])
    history = EditHistory.of(workspaces, "t")
    swap = [move("a", "t"), move("b", "a"), move("t", "b"), move("b", "c", overwrite=True)]
    uploads.follow(history.carry_out(place, swap).moves)
    assert [(one.path, one.size) for one in uploads.list_uploads()] == [("c", 1), ("a", 2)]


def test_records_of_many_uploads_are_read_once(
    workspaces: Workspaces, place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    uploads = workspaces.uploads("t")
    names = [f"{number}" for number in range(40)]
    uploads.add([(name, io.BytesIO(b"x")) for name in names])
    read, whole = list[Path](), Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read.append(path) or whole(path))
    uploads.follow([(name, f"d/{name}") for name in names])
    assert len(read) == len(names)


_OPERATIONS = [move("a", "x/y/"), copy("d", "e"), delete("d"), move("b", "c", overwrite=True), move("x", "z")]
_KILLED = """
import os, sys
from pathlib import Path
from maniple.workspace import EditHistory, FileOperation, Workspaces, files

left = [int(sys.argv[2])]
def count(module, name):
    whole = getattr(module, name)
    def counted(*args, **options):
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), 9)
        return whole(*args, **options)
    setattr(module, name, counted)
for name in ("rename", "mkdir", "rmdir", "unlink", "fsync", "symlink"):
    count(os, name)
count(files, "rename_to_free_name")
workspaces = Workspaces(Path(sys.argv[1]))
place, history = workspaces.open("t"), EditHistory.of(workspaces, "t")
if sys.argv[3] == "undo":
    history.undo_newest(place)
else:
    history.carry_out(place, OPERATIONS)
print("done")
""".replace("OPERATIONS", repr(_OPERATIONS))


def run_killed(root: Path, calls: int, what: str) -> bool:
    """Do `what` in a process that is killed at its system call number `calls`; return whether it ended."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED, str(root), str(calls), what], capture_output=True, text=True
    )
    assert done.returncode in (0, -9), done.stderr
    return done.returncode == 0


def kill_at(tmp_path: Path, points: Callable[[int], list[int]], what: str) -> None:
    def fill(root: Path) -> tuple[Workspaces, Workspace]:
        workspaces = Workspaces(root)
        place = workspaces.open("t")
        for name in ("a", "b", "c", "d/1", "d/2/3"):
            place.write(name, name.encode())
        return workspaces, place

    workspaces, place = fill(tmp_path / "whole")
    before = contents(place)
    EditHistory.of(workspaces, "t").carry_out(place, _OPERATIONS)
    after = contents(place)
    start, end = (before, after) if what == "do" else (after, before)
    seen: set[bool] = set()
    for at in points(60):
        workspaces, place = fill(tmp_path / f"{at}")
        if what == "undo":
            EditHistory.of(workspaces, "t").carry_out(place, _OPERATIONS)
        ended = run_killed(tmp_path / f"{at}", at, what)
        history = EditHistory.of(workspaces, "t")
        with pytest.raises(FileError):  # whatever is done next, what was begun is finished or taken back
            history.undo(place, "a")
        found = contents(place)
        assert found == end if ended else found in (start, end), at
        seen.add(found == end)
        if found == (after if what == "do" else start):
            history.undo_newest(place)
        assert contents(place) == before
    assert seen == {True, False}


@pytest.mark.parametrize("is_taken", [False, True])
def test_code_that_changes_folders_after_a_kill_loses_nothing_and_stops_nothing(
    tmp_path: Path, is_taken: bool
) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    place, history = workspaces.open("t"), EditHistory.of(workspaces, "t")
    place.write("d/a", b"a")
    place.write("d/b", b"b")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transactions.Transaction, "_record", _be_killed)
        with pytest.raises(KeyboardInterrupt):
            history.carry_out(place, [move("d/a", "e/a"), delete("d/b")])
    (place.path / "d").rmdir()
    if is_taken:
        place.write("d", b"another")
    history.write(place, "new", b"n")
    assert sorted(filter(None, contents(place).values())) == sorted(
        [b"a", b"b", b"n", *([b"another"] if is_taken else [])]
    )


def _be_killed(*_: object) -> str:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.parametrize("what", ["do", "undo"])
def test_a_kill_leaves_all_or_nothing_and_the_undo_works(tmp_path: Path, what: str) -> None:
    kill_at(tmp_path, lambda most: sorted({0, most, *random.Random(7).sample(range(most), 2)}), what)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["do", "undo"])
def test_a_kill_at_any_moment_leaves_all_or_nothing(tmp_path: Path, what: str) -> None:
    kill_at(tmp_path, lambda most: list(range(most + 1)), what)
