"""Files that runs made, from places where untrusted code may have written."""

import hashlib
import io
import os
import time

import pytest

from maniple.errors import FileError, StoreError
from maniple.store.artifact_files import OWNERSHIP_MARK
from tests.store.samples import a_run, a_thread, content_path, stored_run

pytestmark = pytest.mark.anyio


async def test_content_comes_back_with_its_size_and_digest(store, tmp_path):
    run = await stored_run(store)
    content = os.urandom(3_000_000)
    file = tmp_path / "plot.png"
    file.write_bytes(content)
    for data in (content, file, io.BytesIO(content)):
        artifact = await store.artifacts.add(run, "plot.png", "image/png", data)
        assert (artifact.size, artifact.sha256) == (3_000_000, hashlib.sha256(content).hexdigest())
        assert await (await store.artifacts.open(artifact)).read() == content
        path = content_path(store, artifact)
        assert path.name == artifact.artifact_id
        assert path.stat().st_mode & 0o077 == 0
    assert len(await store.artifacts.list_by_run(run.run_id)) == 3


async def test_an_artifact_is_found_by_its_owner_only(store):
    thread = await store.threads.create(a_thread("ann"))
    run = await store.runs.add(a_run(thread, store.process))
    artifact = await store.artifacts.add(run, "a.txt", "text/plain", b"")
    assert await store.artifacts.get(artifact.artifact_id, "ann") == artifact
    assert await store.artifacts.get(artifact.artifact_id, "bob") is None


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("/etc/shadow", "shadow"),
        ("..\\..\\windows\\system.ini", "system.ini"),
        ("..", "artifact"),
        (".", "artifact"),
        ("", "artifact"),
        ("a/..", "artifact"),
        (".bashrc", "bashrc"),
        ("a\0b\r\nSet-Cookie: x.txt", "abSet-Cookie: x.txt"),
        ("cod\u202egpj.exe", "codgpj.exe"),
        ("\ud800.txt", "?.txt"),
        ("Bericht über Füße.md", "Bericht über Füße.md"),
        ("é" * 300, "é" * 100),
    ],
)
async def test_a_name_never_leads_anywhere(store, tmp_path, name, kept):
    run = await stored_run(store)
    artifact = await store.artifacts.add(run, name, "text/plain", b"content")
    assert artifact.name == kept
    assert content_path(store, artifact).parent == tmp_path / "artifacts"


def files_in(folder):
    return sorted(file.name for file in folder.iterdir() if file.name != OWNERSHIP_MARK)


@pytest.fixture
def planted(tmp_path):
    """What sandboxed code may plant in its workspace to get a file of the host stored."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("canary")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "link").symlink_to(secret / "key")
    (workspace / "folder").symlink_to(secret)
    (secret / "other").write_text("canary")
    os.link(secret / "other", workspace / "second name")
    os.mkfifo(workspace / "pipe")
    return workspace


@pytest.mark.parametrize(
    "name", ["link", "folder/key", "second name", "pipe", "folder", ".", "../secret/key", "missing"]
)
async def test_nothing_but_an_ordinary_file_is_retained(store, tmp_path, planted, name):
    run = await stored_run(store)
    with pytest.raises(FileError):
        await store.artifacts.add(run, "a", "text/plain", planted / name)
    assert await store.artifacts.list_by_run(run.run_id) == []
    assert files_in(tmp_path / "artifacts") == []


async def test_content_that_was_swapped_on_disk_is_not_opened(store, tmp_path):
    run = await stored_run(store)
    artifact = await store.artifacts.add(run, "a", "text/plain", b"content")
    path = content_path(store, artifact)
    (tmp_path / "other").write_bytes(b"another")
    for swap in (lambda: path.symlink_to(tmp_path / "other"), lambda: path.write_bytes(b"longer content")):
        path.unlink()
        swap()
        with pytest.raises(FileError):
            await store.artifacts.open(artifact)
        assert any(artifact.artifact_id in problem for problem in await store.check())


async def test_an_artifact_of_a_deleted_run_leaves_nothing(store, tmp_path):
    run = await stored_run(store)
    await store.threads.delete(run.thread_id)
    with pytest.raises(StoreError):
        await store.artifacts.add(run, "a", "text/plain", b"content")
    assert files_in(tmp_path / "artifacts") == []


async def test_vacuum_leaves_what_was_there_before_the_folder_was_one_databases(store, tmp_path):
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (folder / "anothers").write_bytes(b"precious")
    os.utime(folder / "anothers", (1, 1))
    await store.vacuum()
    assert files_in(folder) == ["anothers"]
    # What came since is this database's alone.
    long_ago = time.time() - 2 * 24 * 3600
    os.utime(folder / OWNERSHIP_MARK, (long_ago - 3600, long_ago - 3600))
    (folder / "stray").write_bytes(b"of a deleted run")
    os.utime(folder / "stray", (long_ago, long_ago))
    await store.vacuum()
    assert files_in(folder) == ["anothers"]


async def test_vacuum_deletes_what_a_crash_left_a_day_ago_and_nothing_else(store, tmp_path):
    run = await stored_run(store)
    kept = await store.artifacts.add(run, "a", "text/plain", b"content")
    folder = tmp_path / "artifacts"
    for name in ("old.part", "new.part"):
        (folder / name).write_bytes(b"draft")
    long_ago = time.time() - 2 * 24 * 3600
    for name in ("old.part", kept.artifact_id):
        os.utime(folder / name, (long_ago, long_ago))
    await store.vacuum()
    assert files_in(folder) == sorted(["new.part", kept.artifact_id])
