"""The list of conversations: the status and name of each, and how long the list takes."""

from dataclasses import replace

import pytest

from maniple.store import Thread
from maniple.store.rows import RUN_COLUMNS, run_values
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, serving
from tests.store.samples import a_run, a_thread

pytestmark = pytest.mark.anyio
SECRET = "tvly-canary-0123456789"
MANY = 10_000


async def thread_with(it: InProcessService, *statuses: str) -> str:
    thread = await it.service.store.threads.create(a_thread())
    for status in statuses:
        await it.service.store.runs.add(a_run(thread, it.service.store.process, status=status))
    return thread.thread_id


async def test_each_conversation_has_the_status_of_its_newest_runs(it: InProcessService):
    wanted = {
        await thread_with(it): "idle",
        await thread_with(it, "failed", "completed"): "idle",
        await thread_with(it, "completed", "failed"): "error",
        await thread_with(it, "running", "queued"): "busy",
        await thread_with(it, "running", "cancelled"): "busy",
        await thread_with(it, "running", *["cancelled"] * 60): "busy",
        await thread_with(it, "interrupted", *["cancelled"] * 8): "interrupted",
        await thread_with(it, *["completed"] * 8, "interrupted"): "interrupted",
    }
    listed = (await it.get("/api/threads"))["threads"]
    assert {one["thread_id"]: one["status"] for one in listed} == wanted
    for thread_id, status in wanted.items():
        assert (await it.get(f"/api/threads/{thread_id}"))["status"] == status


async def test_a_conversation_without_a_title_is_called_by_its_first_question(it: InProcessService):
    thread = await it.thread()
    for question in ("1+3=?", "Now double it."):
        response = await it.client.post(f"/api/threads/{thread}/runs", json={"input": question})
        await it.events_of(response.json()["run_id"])
    assert [one["title"] for one in (await it.get("/api/threads"))["threads"]] == ["1+3=?"]


async def test_a_long_question_is_visibly_cut_in_the_title(it: InProcessService):
    thread = await it.thread()
    question = "1+3=?\n" + "Show how. " * 20
    response = await it.client.post(f"/api/threads/{thread}/runs", json={"input": question})
    await it.events_of(response.json()["run_id"])
    [title] = [one["title"] for one in (await it.get("/api/threads"))["threads"]]
    assert title == f"1+3=?{7 * ' Show how.'}…"


async def test_a_page_of_any_length_takes_two_queries(it: InProcessService):
    for _ in range(60):
        await thread_with(it, "completed")
    asked = 0
    executor = it.service.store._database._read_executor
    submit = executor.submit

    def counted(work):
        nonlocal asked
        asked += 1
        return submit(work)

    executor.submit = counted
    each = []
    for limit in (1, 60):
        asked = 0
        assert len((await it.get(f"/api/threads?limit={limit}"))["threads"]) == limit
        each.append(asked)
    assert each[0] == each[1]


@pytest.mark.slow
async def test_a_page_among_ten_thousand_conversations_takes_the_work_of_one_among_a_hundred(tmp_path):
    each = []
    with serving(SIMPLE) as model:
        for count in (100, MANY):
            async with open_service(model.base_url, tmp_path / str(count)) as it:
                await _fill(it, count)
                each.append(await _page_instructions(it))
    few, many = each
    assert 0 < many < 2 * few


async def _fill(it: InProcessService, count: int) -> None:
    """Keep so many conversations with three runs each, in one transaction."""
    store = it.service.store
    threads = [Thread(f"t{n}", "", f"Question {n}", 1000.0 + n, 1000.0 + n) for n in range(count)]
    rows = [(one.thread_id, one.owner, one.title, one.created_at, one.updated_at) for one in threads]
    sql = "INSERT INTO threads (thread_id, owner, title, created_at, updated_at) VALUES (?, ?, ?, ?, ?)"
    await store._database.write(lambda connection: connection.executemany(sql, rows) and None)
    runs = [
        run_values(replace(a_run(one, at=one.created_at + third / 4), status="completed"))
        for one in threads
        for third in range(3)
    ]
    marks = ", ".join("?" * len(runs[0]))
    into = f"INSERT INTO runs ({RUN_COLUMNS}) VALUES ({marks})"
    await store._database.write(lambda connection: connection.executemany(into, runs) and None)


async def _page_instructions(it: InProcessService) -> int:
    """Return how many instructions of SQLite's machine the queries of one page take, in tens."""
    counted = 0

    def count() -> int:
        nonlocal counted
        counted += 1
        return 0

    reader = it.service.store._database._reader
    await it.service.store._database.read(lambda _: reader.set_progress_handler(count, 10))
    page = await it.get("/api/threads?limit=50&before=1080.0")
    assert len(page["threads"]) == 50
    return counted


async def test_a_secret_in_a_title_is_not_stored(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, search={"tavily_api_key": SECRET}) as it:
            response = await it.client.post("/api/threads", json={"title": f"Why is {SECRET} refused?"})
            assert response.json()["title"] == "Why is *** refused?"
            (thread,) = await it.service.store.threads.list(None)
            assert thread.title == "Why is *** refused?"


async def test_a_conversation_is_renamed_and_keeps_no_secret(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path, search={"tavily_api_key": SECRET}) as it:
            path = f"/api/threads/{await it.thread()}"
            response = await it.client.patch(path, json={"title": f" About {SECRET} "})
            assert (response.status_code, response.json()["title"]) == (200, "About ***")
            assert (await it.get(path))["title"] == "About ***"
            for refused in ("", "  ", "x" * 201):
                assert (await it.client.patch(path, json={"title": refused})).status_code == 422


async def test_a_search_finds_titles_by_words_and_takes_signs_as_they_are(it: InProcessService):
    for title in ("Sums of 100%", "Sums of 1000", "snake_case"):
        await it.client.post("/api/threads", json={"title": title})
    for words, found in {"sums": 2, "100%": 1, "e_c": 1, "\\": 0, " SNAKE ": 1, "": 3}.items():
        threads = (await it.client.get("/api/threads", params={"q": words})).json()["threads"]
        assert len(threads) == found, words
