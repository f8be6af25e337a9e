"""`POST /api/runs/{run_id}/messages`, and the strategy `steer`."""

import asyncio
import json
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from maniple.events import VIEW_NAMES
from tests.api.in_process import numbered, open_service
from tests.grammar import Client
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.killing import Site, crawling
from tests.team import status

pytestmark = pytest.mark.anyio
ANSWER = {"decision": "answer", "reply": "Four, I think.", "changes": [], "steps": []}
SCRIPT = {**SIMPLE, "supervisor": [reply(json.dumps(ANSWER))], "coder": [{"hang": True}]}


def named(frames, name):
    return [content for one, content in frames if one == name]


async def test_a_run_that_has_ended_refuses_a_message_with_what_to_do(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await it.events_of(run["run_id"])
            path = f"/api/runs/{run['run_id']}/messages"
            refused = await it.client.post(path, json={"content": "and 2+2?"})
            unknown = await it.client.post("/api/runs/none/messages", json={"content": "hello"})
            empty = await it.client.post(path, json={"content": "  "})
    assert (refused.status_code, refused.json()["code"]) == (409, "not_working")
    assert "completed" in refused.json()["detail"]
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    assert empty.status_code == 422


WHY = "It reads one page, and changes nothing."


BETWEEN = ["user_message", "usage", "user_message_answer"]


async def events_of(it, run_id: str, view="live"):
    """Read the events of a run that may have several segments."""
    return [
        frame for _, frame in numbered((await it.client.get(f"/api/runs/{run_id}/events?view={view}")).text)
    ]


def question_or_not(is_question: bool, text: str):
    return reply(json.dumps({"is_question": is_question, "reply": text}))


@asynccontextmanager
async def waiting_run(home: Path, site: Site, *answers, thread="wait"):
    """A run that waits for the approval of a call, and a lead that gives these answers."""
    with serving({**crawling(site), "supervisor": [*answers]}) as model:
        approval = {
            "runs": {"approval": ["crawl_tool"], "drain_seconds": 0.5},
            "fetch": {"allow_private": ["127.0.0.0/8"]},
        }
        async with open_service(model.base_url, home, **approval) as it:
            run = await it.run(messages=[{"role": "user", "content": f"Look there. #run={thread}"}])
            frames = await events_of(it, run["run_id"])
            assert status(frames) == "interrupted"
            yield it, model, run["run_id"], frames


async def test_a_question_about_an_approval_is_answered_and_the_approval_stays_open(tmp_path, site: Site):
    async with waiting_run(tmp_path, site, question_or_not(True, WHY)) as (it, model, run_id, before):
        written = {"content": "What does this do?"}
        accepted = await it.client.post(f"/api/runs/{run_id}/messages", json=written)
        assert (accepted.status_code, accepted.json()["status"]) == (202, "interrupted")
        shown = json.dumps(model.requests[-1]["messages"])
        assert "crawl_tool" in shown
        assert "What does this do?" in shown
        after = (await events_of(it, run_id))[len(before) :]
        assert [name for name, _ in after] == BETWEEN
        assert after[-1][1]["content"] == WHY
        record = await it.get(f"/api/runs/{run_id}")
        assert record["status"] == "interrupted"
        [pause] = named(before, "interrupt")
        reply_to = {"answer": "yes", "interrupt_id": pause["interrupt_id"]}
        assert (await it.client.post(f"/api/runs/{run_id}/resume", json=reply_to)).status_code == 202
        frames = await events_of(it, run_id)
    assert named(frames, "run_status")[-1]["status"] == "completed"
    assert named(frames, "user_message_answer") == [after[-1][1]]
    assert site.hits["/wait"] == 1


async def test_the_tokens_of_an_answer_while_the_run_waits_are_counted(tmp_path, site: Site):
    async with waiting_run(tmp_path, site, question_or_not(True, WHY)) as (it, _, run_id, _before):
        before = (await it.get(f"/api/runs/{run_id}"))["usage"]
        await it.client.post(f"/api/runs/{run_id}/messages", json={"content": "Why?"})
        after = (await it.get(f"/api/runs/{run_id}"))["usage"]
    assert after["input_tokens"] > before["input_tokens"]


async def test_what_is_no_question_is_read_when_the_run_goes_on(tmp_path, site: Site):
    answers = question_or_not(False, ""), reply(json.dumps({**ANSWER, "reply": "In euros, then."}))
    async with waiting_run(tmp_path, site, *answers) as (it, _, run_id, before):
        await it.client.post(f"/api/runs/{run_id}/messages", json={"content": "In euros, please."})
        after = (await events_of(it, run_id))[len(before) :]
        assert [name for name, _ in after] == ["user_message", "usage"]
        await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "yes"})
        frames = await events_of(it, run_id)
    assert named(frames, "run_status")[-1]["status"] == "completed"
    assert [one["content"] for one in named(frames, "user_message_answer")] == ["In euros, then."]


