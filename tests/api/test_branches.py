"""A question is asked again on a branch over HTTP."""

import pytest

from tests.api.in_process import InProcessService, open_service
from tests.openai_server import reply, serving

pytestmark = pytest.mark.anyio
ANSWERS = {
    "coordinator": [reply(answer) for answer in ("One.", "Two.", "Other two.", "Two again.", "Three.")]
}


@pytest.fixture
async def talking(tmp_path):
    with serving(ANSWERS) as model:
        async with open_service(model.base_url, tmp_path) as it:
            yield it


async def ask(it: InProcessService, thread: str, text: str) -> str:
    response = await it.client.post(f"/api/threads/{thread}/runs", json={"input": text})
    await it.events_of(response.json()["run_id"])
    return response.json()["run_id"]


async def branch(it: InProcessService, run_id: str, body=None) -> dict[str, str]:
    response = await it.client.post(f"/api/runs/{run_id}/branch", json=body)
    assert response.status_code == 202, response.text
    assert response.headers["location"] == f"/api/runs/{response.json()['run_id']}"
    await it.events_of(response.json()["run_id"])
    return response.json()


async def test_a_branch_is_read_like_a_conversation_and_names_the_other_ones(talking: InProcessService):
    it = talking
    thread = await it.thread()
    first, second = await ask(it, thread, "a"), await ask(it, thread, "b")
    edited = await branch(it, second, {"input": "b, edited"})
    again = await branch(it, edited["run_id"])
    references = [
        {"thread_id": thread, "run_id": second},
        {"thread_id": edited["thread_id"], "run_id": edited["run_id"]},
        {"thread_id": again["thread_id"], "run_id": again["run_id"]},
    ]
    for reference in references:
        detail = await it.get(f"/api/threads/{reference['thread_id']}")
        assert [run["run_id"] for run in detail["runs"]] == [reference["run_id"], first]
        assert detail["conversation_id"] == thread
        assert detail["branch_points"] == [
            {"run_id": reference["run_id"], "branches": references, "note": ""}
        ]
    contents = [one["content"] for one in (await it.get(f"/api/threads/{again['thread_id']}"))["messages"]]
    assert contents == ["a", "One.", "b, edited", "Two again."]
    report = await it.client.get(f"/api/runs/{second}/report")
    assert report.text.strip() == "Two."
    follow_up = await ask(it, edited["thread_id"], "c")
    detail = await it.get(f"/api/threads/{edited['thread_id']}")
    assert [run["run_id"] for run in detail["runs"]] == [follow_up, edited["run_id"], first]


async def test_the_list_has_a_conversation_once_and_names_its_newest_branch(talking: InProcessService):
    it = talking
    thread = await it.thread()
    run = await ask(it, thread, "a")
    [before] = (await it.get("/api/threads"))["threads"]
    assert before["newest_branch"] == thread
    made = await branch(it, run)
    [listed] = (await it.get("/api/threads"))["threads"]
    assert (listed["thread_id"], listed["newest_branch"]) == (thread, made["thread_id"])
    assert listed["updated_at"] > before["updated_at"]


async def test_a_deleted_conversation_takes_its_branches_and_their_files_along(talking: InProcessService):
    it = talking
    thread = await it.thread()
    await it.client.post(f"/api/threads/{thread}/files", files={"files": ("a.txt", b"text")})
    made = await branch(it, await ask(it, thread, "a"))
    copy = it.service.workspaces.locate(made["thread_id"]).path
    assert (copy / "a.txt").read_bytes() == b"text"
    deleted = await it.client.delete(f"/api/threads/{thread}")
    assert (deleted.status_code, deleted.json()) == (200, {"deleted": [made["thread_id"], thread]})
    assert not copy.exists()
    assert (await it.client.get(f"/api/threads/{made['thread_id']}")).status_code == 404


async def test_an_empty_question_and_an_unknown_run_are_refused(talking: InProcessService):
    it = talking
    run = await ask(it, await it.thread(), "a")
    assert (await it.client.post(f"/api/runs/{run}/branch", json={"input": " "})).status_code == 422
    assert (await it.client.post("/api/runs/unknown/branch", json={})).status_code == 404


async def test_a_run_that_waits_is_answered_before_it_is_branched(tmp_path):
    hanging = {"coordinator": [reply("One."), {"hang": True}]}
    with serving(hanging) as model:
        async with open_service(model.base_url, tmp_path) as it:
            thread = await it.thread()
            run = await ask(it, thread, "a")
            working = await it.client.post(f"/api/threads/{thread}/runs", json={"input": "b"})
            refused = await it.client.post(f"/api/runs/{run}/branch")
            assert (refused.status_code, refused.json()["code"]) == (409, "thread_busy")
            await it.client.post(f"/api/runs/{working.json()['run_id']}/cancel")


async def test_a_branch_has_the_options_of_its_run_or_those_that_are_given(talking: InProcessService):
    it = talking
    body = {"input": "a", "effort": "low", "locale": "de-DE", "budget": {"tokens": 900_000}}
    response = await it.client.post(f"/api/threads/{await it.thread()}/runs", json=body)
    run = response.json()["run_id"]
    await it.events_of(run)

    async def asked(body: dict[str, object]) -> tuple[str, str, bool, int, float]:
        found = (await it.get(f"/api/runs/{(await branch(it, run, body))['run_id']}"))["asked"]
        limits = found["budget"]
        return (
            *(found["effort"], found["locale"], found["deep_thinking_mode"]),
            *(limits["tokens"], limits["seconds"]),
        )

    *_, of_service = await asked({})
    assert await asked({"input": "b"}) == ("low", "de-DE", False, 900_000, of_service)
    chosen = {"effort": "high", "deep_thinking_mode": True, "budget": {"tokens": 800_000, "seconds": 90}}
    assert await asked({"run": chosen}) == ("high", "", True, 800_000, 90)


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"model": "nope"}, 409, "unknown_model"),
        ({"budget": {"cost": 1}}, 409, "prices_unknown"),
        ({"team_members": ["nobody"]}, 422, "invalid_request"),
        ({"effort": "huge"}, 422, "invalid_request"),
    ],
)
async def test_options_that_the_service_has_not_are_refused_before_there_is_a_branch(
    talking: InProcessService, options, status, code
):
    it = talking
    run = await ask(it, await it.thread(), "a")
    before = await it.get("/api/threads")
    response = await it.client.post(f"/api/runs/{run}/branch", json={"run": options})
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert await it.get("/api/threads") == before
