"""`POST /api/runs/{run_id}/suggestions`: what may be asked next, from the model, on request."""

import json

import pytest

from maniple.graph.suggested_questions import MAX_CHARACTERS
from tests.api.in_process import InProcessService, open_service
from tests.openai_server import SIMPLE, reply, serving
from tests.team import status

pytestmark = pytest.mark.anyio
QUESTIONS = ["What is 2+2?", "Why is 1+3 even?", "Who invented the plus sign?"]


def suggesting(*questions: str):
    return reply(json.dumps({"questions": questions}))


async def ended_run(it: InProcessService, headers=None) -> str:
    run = await it.run(headers)
    assert status(await it.events_of(run["run_id"], headers=headers)) == "completed"
    return run["run_id"]


async def ask(it: InProcessService, run_id: str, headers=None):
    return await it.client.post(f"/api/runs/{run_id}/suggestions", headers=headers)


async def test_questions_come_from_the_question_and_the_report_and_change_nothing(tmp_path):
    with serving({**SIMPLE, "guide": [suggesting(*QUESTIONS)]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run_id = await ended_run(it)
            before = (
                await it.get(f"/api/runs/{run_id}"),
                (await it.client.get(f"/api/runs/{run_id}/events")).text,
            )
            response = await ask(it, run_id)
            after = (
                await it.get(f"/api/runs/{run_id}"),
                (await it.client.get(f"/api/runs/{run_id}/events")).text,
            )
            report = (await it.client.get(f"/api/runs/{run_id}/report")).text
    assert response.status_code == 200, response.text
    assert response.json()["questions"] == QUESTIONS
    assert response.json()["usage"]["model_calls"] == 1
    assert response.json()["usage"]["input_tokens"] > 0
    assert before == after
    shown = " ".join(one["content"] for one in model.requests[-1]["messages"])
    assert "1+3=?" in shown
    assert report.strip() in shown


async def test_what_the_model_writes_becomes_three_lines_of_plain_text(tmp_path):
    wild = ["1. What\nnow?\u0007\u202e", "- What  now?", "* **Why?**", "And then?", "And a fifth?"]
    with serving({**SIMPLE, "guide": [suggesting(*wild)]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            response = await ask(it, await ended_run(it))
    assert response.json()["questions"] == ["What now?", "**Why?**", "And then?"]


@pytest.mark.parametrize(
    "answer",
    [reply("I would rather not."), suggesting(), suggesting(" "), suggesting("x" * (MAX_CHARACTERS + 1))],
    ids=["refused", "none", "blank", "endless"],
)
async def test_nonsense_is_shown_to_the_model_once_then_refused(tmp_path, answer):
    with serving({**SIMPLE, "guide": [answer]}) as model:
        async with open_service(model.base_url, tmp_path) as it:
            run_id = await ended_run(it)
            before = len(model.requests)
            refused = await ask(it, run_id)
            asked = len(model.requests) - before
    assert (refused.status_code, refused.json()["code"]) == (503, "no_suggestions")
    assert "retry-after" in refused.headers
    assert asked == 2


async def test_a_model_that_is_away_refuses_and_the_next_request_works(tmp_path):
    away = {"status": 500, "error": "down", "times": 1}
    with serving({**SIMPLE, "guide": [away, suggesting(*QUESTIONS)]}) as model:
        basic = {"model": "scripted", "base_url": model.base_url, "max_retries": 0}
        async with open_service(model.base_url, tmp_path, models={"basic": basic}) as it:
            run_id = await ended_run(it)
            refused, given = await ask(it, run_id), await ask(it, run_id)
    assert (refused.status_code, refused.json()["code"]) == (503, "no_suggestions")
    assert given.json()["questions"] == QUESTIONS


async def test_suggestions_count_for_the_day_of_a_key_and_end_with_it(it: InProcessService, model):
    model.reset({**SIMPLE, "guide": [suggesting(*QUESTIONS)]})
    mine, other = await it.key("mine", daily_model_calls=6), await it.key("other")
    run_id = await ended_run(it, mine)
    assert (await ask(it, run_id, other)).status_code == 404
    first, second = await ask(it, run_id, mine), await ask(it, run_id, mine)
    assert first.json()["questions"] == QUESTIONS
    assert (second.status_code, second.json()["code"]) == (429, "daily_limit")


async def test_a_run_at_work_and_one_without_a_report_have_none(it: InProcessService, model):
    model.reset({**SIMPLE, "coder": [{"hang": True}]})
    run = await it.run()
    busy = await ask(it, run["run_id"])
    await it.client.post(f"/api/runs/{run['run_id']}/cancel")
    without = await ask(it, run["run_id"])
    unknown = await ask(it, "none")
    assert (busy.status_code, busy.json()["code"]) == (409, "not_finished")
    assert (without.status_code, without.json()["code"]) == (404, "no_report")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
