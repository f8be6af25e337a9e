"""A person changes the plan while several of its steps are under way."""

import asyncio
from collections import Counter

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from maniple.agents import Task
from maniple.scope.context import SCOPE_KEY
from maniple.scope.inbox import Inbox
from maniple.scope.inputs import PlanChange
from maniple.scope.run_scope import RunScope
from tests.graph.test_waves import Log, invoke, planned, team
from tests.inboxes import an_inbox, sent
from tests.openai_server import reply

pytestmark = pytest.mark.anyio


def changing(inbox: Inbox, *changes: PlanChange):
    """Return what a step does in which a person changes the plan, once."""

    async def change(log: Log, task: Task) -> str:
        while waiting:
            await inbox.put(sent(waiting.pop(0)))
        return "changed"

    waiting = list(changes)
    return change


async def hang(log: Log, task: Task) -> str:
    try:
        await asyncio.Event().wait()
    finally:
        log.note("stop", task.title)
    return "never"


async def run(inbox: Inbox, steps, ways, **options):
    saver = InMemorySaver()
    async with team(*steps, ways=ways, checkpointer=saver, **options) as (it, log):
        scope = RunScope("run", inbox=inbox)
        return await invoke(it, saver, **{SCOPE_KEY: scope}), log


async def test_a_step_under_way_that_is_skipped_is_stopped_alone():
    async def skip(log: Log, task: Task) -> str:
        await log.until(log.begun, "A", "C")
        await inbox.put(sent(PlanChange("skip", 1)))
        await log.until(log.ended, "B")  # which needed A
        return "changed"

    inbox = an_inbox()
    steps = planned("A"), planned("B", 1), planned("C")
    statuses, log = await run(inbox, steps, {"A": hang, "C": skip})
    assert statuses == {"A": "skipped", "B": "completed", "C": "completed", "Report": "completed"}
    assert log.count("begin") == Counter(["A", "B", "C", "Report"])
    assert log.count("stop") == Counter(["A"])


async def test_a_step_that_waits_and_is_skipped_never_begins():
    inbox = an_inbox()
    steps = planned("A"), planned("B", 1), planned("C")
    statuses, log = await run(inbox, steps, {"A": changing(inbox, PlanChange("skip", 2))})
    assert statuses["B"] == "skipped"
    assert log.count("begin") == Counter(["A", "C", "Report"])


async def test_a_step_under_way_that_is_edited_begins_again_as_the_person_wrote_it():
    async def edit(log: Log, task: Task) -> str:
        await log.until(log.begun, "A")
        await inbox.put(sent(PlanChange("edit", 1, title="New", description="Do this.")))
        await log.until(log.ended, "New")
        return "changed"

    inbox = an_inbox()
    statuses, log = await run(inbox, [planned("A"), planned("B")], {"A": hang, "B": edit})
    assert statuses == dict.fromkeys(("New", "B", "Report"), "completed")
    assert log.count("begin") == Counter(["A", "B", "New", "Report"])
    assert log.count("stop") == Counter(["A"])


async def test_a_step_that_waits_and_is_edited_begins_as_the_person_wrote_it():
    inbox = an_inbox()
    change = PlanChange("edit", 2, title="New", description="Do this.")
    steps = planned("A"), planned("B", 1), planned("C")
    statuses, log = await run(inbox, steps, {"A": changing(inbox, change)})
    assert log.count("begin") == Counter(["A", "New", "C", "Report"])
    assert set(statuses.values()) == {"completed"}


async def test_a_step_that_is_given_to_another_member_is_done_by_that_one():
    inbox = an_inbox()
    change = PlanChange("edit", 2, agent_name="coder")
    steps = planned("A"), planned("B", 1), planned("C")
    statuses, log = await run(inbox, steps, {"A": changing(inbox, change)})
    assert log.count("begin") == Counter(["A", "B", "C", "Report"])
    assert set(statuses.values()) == {"completed"}


async def test_a_step_that_is_done_again_undoes_what_was_built_on_it_and_nothing_else():
    async def redo(log: Log, task: Task) -> str:
        await log.until(log.ended, "A", "B")
        if inbox.is_open and log.count("begin")["C"] == 1 and not inbox.changes:
            await inbox.put(sent(PlanChange("redo", 1)))
        return "changed"

    inbox = an_inbox()
    steps = planned("A"), planned("B", 1), planned("C")
    statuses, log = await run(inbox, steps, {"C": redo})
    assert log.count("begin") == Counter({"A": 2, "B": 2, "C": 1, "Report": 1})
    assert set(statuses.values()) == {"completed"}


async def test_an_added_step_begins_as_soon_as_a_member_is_free():
    async def wait_for_the_new_one(log: Log, task: Task) -> str:
        await log.until(log.ended, "New")
        return "late"

    inbox = an_inbox()
    more = {"title": "New", "description": "Do this.", "agent_name": "researcher", "needs": ()}
    add = PlanChange("add", after=1, **more)
    ways = {"A": changing(inbox, add), "B": wait_for_the_new_one}
    statuses, log = await run(inbox, [planned("A"), planned("B")], ways)
    # B ends only when it was done: so it ran in the same wave, in the invocation of A.
    assert log.count("begin") == Counter(["A", "New", "B", "Report"])
    assert list(statuses) == ["A", "New", "B", "Report"]
    assert set(statuses.values()) == {"completed"}


async def test_an_added_step_that_no_member_can_do_is_done_in_the_next_wave():
    inbox = an_inbox()
    more = {"title": "New", "description": "Do this.", "agent_name": "coder"}
    add = PlanChange("add", after=2, **more)
    steps = planned("A"), planned("B")
    statuses, log = await run(inbox, steps, {"A": changing(inbox, add)})
    assert log.count("begin") == Counter(["A", "B", "New", "Report"])
    assert log.lines.index("end B") < log.lines.index("begin New")
    assert set(statuses.values()) == {"completed"}


async def test_a_lead_whose_step_is_skipped_meanwhile_decides_nothing():
    async def skip(log: Log, task: Task) -> str:
        await log.until(log.ended, "A")
        await inbox.put(sent(PlanChange("skip", 1)))
        return "changed"

    async def fail(log: Log, task: Task) -> str:
        return "STEP FAILED: no data"

    inbox = an_inbox()
    lead = [reply('{"decision": "finish", "hint": null, "step": null}')]
    steps = planned("A"), planned("B"), planned("C", 2)
    statuses, log = await run(inbox, steps, {"A": fail, "B": skip}, supervisor=lead)
    assert statuses == {"A": "skipped", "B": "completed", "C": "completed", "Report": "completed"}
    assert log.count("begin") == Counter(["A", "B", "C", "Report"])
