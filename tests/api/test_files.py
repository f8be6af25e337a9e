"""Files of a conversation over HTTP: put there, listed, read and deleted, and nothing beyond them."""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from urllib.parse import quote

import httpx
import pytest

from maniple.browser import BrowserStorage
from maniple.capabilities.browsing import browser_folder_of
from maniple.workspace import EditHistory, Workspace
from tests.api.in_process import QUESTION, InProcessService, open_service
from tests.openai_server import SIMPLE, call, reply, serving
from tests.team import data, plan, step

pytestmark = pytest.mark.anyio
CSV = b"a,b\n1,2\n"


async def send(it: InProcessService, thread: str, *files: tuple[str, bytes], **options) -> httpx.Response:
    parts = [("files", (name, content)) for name, content in files]
    return await it.client.post(f"/api/threads/{thread}/files", files=parts, **options)


def workspace(it: InProcessService, thread: str) -> Workspace:
    return it.service.workspaces.locate(thread)


async def test_an_upload_is_stored_reported_listed_read_and_deleted(it: InProcessService):
    thread, before = await it.thread(), time.time() - 1
    response = await send(it, thread, ("data.csv", CSV), ("größe & more.txt", b""))
    assert response.status_code == 201, response.text
    first, second = response.json()["files"]
    url = f"/api/threads/{thread}/files/data.csv"
    told = {"path": "data.csv", "size": 8, "sha256": hashlib.sha256(CSV).hexdigest()}
    assert first == {**told, "replaced": False, "url": url}
    assert (second["path"], second["size"]) == ("größe & more.txt", 0)
    workspace(it, thread).write("made/by/team.txt", b"x")
    listed = await it.get(f"/api/threads/{thread}/files")
    assert [before <= (one["uploaded_at"] or 0) <= time.time() for one in listed["files"]] == [
        True,
        True,
        False,
    ]
    assert [(one["path"], one["size"], one["uploaded"]) for one in listed["files"]] == [
        ("data.csv", 8, True),
        ("größe & more.txt", 0, True),
        ("made/by/team.txt", 1, False),
    ]
    assert listed["has_more"] is False
    for one, content in zip(listed["files"], (CSV, b"", b"x"), strict=True):
        read = await it.client.get(one["url"])
        assert (read.status_code, read.content) == (200, content)
        name = quote(one["path"].rpartition("/")[2], safe="")
        assert read.headers["content-disposition"] == f"attachment; filename*=utf-8''{name}"
        assert read.headers["content-security-policy"] == "sandbox"
        assert read.headers["x-content-type-options"] == "nosniff"
        assert (await it.client.delete(one["url"])).status_code == 204
        assert (await it.client.get(one["url"])).status_code == 404
        assert (await it.client.delete(one["url"])).status_code == 404
    assert await it.get(f"/api/threads/{thread}/files") == {"files": [], "has_more": False}


