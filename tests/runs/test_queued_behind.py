"""Messages that came while a run was at work, and that run then pauses for its user."""

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph import RunOptions
from maniple.runs import InProcessEngine, RunRequest
from tests.openai_server import SIMPLE, reply, serving
from tests.runs.test_recovery import events_of, process
from tests.team import checked, status

pytestmark = pytest.mark.anyio
SCRIPT = {
    **SIMPLE,
    "coordinator": [*SIMPLE["coordinator"], reply("Hello.")],
    # Time enough for the others to come before it pauses.
    "planner": [{**SIMPLE["planner"][0], "chunks": [SIMPLE["planner"][0]["text"]], "delay_seconds": 1}],
}


def message(text: str) -> RunRequest:
    return RunRequest([HumanMessage(text)], "t", RunOptions(auto_accepted_plan=False))


async def queued(engine: InProcessEngine) -> list[str]:
    """Begin a run that pauses with its plan, and two behind it."""
    run_ids = [(await engine.submit(message(text))).run.run_id for text in ("first", "second", "third")]
    assert status(checked(await events_of(engine, run_ids[0]))) == "interrupted"
    return run_ids


async def ends(engine: InProcessEngine, run_ids: list[str]) -> list[Any]:
    """Follow each to its end, and return how the rows stand, in the order in which they ended."""
    for run_id in run_ids:
        await events_of(engine, run_id)
    rows = [await engine.status(run_id) for run_id in run_ids]
    return sorted(rows, key=lambda row: row.ended_at or 0)


async def test_they_wait_for_its_end_and_the_next_message_is_its_answer(tmp_path):
    with serving(SCRIPT) as server:
        async with process(tmp_path, server) as (engine, _):
            run_ids = await queued(engine)
            assert [(await engine.status(one)).status for one in run_ids[1:]] == ["queued", "queued"]
            answer = await engine.submit(message("accept"))
            assert answer.run.run_id == run_ids[0]
            rows = await ends(engine, run_ids)
            said = [one.content for one in (await events_of(engine, run_ids[-1]))[-1].messages]
    assert [(row.run_id, row.status) for row in rows] == [(one, "completed") for one in run_ids]
    assert [one for one in said if one in ("first", "second", "third", "Hello.")] == [
        "first",
        "second",
        "Hello.",
        "third",
        "Hello.",
    ]


async def test_they_wait_on_after_a_restart(tmp_path):
    with serving(SCRIPT) as server:
        async with process(tmp_path, server) as (engine, _):
            run_ids = await queued(engine)
        async with process(tmp_path, server) as (engine, _):
            assert (await engine.status(run_ids[0])).status == "interrupted"
            await engine.resume(run_ids[0], "accept")
            rows = await ends(engine, run_ids)
    assert [(row.run_id, row.status) for row in rows] == [(one, "completed") for one in run_ids]


async def test_they_go_on_when_it_is_cancelled(tmp_path):
    with serving(SCRIPT) as server:
        async with process(tmp_path, server) as (engine, _):
            run_ids = await queued(engine)
            await engine.cancel(run_ids[0])
            rows = await ends(engine, run_ids)
            events = await events_of(engine, run_ids[0])
    assert [row.status for row in rows] == ["cancelled", "completed", "completed"]
    assert [one.status for one in events if one.type == "run_status"] == ["interrupted", "cancelled"]
