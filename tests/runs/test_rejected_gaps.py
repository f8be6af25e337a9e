"""What the user did not approve is a gap for which no retry is offered."""

import json

import pytest

from maniple.cli.render.run_text import is_undone
from maniple.events import RunStatusChanged, load_run_view
from maniple.runs import EngineConfig
from tests.openai_server import call, reply
from tests.runs.test_steering import of, script, working
from tests.team import step

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]
STEPS = [step("coder", "Delete"), step("researcher", "Find"), step("reporter", "Report")]


@pytest.mark.parametrize("also_failed", [False, True])
async def test_a_retry_is_offered_only_for_what_was_not_rejected(tmp_path, also_failed):
    coder = [call("bash_tool", cmd="rm x"), reply("It could not be deleted.")]
    told = script(*STEPS, coder=coder, supervisor=[reply(json.dumps({"decision": "continue_without"}))] * 3)
    if also_failed:
        told["researcher"] = [reply("STEP FAILED: no data")]
    async with working(tmp_path, told, config=EngineConfig(approval=["bash_tool"])) as it:
        run_id = await it.submit("delete x")
        await it.events_of(run_id)
        await it.engine.resume(run_id, "nein, das brauche ich noch")
        events = await it.events_of(run_id)
        gaps = of(events, RunStatusChanged)[-1].gaps or ()
        rejected = {"Delete": True, "Find": None} if also_failed else {"Delete": True}
        assert {one.step: one.rejected for one in gaps} == rejected
        view = await load_run_view(it.store.events, run_id)
        assert is_undone(view) is also_failed