async def test_a_file_of_the_same_name_is_replaced_and_reported_as_such(it: InProcessService):
    thread = await it.thread()
    await send(it, thread, ("a.txt", b"old"))
    again = (await send(it, thread, ("a.txt", b"new"), ("a.txt", b"newest"))).json()["files"]
    assert [one["replaced"] for one in again] == [True, True]
    assert workspace(it, thread).read("a.txt", 10).content == b"newest"


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("../../etc/passwd", "passwd"),
        ("/etc/passwd", "passwd"),
        ("C:\\Users\\me\\Übung 1.docx", "Übung 1.docx"),
        (".env", "env"),
        ("..", "upload"),
        ("a/b/", "b"),
        ("报告.pdf", "报告.pdf"),
        ("gpj.\u202eexe", "gpj.exe"),
        ("x" * 300 + ".csv", "x" * 196 + ".csv"),
    ],
)
async def test_a_name_leads_nowhere_and_is_shown_as_it_is(it: InProcessService, sent, stored):
    thread = await it.thread()
    [one] = (await send(it, thread, (sent, CSV))).json()["files"]
    assert one["path"] == stored
    assert workspace(it, thread).files(10) == [(stored, len(CSV))]


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"", {}, 422),
        (b"{}", {"content-type": "application/json"}, 422),
        (b"files=a", {"content-type": "application/x-www-form-urlencoded"}, 422),
        (b"x", {"content-type": "multipart/form-data"}, 400),
        (b"no part", {"content-type": "multipart/form-data; boundary=b"}, 400),
        (b"--b\r\n\xff\xfe: x\r\n\r\nx\r\n--b--", {"content-type": "multipart/form-data; boundary=b"}, 400),
        (
            b'--b\r\nContent-Disposition: form-data; name="files"\r\n\r\nwords\r\n--b--\r\n',
            {"content-type": "multipart/form-data; boundary=b"},
            422,
        ),
    ],
)
async def test_a_body_without_files_is_refused_with_words(it: InProcessService, content, headers, status):
    thread = await it.thread()
    response = await it.client.post(f"/api/threads/{thread}/files", content=content, headers=headers)
    assert (response.status_code, response.json().keys()) == (status, {"detail", "code"}), response.text
    assert (await it.get(f"/api/threads/{thread}/files"))["files"] == []


async def test_too_many_files_at_once_are_refused(it: InProcessService):
    thread = await it.thread()
    response = await send(it, thread, *((f"{number}", b"x") for number in range(101)))
    assert response.status_code == 400
    assert "100" in response.json()["detail"]


async def test_for_a_conversation_that_is_not_there_nothing_is_read_or_stored(it: InProcessService):
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1_000):
            read += 100_000
            yield b"x" * 100_000

    headers = {"content-type": "multipart/form-data; boundary=b"}
    response = await it.client.post("/api/threads/nobodys/files", content=endless(), headers=headers)
    assert (response.status_code, response.json()["detail"]) == (404, "There is no such thread.")
    assert read <= 200_000
    assert not workspace(it, "nobodys").path.exists()


async def test_an_upload_over_the_limit_is_refused_even_if_it_hides_its_size(model, tmp_path):
    head = b'--b\r\nContent-Disposition: form-data; name="f"; filename="big"\r\n\r\n'

    async def hidden() -> AsyncIterator[bytes]:
        yield head
        for _ in range(30):
            yield b"x" * 100_000

    async with open_service(model.base_url, tmp_path, server={"max_upload_bytes": 2_000_000}) as it:
        thread = await it.thread()
        small = await send(it, thread, ("fits", b"x" * 1_900_000))
        assert small.status_code == 201, "larger than max_body_bytes, which is for JSON"
        declared = await send(it, thread, ("big", b"x" * 2_500_000))
        assert "2.5 MB" in declared.json()["detail"]
        headers = {"content-type": "multipart/form-data; boundary=b"}
        streamed = await it.client.post(f"/api/threads/{thread}/files", content=hidden(), headers=headers)
        assert workspace(it, thread).files(10) == [("fits", 1_900_000)]
    for response in (declared, streamed):
        assert (response.status_code, response.json()["code"]) == (413, "too_large")
        assert "server.max_upload_bytes" in response.json()["detail"]
        assert "2.0 MB" in response.json()["detail"]


async def test_files_beyond_the_workspaces_quota_are_refused_all_together(model, tmp_path):
    async with open_service(model.base_url, tmp_path, sandbox={"backend": "off", "disk_mb": 1}) as it:
        thread = await it.thread()
        response = await send(it, thread, ("a", b"x" * 600_000), ("b", b"x" * 600_000))
        assert (response.status_code, response.json()["code"]) == (413, "workspace_full")
        for words in ("sandbox.disk_mb", "'a'", "'b'", "600.0 kB", "1.2 MB", "1.0 MB"):
            assert words in response.json()["detail"]
        assert workspace(it, thread).files(10) == []
        response = await send(it, thread, ("small", b"x"), ("huge.csv", b"x" * 3_000_000))
        assert "'huge.csv' (3.0 MB)" in response.json()["detail"]
        assert "'small'" not in response.json()["detail"]
        assert workspace(it, thread).files(10) == []
        for content in (b"x" * 1_000_000, b"y" * 1_000_000):
            assert (await send(it, thread, ("a", content))).status_code == 201, "replacing needs no more room"


