"""Runs over HTTP: started, followed, answered, cancelled, and what they leave."""

import asyncio
import json
import time
from dataclasses import replace

import pytest

from maniple.store import open_store
from tests.api.in_process import QUESTION, InProcessService, numbered, open_service
from tests.openai_server import SIMPLE, OpenAIServer, reply, serving
from tests.store.samples import content_path
from tests.team import agents, data, plan, status, step

pytestmark = pytest.mark.anyio
HANGING = {**SIMPLE, "coder": [{"hang": True}]}
REVIEWED = {"auto_accepted_plan": False}


async def test_a_conversation_is_made_read_listed_and_deleted(it: InProcessService):
    response = await it.client.post("/api/threads", json={"title": "Sums"})
    thread = response.json()
    assert response.status_code == 201
    assert (thread["title"], thread["status"]) == ("Sums", "idle")
    run = await it.run(thread_id=thread["thread_id"])
    await it.events_of(run["run_id"])
    read = await it.get(f"/api/threads/{thread['thread_id']}")
    assert read["messages"][0] == {**QUESTION["messages"][0], "name": None}
    told = [(one["role"], one["name"]) for one in read["messages"][1:]]
    assert told == [("assistant", name) for name in ("planner", "coder", "reporter")]
    assert read["messages"][-1]["content"].startswith("# What is 1 + 3?")
    assert [one["status"] for one in read["plan"]["steps"]] == ["completed", "completed"]
    assert read["runs"] == [{"run_id": run["run_id"], "status": "completed", "question": None}]
    assert [one["thread_id"] for one in (await it.get("/api/threads"))["threads"]] == [thread["thread_id"]]
    deleted = await it.client.delete(f"/api/threads/{thread['thread_id']}")
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": [thread["thread_id"]]})
    for gone in (f"/api/threads/{thread['thread_id']}", f"/api/runs/{run['run_id']}"):
        assert (await it.client.get(gone)).status_code == 404


async def test_the_plan_of_a_cancelled_run_is_that_which_it_showed_last(tmp_path):
    with serving(HANGING) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            path = f"/api/runs/{run['run_id']}"
            change = {"action": "edit", "step_id": 2, "title": "Write it short"}
            assert (await it.client.post(f"{path}/plan", json=change)).status_code == 202
            at_work = (await it.get(f"/api/threads/{run['thread_id']}"))["plan"]["steps"]
            await it.client.post(f"{path}/cancel")
            ended = (await it.get(f"/api/threads/{run['thread_id']}"))["plan"]["steps"]
    assert [one["status"] for one in at_work] == ["in_progress", "not_started"]
    assert ended[1]["title"] == "Write it short"
    assert [one["status"] for one in ended] == ["not_started", "not_started"]


async def test_conversations_are_listed_page_by_page(it: InProcessService):
    made = [await it.thread() for _ in range(5)]
    listed, before = [], ""
    for _ in range(3):
        page = await it.get(f"/api/threads?limit=2{before}")
        listed += [one["thread_id"] for one in page["threads"]]
        before = f"&before={page['next_before']!r}"
    assert listed == made[::-1]
    assert page["next_before"] is None


async def test_runs_of_all_conversations_are_listed_by_page_with_their_status(it: InProcessService):
    made = [(await it.run())["run_id"] for _ in range(3)]
    for run_id in made:
        await it.events_of(run_id)
    first = await it.get("/api/runs?limit=2")
    last = await it.get(f"/api/runs?limit=2&before={first['next_before']!r}")
    assert [one["run_id"] for one in (*first["runs"], *last["runs"])] == made[::-1]
    assert last["next_before"] is None
    for one in first["runs"]:
        stands = await it.get(f"/api/runs/{one['run_id']}")
        assert one == {
            name: value
            for name, value in stands.items()
            if name not in ("asked", "interrupts", "by_agent", "gaps", "artifacts")
        }


async def test_a_run_reports_its_status(it: InProcessService):
    run = await it.run()
    assert run["status"] == "queued"
    frames = await it.events_of(run["run_id"])
    stands = await it.get(f"/api/runs/{run['run_id']}")
    assert stands["status"] == status(frames) == "completed"
    assert stands["usage"]["model_calls"] == 5
    assert stands["created_at"] <= stands["started_at"] <= stands["ended_at"]
    assert (stands["error"], stands["interrupts"]) == (None, [])


async def test_input_is_one_message_of_the_user(it: InProcessService, model):
    thread = await it.thread()
    response = await it.client.post(f"/api/threads/{thread}/runs", json={"input": "7*6=?"})
    await it.events_of(response.json()["run_id"])
    assert model.requests[0]["messages"][-1]["content"] == "7*6=?"
    empty = await it.client.post(f"/api/threads/{thread}/runs", json={})
    assert empty.status_code == 422


