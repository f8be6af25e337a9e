"""What a member had found when its run was stopped is known afterwards, marked as unfinished."""

import asyncio
import json
import re

import pytest
from langchain_core.messages import HumanMessage

from maniple.runs import RunRequest
from maniple.scope.budget import Budget
from tests.openai_server import call, reply
from tests.runs.histories import copy_data
from tests.runs.test_steering import decided, shown_to, working
from tests.team import plan, step, tavily_search

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
SERIAL = step("researcher", "Find"), step("reporter", "Report")
PARALLEL = (
    {**step("researcher", "Find"), "needs": []},
    {**step("coder", "Sum"), "needs": []},
    step("reporter", "Report"),
)
HALF = {"chunks": ["Tea is ", "4 euros; ", "cocoa"], "hang_after": 3, "times": 1}
CALLING = {"text": "The shops are open.", **call("tavily_search", query="shops of Rome")}
ROLES = ("coordinator", "planner", "researcher")


def script(*steps, researcher=(), **roles):
    return {
        "coordinator": [call("handoff_to_planner", locale="en-US")],
        "planner": [reply(json.dumps(plan(*steps)))],
        "coder": [call("python_repl_tool", code="1"), reply("It is 4.")],
        "researcher": list(researcher) or [HALF, reply("Found.")],
        "reporter": [reply("# Report")],
        **roles,
    }


async def begin(it, said="cocoa", **options):
    """Begin a run; return its id when the words are recorded."""
    run = (await it.engine.submit(RunRequest([HumanMessage("Compare prices")], "t", **options))).run
    await it.recorded_words(run.run_id, said)
    return run.run_id


async def go_on(it, text="Go on where you stopped."):
    """Send the next request; return what each role was shown at last."""
    it.gate.set()
    run = (await it.engine.submit(RunRequest([HumanMessage(text)], "t"))).run
    await it.events_of(run.run_id)
    # The marks of untrusted data differ between processes.
    return {role: re.sub("data [0-9a-f]{8}", "data", shown_to(it.prompts(role)[-1])) for role in ROLES}


@pytest.mark.parametrize("steps", [SERIAL, PARALLEL])
async def test_the_next_request_knows_the_words_at_which_a_run_was_cancelled(tmp_path, steps):
    async with working(tmp_path, script(*steps)) as it:
        await it.engine.cancel(await begin(it))
        for role, shown in (await go_on(it)).items():
            assert shown.count("Tea is 4 euros; cocoa") == 1, role
            assert "not finished" in shown


async def test_the_record_of_a_cancelled_step_is_the_same_after_a_restart(tmp_path):
    told = script(*PARALLEL)
    async with working(tmp_path / "live", told) as it:
        await it.engine.cancel(await begin(it))
        disk = copy_data(tmp_path / "live", tmp_path / "restarted")
        live = await go_on(it)
    async with working(disk, {**told, "researcher": [reply("Found.")]}) as it:
        assert await go_on(it) == live


async def test_a_run_that_goes_on_after_the_program_was_killed_loses_no_words(tmp_path):
    told = script(*SERIAL)
    async with working(tmp_path / "life", told) as it:
        await begin(it)
        disk = copy_data(tmp_path / "life", tmp_path / "next")
    more = {"chunks": ["Milk is 1 euro"], "hang_after": 1, "times": 1}
    async with working(disk, {**told, "researcher": [more, reply("Found.")]}) as it:
        [run] = await it.store.runs.list_by_thread("t")
        await it.recorded_words(run.run_id, "Milk")
        await it.engine.cancel(run.run_id)
        for shown in (await go_on(it)).values():
            assert "Tea is 4 euros; cocoa" in shown
            assert "Milk is 1 euro" in shown


@pytest.mark.parametrize("steps", [SERIAL, PARALLEL])
async def test_the_lead_of_a_retry_knows_the_words_at_which_the_run_was_cancelled(tmp_path, steps):
    again = {"chunks": ["Again"], "hang_after": 1, "times": 1}
    told = script(*steps, researcher=(HALF, again, reply("Found.")), supervisor=[decided("answer")])
    async with working(tmp_path, told) as it:
        run_id = await begin(it)
        await it.engine.cancel(run_id)
        await it.engine.retry(run_id)
        await it.recorded_words(run_id, "Again")
        await it.engine.send_message(run_id, "What have you found so far?")
        await it.answered(run_id)
        assert "Tea is 4 euros; cocoa" in shown_to(it.prompts("supervisor")[-1])
        await it.engine.cancel(run_id)


async def test_a_call_and_its_result_are_known_with_the_words_before_them(tmp_path):
    told = script(*SERIAL, researcher=(CALLING, {"hang": True, "times": 1}, reply("Found.")))
    async with working(tmp_path, told, more_tools={"researcher": [tavily_search]}) as it:
        run_id = await begin(it, "open.")
        await it.recorded(run_id, "tool_call_result")
        # The call that hangs must have come before the run is cancelled.
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"]["researcher"] == 2)
        await it.engine.cancel(run_id)
        for shown in (await go_on(it)).values():
            assert "The shops are open." in shown
            assert "shops of Rome" in shown


async def test_what_a_step_had_found_when_the_time_was_used_up_is_known(tmp_path):
    told = script(*SERIAL, reporter=[reply("# Report")])
    async with working(tmp_path, told) as it:
        run_id = await begin(it, budget=Budget(seconds=1.5))
        await it.events_of(run_id)
        assert (await it.engine.status(run_id)).status == "budget_exhausted"
        for shown in (await go_on(it)).values():
            assert "Tea is 4 euros; cocoa" in shown


async def test_a_retry_shows_the_member_what_it_had_found_when_the_time_was_used_up(tmp_path):
    async with working(tmp_path, script(*SERIAL)) as it:
        run_id = await begin(it, budget=Budget(seconds=1.5))
        await it.events_of(run_id)
        await it.engine.retry(run_id)
        await it.events_of(run_id)
        assert "Tea is 4 euros; cocoa" in shown_to(it.prompts("researcher")[-1])


async def test_a_step_that_was_done_is_not_called_unfinished(tmp_path):
    told = script(*PARALLEL, researcher=[reply("Tea is 4 euros.")])
    async with working(tmp_path, told) as it:
        run_id = await it.begin("Compare prices")
        await it.completed(run_id, "Find")
        await it.engine.cancel(run_id)
        shown = (await go_on(it))["planner"]
        assert "Done in it: step 1" in shown
        assert shown.count("Tea is 4 euros.") == 1
        assert "<data>\ncalled python_repl_tool" in shown


async def test_of_a_long_text_the_end_is_shown_and_the_rest_has_a_file(tmp_path):
    long = {"chunks": ["Tea. " * 400, "the newest"], "hang_after": 2, "times": 1}
    async with working(tmp_path, script(*SERIAL, researcher=(long, reply("Found.")))) as it:
        await it.engine.cancel(await begin(it, "newest"))
        shown = (await go_on(it))["planner"]
        _, _, unfinished = shown.partition("not finished")
        assert "results/" in unfinished
        assert "the newest" in unfinished
        assert len(unfinished) < 2_000
