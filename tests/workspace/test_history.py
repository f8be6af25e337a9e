"""What the editor changed can be taken back, also by another process and after a crash."""

import multiprocessing
from pathlib import Path

import pytest

from maniple.errors import FileError
from maniple.workspace import EditHistory, Workspace, Workspaces
from maniple.workspace.edit_history import EDITED_BYTES, STEPS_OF_A_FILE, STORED_BYTES
from maniple.workspace.files import NameTaken


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path / "workspaces")


@pytest.fixture
def place(workspaces: Workspaces) -> Workspace:
    return workspaces.open("t")


@pytest.fixture
def history(workspaces: Workspaces) -> EditHistory:
    return EditHistory.of(workspaces, "t")


def held(place: Workspace, path: str = "a") -> bytes:
    return place.read(path, 10**8).content


def test_it_is_stored_beside_the_workspace_and_closed_to_others(
    workspaces: Workspaces, history: EditHistory, place: Workspace
) -> None:
    history.write(place, "a", b"one")
    assert place.files(10) == [("a", 3)]
    assert not history.folder.is_relative_to(place.path)
    assert history.folder.stat().st_mode & 0o777 == 0o700
    workspaces.remove("t")
    assert not history.folder.exists() and not place.path.exists()


def test_a_step_that_never_reached_the_file_is_passed_over(history: EditHistory, place: Workspace) -> None:
    history.write(place, "a", b"one")
    history.write(place, "a", b"two")
    # As after a crash between the two: the step is kept, the file is as it was.
    place.write("a", b"one")
    assert history.undo(place, "a") == (b"one", None)
    assert place.is_missing("a")


def test_a_file_that_cannot_be_written_leaves_no_step(history: EditHistory, place: Workspace) -> None:
    history.write(place, "a", b"one")
    with pytest.raises(FileError, match="the limit is"):
        history.write(place, "a", b"x" * (place.max_file_bytes + 1))
    assert history.undo(place, "a") == (b"one", None)


@pytest.fixture
def is_overtaken(monkeypatch: pytest.MonkeyPatch, place: Workspace) -> None:
    """Let the thread's code write `a` just after the host has found no such file."""
    is_missing = Workspace.is_missing

    def find(workspace: Workspace, path: str) -> bool:
        was_missing = is_missing(workspace, path)
        if was_missing:
            place.write(path, b"by code")
        return was_missing

    monkeypatch.setattr(Workspace, "is_missing", find)


@pytest.mark.usefixtures("is_overtaken")
def test_a_file_that_code_writes_in_the_same_moment_can_be_had_back(
    history: EditHistory, place: Workspace
) -> None:
    history.write(place, "a", b"by the host")
    assert held(place) == b"by the host"
    assert history.undo(place, "a") == (b"by the host", b"by code")
    assert held(place) == b"by code"


@pytest.mark.usefixtures("is_overtaken")
def test_a_new_file_never_replaces_one_that_code_writes_in_the_same_moment(
    history: EditHistory, place: Workspace
) -> None:
    with pytest.raises(NameTaken):
        history.change(place, "a", lambda before: b"new" if before is None else before)
    assert held(place) == b"by code"
    with pytest.raises(FileError):
        history.undo(place, "a")


def test_only_so_many_steps_and_bytes_are_retained(history: EditHistory, place: Workspace) -> None:
    for number in range(STEPS_OF_A_FILE + 5):
        history.write(place, "a", str(number).encode())
    for _ in range(STEPS_OF_A_FILE):
        history.undo(place, "a")
    assert held(place) == b"4"
    with pytest.raises(FileError, match="no edit"):
        history.undo(place, "a")
    for number in range(STORED_BYTES // EDITED_BYTES + 5):
        history.write(place, f"{number}", b"x" * EDITED_BYTES)
        history.write(place, f"{number}", b"y")
    assert sum(file.stat().st_size for file in history.folder.iterdir()) <= STORED_BYTES


def test_a_file_too_large_for_the_history_is_written_and_not_edited(
    history: EditHistory, place: Workspace
) -> None:
    history.write(place, "a", b"one")
    place.write("a", b"x" * (EDITED_BYTES + 1))
    with pytest.raises(FileError, match="too many"):
        history.change(place, "a", lambda before: before or b"")
    history.write(place, "a", b"small again")
    assert held(place) == b"small again"
    with pytest.raises(FileError, match="no edit"):
        history.undo(place, "a")


def test_names_that_mean_the_same_file_have_one_history(history: EditHistory, place: Workspace) -> None:
    history.write(place, "b/a", b"one")
    history.write(place, "/workspace/b/./a", b"two")
    history.undo(place, "b//a")
    assert held(place, "b/a") == b"one"


def _append(root: Path, letter: str) -> None:
    workspaces = Workspaces(root)
    place, history = workspaces.open("t"), EditHistory.of(workspaces, "t")
    for _ in range(20):
        history.change(place, "a", lambda before: (before or b"") + letter.encode())


def test_two_processes_that_edit_one_file_lose_nothing(workspaces: Workspaces, place: Workspace) -> None:
    context = multiprocessing.get_context("spawn")
    root = place.path.parent
    workers = [context.Process(target=_append, args=(root, letter)) for letter in "xy"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    assert sorted(held(place)) == sorted(b"x" * 20 + b"y" * 20)
