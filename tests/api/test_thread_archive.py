"""All files of a conversation as one ZIP file over HTTP."""

import io
import zipfile

import pytest

from maniple.report_files import thread_archive
from maniple.store import RunRecord
from maniple.types import RunState
from tests.api.in_process import InProcessService
from tests.openai_server import SIMPLE

pytestmark = pytest.mark.anyio


async def add_run(
    it: InProcessService,
    thread: str,
    files: dict[str, bytes],
    *,
    at: float = 1.0,
    status: RunState = "completed",
) -> RunRecord:
    """Store a run that made these files; they are in the workspace, too."""
    ended_at = None if status == "running" else at + 1
    run = RunRecord(f"run-{at:.0f}", thread, "", "chat", "p", status, "{}", at, ended_at=ended_at)
    await it.service.store.runs.add(run)
    for path, content in files.items():
        await it.service.store.artifacts.add(run, path.rpartition("/")[2], "text/plain", content)
        if "\\" not in path:
            it.service.workspaces.open(thread).write(path, content)
    return run


async def unzip(it: InProcessService, thread: str) -> dict[str, bytes]:
    response = await it.client.get(f"/api/threads/{thread}/files.zip")
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "application/zip"
    assert response.headers["content-disposition"].startswith("attachment; filename*=utf-8''")
    assert response.headers["x-content-type-options"] == "nosniff"
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.testzip() is None
        assert len(set(archive.namelist())) == len(archive.namelist())
        return {one: archive.read(one) for one in archive.namelist()}


async def test_the_files_of_all_runs_are_in_it_in_their_newest_version(it: InProcessService):
    thread = await it.thread()
    await add_run(it, thread, {"out/a.csv": b"old", "b.txt": b"b"}, at=1.0)
    await add_run(it, thread, {"out/a.csv": b"new", "c.txt": b""}, at=10.0)
    assert await unzip(it, thread) == {"out/a.csv": b"new", "b.txt": b"b", "c.txt": b""}


async def test_of_the_users_files_only_those_that_a_run_changed_are_in_it(it: InProcessService):
    thread = await it.thread()
    parts = [("files", (name, b"given")) for name in ("same.csv", "changed.csv")]
    assert (await it.client.post(f"/api/threads/{thread}/files", files=parts)).status_code == 201
    await add_run(it, thread, {"changed.csv": b"changed"})
    assert await unzip(it, thread) == {"changed.csv": b"changed"}


async def test_hostile_names_lead_nowhere_and_no_two_differ_by_case_only(it: InProcessService):
    thread = await it.thread()
    names = {"../../etc/passwd": b"1", "a\\..\\b.txt": b"2", "CON.txt": b"3", "A.txt": b"4", "a.txt": b"5"}
    run = await add_run(it, thread, {})
    for name, content in names.items():
        await it.service.store.artifacts.add(run, name, "text/plain", content)
    found = await unzip(it, thread)
    assert sorted(found.values()) == sorted(names.values())
    assert len({one.casefold() for one in found}) == len(names)
    for one in found:
        assert "\\" not in one and ".." not in one.split("/") and not one.startswith("/"), one
        assert one.casefold() != "con.txt"


async def test_links_of_the_workspace_are_not_followed(it: InProcessService, tmp_path):
    thread = await it.thread()
    (tmp_path / "secret.txt").write_bytes(b"secret")
    await add_run(it, thread, {"a.txt": b"a"})
    (it.service.workspaces.locate(thread).path / "link.txt").symlink_to(tmp_path / "secret.txt")
    assert await unzip(it, thread) == {"a.txt": b"a"}


async def test_while_a_run_works_it_has_what_is_stored_and_names_the_rest(it: InProcessService):
    thread = await it.thread()
    await add_run(it, thread, {"a.txt": b"a"}, status="running")
    it.service.workspaces.open(thread).write("draft.txt", b"not stored yet")
    assert await unzip(it, thread) == {"a.txt": b"a", "not-included.txt": b"draft.txt\n"}


@pytest.mark.parametrize(("limit", "most"), [("files", 1), ("bytes", 4)])
async def test_what_is_over_the_limit_is_named_and_no_older_version_takes_its_place(
    it: InProcessService, monkeypatch, limit, most
):
    monkeypatch.setattr(thread_archive, f"MAX_{limit.upper()}", most)
    thread = await it.thread()
    await add_run(it, thread, {"b.txt": b""}, at=1.0)
    await add_run(it, thread, {"a.txt": b"aaa", "b.txt": b"bbb"}, at=10.0)
    assert await unzip(it, thread) == {"a.txt": b"aaa", "not-included.txt": b"b.txt\n"}


async def test_a_large_file_arrives_whole(it: InProcessService):
    thread = await it.thread()
    content = bytes(range(256)) * 12_345
    await add_run(it, thread, {"large.bin": content})
    assert await unzip(it, thread) == {"large.bin": content}


async def test_a_conversation_without_files_of_the_team_has_none(it: InProcessService, model):
    model.reset(SIMPLE)
    thread = await it.thread()
    parts = [("files", ("mine.csv", b"1"))]
    await it.client.post(f"/api/threads/{thread}/files", files=parts)
    run = await it.run(thread_id=thread)
    await it.events_of(run["run_id"])
    response = await it.client.get(f"/api/threads/{thread}/files.zip")
    assert (response.status_code, response.json()["code"]) == (404, "no_files")


async def test_another_keys_conversation_is_not_there(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    thread = await it.thread(mine)
    for headers, code in ((other, "not_found"), (mine, "no_files")):
        response = await it.client.get(f"/api/threads/{thread}/files.zip", headers=headers)
        assert (response.status_code, response.json()["code"]) == (404, code)
    response = await it.client.get("/api/threads/nobodys/files.zip", headers=mine)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")