async def test_a_failed_run_has_a_reason(it: InProcessService, model):
    model.reset({"coordinator": [{"status": 401}]})
    run = await it.run()
    await it.events_of(run["run_id"])
    stands = await it.get(f"/api/runs/{run['run_id']}")
    assert (stands["status"], stands["error"]["code"]) == ("failed", "model_auth")
    assert (await it.get(f"/api/threads/{run['thread_id']}"))["status"] == "error"


async def test_a_client_that_reconnects_receives_every_event_once_in_order(it: InProcessService):
    run = await it.run()
    whole = await it.events_of(run["run_id"])
    for number in (2, 7, len(whole) - 1, len(whole), len(whole) + 5):
        path = f"/api/runs/{run['run_id']}/events"
        headers = {"last-event-id": str(number)}
        heard = numbered((await it.client.get(f"{path}?after=2", headers=headers)).text)
        assert heard == list(enumerate(whole, start=1))[number:]
    refused = await it.client.get(path, headers={"last-event-id": "x"})
    assert refused.status_code == 422


async def paused(it: InProcessService) -> tuple[str, int, str]:
    run = await it.run(**REVIEWED)
    frames = await it.events_of(run["run_id"])
    assert status(frames) == "interrupted"
    stands = await it.get(f"/api/runs/{run['run_id']}")
    [pause] = stands["interrupts"]
    assert pause == data(frames, "interrupt")[0]
    assert (pause["kind"], stands["status"]) == ("plan_review", "interrupted")
    assert (await it.get(f"/api/threads/{run['thread_id']}"))["status"] == "interrupted"
    return run["run_id"], len(frames), pause["interrupt_id"]


async def resumed(it: InProcessService, run_id: str, **answer):
    response = await it.client.post(f"/api/runs/{run_id}/resume", json=answer)
    assert response.status_code == 202, response.text
    assert response.json()["run_id"] == run_id
    path = response.headers["location"]
    return await it.events_of(run_id, int(path.rpartition("=")[2]))


async def test_a_plan_is_accepted_and_the_run_goes_on_to_its_end(it: InProcessService):
    run_id, number, interrupt_id = await paused(it)
    frames = await resumed(it, run_id, answer="accept", interrupt_id=interrupt_id)
    assert status(frames) == "completed"
    assert frames[0][0] == "run"
    whole = numbered((await it.client.get(f"/api/runs/{run_id}/events")).text)
    assert len(whole) == number + len(frames)
    again = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "accept"})
    assert (again.status_code, again.json()["code"]) == (409, "not_waiting")


async def test_an_edited_plan_is_the_one_that_is_done(it: InProcessService):
    run_id, _, _ = await paused(it)
    edited = plan(step("researcher", "Look it up"), step("reporter"), title="Mine")
    frames = await resumed(it, run_id, answer=edited)
    assert data(frames, "plan")[-1]["title"] == "Mine"
    assert "researcher" in [one["agent_name"] for one in data(frames, "start_of_agent")]


async def test_a_rejected_plan_goes_back_to_the_planner_and_waits_again(it: InProcessService, model):
    run_id, _, _ = await paused(it)
    frames = await resumed(it, run_id, answer="Use the abacus.")
    assert status(frames) == "interrupted"
    assert "Use the abacus." in str(model.requests[-1]["messages"])
    assert status(await resumed(it, run_id, answer="accept")) == "completed"


async def test_an_answer_to_another_question_is_refused(it: InProcessService):
    run_id, _, _ = await paused(it)
    response = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": 1, "interrupt_id": "x"})
    assert response.status_code == 409
    deep = "[" * 200 + "]" * 200
    response = await it.client.post(
        f"/api/runs/{run_id}/resume",
        content=f'{{"answer": {deep}}}',
        headers={"content-type": "application/json"},
    )
    assert response.status_code == 422


async def test_the_old_client_answers_an_interrupted_run_through_its_own_stream(it: InProcessService):
    body = {**QUESTION, "thread_id": "t", **REVIEWED}
    first = numbered((await it.client.post("/api/chat/stream", json=body)).text)
    answer = {"messages": [{"role": "user", "content": "accept"}], "thread_id": "t"}
    second = numbered((await it.client.post("/api/chat/stream", json=answer)).text)
    assert second[0][0] == first[-1][0] + 1
    assert second[0][1] == first[0][1]
    assert status([frame for _, frame in second]) == "completed"


