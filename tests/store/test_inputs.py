"""What was sent to a run is stored in order, once, and an older file keeps all of it."""

import json
import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from maniple.redaction import Redactor
from maniple.runs import RunRequest
from maniple.runs.stored_inputs import StoredInputs, as_record, read_inputs
from maniple.scope.budget import Budget
from maniple.scope.inputs import Message, PlanChange, ReceivedInput, Reply, Resume, Retry, StepAnswer
from maniple.store import open_store
from tests.store.samples import WITHOUT_BRANCHES, a_run, a_thread, stored_run

pytestmark = pytest.mark.anyio
REDACTOR = Redactor(["s3cret-value"])
DOWNGRADE = (
    "DROP TABLE run_inputs; ALTER TABLE runs DROP COLUMN stalls; ALTER TABLE runs DROP COLUMN retries;"
    "ALTER TABLE sources DROP COLUMN published; ALTER TABLE sources DROP COLUMN author;"
    "ALTER TABLE sources DROP COLUMN publisher; DROP TABLE unread_pages;"
    "DROP TABLE findings; DROP TABLE page_attempts;"
    "ALTER TABLE runs DROP COLUMN waiting_for; ALTER TABLE runs DROP COLUMN waiting_since;"
    "ALTER TABLE runs DROP COLUMN waiting_until; ALTER TABLE tool_calls DROP COLUMN started_at;"
    f"{WITHOUT_BRANCHES}"
    "DROP INDEX temporary_threads; ALTER TABLE threads DROP COLUMN temporary_of;"
    "ALTER TABLE threads DROP COLUMN copied_run; ALTER TABLE threads DROP COLUMN metadata;"
    "PRAGMA user_version = 8;"
)


async def stored(tmp_path, **changes):
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        thread = await store.threads.create(a_thread())
        return (await store.runs.add(replace(a_run(thread), **changes))).run_id


async def upgraded(tmp_path, request: str):
    """Return the run, and its inputs, of a file of the version before, whose run had this request."""
    run_id = await stored(tmp_path, request=request)
    with closing(sqlite3.connect(tmp_path / "maniple.db")) as connection:
        connection.executescript(DOWNGRADE)
    async with open_store(tmp_path / "maniple.db", tmp_path / "artifacts", server=True) as store:
        return await store.runs.get(run_id), await read_inputs(store.inputs, run_id)


async def test_inputs_are_written_once_and_replied_to_once(store):
    message = ReceivedInput("m", Message("It is s3cret-value. 😀"))
    run_id = (await stored_run(store)).run_id
    log = StoredInputs(store.inputs, run_id, REDACTOR)
    await log.write([message, ReceivedInput("c", PlanChange("skip", 1, change_id="c"), "lead")], [])
    await log.write([message], [replace(message, reply=Reply("answered", "s3cret-value!", [1]))])
    await log.write([], [replace(message, reply=Reply("dropped"))])
    await StoredInputs(store.inputs, "deleted", REDACTOR).write([message], [])
    found = await read_inputs(store.inputs, run_id)
    assert await read_inputs(store.inputs, "deleted") == []
    assert [(one.input_id, one.sender) for one in found] == [("m", "user"), ("c", "lead")]
    assert "s3cret" not in str(found)
    assert found[0].reply is not None
    assert (found[0].reply.disposition, list(found[0].reply.steps)) == ("answered", [1])
    assert found[1].content == PlanChange("skip", 1, change_id="c")


async def test_the_inputs_of_a_deleted_thread_are_deleted(store):
    run_id = (await stored_run(store)).run_id
    await store.inputs.write(run_id, [as_record(ReceivedInput("m", Message("a")), REDACTOR)])
    run = await store.runs.get(run_id)
    assert run is not None
    await store.threads.delete(run.thread_id)
    assert await store.inputs.list_by_run(run_id) == []


def old_request(**keys) -> str:
    request = json.loads(RunRequest([], budget=Budget(model_calls=5)).to_json())
    return json.dumps({**request, "stalls": 2, "is_retry": False, "answers": {}, "answered": "", **keys})


async def test_an_older_file_keeps_messages_changes_and_answers(tmp_path):
    decision = {"disposition": "passed_on", "reply": "Gladly.", "steps": [1, 2]}
    wish = {"action": "edit", "step_id": 2, "title": 'A "new" one', "after": None, "needs": [1]}
    answers = {"k1": "text \"quoted\" 'x' \u20ac", "k2": {"a": [1, None]}, "k3": True, "k4": None, "k5": 1.5}
    run, found = await upgraded(
        tmp_path,
        old_request(
            user_messages=[
                {"message_id": "m1", "text": "first", "decision": decision},
                {"message_id": "m2", "text": "second", "decision": None},
            ],
            wishes=[{**wish, "change_id": "c1", "description": None, "agent_name": None}],
            step_answers=answers,
            answers={"id1": {"type": "accept"}},
            answered="id1-2",
            answered_after=17,
        ),
    )
    by_id = {one.input_id: one for one in found}
    assert by_id["m1"].content == Message("first")
    assert by_id["m1"].reply == Reply("passed_on", "Gladly.", [1, 2])
    assert by_id["m2"].reply is None
    assert by_id["c1"].content == PlanChange("edit", 2, 'A "new" one', needs=[1], change_id="c1")
    given = {one.content.question: one.content.answer for one in found if isinstance(one.content, StepAnswer)}
    assert given == answers
    assert found[-1].content == Resume("id1-2", {"type": "accept"}, 17)
    assert (run.stalls, run.retries) == (2, 0)
    request = RunRequest.of(run)
    assert request.budget == Budget(model_calls=5)
    assert (
        not {"wishes", "user_messages", "step_answers", "answers", "stalls"} & json.loads(run.request).keys()
    )


async def test_an_older_file_keeps_a_retry_that_had_not_begun(tmp_path):
    retry = {"action": "retry", "step_id": 0, "change_id": "r1"}
    run, found = await upgraded(
        tmp_path, old_request(wishes=[{**retry, "change_id": "r0"}, retry], is_retry=True, answered_after=9)
    )
    assert [one.input_id for one in found] == ["r0", "r1"]
    assert found[-1].content == Retry(9, Budget(model_calls=5))
    assert run.retries == 2


@pytest.mark.parametrize("request_", ["{}", "no JSON", "", "[]", '{"wishes": null, "user_messages": 5}'])
async def test_a_request_that_cannot_be_read_does_not_keep_a_file_from_its_upgrade(tmp_path, request_):
    run, found = await upgraded(tmp_path, request_)
    assert found == []
    assert run is not None