async def test_a_directory_of_that_name_is_not_replaced(it: InProcessService):
    thread = await it.thread()
    it.service.workspaces.open(thread).write("data/kept.txt", b"x")
    response = await send(it, thread, ("data", b"y"))
    assert (response.status_code, response.json()["code"]) == (422, "file_refused")
    assert workspace(it, thread).files(10) == [("data/kept.txt", 1)]


async def test_a_link_out_of_the_workspace_is_neither_read_nor_listed_and_deleted_as_a_link(
    it: InProcessService, tmp_path
):
    (tmp_path / "secret").write_text("secret")
    thread = await it.thread()
    place = it.service.workspaces.open(thread).path
    (place / "link").symlink_to(tmp_path / "secret")
    (place / "bad\udcff").touch()
    assert (await it.get(f"/api/threads/{thread}/files"))["files"] == []
    for path in ("link", "../../maniple.db", "%2e%2e/%2e%2e/maniple.db", "a%00b", "", "/etc/passwd"):
        response = await it.client.get(f"/api/threads/{thread}/files/{path}")
        assert response.status_code in (404, 422), path
        assert "secret" not in response.text.replace("secret'", "")
    assert (await it.client.delete(f"/api/threads/{thread}/files/link")).status_code == 204
    assert (tmp_path / "secret").read_text() == "secret"


async def test_deleting_the_conversation_removes_its_files_and_what_is_known_of_them(it: InProcessService):
    thread = await it.thread()
    await send(it, thread, ("a.txt", b"x"))
    EditHistory.of(it.service.workspaces, thread).write(workspace(it, thread), "b.txt", b"y")
    assert (await it.client.delete(f"/api/threads/{thread}")).status_code == 200
    root = workspace(it, thread).path.parent
    assert [path for path in root.rglob("*") if path.is_file()] == []


async def test_deleting_the_conversation_removes_its_browser_state(it: InProcessService):
    thread = await it.thread()
    storage = BrowserStorage(browser_folder_of(it.service.settings))
    storage.save(thread, {"cookies": [], "origins": []})
    storage.save("another", {"cookies": [], "origins": []})
    assert (await it.client.delete(f"/api/threads/{thread}")).status_code == 200
    assert storage.load(thread) is None
    assert storage.load("another") is not None


async def test_prompts_of_the_next_run_list_the_files_if_there_are_any(tmp_path):
    steps = plan(step("coder"), step("file_manager"), step("researcher"), step("reporter"))
    answers = {role: [reply("done")] for role in ("coder", "file_manager", "researcher")}
    script = {**SIMPLE, **answers, "planner": [reply(json.dumps(steps))]}
    with serving(script) as model:
        async with open_service(model.base_url, tmp_path) as it:
            thread = await it.thread()
            without = await it.run(thread_id=thread)
            await it.events_of(without["run_id"])
            plain = [json.dumps(one["messages"]) for one in model.requests]
            model.reset(script)
            await send(it, thread, ("data.csv", CSV))
            await it.events_of((await it.run(thread_id=thread))["run_id"])
            told = {
                role: [
                    json.dumps(one["messages"]) for one in model.requests if f"You are the {role}" in str(one)
                ]
                for role in ("coordinator", "planner", "coder", "file manager", "researcher", "reporter")
            }
    assert not any("data.csv" in one for one in plain)
    knowing = {role for role, prompts in told.items() if any("data.csv (8 bytes)" in one for one in prompts)}
    assert knowing == {"coordinator", "planner", "coder", "file manager"}


