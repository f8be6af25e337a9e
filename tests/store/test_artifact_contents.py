"""One contract for what holds the contents of artifacts: a folder, and a bucket."""

import hashlib
import io
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from maniple.errors import FileError, StoreError, StoreUnreachable
from maniple.store import artifact_files, artifact_objects
from maniple.store.artifact_contents import ArtifactContents, open_content
from maniple.store.artifact_files import OWNERSHIP_MARK, ArtifactFiles
from maniple.store.artifact_objects import WHOLE_BYTES, ArtifactObjects
from maniple.store.sqlite.store import open_sqlite
from tests.bucket import Bucket
from tests.store.samples import stored_run

pytestmark = pytest.mark.anyio

List = Callable[[], list[str]]


@pytest.fixture(params=["folder", "bucket"])
def held(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[ArtifactContents, List]:
    """Each kind, and what lists the names that it holds."""
    if request.param == "folder":
        folder = tmp_path / "artifacts"
        return ArtifactFiles(folder), lambda: sorted(
            {one.name for one in folder.iterdir()} - {OWNERSHIP_MARK}
        )
    bucket: Bucket = request.getfixturevalue("bucket")
    contents = ArtifactObjects(bucket.settings("a/b"), patience_seconds=1)
    return contents, lambda: sorted(key.removeprefix("a/b/") for key in bucket.list_keys())


@pytest.mark.parametrize("size", [0, 1, WHOLE_BYTES - 1, WHOLE_BYTES, WHOLE_BYTES + 6_000_001])
async def test_a_content_comes_back_as_a_whole_and_in_parts(held, tmp_path, size):
    contents, _ = held
    data = os.urandom(size)
    (tmp_path / "file").write_bytes(data)
    for name, given in {"a": data, "b": tmp_path / "file", "c": io.BytesIO(data)}.items():
        written = await contents.write(name, given)
        assert (written.size, written.sha256) == (size, hashlib.sha256(data).hexdigest())
        content = await open_content(contents, name, size)
        assert await content.read() == data
    for start, stop in [(0, size), (size // 3, size // 2), (max(size - 1, 0), size), (size, size)]:
        pieces = [piece async for piece in content.stream(start, stop)]
        assert b"".join(pieces) == data[start:stop]


async def test_what_is_gone_or_of_another_size_is_no_content(held):
    contents, _ = held
    await contents.write("a", b"content")
    content = await open_content(contents, "a", 7)
    for name, size in [("a", 6), ("missing", 7)]:
        with pytest.raises(FileError):
            await open_content(contents, name, size)
    assert await contents.missing([("a", 7), ("a", 8), ("missing", 7)]) == ["a", "missing"]
    await contents.remove(["a", "missing"])
    with pytest.raises(FileError):
        await content.read()


async def test_no_file_outside_is_stored_by_a_link(held, tmp_path):
    contents, _ = held
    (tmp_path / "key").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "key")
    with pytest.raises(FileError):
        await contents.write("a", tmp_path / "link")
    assert await contents.missing([("a", 6)]) == ["a"]


async def test_only_old_contents_without_an_artifact_are_swept(held, monkeypatch):
    contents, list_names = held
    for name in ("known", "stray"):
        await contents.write(name, b"content")
    await contents.sweep({"known"})
    assert list_names() == ["known", "stray"]
    for module in (artifact_files, artifact_objects):
        monkeypatch.setattr(module, "ORPHAN_SECONDS", -3600)
    await contents.sweep({"known"})
    assert list_names() == ["known"]


async def test_a_sweep_leaves_what_is_outside_of_the_prefix(bucket, monkeypatch):
    contents = ArtifactObjects(bucket.settings("a"))
    for key in ("other", "ab/other", "a/deeper/other", "a/stray"):
        bucket.put(key, b"x")
    monkeypatch.setattr(artifact_objects, "ORPHAN_SECONDS", -3600)
    await contents.sweep(set())
    assert sorted(bucket.list_keys()) == ["a/deeper/other", "ab/other", "other"]


async def test_a_bucket_that_is_away_or_missing_is_named(bucket):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    away = ArtifactObjects(bucket.settings(endpoint=address), patience_seconds=0.2)
    for call in (away.write("a", b"x"), away.require("a", 1), away.missing([("a", 1)]), away.sweep(set())):
        with pytest.raises(StoreUnreachable, match=address):
            await call
    await away.remove(["a"])
    missing = ArtifactObjects(bucket.settings(url="s3://no-such-bucket"))
    with pytest.raises(StoreError, match="no-such-bucket"):
        await missing.write("a", b"x")


async def test_a_store_keeps_its_contents_in_a_bucket(bucket, tmp_path):
    contents = ArtifactObjects(bucket.settings("kept"))
    async with open_sqlite(tmp_path / "maniple.db", contents, server=True) as store:
        run, other = await stored_run(store), await stored_run(store)
        artifact = await store.artifacts.add(run, "a.txt", "text/plain", b"content")
        kept = await store.artifacts.add(other, "b.txt", "text/plain", b"other")
        assert sorted(bucket.list_keys()) == sorted(f"kept/{one.artifact_id}" for one in (artifact, kept))
        assert await (await store.artifacts.open(artifact)).read() == b"content"
        assert await store.check() == []
        await store.threads.delete(run.thread_id)
        assert bucket.list_keys() == [f"kept/{kept.artifact_id}"]
        # Without its run the row is refused, and the object goes with it.
        with pytest.raises(StoreError):
            await store.artifacts.add(run, "a", "text/plain", b"content")
        assert bucket.list_keys() == [f"kept/{kept.artifact_id}"]
        await contents.remove([kept.artifact_id])
        assert any(kept.artifact_id in problem for problem in await store.check())