async def test_an_approval_is_taken_while_the_lead_thinks_about_a_question(tmp_path, site: Site):
    # Only what is asked while the run waits: the lead of the run that goes on is asked, too.
    held = {**question_or_not(True, WHY), "hang": True, "about": "The team waits for:"}
    later = reply(json.dumps({**ANSWER, "reply": "It read one page."}))
    async with waiting_run(tmp_path, site, held, later) as (it, model, run_id, _):
        path = f"/api/runs/{run_id}"
        writing = asyncio.create_task(it.client.post(f"{path}/messages", json={"content": "Why?"}))
        await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
        assert (await it.client.post(f"{path}/resume", json={"answer": "yes"})).status_code == 202
        model.release()
        assert (await writing).status_code == 202
        frames = await events_of(it, run_id)
    assert named(frames, "run_status")[-1]["status"] == "completed"
    assert len(named(frames, "user_message_answer")) == 1


async def test_in_both_views_an_answer_while_the_run_waits_stands_between_two_segments(tmp_path, site: Site):
    async with waiting_run(tmp_path, site, question_or_not(True, WHY)) as (it, _, run_id, _before):
        await it.client.post(f"/api/runs/{run_id}/messages", json={"content": "Why?"})
        await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "yes"})
        for view in VIEW_NAMES:
            frames = await events_of(it, run_id, view)
            first = [name for name, _ in frames].index("final_session_state") + 1
            between = first + [name for name, _ in frames[first:]].index("run")
            Client().read(frames[:first])
            assert [name for name, _ in frames[first:between]] == BETWEEN
            Client().read(frames[between:])


async def test_a_request_that_steers_is_answered_with_the_run_that_works(tmp_path):
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            body = {"input": "Are you sure?", "multitask_strategy": "steer"}
            path = f"/api/threads/{run['thread_id']}/runs"
            steered = await it.client.post(path, json=body)
            assert (steered.status_code, steered.json()["run_id"]) == (202, run["run_id"])
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            # Without a strategy it waits, as it always did.
            queued = await it.client.post(path, json={"input": "second"})
            assert queued.json()["run_id"] != run["run_id"]
            assert queued.json()["status"] == "queued"
            listed = (await it.client.get(f"/api/threads/{run['thread_id']}")).json()["runs"]
            assert [one["question"] for one in listed] == ["second", None]
            async with it.client.stream("GET", f"/api/runs/{run['run_id']}/page") as page:
                assert page.status_code == 200
            for one in (queued, steered):
                await it.client.post(f"/api/runs/{one.json()['run_id']}/cancel")
            frames = await it.events_of(run["run_id"])
    assert [one["content"] for one in named(frames, "user_message")] == ["Are you sure?"]


async def test_a_picture_cannot_steer_and_waits(tmp_path):
    picture = {"type": "image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    content = [{"type": "text", "text": "Like this one."}, picture]
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            body = {"messages": [{"role": "user", "content": content}], "multitask_strategy": "steer"}
            queued = await it.client.post(f"/api/threads/{run['thread_id']}/runs", json=body)
            assert queued.json()["run_id"] != run["run_id"]
            for one in (queued.json(), run):
                await it.client.post(f"/api/runs/{one['run_id']}/cancel")


async def test_a_stream_that_only_wrote_to_a_run_does_not_end_it_when_it_leaves(tmp_path):
    with serving(SCRIPT) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run()
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            asked = {"role": "user", "content": "Are you sure?"}
            body = {"messages": [asked], "thread_id": run["thread_id"], "multitask_strategy": "steer"}
            streaming = asyncio.create_task(it.client.post("/api/chat/stream", json=body))
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            streaming.cancel()
            await asyncio.wait([streaming])
            assert (await it.get(f"/api/runs/{run['run_id']}"))["status"] == "running"
            await it.client.post(f"/api/runs/{run['run_id']}/cancel")


@pytest.mark.parametrize("view", VIEW_NAMES)
@pytest.mark.parametrize("is_reviewed", [False, True], ids=["first segment", "after an answer"])
async def test_a_stream_that_a_message_joins_in_the_middle_of_a_turn_begins_with_the_run(
    tmp_path, view, is_reviewed
):
    with serving({**SCRIPT, "coder": [reply("so far so good", hang_after=3)]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run(auto_accepted_plan=not is_reviewed)
            first = 0
            if is_reviewed:
                first = len(await it.events_of(run["run_id"]))
                await it.client.post(f"/api/runs/{run['run_id']}/resume", json={"answer": "accept"})
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            asked = {"role": "user", "content": "Are you sure?"}
            body = {"messages": [asked], "thread_id": run["thread_id"], "multitask_strategy": "steer"}
            joining = asyncio.create_task(it.client.post(f"/api/chat/stream?view={view}", json=body))
            await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 1)
            await it.client.post(f"/api/runs/{run['run_id']}/cancel")
            joined = numbered((await joining).text)
            again = numbered((await it.client.get(f"/api/runs/{run['run_id']}/events?view={view}")).text)
    frames = [frame for _, frame in joined]
    assert joined == again[first:]
    assert frames[0][0] == "run"
    assert named(frames, "user_message")[0]["content"] == "Are you sure?"
    Client().read(frames)
