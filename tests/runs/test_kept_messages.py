"""What members wrote in a run that was stopped beside others stays in the conversation."""

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import RunRequest
from maniple.service.thread_views import read_thread_detail
from tests.openai_server import reply
from tests.runs.test_cancelled_plan import independent, script
from tests.runs.test_steering import shown_to, working
from tests.team import step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
STEPS = [*independent(step("coder", "Sum"), step("researcher", "Find all")), step("reporter", "Report")]
FOUND = "Tea is 4 euros."


async def texts_of_thread(it):
    thread = await it.store.threads.get("t", "")
    detail = await read_thread_detail(it.store, it.engine._services.team, thread)
    return [one.content for one in detail.messages]


@pytest.mark.parametrize("talk", [[], [reply("Hello!")]])
async def test_the_message_of_a_finished_step_stays_after_the_next_run(tmp_path, talk):
    told = script(*STEPS)
    told["coordinator"] += talk
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Compare prices")
        await it.completed(run_id, "Find all")
        await it.engine.cancel(run_id)
        before = await texts_of_thread(it)
        assert FOUND in before
        it.gate.set()
        run = (await it.engine.submit(RunRequest([HumanMessage("Go on.")], "t"))).run
        await it.events_of(run.run_id)
        after = await texts_of_thread(it)
        assert after[: len(before)] == before


async def test_the_message_of_a_finished_step_stays_where_the_next_request_ended_the_run(tmp_path):
    async with working(tmp_path, script(*STEPS)) as it:
        run_id = await it.begin("Compare prices")
        await it.completed(run_id, "Find all")
        it.gate.set()
        request = RunRequest([HumanMessage("Go on.")], "t", when_busy="interrupt")
        run = (await it.engine.submit(request)).run
        await it.events_of(run.run_id)
        after = await texts_of_thread(it)
        assert FOUND in after[: after.index("Go on.")]
        assert FOUND in shown_to(it.prompts("coder")[-1])
