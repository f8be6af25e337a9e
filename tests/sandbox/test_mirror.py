"""The two copies of a workspace, where the one on the other machine lies."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from maniple.errors import FileError
from maniple.sandbox.backends.remote import MAX_FILES, FileStamp, WorkspaceMirror
from maniple.workspace.files import Workspace
from maniple.workspace.workspaces import Workspaces

pytestmark = pytest.mark.anyio


class Remote:
    """Files in memory; `told` are false values that the machine reports about them."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.changes: dict[str, int] = {}
        self.told: dict[str, FileStamp] = {}
        self.fetched: list[str] = []
        self.sent: list[str] = []

    def change(self, path: str, content: bytes) -> None:
        self.files[path] = content
        self.changes[path] = self.changes.get(path, 0) + 1

    async def stamps(self, limit: int) -> Mapping[str, FileStamp]:
        true = {path: FileStamp(len(self.files[path]), str(self.changes[path])) for path in self.files}
        return dict(list((true | self.told).items())[:limit])

    async def fetch(self, path: str, limit_bytes: int) -> bytes:
        self.fetched.append(path)
        content = self.files.get(path)
        if content is None or len(content) > limit_bytes:
            raise FileError(f"{path!r} could not be read.")
        return content

    async def put(self, files: Sequence[tuple[str, bytes]]) -> None:
        for path, content in files:
            self.sent.append(path)
            self.change(path, content)

    async def remove(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.files.pop(path, None)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspaces(tmp_path / "workspaces", max_file_bytes=100).open("thread")


@pytest.fixture
def remote() -> Remote:
    return Remote()


@pytest.fixture
def mirror(workspace: Workspace, remote: Remote) -> WorkspaceMirror:
    return WorkspaceMirror(workspace, remote, 250)


async def test_each_change_goes_over_once(mirror, workspace, remote):
    workspace.write("a", b"1")
    for _ in range(2):
        assert await mirror.up() == ""
        assert await mirror.down() == ""
    remote.change("b", b"2")
    for _ in range(2):
        assert await mirror.down() == ""
        assert await mirror.up() == ""
    assert (remote.sent, remote.fetched) == (["a"], ["b"])
    assert workspace.read("b", 9).content == b"2"


async def test_what_a_process_changes_between_two_calls_comes_with_the_next(mirror, workspace, remote):
    await mirror.up()
    await mirror.down()
    remote.change("log", b"later")
    workspace.write("a", b"1")
    await mirror.up()
    await mirror.down()
    assert workspace.read("log", 9).content == b"later"


async def test_what_is_removed_on_one_side_is_removed_on_the_other(mirror, workspace, remote):
    for path in ("a", "b"):
        workspace.write(path, b"1")
    await mirror.up()
    del remote.files["a"]
    await mirror.down()
    workspace.delete("b")
    await mirror.up()
    assert workspace.files(9) == []
    assert remote.files == {}


async def test_a_file_that_the_host_changed_during_the_call_is_not_removed_with_the_machines(
    mirror, workspace, remote
):
    workspace.write("a", b"1")
    await mirror.up()
    del remote.files["a"]
    workspace.write("a", b"uploaded")
    await mirror.down()
    assert workspace.read("a", 9).content == b"uploaded"
    await mirror.up()
    assert remote.files["a"] == b"uploaded"


@pytest.mark.parametrize("path", ["../out", "/etc/cron.d/x", "a/../../out", "x\0y", "/workspace/../out"])
async def test_a_path_that_leads_out_is_not_followed(mirror, workspace, remote, tmp_path, path):
    remote.change(path, b"evil")
    assert "not brought out" in await mirror.down()
    assert remote.fetched == []
    assert [one for one in tmp_path.rglob("*") if one.is_file()] == []


async def test_a_link_on_the_host_is_not_followed(mirror, workspace, remote, tmp_path):
    (workspace.path / "link").symlink_to(tmp_path)
    remote.change("link/x", b"evil")
    assert "neither is followed" in await mirror.down()
    assert not (tmp_path / "x").exists()


async def test_files_that_are_too_large_or_too_much_together_stay_and_are_named(mirror, workspace, remote):
    for path in ("a", "b", "c"):
        remote.change(path, b"x" * 90)
    remote.change("large", b"x" * 101)
    left = await mirror.down()
    assert "'c' has more than" in left
    assert "'large' has more than" in left
    assert [path for path, _ in workspace.files(9)] == ["a", "b"]


async def test_a_file_larger_than_its_announced_size_stays(mirror, workspace, remote):
    remote.change("liar", b"x" * 1000)
    remote.told["liar"] = FileStamp(1, "x")
    assert "'liar' could not" in await mirror.down()
    assert workspace.files(9) == []


async def test_more_files_than_the_limit_are_reported_and_nothing_is_removed_for_that(
    mirror, workspace, remote
):
    workspace.write("mine", b"1")
    await mirror.up()
    remote.files.clear()
    for number in range(MAX_FILES + 1):
        remote.change(f"{number:05}", b"")
    assert f"all but {MAX_FILES} files" in await mirror.down()
    assert workspace.size("mine") == 1


async def test_many_sentences_are_cut_to_a_few(mirror, remote):
    for number in range(20):
        remote.change(f"../{number}", b"x")
    assert (await mirror.down()).endswith("; and 15 more]")


async def test_an_empty_file_comes_over(mirror, workspace, remote):
    remote.change("empty", b"")
    assert await mirror.down() == ""
    assert workspace.files(9) == [("empty", 0)]