@pytest.mark.parametrize("strategy", ["reject", "enqueue", "interrupt", "rollback"])
async def test_a_message_to_a_run_that_waits_is_its_answer_under_each_policy(it: InProcessService, strategy):
    run_id, number, _ = await paused(it)
    thread = (await it.get(f"/api/runs/{run_id}"))["thread_id"]
    body = {"input": "accept", "multitask_strategy": strategy}
    response = await it.client.post(f"/api/threads/{thread}/runs", json=body)
    assert (response.status_code, response.json()["run_id"]) == (202, run_id)
    assert status(await it.events_of(run_id, number)) == "completed"


async def test_a_run_is_cancelled_within_two_seconds_and_reports_it(it: InProcessService, model):
    model.reset(HANGING)
    run = await it.run()
    await asyncio.to_thread(model.wait_for, lambda s: s["by_role"].get("coder") == 1)
    assert (await it.get(f"/api/threads/{run['thread_id']}"))["status"] == "busy"
    began = time.monotonic()
    response = await it.client.post(f"/api/runs/{run['run_id']}/cancel")
    assert time.monotonic() - began < 20
    assert (response.status_code, response.json()["status"]) == (200, "cancelled")
    assert status(await it.events_of(run["run_id"])) == "cancelled"
    again = await it.client.post(f"/api/runs/{run['run_id']}/cancel")
    assert (again.status_code, again.json()["status"]) == (200, "cancelled")


@pytest.mark.parametrize(
    ("strategy", "code", "first"),
    [
        ("reject", 409, "running"),
        ("enqueue", 202, "running"),
        ("interrupt", 202, "cancelled"),
        ("rollback", 202, "cancelled"),
    ],
)
async def test_a_second_run_on_a_busy_thread_follows_its_strategy(
    it: InProcessService, model, strategy, code, first
):
    model.reset(HANGING)
    run = await it.run()
    await asyncio.to_thread(model.wait_for, lambda s: s["by_role"].get("coder") == 1)
    path = f"/api/threads/{run['thread_id']}/runs"
    response = await it.client.post(path, json={**QUESTION, "multitask_strategy": strategy})
    assert response.status_code == code, response.text
    assert (await it.get(f"/api/runs/{run['run_id']}"))["status"] == first
    assert (await it.client.delete(f"/api/threads/{run['thread_id']}")).status_code == 200


async def test_a_request_can_lower_the_budget_and_not_raise_it(model, tmp_path):
    model.reset(SIMPLE)
    async with open_service(model.base_url, tmp_path, runs={"budget": {"model_calls": 3}}) as it:
        lower = await it.run(budget={"model_calls": 1})
        higher = await it.run(budget={"model_calls": 1000, "tokens": 10**6})
        for run, most in ((lower, 1), (higher, 3)):
            await it.events_of(run["run_id"])
            stands = await it.get(f"/api/runs/{run['run_id']}")
            assert stands["status"] == "budget_exhausted"
            assert stands["usage"]["model_calls"] <= most + 1  # the report may take one more
        thread = await it.thread()
        for wrong in ({"tokens": 0}, {"seconds": "x"}, {"tokens": 10**400}, 7):
            body = {**QUESTION, "budget": wrong}
            assert (await it.client.post(f"/api/threads/{thread}/runs", json=body)).status_code == 422


async def test_deleting_a_conversation_ends_its_run_and_removes_its_files(it: InProcessService, model):
    model.reset(HANGING)
    run = await it.run()
    await asyncio.to_thread(model.wait_for, lambda s: s["by_role"].get("coder") == 1)
    workspace = it.service.workspaces.open(run["thread_id"])
    workspace.write("deep/notes.txt", b"x")
    outside = workspace.path.parent.parent / "kept.txt"
    outside.write_bytes(b"kept")
    (workspace.path / "link").symlink_to(outside)
    record = await it.service.engine.status(run["run_id"])
    artifact = await it.service.store.artifacts.add(record, "a.txt", "text/plain", b"a")
    kept = content_path(it.service.store, artifact)
    assert (await it.client.delete(f"/api/threads/{run['thread_id']}")).status_code == 200
    assert not it.service.engine.tasks.active
    assert not workspace.path.exists()
    assert not kept.exists()
    assert outside.read_bytes() == b"kept"
    state = await it.service.runtime.graph.aget_state({"configurable": {"thread_id": run["thread_id"]}})
    assert state.values == {}


