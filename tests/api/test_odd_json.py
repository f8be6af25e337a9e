"""JSON that is allowed and hard to keep: taken whole or refused, never a fault of ours."""

import json
from uuid import uuid4

import pytest

from tests.api.in_process import InProcessService
from tests.team import data, plan, status, step

pytestmark = pytest.mark.anyio
BIG = str(2**70)
BEYOND = [BIG, f"-{BIG}", "NaN", "Infinity", "1e400", f'{{"a": [{BIG}]}}', '{"a": NaN}', "9" * 5_000]
DEEP = ["[" * 1_000 + "]" * 1_000, '{"a":' * 1_000 + "1" + "}" * 1_000, "[" * 60 + "]" * 60]
TAKEN = [
    str(2**63),
    f"-{2**63}",
    "1.5e308",
    "null",
    "[" * 49 + "]" * 49,
    r'"\ud83d and more"',
    r'{"\ud83d": ["\udc00"]}',
    r'"a\u0000b"',
]
HALF = r"\ud83d"


async def post(it: InProcessService, path: str, body: str):
    return await it.client.post(path, content=body, headers={"content-type": "application/json"})


async def paused(it: InProcessService) -> tuple[str, int]:
    run = await it.run(auto_accepted_plan=False)
    frames = await it.events_of(run["run_id"])
    assert status(frames) == "interrupted"
    return run["run_id"], len(frames)


async def test_an_answer_that_no_checkpoint_keeps_is_refused_and_the_run_still_waits(it: InProcessService):
    run_id, number = await paused(it)
    for answer in BEYOND + DEEP:
        response = await post(it, f"/api/runs/{run_id}/resume", f'{{"answer": {answer}}}')
        assert response.status_code in (400, 422), answer[:40]
        assert response.json()["detail"]
        assert len(response.content) < 1_500
    response = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": "accept"})
    assert response.status_code == 202
    assert status(await it.events_of(run_id, number)) == "completed"


async def test_every_other_answer_is_taken_and_goes_back_to_the_planner(it: InProcessService):
    run_id, number = await paused(it)
    for answer in TAKEN:
        response = await post(it, f"/api/runs/{run_id}/resume", f'{{"answer": {answer}}}')
        assert response.status_code == 202, answer[:40]
        frames = await it.events_of(run_id, number)
        number += len(frames)
        assert (status(frames), data(frames, "error")) == ("interrupted", [])


async def test_a_plan_as_text_with_such_numbers_does_not_break_the_run(it: InProcessService):
    run_id, number = await paused(it)
    mine = plan({**step("coder"), "needs": [2**70, 1]}, step("reporter"), title="Mine")
    response = await it.client.post(f"/api/runs/{run_id}/resume", json={"answer": json.dumps(mine)})
    assert response.status_code == 202
    frames = await it.events_of(run_id, number)
    assert (status(frames), data(frames, "error")) == ("completed", [])
    assert data(frames, "plan")[0]["title"] == "Mine"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("step_id", BIG),
        ("step_id", "NaN"),
        ("step_id", "1e400"),
        ("title", DEEP[0]),
        ("title", "NaN"),
        ("description", BIG),
        ("agent_name", f'"{HALF}"'),
        ("action", f'"{HALF}"'),
    ],
)
async def test_a_plan_change_with_odd_values_is_refused(it: InProcessService, field, value):
    run_id, _ = await paused(it)
    fields = {"action": '"edit"', "step_id": "1", field: value}
    body = "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}"
    response = await post(it, f"/api/runs/{run_id}/plan", body)
    assert response.status_code in (400, 422)
    assert response.json()["detail"]


async def test_a_lone_surrogate_is_refused_in_a_name(it: InProcessService):
    run_id, _ = await paused(it)
    for path, body in [
        (f"/api/runs/{run_id}/plan", f'{{"action": "edit", "step_id": 1, "title": "{HALF}"}}'),
        (f"/api/runs/{run_id}/plan", f'{{"action": "edit", "step_id": 1, "description": "{HALF}"}}'),
        (f"/api/runs/{run_id}/resume", f'{{"answer": 1, "interrupt_id": "{HALF}"}}'),
        ("/api/threads", f'{{"title": "Sums {HALF}"}}'),
    ]:
        response = await post(it, path, body)
        assert response.status_code == 422, body
        assert response.json()["detail"]


@pytest.mark.parametrize("title", [BIG, "NaN", DEEP[0], DEEP[1], "null", '{"a": 1}'])
async def test_a_title_that_is_no_text_is_refused(it: InProcessService, title):
    response = await post(it, "/api/threads", f'{{"title": {title}}}')
    assert response.status_code in (400, 422)
    assert response.json()["detail"]


def nested_schema(levels: int) -> str:
    return '{"properties": {"a": ' * levels + '{"type": "object"}' + "}}" * levels


ODD_FUNCTIONS = {
    "a surrogate": f'{{"name": "f", "description": "{HALF}"}}',
    "a surrogate as a key": f'{{"name": "f", "parameters": {{"properties": {{"{HALF}": {{}}}}}}}}',
    "NaN": '{"name": "f", "parameters": {"properties": {"a": {"maximum": NaN}}}}',
    "a large number": f'{{"name": "f", "parameters": {{"properties": {{"a": {{"maximum": {BIG}}}}}}}}}',
    "no end": '{"name": "f", "parameters": {"$ref": "#"}}',
    **{
        f"{levels} levels": f'{{"name": "f", "parameters": {nested_schema(levels)}}}'
        for levels in (60, 150, 400)
    },
}


@pytest.mark.parametrize("case", ODD_FUNCTIONS)
async def test_an_odd_function_of_the_client_is_taken_or_refused_by_each_protocol(it: InProcessService, case):
    tool, ask = ODD_FUNCTIONS[case], '{"role": "user", "content": "Q", "id": "1"}'
    described = tool if "description" in tool else f'{tool[:-1]}, "description": ""}}'
    bodies = {
        "/v1/chat/completions": f'"model": "maniple", "messages": [{ask}], '
        f'"tools": [{{"type": "function", "function": {tool}}}]',
        "/v1/responses": f'"model": "maniple", "input": "Q", "tools": [{{"type": "function", {tool[1:]}]',
        "/ag-ui": f'"threadId": "{uuid4()}", "runId": "1", "messages": [{ask}], "tools": [{described}], '
        '"state": null, "context": [], "forwardedProps": {}',
        f"/api/threads/{await it.thread()}/runs": f'"input": "Q", "client_tools": [{tool}]',
    }
    for path, body in bodies.items():
        response = await post(it, path, f"{{{body}}}")
        assert response.status_code in (200, 202, 400, 422), path
        if "NaN" in tool or "400" in case:
            assert response.status_code in (400, 422), path


@pytest.mark.parametrize("levels", [60, 300, 700])
async def test_a_body_that_is_nested_too_deeply_is_refused_in_words(it: InProcessService, levels):
    deep = "[" * levels + "]" * levels
    response = await post(it, "/v1/responses", f'{{"model": "maniple", "input": "Q", "metadata": {deep}}}')
    assert response.status_code == 400
    error = response.json()["error"]
    assert error["message"][0].isalnum()
    assert error["param"] != ""
    response = await post(it, "/api/chat/stream", f'{{"messages": {deep}}}')
    assert response.status_code == 422
    assert len(response.text) < 2_000
