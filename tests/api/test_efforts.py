"""The effort of a run over HTTP: every model call asks for it, and the run says what takes none."""

import asyncio
import json

import pytest

from tests.api.in_process import open_service
from tests.api.test_messages import ANSWER, events_of
from tests.openai_server import SIMPLE, Json, reply, role_and_run, serving

pytestmark = pytest.mark.anyio


def _refuse_effort(body: Json) -> str:
    return "Unrecognized request argument supplied: reasoning_effort" if "reasoning_effort" in body else ""


async def test_each_call_of_a_run_asks_for_its_effort_also_after_an_answer_and_a_retry(tmp_path):
    with serving({**SIMPLE, "coder": [{"status": 400, "error": "no"}]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run(effort="low", auto_accepted_plan=False)
            path = f"/api/runs/{run['run_id']}"
            seen = len(await it.events_of(run["run_id"]))
            await it.client.post(f"{path}/resume", json={"answer": "accept"})
            seen += len(await it.events_of(run["run_id"], after=seen))
            before = model.requests
            model.reset(SIMPLE)
            assert (await it.client.post(f"{path}/retry")).status_code == 202
            await it.events_of(run["run_id"], after=seen)
            assert (await it.get(path))["status"] == "completed"
    assert before and model.requests
    assert {one.get("reasoning_effort") for one in (*before, *model.requests)} == {"low"}


async def test_a_run_whose_model_refuses_the_effort_goes_on_and_says_so_once(tmp_path):
    with serving(SIMPLE) as model:
        model.refuse = _refuse_effort
        async with open_service(model.base_url, tmp_path) as it:
            for _ in range(2):
                run = await it.run(effort="high")
                frames = await it.events_of(run["run_id"])
                said = [body for name, body in frames if name == "effort_not_used"]
                assert said == [{"effort": "high", "model": "scripted"}]
                assert (await it.get(f"/api/runs/{run['run_id']}"))["status"] == "completed"
            plain = await it.events_of((await it.run())["run_id"])
    assert "effort_not_used" not in {name for name, _ in plain}
    assert sum("reasoning_effort" in one for one in model.requests) == 1


_NOT_USED = ("effort_not_used", {"effort": "high", "model": "scripted"})


def _refuse_effort_of_lead(body: Json) -> str:
    return _refuse_effort(body) if role_and_run(body["messages"])[0] == "supervisor" else ""


@pytest.mark.parametrize("waits", [False, True])
async def test_a_message_that_is_answered_without_effort_says_so_once(tmp_path, waits: bool):
    answer = {"is_question": True, "reply": "Soon."} if waits else {**ANSWER, "reply": "Soon."}
    script = {**SIMPLE, "supervisor": [reply(json.dumps(answer))]}
    if not waits:
        script["coder"] = [{"hang": True}, *SIMPLE["coder"]]
    with serving(script) as model:
        model.refuse = _refuse_effort_of_lead
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run(effort="high", auto_accepted_plan=not waits)
            path = f"/api/runs/{run['run_id']}"
            if waits:
                await it.events_of(run["run_id"])
            else:
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("coder") == 1)
            written = await it.client.post(f"{path}/messages", json={"content": "How far are you?"})
            assert written.status_code == 202
            if not waits:
                await asyncio.to_thread(model.wait_for, lambda stats: stats["by_role"].get("supervisor") == 2)
                await asyncio.to_thread(model.release)
            frames = await events_of(it, run["run_id"])
    assert frames.count(_NOT_USED) == 1
    names = [name for name, _ in frames]
    assert names.index("user_message") < names.index("effort_not_used") < names.index("user_message_answer")


async def test_suggestions_name_the_models_without_effort(tmp_path):
    questions = ["What is 2+2?"]
    with serving({**SIMPLE, "guide": [reply(json.dumps({"questions": questions}))]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run = await it.run(effort="high")
            await it.events_of(run["run_id"])
            path = f"/api/runs/{run['run_id']}/suggestions"
            taken = (await it.client.post(path)).json()
            model.refuse = _refuse_effort
            refused = (await it.client.post(path)).json()
    assert (taken["effort_not_used"], refused["effort_not_used"]) == ([], ["scripted"])
    assert taken["questions"] == refused["questions"] == questions


async def test_an_unknown_effort_is_refused(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            body = {"input": "1+3=?", "effort": "huge"}
            response = await it.client.post(f"/api/threads/{await it.thread()}/runs", json=body)
            chat = {"model": "maniple", "messages": [{"role": "user", "content": "1+3=?"}]}
            other = await it.client.post(
                "/v1/chat/completions", json={**chat, "metadata": {"effort": "huge"}}
            )
            await it.client.post("/v1/chat/completions", json={**chat, "metadata": {"effort": "medium"}})
    assert (response.status_code, other.status_code) == (422, 400)
    assert {one["reasoning_effort"] for one in model.requests} == {"medium"}