async def test_an_artifact_is_a_download_that_nothing_can_run_in(it: InProcessService):
    run = await it.run()
    await it.events_of(run["run_id"])
    record = await it.service.engine.status(run["run_id"])
    add = it.service.store.artifacts.add
    page = await add(record, 'Bericht "ü"\r\nx.html', "text/html", b"<script>1</script>")
    odd = await add(record, "odd", "text/html\r\nset-cookie: a=b", b"x")
    response = await it.client.get(f"/api/artifacts/{page.artifact_id}")
    assert response.content == b"<script>1</script>"
    assert response.headers["content-disposition"].startswith("attachment;")
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"] == "sandbox"
    response = await it.client.get(f"/api/artifacts/{odd.artifact_id}")
    assert response.headers["content-type"] == "application/octet-stream"
    report = (
        await it.client.get(f"/api/runs/{run['run_id']}/report", headers={"accept": "application/json"})
    ).json()
    assert [one["url"] for one in report["artifacts"]] == [
        f"/api/artifacts/{one.artifact_id}" for one in (page, odd)
    ]
    assert (await it.get(f"/api/runs/{run['run_id']}"))["artifacts"] == report["artifacts"]
    content_path(it.service.store, page).write_bytes(b"changed on disk")
    gone = await it.client.get(f"/api/artifacts/{page.artifact_id}")
    assert (gone.status_code, gone.json()["code"]) == (404, "not_found")


async def test_a_full_server_queues_and_then_refuses(model, tmp_path):
    model.reset({"coordinator": [{"hang": True}]})
    async with open_service(model.base_url, tmp_path, server={"max_runs": 1, "max_waiting_runs": 1}) as it:
        runs = [await it.run(), await it.run()]
        response = await it.client.post("/api/chat/stream", json=QUESTION)
        assert (response.status_code, response.json()["code"]) == (429, "too_many_runs")
        assert int(response.headers["retry-after"]) > 0
        for run in runs:
            await it.client.post(f"/api/runs/{run['run_id']}/cancel")


async def test_a_conversation_that_another_program_drives_is_not_deleted(it: InProcessService, tmp_path):
    run = await it.run()
    await it.events_of(run["run_id"])
    record = await it.service.engine.status(run["run_id"])
    async with open_store(tmp_path / "data/maniple.db", tmp_path / "data/artifacts", server=False) as chat:
        theirs = replace(record, run_id="theirs", kind="chat", process=chat.process, status="running")
        await chat.runs.add(theirs)
        response = await it.client.delete(f"/api/threads/{run['thread_id']}")
        assert (response.status_code, response.json()["code"]) == (409, "thread_busy")
    assert (await it.client.delete(f"/api/threads/{run['thread_id']}")).status_code == 200


async def test_a_step_of_a_plan_under_review_is_skipped_and_the_rest_is_done(it: InProcessService):
    run_id, number, _ = await paused(it)
    path = f"/api/runs/{run_id}/plan"
    wrong = await it.client.post(path, json={"action": "skip", "step_id": 9})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "wrong_plan_change")
    changed = await it.client.post(path, json={"action": "skip", "step_id": 1})
    assert changed.status_code == 202, changed.text
    assert [one["agent_name"] for one in changed.json()["steps"]] == ["reporter"]
    frames = await it.events_of(run_id, number)
    assert [one["agent_name"] for one in data(frames, "start_of_agent")] == ["reporter"]
    late = await it.client.post(path, json={"action": "redo", "step_id": 1})
    assert (late.status_code, late.json()["code"]) == (409, "plan_not_open")


async def test_a_run_with_gaps_reports_them_and_is_retried_once(it: InProcessService, model: OpenAIServer):
    steps = plan(step("coder"), step("researcher"), step("reporter"))
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(steps))],
        "coder": [reply("It is 4.")],
        "researcher": [reply("STEP FAILED: no data")],
        "supervisor": [reply('{"decision": "continue_without", "hint": null, "step": null}')],
    }
    model.reset(script)
    run_id = (await it.run())["run_id"]
    [ended] = data(await it.events_of(run_id), "run_status")
    read = await it.get(f"/api/runs/{run_id}")
    assert read["gaps"] == ended["gaps"]
    assert [gap["step"] for gap in read["gaps"]] == ["researcher's step"]
    model.reset({**script, "researcher": [reply("Found.")]})
    response = await it.client.post(f"/api/runs/{run_id}/retry")
    assert (response.status_code, response.json()["run_id"]) == (202, run_id)
    frames = await it.events_of(run_id, int(response.headers["location"].rpartition("=")[2]))
    assert "coordinator" not in agents(frames)
    assert (await it.get(f"/api/runs/{run_id}"))["gaps"] == []
    again = await it.client.post(f"/api/runs/{run_id}/retry")
    assert (again.status_code, again.json()["code"]) == (409, "nothing_to_retry")
