"""Conversations that clients name themselves: each key has names of its own."""

import pytest

from maniple.store import Thread
from tests.api.in_process import QUESTION, InProcessService, numbered
from tests.serving import Frame
from tests.team import data

pytestmark = pytest.mark.anyio


async def ask(it: InProcessService, headers: dict[str, str] | None, text: str, name: str) -> list[Frame]:
    body = {"messages": [{"role": "user", "content": text}], "thread_id": name}
    response = await it.client.post("/api/chat/stream", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return [frame for _, frame in numbered(response.text)]


async def questions(it: InProcessService, headers: dict[str, str] | None, name: str) -> list[str]:
    read = await it.get(f"/api/threads/{name}", headers)
    assert read["thread_id"] == name
    return [one["content"] for one in read["messages"] if one["role"] == "user"]


async def test_two_keys_may_choose_one_name_and_their_conversations_do_not_meet(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    asked = {"mine": (mine, ["My 1+3=?", "My 2+3=?"]), "other": (other, ["Their 1+3=?", "Their 2+3=?"])}
    for headers, texts in asked.values():
        for text in texts:
            frames = await ask(it, headers, text, "default")
            assert data(frames, "run")[0]["thread_id"] == "default"
    for headers, texts in asked.values():
        assert [one["thread_id"] for one in (await it.get("/api/threads", headers))["threads"]] == ["default"]
        assert await questions(it, headers, "default") == texts
    assert (await it.client.delete("/api/threads/default", headers=other)).status_code == 200
    assert (await it.client.get("/api/threads/default", headers=other)).status_code == 404
    assert await questions(it, mine, "default") == asked["mine"][1]


async def test_a_named_conversation_has_its_name_wherever_it_is_listed(it: InProcessService):
    mine = await it.key("mine")
    await ask(it, mine, "1+3=?", "sums")
    run = await it.run(mine, thread_id="sums")
    assert run["thread_id"] == "sums"
    frames = await it.events_of(run["run_id"], headers=mine)
    assert data(frames, "run")[0]["thread_id"] == "sums"
    assert (await it.get(f"/api/runs/{run['run_id']}", mine))["thread_id"] == "sums"
    report = {**mine, "accept": "application/json"}
    assert (await it.get(f"/api/runs/{run['run_id']}/report", report))["thread_id"] == "sums"


async def test_anothers_name_or_id_is_one_that_is_free(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    made = await it.thread(mine)
    await ask(it, mine, "1+3=?", "sums")
    for name in (made, "sums", "nobody's"):
        assert (await it.client.get(f"/api/threads/{name}", headers=other)).status_code == 404
        frames = await ask(it, other, "1+3=?", name)
        assert data(frames, "run")[0]["thread_id"] == name
        assert await questions(it, other, name) == ["1+3=?"]
    assert await questions(it, mine, made) == []


async def test_a_conversation_of_an_older_version_is_continued(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    [key, _] = await it.service.store.keys.list()
    await it.service.store.threads.create(Thread("default", key.key_id, "Old", 1.0, 1.0))
    for headers in (other, mine):
        await ask(it, headers, "1+3=?", "default")
    [listed] = (await it.get("/api/threads", mine))["threads"]
    assert (listed["thread_id"], listed["title"]) == ("default", "Old")


async def test_without_keys_a_name_is_the_id(it: InProcessService):
    await ask(it, None, QUESTION["messages"][0]["content"], "default")
    [thread] = await it.service.store.threads.list("")
    assert thread.thread_id == "default"


async def test_two_keys_have_each_their_files_in_conversations_of_one_name(it: InProcessService):
    mine, other = await it.key("mine"), await it.key("other")
    for headers, content in ((mine, b"mine"), (other, b"theirs")):
        await ask(it, headers, "1+3=?", "default")
        sent = await it.client.post(
            "/api/threads/default/files", files={"files": ("a.txt", content)}, headers=headers
        )
        assert sent.status_code == 201
    url = sent.json()["files"][0]["url"]
    assert url == "/api/threads/default/files/a.txt"
    assert [(await it.client.get(url, headers=one)).content for one in (mine, other)] == [b"mine", b"theirs"]
    assert (await it.client.delete(url, headers=other)).status_code == 204
    assert [one["path"] for one in (await it.get("/api/threads/default/files", mine))["files"]] == ["a.txt"]
