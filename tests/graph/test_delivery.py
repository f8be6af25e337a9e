"""A run ends with a gap that names what was promised and is not there."""

import json

import pytest

from maniple.agents.offers import Offer
from maniple.config import TeamSettings
from maniple.tools.interaction import terminate_tool
from maniple.tools.items import ThreadItems
from maniple.workspace import Workspaces
from tests.openai_server import SIMPLE, call, reply
from tests.team import TOOLS, data, plan, python_repl_tool, scripted_team, step, tavily_search
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio
GIVES_UP = reply(json.dumps({"action": "continue_without"}))
WRITE = call("write_file", path="trip.docx", content="Rome")


def tools(workspaces):
    files = build_file_tools(workspaces)
    whole = [python_repl_tool, tavily_search, *files, terminate_tool()]
    return Offer({"coder": [python_repl_tool, *files], "researcher": [tavily_search], "manus": whole})


def gaps(frames):
    return data(frames, "run_status")[-1].get("gaps") or []


async def run(tmp_path, script, text, **options):
    workspaces = Workspaces(tmp_path)
    settings = TeamSettings(members=["coder", "researcher", "reporter", "manus"]) if options else None
    async with scripted_team(
        {"supervisor": [GIVES_UP], **script},
        toolbox=tools(workspaces),
        items=ThreadItems(workspaces),
        settings=settings,
    ) as it:
        frames = await it.run(text, thread_id="t", **options)
        return frames, it.server.stats["by_role"]


async def test_an_honest_sum_takes_no_further_call():
    async with scripted_team({**SIMPLE, "reporter": [reply("4")]}, toolbox=TOOLS) as it:
        await it.run()
        assert it.server.stats["by_role"]["coder"] == 2
        assert len(it.server.requests) == 5


def planned(*steps):
    return {
        "coordinator": [call("handoff_to_planner", locale="en")],
        "planner": [reply(json.dumps(plan(*steps)))],
        "reporter": [reply("# Trip\n\nTo Rome.")],
    }


async def test_a_coder_that_answers_without_its_file_leaves_a_gap_that_names_it(tmp_path):
    script = planned(step("coder", "Write trip.docx"), step("reporter"))
    answer = reply('{"days": ["Rome"]}')
    frames, calls = await run(tmp_path, {**script, "coder": [answer]}, "Plan a trip as trip.docx")
    (gap,) = gaps(frames)
    assert gap["step"] == "Write trip.docx"
    assert calls["coder"] % 2 == 0, "each try is asked once more"


async def test_a_file_that_is_written_leaves_no_gap(tmp_path):
    script = planned(step("coder", "Write trip.docx"), step("reporter"))
    frames, calls = await run(
        tmp_path, {**script, "coder": [WRITE, reply("It is written.")]}, "Plan a trip as trip.docx"
    )
    assert gaps(frames) == []
    assert calls["coder"] == 2


@pytest.mark.parametrize("end", [reply("All 8 tests pass."), call("terminate", result="All 8 tests pass.")])
async def test_manus_that_claims_work_without_a_call_is_asked_once_more(tmp_path, end):
    frames, calls = await run(tmp_path, {"manus": [end]}, "Run the tests", agent="manus")
    assert calls == {"manus": 2}
    assert gaps(frames)


async def test_manus_that_works_when_it_is_asked_has_no_gap(tmp_path):
    replies = [reply("Now I run it:"), WRITE, call("terminate", result="Written as trip.docx.")]
    frames, calls = await run(tmp_path, {"manus": replies}, "Write trip.docx", agent="manus")
    assert calls == {"manus": 3}
    assert gaps(frames) == []
