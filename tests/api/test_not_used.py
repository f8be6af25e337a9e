"""What a request asks for in vain, because it becomes an answer or a message to a run, is named."""

import pytest

from tests.api.in_process import open_service
from tests.openai_server import SIMPLE, serving
from tests.team import status

pytestmark = pytest.mark.anyio
NOT_USED = "x-maniple-not-used"
OPTIONS = {
    "model": "scripted",
    "budget": {"tokens": 9_000_000},
    "deep_thinking_mode": False,
    "locale": "de-DE",
}


async def test_an_answer_names_the_options_that_have_no_effect(tmp_path):
    with serving(SIMPLE) as model:
        async with open_service(model.base_url, tmp_path) as it:
            thread = await it.thread()
            path = f"/api/threads/{thread}/runs"
            review = {"input": "1+3=?", "auto_accepted_plan": False, **OPTIONS}
            first = await it.client.post(path, json=review)
            assert status(await it.events_of(first.json()["run_id"])) == "interrupted"
            answer = {"messages": [{"role": "user", "content": "accept"}], **OPTIONS}
            second = await it.client.post(path, json=answer)
            await it.client.get(f"/api/runs/{first.json()['run_id']}/events")
            third = await it.client.post(path, json={"input": "2+3=?", "auto_accepted_plan": False})
            await it.client.get(f"/api/runs/{third.json()['run_id']}/events")
            streamed = await it.client.post("/api/chat/stream", json={**answer, "thread_id": thread})
            plain = await it.client.post(path, json={"input": "3+3=?"})
    assert NOT_USED not in first.headers
    assert second.json()["run_id"] == first.json()["run_id"]
    assert second.headers[NOT_USED] == "locale, model, budget"
    assert streamed.headers[NOT_USED] == "locale, model, budget"
    assert NOT_USED not in plain.headers


async def test_a_message_to_a_run_at_work_names_them_too(tmp_path):
    with serving({**SIMPLE, "coder": [{"hang": True}]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            thread = await it.thread()
            run = await it.run(thread_id=thread)
            steered = {"input": "In euros.", "multitask_strategy": "steer", **OPTIONS}
            written = await it.client.post(f"/api/threads/{thread}/runs", json=steered)
            await it.client.post(f"/api/runs/{run['run_id']}/cancel")
    assert written.json()["run_id"] == run["run_id"]
    assert written.headers[NOT_USED] == "locale, model, budget"


async def test_a_field_without_a_name_is_named_in_a_header_that_can_be_sent(server, client):
    for body in ({"": 1}, {"": 1, " ": 2, "\n": 3, "a": 4}):
        answer = await client.post("/assistants/search", json=body)
        assert answer.status_code == 200
        assert '""' in answer.headers[NOT_USED]