async def test_an_unchanged_upload_is_no_artifact_and_an_overwritten_one_is(tmp_path):
    edit = call("str_replace_editor", command="str_replace", path="b.txt", old_str="old", new_str="new")
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(plan(step("file_manager"), step("reporter"))))],
        "file_manager": [edit, call("write_file", path="c.txt", content="made"), reply("done")],
    }
    with serving(script) as model:
        async with open_service(model.base_url, tmp_path) as it:
            thread = await it.thread()
            await send(it, thread, ("a.txt", b"kept"), ("b.txt", b"old"))
            frames = await it.events_of((await it.run(thread_id=thread))["run_id"])
    assert [one["name"] for one in data(frames, "artifact")] == ["b.txt", "c.txt"]


async def test_many_uploads_at_once_are_each_whole(it: InProcessService):
    thread = await it.thread()
    contents = {f"{number}.bin": bytes([number]) * 200_000 for number in range(12)}
    responses = await asyncio.gather(*(send(it, thread, one) for one in contents.items()))
    assert {response.status_code for response in responses} == {201}
    place = workspace(it, thread)
    assert {name: place.read(name, 10**6).content for name in contents} == contents


async def test_the_body_of_a_run_keeps_its_own_limit(it: InProcessService):
    thread = await it.thread()
    body = {**QUESTION, "input": "x" * 1_000_001}
    response = await it.client.post(f"/api/threads/{thread}/runs", json=body)
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


@pytest.mark.slow
async def test_a_large_file_is_never_whole_in_the_servers_memory(server, client):
    thread = (await client.post("/api/threads")).json()["thread_id"]
    path = f"/api/threads/{thread}/files"
    await client.post(path, files={"files": ("warm", b"x" * 2_000_000)})
    before = server.memory_mb()
    sent = await client.post(path, files={"files": ("large.bin", b"x" * 20_000_000)})
    assert sent.status_code == 201, sent.text
    read = await client.get(f"{path}/large.bin")
    assert len(read.content) == 20_000_000
    assert server.memory_mb() - before < 10


async def test_an_upload_that_breaks_off_leaves_nothing(server, client):
    thread = (await client.post("/api/threads")).json()["thread_id"]
    path, address = f"/api/threads/{thread}/files", httpx.URL(server.url)
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000000\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="f"; filename="cut"\r\n\r\nxxxx'
    )
    _, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(head.encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    await client.post(path, files={"files": ("whole", b"x")})
    listed = (await client.get(path)).json()["files"]
    assert [one["path"] for one in listed] == ["whole"]


async def test_a_message_over_the_limit_is_refused_with_its_size_and_the_way_for_files(model, tmp_path):
    picture = {"type": "image", "image_url": "data:image/png;base64," + "A" * 1_500_000}
    async with open_service(model.base_url, tmp_path) as it:
        thread = await it.thread()
        for path, body in (
            (f"/api/threads/{thread}/runs", {"messages": [{"role": "user", "content": [picture]}]}),
            ("/api/chat/stream", {"messages": [{"role": "user", "content": [picture]}]}),
        ):
            response = await it.client.post(path, json=body)
            assert (response.status_code, response.json()["code"]) == (413, "too_large")
            for words in ("1.5 MB", "1.0 MB", "server.max_body_bytes", "/files", "25.0 MB"):
                assert words in response.json()["detail"]


async def test_clients_with_access_read_the_limits_for_files(model, tmp_path):
    limits = {"server": {"max_upload_bytes": 7_000_000}, "sandbox": {"backend": "off", "disk_mb": 3}}
    async with open_service(model.base_url, tmp_path, **limits) as it:
        found = (await it.get("/healthz"))["limits"]
        assert found == {"files": 100, "upload_bytes": 7_000_000, "workspace_bytes": 3 * 1024 * 1024}
