import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maniple.errors import FileError, Unavailable, WorkspaceFull
from maniple.workspace import FileHead, Workspace, WorkspaceListing, Workspaces
from maniple.workspace.safe_open import split_path


@contextmanager
def _files_limited_to(size_bytes: int) -> Iterator[None]:
    """A disk that is full after so many bytes, as far as this process can tell."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_workspace_is_made_with_the_first_use_and_closed_to_others(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path / "data" / "workspaces")
    assert list(tmp_path.iterdir()) == []
    workspace = workspaces.open("thread-1")
    assert workspace.path == tmp_path / "data" / "workspaces" / "thread-1"
    assert workspace.path.stat().st_mode & 0o777 == 0o700
    assert workspaces.open("thread-1") == workspace


@given(key=st.text(st.characters(), max_size=300))
def test_any_key_names_one_directory_beneath_the_root(
    key: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.getbasetemp() / "any"
    assert Workspaces(root).open(key).path.parent == root


def test_different_keys_get_different_directories(tmp_path: Path) -> None:
    keys = ["a", "A", "..", ".", "", "a/b", "a\0b", "/etc", "x" * 300, "x" * 301, "~a", "\ud800"]
    assert len({Workspaces(tmp_path).open(key).path for key in keys}) == len(keys)


def test_what_is_written_is_read_again(workspace: Workspace) -> None:
    workspace.write("deep/er/notes.txt", "ä\n".encode())
    assert workspace.read("deep/er/notes.txt", 100) == FileHead("ä\n".encode(), 3)
    assert workspace.read("/workspace/deep/./er//notes.txt", 2) == FileHead(b"\xc3\xa4", 3)


def test_replacing_a_file_leaves_no_draft(workspace: Workspace) -> None:
    workspace.write("a", b"old")
    workspace.write("a", b"new")
    assert workspace.files(10) == [("a", 3)]
    assert workspace.read("a", 10).content == b"new"


def test_a_full_disk_leaves_the_old_file_and_no_draft(workspace: Workspace) -> None:
    workspace.write("a", b"old")
    with _files_limited_to(1000), pytest.raises(FileError, match=r"'a' .*: File too large"):
        workspace.write("a", b"x" * 2000)
    assert workspace.read("a", 10).content == b"old"
    assert [path.name for path in workspace.path.iterdir()] == ["a"]


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path, max_file_bytes=10).open("a")
    with pytest.raises(FileError, match="11 bytes; the limit is 10"):
        workspace.write("a", b"x" * 11)


def test_all_files_together_stay_within_the_quota(tmp_path: Path) -> None:
    workspace = Workspaces(tmp_path, max_bytes=10).open("a")
    workspace.write("sub/a", b"x" * 8)
    with pytest.raises(WorkspaceFull, match=r"8 bytes .* 10: 3 more.*sandbox\.disk_mb"):
        workspace.write("b", b"x" * 3)
    workspace.write("sub/a", b"y" * 10)
    workspace.delete("sub/a")
    workspace.write("b", b"x" * 10)
    assert workspace.files(10) == [("b", 10)]


def test_a_program_that_is_replaced_stays_one_and_gains_nothing_else(workspace: Workspace) -> None:
    workspace.write("run.sh", b"old")
    (workspace.path / "run.sh").chmod(0o4775)
    workspace.write("run.sh", b"new")
    assert (workspace.path / "run.sh").stat().st_mode & 0o7777 == 0o755


def test_a_draft_that_a_crash_left_is_not_listed(workspace: Workspace) -> None:
    (workspace.path / ".maniple-0123456789abcdef").write_bytes(b"half")
    workspace.write(".hidden", b"x")
    assert workspace.files(10) == [(".hidden", 1)]


def test_only_a_file_or_a_link_itself_is_deleted(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (workspace.path / "link").symlink_to(tmp_path / "secret")
    workspace.write("directory/file", b"x")
    workspace.delete("link")
    workspace.delete("directory/file")
    for path, words in (("directory", "is a directory"), ("link", "There is no file"), ("../a", "without")):
        with pytest.raises(FileError, match=words):
            workspace.delete(path)
    assert (tmp_path / "secret").read_text() == "secret"


@pytest.mark.parametrize(
    "path",
    [
        "../a",
        "a/../../b",
        "/etc/passwd",
        "/workspace/../a",
        "/workspaces/a",
        "a\0b",
        "\ud800",
        "/".join("a" * 40),
    ],
)
def test_a_path_that_leaves_the_workspace_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(FileError):
        workspace.read(path, 10)
    with pytest.raises(FileError):
        workspace.write(path, b"")
    assert workspace.files(10) == []


@given(path=st.text(st.characters() | st.sampled_from("./"), max_size=40))
def test_no_path_has_a_part_that_climbs(path: str) -> None:
    try:
        parts = split_path(path)
    except FileError:
        return
    assert not {"", ".", ".."} & set(parts)
    assert not any("/" in part or "\0" in part for part in parts)


@pytest.mark.parametrize("path", ["", ".", "/workspace", "directory"])
def test_a_directory_is_not_a_file(workspace: Workspace, path: str) -> None:
    workspace.write("directory/file", b"")
    with pytest.raises(FileError, match="name a file"):
        workspace.read(path, 10)
    with pytest.raises(FileError, match="name a file"):
        workspace.write(path, b"")


def test_a_missing_file_is_named(workspace: Workspace) -> None:
    with pytest.raises(FileError, match=r"no file 'a/b\.txt'"):
        workspace.read("a/b.txt", 10)


def test_a_planted_link_is_followed_neither_for_reading_nor_for_writing(
    workspace: Workspace, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (workspace.path / "file").symlink_to(outside / "secret")
    (workspace.path / "directory").symlink_to(outside)
    for path in ("file", "directory/secret"):
        with pytest.raises(FileError, match="leads through a link"):
            workspace.read(path, 10)
    with pytest.raises(FileError, match="leads through a link"):
        workspace.write("directory/new", b"x")
    # The link itself may be replaced; what it pointed at is untouched.
    workspace.write("file", b"x")
    assert (outside / "secret").read_text() == "secret"
    assert [path.name for path in outside.iterdir()] == ["secret"]
    assert workspace.files(10) == [("file", 1)]


def test_a_planted_hard_link_pipe_or_socket_is_not_read(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (workspace.path / "hard").hardlink_to(tmp_path / "secret")
    os.mkfifo(workspace.path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(workspace.path / "socket"))
        for name in ("hard", "pipe", "socket"):
            with pytest.raises(FileError):
                workspace.read(name, 10)


def test_a_listing_is_bounded_and_survives_what_code_can_plant(workspace: Workspace) -> None:
    directory = workspace.path
    for _ in range(60):
        directory /= "d"
        directory.mkdir()
    (directory / "too-deep").touch()
    for number in range(30):
        workspace.write(f"{number:02}", b"x" * number)
    (workspace.path / "link").symlink_to("/etc")
    assert workspace.files(100) == [(f"{number:02}", number) for number in range(30)]
    assert len(workspace.files(7)) == 7
    assert {(path, size) for path, size, _ in workspace.stamps(100)} == set(workspace.files(100))
    assert len(workspace.stamps(7)) == 7


def test_a_file_of_the_same_size_that_was_written_again_has_another_stamp(workspace: Workspace) -> None:
    workspace.write("deep/a", b"old")
    os.utime(workspace.path / "deep" / "a", ns=(1, 1))
    assert workspace.stamps(10) == {("deep/a", 3, 1)}
    workspace.write("deep/a", b"new")
    assert workspace.stamps(10) != {("deep/a", 3, 1)}


def test_the_files_of_a_thread_are_listed_without_creating_its_workspace(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    assert workspaces.files("thread", 10) == WorkspaceListing(tmp_path / "workspaces" / "thread", ())
    assert list(tmp_path.iterdir()) == []
    workspaces.open("thread").write("deep/notes.txt", b"abc")
    (tmp_path / "workspaces" / "thread" / "link").symlink_to("/etc/passwd")
    assert workspaces.files("thread", 10).found == (("deep/notes.txt", 3),)
    assert workspaces.files("other", 10).found == ()


def test_only_an_empty_workspace_is_discarded(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    workspaces.open("empty")
    workspaces.open("used").write("a", b"x")
    for key in ("empty", "used", "never made"):
        workspaces.discard_if_empty(key)
    assert [path.name for path in tmp_path.iterdir()] == ["used"]


def test_a_link_in_the_place_of_a_workspace_is_neither_listed_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "thread").symlink_to(tmp_path / "outside")
    assert Workspaces(tmp_path).files("thread", 10).found == ()
    (tmp_path / "outside" / "secret").unlink()
    Workspaces(tmp_path).discard_if_empty("thread")
    assert (tmp_path / "thread").is_symlink()
    assert (tmp_path / "outside").is_dir()


def test_a_root_that_cannot_be_written_is_noticed_before_it_is_needed(tmp_path: Path) -> None:
    Workspaces(tmp_path / "not" / "yet" / "there").check_writable()
    assert list(tmp_path.iterdir()) == []
    file = tmp_path / "file"
    file.touch()
    for unwritable in (Path("/proc/1/workspaces"), file / "workspaces"):
        with pytest.raises(Unavailable) as refused:
            Workspaces(unwritable).check_writable()
        assert f"{unwritable.parent} cannot be written" in refused.value.reason
        assert "data_dir" in refused.value.remedy
