"""A run ends with a gap that names what was promised and is not there."""

import json

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from maniple.agents.offers import Offer
from maniple.config import TeamSettings
from maniple.graph import TeamRules
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
    settings = TeamSettings(members=("coder", "researcher", "reporter", "manus")) if options else None
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


THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
QUESTION = {"messages": [("user", "Do it")]}
SEARCH, RUN = call("tavily_search", query="tea"), call("python_repl_tool", code="1+3")
NO = {"type": "reject", "message": "No, there is no budget for it"}


async def decided(script, *answers, approval="tavily_search"):
    """Run with a tool that needs approval; return the end, the lead's prompts and the reporter's."""
    rules = TeamRules(approval=frozenset({approval}))
    toolbox = Offer({"coder": [python_repl_tool, tavily_search]})
    script = planned(step("coder", "Work", "Do it."), step("reporter")) | {"coder": script}
    async with scripted_team({"supervisor": [GIVES_UP], **script}, rules=rules, toolbox=toolbox) as it:
        end = await it.team.ainvoke(QUESTION, THREAD)
        for answer in answers:
            end = await it.team.ainvoke(Command(resume=answer), THREAD)
        return end, it.prompts("supervisor"), it.prompts("reporter")


def gaps_of(end):
    return end["messages"][-1].response_metadata["gaps"]


@pytest.mark.parametrize("text", ["As you wish.", "It is done: tea is healthy.", "STEP FAILED: not allowed."])
async def test_a_step_all_of_whose_calls_were_rejected_failed_as_the_user_decided(text):
    end, lead, reporter = await decided([SEARCH, reply(text)], NO)
    (gap,) = gaps_of(end)
    assert "tavily_search" in gap["reason"] and NO["message"] in gap["reason"]
    assert lead == [], "another try would not help"
    assert NO["message"] in reporter[0]
    assert "tea is healthy" not in reporter[0].partition("MISSING")[2].partition("Until then")[0]
    assert text.removeprefix("STEP FAILED: ") in reporter[0], "what the member says of it is kept"


async def test_each_call_that_was_rejected_is_named_with_its_argument_and_the_users_words():
    other = call("tavily_search", query="coffee prices")
    no = {"type": "reject", "message": "Not that either."}
    end, _, _ = await decided([SEARCH, other, reply("I did not search.")], NO, no)
    (gap,) = gaps_of(end)
    assert "coffee prices" in gap["reason"]
    assert NO["message"] in gap["reason"] and no["message"] in gap["reason"]


async def test_a_rejection_after_other_work_is_named_in_the_result():
    end, lead, reporter = await decided([RUN, SEARCH, reply("The sum is 4.")], NO)
    [gap] = gaps_of(end)
    assert lead == [], "what the user did not approve is not tried in another way"
    assert NO["message"] in gap["reason"]
    assert "The sum is 4." in reporter[0] and NO["message"] in reporter[0]


async def test_work_after_a_rejection_is_the_other_way_that_the_user_wanted():
    end, _, reporter = await decided([SEARCH, RUN, reply("The sum is 4.")], NO)
    assert gaps_of(end) == []
    assert "rejected" not in reporter[0]


async def test_a_rejected_call_that_is_made_again_and_approved_is_done():
    end, _, _ = await decided([SEARCH, SEARCH, reply("Found.")], NO, {"type": "accept"})
    assert gaps_of(end) == []


@pytest.mark.parametrize(
    "claim", ["All 8 tests pass.", "Ich habe das Programm ausgeführt: 4.", "测试全部通过。"]
)
async def test_a_claim_without_work_is_marked_for_the_steps_after_it_and_the_user(claim):
    script = planned(step("coder", "Work", "Run the tests."), step("reporter")) | {"coder": [reply(claim)]}
    async with scripted_team({"supervisor": [GIVES_UP], **script}, toolbox=TOOLS) as it:
        frames = await it.run()
        prompt = str(it.prompts("reporter")[0])
    assert 0 < prompt.index(claim) < prompt.index("no tool")
    (gap,) = gaps(frames)
    assert "no tool" in gap["reason"]


async def test_a_file_that_is_only_read_or_belongs_to_a_later_step_is_not_asked_for(tmp_path):
    steps = step("coder", "Read", "Read data.csv."), step("coder", "Write", "Write it."), step("reporter")
    coder = [
        *(call("read_file", path="data.csv"), reply("data.csv does not exist.")),
        *(call("write_file", path="out.csv", content="x"), reply("Done.")),
    ]
    frames, calls = await run(
        tmp_path, {**planned(*steps), "coder": coder}, "Read data.csv and write out.csv"
    )
    assert gaps(frames) == []
    assert calls["coder"] == 4
