"""Disks without space and files that cannot be written: words, nothing lost, and work again afterwards.

Root may write what its permission bits forbid, so the file systems are real ones, mounted in the child's own
mount namespace: they go away with it.
"""

import json
import os
import shutil
import subprocess

import pytest

from maniple.errors import StoreReadOnly
from maniple.store import open_store
from tests.store.samples import a_thread, command, stored_run

pytestmark = pytest.mark.anyio

NAMESPACE = ("unshare", "--mount") if os.geteuid() == 0 else ("unshare", "--map-root-user", "--mount")


def in_namespace(mounting: str, *words: object) -> list[dict]:
    """Run a scene of `child.py` after the shell has mounted something; returns its output."""
    shell = (*NAMESPACE, "sh", "-ec", f'{mounting}; exec "$0" "$@"')
    done = subprocess.run(
        command(*words, before=shell), capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


async def test_a_full_disk_is_reported_and_writing_continues_when_there_is_room(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = (
        f"mount -t tmpfs -o size=3m tmpfs {disk}; dd if=/dev/zero of={disk}/ballast bs=1M count=1 status=none"
    )
    told = in_namespace(mounting, "fill", disk / "maniple.db")
    full, checkpoint, artifact, kept, tried, after = told
    assert full["code"] == checkpoint["checkpoint"] == artifact["artifact"] == "store_full"
    assert "Free some space" in full["message"]
    assert artifact["drafts"] == 0
    assert kept == {"kept": True}
    assert tried == {"tried": "store_full"}
    assert after == {"after": 3, "problems": []}


async def made(path):
    async with open_store(path, path.parent / "artifacts", server=True) as store:
        await stored_run(store)


async def test_a_read_only_file_is_refused_with_words(tmp_path):
    path = tmp_path / "maniple.db"
    await made(path)
    told = in_namespace(f"mount --bind {path} {path}; mount -o remount,ro,bind {path}", "attempt", path)
    assert told[0]["code"] == "store_read_only"
    assert str(path) in told[0]["message"]


@pytest.mark.parametrize("there", [True, False])
async def test_a_read_only_directory_is_refused_with_words(tmp_path, there):
    path = tmp_path / "data" / "maniple.db"
    path.parent.mkdir()
    if there:
        await made(path)
    folder = path.parent
    told = in_namespace(f"mount --bind {folder} {folder}; mount -o remount,ro,bind {folder}", "attempt", path)
    assert told[0]["code"] == "store_read_only"
    assert "store.path" in told[0]["message"]


async def test_what_became_read_only_works_again_when_it_can_be_written(tmp_path):
    path = tmp_path / "maniple.db"
    await made(path)
    in_namespace(f"mount --bind {path} {path}; mount -o remount,ro,bind {path}", "attempt", path)
    async with open_store(path, tmp_path / "artifacts", server=True) as store:
        assert len(await store.runs.list("")) == 1
        await stored_run(store)


def test_the_namespaces_of_these_tests_can_be_made():
    assert shutil.which("unshare")


async def test_a_write_that_failed_is_tried_again_before_the_store_counts_as_usable(sqlite_store):
    store = sqlite_store
    await store.probe()
    writes = store._database
    await writes.execute("PRAGMA query_only = ON")
    await store.probe()  # nothing has failed yet
    with pytest.raises(StoreReadOnly):
        await store.threads.create(a_thread())
    for _ in range(2):
        with pytest.raises(StoreReadOnly, match="cannot be opened"):
            await store.probe()
    await writes.execute("PRAGMA query_only = OFF")
    await store.probe()
