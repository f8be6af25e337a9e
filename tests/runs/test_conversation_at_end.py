"""What the user wrote to a run, and the lead's replies, are in the conversation after every kind of end."""

import asyncio

import pytest
from langchain_core.messages import HumanMessage

from maniple.graph.nodes import worker
from maniple.runs import EngineConfig, RunRequest
from maniple.service.thread_views import read_thread_detail
from tests.openai_server import call, reply
from tests.runs.test_steering import decided, script, status, texts, working
from tests.team import step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
LEFT_OUT, FOUND, LATE = "Leave out 2024.", "What have you found?", "And name the fares."
LEAVES, KNOWS = "It is left out.", "Two prices so far."
HANGING = {"hang": True}
LEAD = [decided("answer", reply=LEAVES), decided("answer", reply=KNOWS), {**HANGING, "times": 1}]
SAID = [LEFT_OUT, LEAVES, FOUND, KNOWS]
APART = [
    {**step("coder", "Sum"), "needs": []},
    {**step("researcher", "Find"), "needs": []},
    step("reporter", "Report"),
]


async def thread_of(it):
    """Return the texts of the thread that clients read, without what members wrote."""
    thread = await it.store.threads.get("t", "")
    detail = await read_thread_detail(it.store, it.engine._services.team, thread)
    return [one.content for one in detail.messages]


def exchange_in(said):
    """Return the part of a conversation that user and lead wrote to each other, in order."""
    wanted = (*SAID, LATE)
    return [one for one in said if one in wanted or "cancelled before" in str(one)]


async def write(it, run_id, *texts):
    for number, text in enumerate(texts, start=1):
        await it.engine.send_message(run_id, text)
        await it.answered(run_id, number)


async def cancelled(it, *messages):
    """Write to a run, at last something that the lead does not come to, and cancel it."""
    run_id = await it.begin(*messages)
    await write(it, run_id, LEFT_OUT, FOUND)
    await it.engine.send_message(run_id, LATE)
    await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("supervisor") == 3)
    await it.engine.cancel(run_id)
    return run_id


@pytest.mark.parametrize("steps", [(), APART])
async def test_a_cancelled_run_leaves_it_in_the_conversation_and_the_next_run_keeps_it(tmp_path, steps):
    async with working(tmp_path, script(*steps, supervisor=LEAD)) as it:
        run_id = await cancelled(it)
        events = await it.events_of(run_id)
        assert status(events) == "cancelled"
        told = exchange_in(texts(events))
        assert told[:-1] == [*SAID, LATE]
        assert exchange_in(await thread_of(it)) == told
    async with working(tmp_path, script()) as it:
        assert exchange_in(await thread_of(it)) == told
        it.gate.set()
        run = (await it.engine.submit(RunRequest([HumanMessage("And now?")], "t"))).run
        events = await it.events_of(run.run_id)
        for said in (texts(events), await thread_of(it)):
            assert exchange_in(said) == told
            assert said.index("sum") < said.index(LEFT_OUT) < said.index("And now?")


async def test_a_retry_leaves_it_in_the_conversation_once(tmp_path):
    told = script(supervisor=[*LEAD, decided("answer", reply="They are named.")])
    async with working(tmp_path, told) as it:
        run_id = await cancelled(it)
        it.gate.set()
        await it.engine.retry(run_id)
        await it.events_of(run_id)
        await it.engine.resume(run_id, "run again")
        events = await it.events_of(run_id)
        for said in (texts(events), await thread_of(it)):
            assert exchange_in(said) == [*SAID, LATE]
            assert said.index(LATE) + 1 == said.index("They are named.")


async def test_a_failed_run_leaves_it_in_the_conversation(tmp_path, monkeypatch):
    def break_down(state):
        raise KeyError("a defect")

    async with working(tmp_path, script(supervisor=LEAD)) as it:
        run_id = await it.begin()
        await write(it, run_id, LEFT_OUT, FOUND)
        monkeypatch.setattr(worker, "exchange_of", break_down)  # in the node that was to store it
        events = await it.ended(run_id)
        assert status(events) == "failed"
        assert exchange_in(texts(events)) == SAID
        assert exchange_in(await thread_of(it)) == SAID


async def test_a_run_that_waits_has_it_in_the_conversation(tmp_path):
    asking = call("bash_tool", cmd="ls")
    told = script(coder=[call("python_repl_tool", code="1"), asking, reply("Done.")], supervisor=LEAD)
    async with working(tmp_path, told, config=EngineConfig(approval=["bash_tool"])) as it:
        run_id = await it.begin()
        await write(it, run_id, LEFT_OUT, FOUND)
        events = await it.ended(run_id)
        assert status(events) == "interrupted"
        assert exchange_in(texts(events)) == exchange_in(await thread_of(it)) == SAID
        await it.engine.resume(run_id, "yes")
        events = await it.events_of(run_id)
        assert exchange_in(texts(events)) == exchange_in(await thread_of(it)) == SAID


async def test_what_is_cancelled_before_the_team_began_is_in_the_conversation_with_its_request(tmp_path):
    async with working(tmp_path, script()) as it:
        await it.begin()
        queued = (await it.engine.submit(RunRequest([HumanMessage("And tea?")], "t"))).run
        await it.engine.send_message(queued.run_id, LATE)
        await it.engine.cancel(queued.run_id)
        said = await thread_of(it)
        assert said.index("And tea?") + 1 == said.index(LATE)
        it.gate.set()
        run = (await it.engine.submit(RunRequest([HumanMessage("And now?")], "t"))).run
        said = texts(await it.events_of(run.run_id))
        assert said.index("And tea?") + 1 == said.index(LATE) < said.index("And now?")
        assert len(exchange_in(said)) == 2


async def test_what_was_rolled_back_is_not_in_the_conversation(tmp_path):
    async with working(tmp_path, script(supervisor=LEAD)) as it:
        run_id = await it.begin()
        await write(it, run_id, LEFT_OUT, FOUND)
        request = RunRequest([HumanMessage("Tea?")], "t", when_busy="rollback")
        run = (await it.engine.submit(request)).run
        events = await it.ended(run.run_id)
        assert exchange_in(texts(events)) == exchange_in(await thread_of(it)) == []
