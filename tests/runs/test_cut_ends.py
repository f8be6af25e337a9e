"""A run whose process died while it sent its end: its row agrees with its events."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import RunRequest
from tests.openai_server import SIMPLE, serving
from tests.runs.test_recovery import _cut, events_of, process

pytestmark = pytest.mark.anyio
FAILING = {**SIMPLE, "planner": [{"status": 401}]}
LAST_WORDS = ["error", "run_status", "end_of_workflow", "final_session_state"]


async def recovered(folder, script, kept: int | None):
    """Return a run's row before and after its process stopped with this many of its last events stored."""
    with serving(script) as server:
        async with process(folder, server) as (engine, store):
            run_id = (await engine.submit(RunRequest([HumanMessage("1+3=?")]))).run.run_id
            events = await events_of(engine, run_id)
            before = await engine.status(run_id)
            await store.runs.change(run_id, status="running", ended_at=None, error_code=None, error=None)
            if kept is not None:
                await _cut(store, run_id, len(events) - len(LAST_WORDS) + kept)
        async with process(folder, server) as (engine, _):
            again = await events_of(engine, run_id)
            after = await engine.status(run_id)
    return events, before, again, after


@pytest.mark.parametrize("kept", [1, 2, 3, 4])
async def test_a_run_that_had_reported_its_failure_has_that_reason(tmp_path, kept):
    events, before, again, after = await recovered(tmp_path, FAILING, kept)
    assert [event.type for event in events[-4:]] == LAST_WORDS
    assert before.error_code == "model_auth"
    assert (after.status, after.error_code, after.error) == ("failed", before.error_code, before.error)
    assert [event.type for event in again[-3:]] == LAST_WORDS[1:]


@pytest.mark.parametrize("kept", [2, 3, 4])
async def test_a_run_that_had_reported_success_is_no_failure(tmp_path, kept):
    events, before, again, after = await recovered(tmp_path, SIMPLE, kept)
    assert again == events
    assert (before.status, after.status, after.error_code) == ("completed", "completed", None)
