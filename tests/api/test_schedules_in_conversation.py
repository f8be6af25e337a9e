"""A schedule that is asked for in a conversation: proposed, decided by the user, made once."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.runs import RunRequest
from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, call, reply, serving

pytestmark = pytest.mark.anyio
TASK = "Summarise the news on solar power of last week"
EVERY_MONDAY = {"task": TASK, "cron": "0 8 * * 1", "time_zone": "Europe/Berlin"}
PROPOSING = {**SIMPLE, "coordinator": [call("schedule_run", **EVERY_MONDAY), reply("Es ist eingeplant.")]}
QUESTION = {"messages": [{"role": "user", "content": "Jeden Montag um 8: Neues zur Solarkraft"}]}


async def propose(it, **body):
    """Ask for a schedule; return the run and the question that it waits with."""
    run_id = (await it.run(**QUESTION, **body))["run_id"]
    frames = await it.events_of(run_id)
    return run_id, [shown for name, shown in frames if name == "interrupt"], len(frames)


async def decide(it, run_id, answer, after=0):
    given = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": answer})
    assert given.status_code == 202, given.text
    return await it.events_of(run_id, after)


async def made(it):
    listed = (await it.get("/api/schedules"))["schedules"]
    return [(one["cron"], one["time_zone"], one["name"]) for one in listed]


@pytest.fixture
async def proposing(tmp_path):
    with serving(PROPOSING) as model:
        async with open_service(model.base_url, tmp_path) as it:
            yield it, model


async def test_it_is_made_when_the_user_agrees_and_the_user_is_told(proposing):
    it, model = proposing
    run_id, (question,), after = await propose(it)
    assert (question["kind"], question["payload"]["tool_input"]) == ("tool_approval", EVERY_MONDAY)
    assert len(question["payload"]["next_times"]) == 3
    assert await made(it) == [], "before the user agrees"
    frames = await decide(it, run_id, "yes", after)
    assert frames[-1][1]["messages"][-1]["content"] == "Es ist eingeplant."
    assert await made(it) == [("0 8 * * 1", "Europe/Berlin", TASK)]
    (told,) = [one for one in model.requests if "What became of it" in str(one["messages"][0])]
    assert "08:00" in str(told["messages"][0]) and "tools" not in told
    (schedule,) = await it.service.store.schedules.list("")
    assert '"auto_accepted_plan": true' in schedule.request and '"may_ask": false' in schedule.request


async def test_a_changed_proposal_is_made_as_changed_and_one_that_cannot_be_is_asked_about_again(proposing):
    it, _ = proposing
    run_id, _, after = await propose(it)
    frames = await decide(it, run_id, {"type": "edit", "args": {**EVERY_MONDAY, "cron": "8 o'clock"}}, after)
    (again,) = [shown for name, shown in frames if name == "interrupt"]
    assert "cron" in again["payload"]["error"]
    after += len(frames)
    frames = await decide(it, run_id, "yes", after)
    assert [name for name, _ in frames if name == "interrupt"], "what is not valid cannot be approved"
    after += len(frames)
    await decide(it, run_id, {"type": "edit", "args": {**EVERY_MONDAY, "cron": "30 9 * * *"}}, after)
    assert await made(it) == [("30 9 * * *", "Europe/Berlin", TASK)]


async def test_a_rejected_proposal_schedules_nothing_and_the_reason_reaches_the_coordinator(proposing):
    it, model = proposing
    run_id, _, after = await propose(it)
    await decide(it, run_id, "no, tuesdays are better", after)
    assert await made(it) == []
    assert "tuesdays are better" in str(model.requests[-1]["messages"][0])


async def test_a_proposal_that_cannot_be_is_no_question(tmp_path):
    wrong = {**SIMPLE, "coordinator": [call("schedule_run", task=TASK, cron="soon"), reply("Leider nein.")]}
    with serving(wrong) as model:
        async with open_service(model.base_url, tmp_path) as it:
            _, questions, _ = await propose(it)
            assert (questions, await made(it)) == ([], [])
            assert "could not be scheduled" in str(model.requests[-1]["messages"][0])


async def test_it_is_offered_only_where_the_user_can_be_asked(proposing):
    it, model = proposing
    request = RunRequest([HumanMessage(TASK)], options=RunOptions(may_ask=False))
    accepted = await it.service.engine.submit(request)
    await it.events_of(accepted.run.run_id)
    offered = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert "schedule_run" not in offered
    assert await made(it) == []


async def test_it_belongs_to_the_key_that_asked(proposing):
    it, _ = proposing
    ann = await it.key("ann")
    run_id = (await it.run(ann, **QUESTION))["run_id"]
    after = len(await it.events_of(run_id, headers=ann))
    given = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "yes"}, headers=ann)
    assert given.status_code == 202
    await it.events_of(run_id, after, headers=ann)
    assert len((await it.get("/api/schedules", headers=ann))["schedules"]) == 1
    assert await it.service.store.schedules.list("") == []
