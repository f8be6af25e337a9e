"""What the user puts into a workspace, and what is known of it later."""

import errno
import hashlib
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.errors import FileError, WorkspaceFull
from maniple.workspace import Upload, UploadStore, Workspaces, clean_file_name, group_files
from maniple.workspace import files as files_module
from maniple.workspace.safe_open import split_path


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


def test_files_without_room_are_refused_with_their_names_sizes_and_the_setting(uploads: UploadStore) -> None:
    uploads.add([("before", io.BytesIO(b"a" * 300))])
    cases = {
        (("a", 100), ("big", 800), ("c", 100)): ("'big' (800 bytes) does not fit", "700 bytes"),
        (("a", 400), ("b", 500)): ("'b' (500 bytes), 'a' (400 bytes)", "900 bytes together", "700 bytes"),
        (("a", 800), ("b", 900), ("c", 800), ("d", 800), ("e", 1)): ("'b' (900 bytes)", "1 more file do not"),
        (("before", 1_200),): ("'before' (1.2 kB) does not fit", "room for 1.0 kB"),
        (("n" * 150 + "\x1b\n", 900),): ("nnn…' (900 bytes)",),
    }
    for files, words in cases.items():
        with pytest.raises(WorkspaceFull) as refused:
            uploads.add([(name, io.BytesIO(b"x" * size)) for name, size in files])
        for one in (*words, "sandbox.disk_mb", "Nothing was stored", "300 bytes"):
            assert one in str(refused.value)
        assert uploads.workspace.files(10) == [("before", 300)]


def test_an_error_in_the_middle_names_the_files_that_were_stored(uploads: UploadStore) -> None:
    (uploads.workspace.path / "folder").mkdir(parents=True)
    for names, words in (
        (("a", "b", "folder", "c"), "Of the 4 files, 2 are stored: 'a', 'b'."),
        (("folder", "d"), "None of the 2 files was stored."),
    ):
        with pytest.raises(FileError, match="is a directory") as refused:
            uploads.add([(name, io.BytesIO(b"x")) for name in names])
        assert words in str(refused.value)
    assert [one.path for one in uploads.list_uploads()] == ["a", "b"]


def test_a_full_disk_is_named_with_what_to_do(uploads: UploadStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files_module, "replace_file", fill)
    with pytest.raises(WorkspaceFull, match=r"disk.*full"):
        uploads.add([("a", io.BytesIO(b"x"))])
