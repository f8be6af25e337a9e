"""What the user puts into a workspace, and what is known of it later."""

import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.errors import FileError, WorkspaceFull
from maniple.sandbox import Upload, UploadStore, Workspaces, clean_file_name, group_files
from maniple.sandbox.safe_open import split_path


@pytest.fixture
def uploads(tmp_path: Path) -> UploadStore:
    workspaces = Workspaces(tmp_path / "workspaces", max_bytes=1_000)
    workspaces.open("t")
    return workspaces.uploads("t")


def test_what_is_given_is_known_over_restarts_until_it_goes_or_changes(
    uploads: UploadStore, tmp_path: Path
) -> None:
    source = io.BytesIO(b"a,b\n")
    source.read()  # from its beginning, wherever it was read to
    [first] = uploads.add([("data.csv", source)])
    uploads.add([("b", io.BytesIO(b"b")), ("c", io.BytesIO(b"c"))])
    assert first.upload == Upload("data.csv", 4, hashlib.sha256(b"a,b\n").hexdigest())
    again = Workspaces(tmp_path / "workspaces").uploads("t")
    assert [one.path for one in again.list_uploads()] == ["data.csv", "b", "c"]
    uploads.workspace.delete("b")
    uploads.workspace.write("c", b"longer")
    uploads.forget("data.csv")
    assert again.list_uploads() == []
    assert uploads.workspace.files(10) == [("c", 6), ("data.csv", 4)]


def test_nothing_is_known_where_nothing_was_given(tmp_path: Path) -> None:
    assert Workspaces(tmp_path).uploads("t").list_uploads() == []
    assert list(tmp_path.iterdir()) == []


def test_a_record_that_cannot_be_read_is_passed_over(uploads: UploadStore) -> None:
    uploads.add([("a", io.BytesIO(b"a"))])
    (uploads.records / "broken").write_bytes(b'{"path": "x"')
    (uploads.records / "other").write_bytes(b'{"path": "x"}')
    assert [one.path for one in uploads.list_uploads()] == ["a"]


def test_what_has_no_room_is_refused_before_anything_is_copied(uploads: UploadStore) -> None:
    with pytest.raises(WorkspaceFull):
        uploads.add([("a", io.BytesIO(b"a" * 600)), ("b", io.BytesIO(b"b" * 600))])
    assert uploads.workspace.files(10) == []
    uploads.add([("a", io.BytesIO(b"a" * 900))])
    assert uploads.add([("a", io.BytesIO(b"b" * 1_000))])[0].replaced


def test_a_link_in_its_place_is_replaced_and_not_followed(uploads: UploadStore, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (uploads.workspace.path / "a").symlink_to(tmp_path / "secret")
    uploads.add([("a", io.BytesIO(b"new"))])
    assert (tmp_path / "secret").read_text() == "secret"
    assert uploads.workspace.read("a", 10).content == b"new"
    (uploads.workspace.path / "folder").mkdir()
    with pytest.raises(FileError, match="is a directory"):
        uploads.add([("folder", io.BytesIO(b"new"))])


@given(name=st.text(st.characters(), max_size=300))
def test_any_name_becomes_one_that_can_be_written_and_seen(name: str) -> None:
    made = clean_file_name(name)
    assert split_path(made) == (made,)
    assert 0 < len(made.encode()) <= 200
    assert not made.startswith(".") and made == made.strip()
    assert clean_file_name(made) == made


def test_a_name_from_a_mac_and_one_from_windows_are_the_same() -> None:
    assert clean_file_name("Gro\u0308ße.txt") == clean_file_name("C:\\Temp\\Größe.txt") == "Größe.txt"


@pytest.mark.parametrize(
    ("paths", "most", "groups"),
    [
        (["a/1", "a/2", "b"], 3, ["a/1", "a/2", "b"]),
        (["a/1", "a/2", "b"], 2, ["a/", "b"]),
        (["a/b/1", "a/b/2", "a/c/1", "a/c/2"], 2, ["a/b/", "a/c/"]),
        (["a/b/1", "a/b/2", "a/c/1", "a/c/2"], 1, ["a/"]),
        (["a/b/1", "a/b/2", "a/c/1", "a/c/2", "d/1", "d/2"], 2, ["d/", "a/"]),
        (["a/1", "b/1", "b/2", "c"], 3, ["a/1", "b/", "c"]),
        (["a/1", "b/1", "c/1"], 2, ["a/1", "b/1", "c/1"]),
    ],
)
def test_of_many_files_those_of_a_folder_are_counted_together(
    paths: list[str], most: int, groups: list[str]
) -> None:
    found = group_files([(path, 2) for path in paths], most)
    assert [one.path for one in found] == groups
    assert sum(one.files for one in found) == len(paths)
    assert sum(one.size for one in found) == 2 * len(paths)
