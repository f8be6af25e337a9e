"""A follow-up question: members know the last report, its sources, and what is in the workspace."""

import json
import re

import pytest
from langchain_core.tools import tool

from maniple.agents.offers import Offer
from maniple.graph.earlier_turns import history_of
from maniple.tools.evidence import source_line
from maniple.tools.items import StoredResults, ThreadItems
from maniple.tools.registry import load_tools
from maniple.workspace import Workspaces
from tests.openai_server import call, reply
from tests.team import plan, scripted_team, step
from tests.tools.built import build_file_tools

pytestmark = pytest.mark.anyio
URL = "https://tea.example/history"
PAGE = "Tea came to Europe in 1610.\n\n" + "More of it. " * 500


@tool
async def crawl_tool(url: str) -> str:
    """Read a page."""
    return f"{await source_line(url, 'The history of tea', PAGE)}\n{PAGE}"


def planned(*members: str) -> dict:
    return reply(json.dumps(plan(*(step(name) for name in members))))


HANDOFF = call("handoff_to_planner", locale="en")
FIRST = "# Tea\n\nTea came to Europe in 1610 [1]."


def tools(workspaces: Workspaces) -> Offer:
    return Offer({"researcher": [crawl_tool], "coder": build_file_tools(workspaces)})


async def test_a_follow_up_is_given_the_last_report_with_its_sources(tmp_path):
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF, HANDOFF],
        "planner": [planned("researcher", "reporter"), planned("reporter")],
        "researcher": [call("crawl_tool", url=URL), reply("It came in 1610 [1]. " + "x" * 2_000)],
        "reporter": [reply(FIRST), reply("# Tee\n\n1610 [1].")],
    }
    async with scripted_team(script, toolbox=tools(workspaces), items=ThreadItems(workspaces)) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        frames = await it.run("Half as long, in German", thread_id="t")
        first, second = it.prompts("reporter")
    assert "<report>" not in first
    report = re.search(r"<report>\n(.+?)\n</report>", second, re.S)
    assert report
    assert FIRST in report[1]
    assert second.count(URL) == 1, "the source is listed once, for the citations"
    assert URL not in report[1]
    assert "When did tea come to Europe?" in second
    assert "reports/1.md" in second
    final = next(data for name, data in frames if name == "final_session_state")["messages"][-1]["content"]
    assert final.startswith("# Tee\n\n1610 [1].")
    assert URL in final, "a source of the first run is cited and listed in the second"


async def test_a_follow_up_is_given_the_findings_behind_the_last_report_by_item(tmp_path):
    workspaces = Workspaces(tmp_path)
    noting = load_tools()["note_finding"].build({})
    assert noting is not None
    note = call("note_finding", statement="Tea came in 1610.", source=1, quote="Tea came to Europe in 1610.")
    script = {
        "coordinator": [HANDOFF, HANDOFF],
        "planner": [planned("researcher", "reporter"), planned("reporter")],
        "researcher": [call("crawl_tool", url=URL), note, reply("It came in 1610 [1].")],
        "reporter": [reply(FIRST), reply("# Tee\n\n1610 [1].")],
    }
    toolbox = Offer({"researcher": [crawl_tool]}, extra_tools={"researcher": [noting]})
    async with scripted_team(script, toolbox=toolbox, items=ThreadItems(workspaces)) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        await it.run("Half as long, in German", thread_id="t")
        prompts = it.prompts("reporter")
    for one in prompts:
        assert one.index("(file sources/1.md)") < one.index("- Tea came in 1610.")


async def test_when_the_rest_is_planned_again_the_planner_sees_the_items_so_far(tmp_path):
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF],
        "planner": [planned("researcher", "coder", "reporter"), planned("reporter")],
        "researcher": [call("crawl_tool", url=URL), reply("It came in 1610 [1]. " + "x" * 2_000)],
        "coder": [reply("STEP FAILED: no table")],
        "supervisor": [reply('{"decision": "replan", "hint": null, "step": null}')],
        "reporter": [reply(FIRST)],
    }
    async with scripted_team(script, toolbox=tools(workspaces), items=ThreadItems(workspaces)) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        first, second = it.prompts("planner")
    assert "sources/1.md" not in first
    assert "- sources/1.md (source, The history of tea" in second


async def test_a_coder_opens_what_the_researcher_read_as_a_file(tmp_path):
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF],
        "planner": [planned("researcher", "coder", "reporter")],
        "researcher": [call("crawl_tool", url=URL), reply("Read it [1].")],
        "coder": [call("read_file", path="sources/1.md"), reply("1610.")],
        "reporter": [reply("# Tea\n\n1610 [1].")],
    }
    async with scripted_team(script, toolbox=tools(workspaces), items=ThreadItems(workspaces)) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        before, after = it.prompts("coder")
    assert "- sources/1.md (source, The history of tea, " in before
    assert "Tea came to Europe in 1610." in after


@pytest.mark.parametrize(("window", "is_whole"), [(200_000, True), (8_000, False)])
async def test_a_result_of_40_000_characters_is_whole_or_names_its_file(tmp_path, window, is_whole):
    found = "".join(f"finding {number:05}\n" for number in range(2_860))
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF],
        "planner": [planned("researcher", "coder", "reporter")],
        "researcher": [reply(found)],
        "coder": [reply("Counted.")],
        "reporter": [reply("# Done")],
    }
    async with scripted_team(
        script,
        toolbox=tools(workspaces),
        items=ThreadItems(workspaces),
        models={"context_tokens": window},
    ) as it:
        await it.run("Count the findings", thread_id="t")
        (prompt,) = it.prompts("coder")
    assert (found.strip() in prompt) is is_whole
    assert ("left out; the whole is the file results/1-researcher.md" in prompt) is not is_whole
    assert found.strip() in workspaces.open("t").read("results/1-researcher.md", 100_000).content.decode()


async def test_results_of_a_second_request_do_not_replace_those_of_the_first(tmp_path):
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF, HANDOFF],
        "planner": [planned("researcher", "reporter")] * 2,
        "researcher": [reply("Denmark. " * 200), reply("Norway. " * 200)],
        "reporter": [reply("# Denmark"), reply("# Norway")],
    }
    async with scripted_team(script, toolbox=tools(workspaces), items=ThreadItems(workspaces)) as it:
        await it.run("Denmark", thread_id="t")
        await it.run("Now the same for Norway", thread_id="t")
    place = workspaces.open("t")
    assert b"Denmark" in place.read("results/1-researcher.md", 10_000).content
    assert b"Norway" in place.read("results/request-2/1-researcher.md", 10_000).content


async def test_the_planner_sees_the_conversation(tmp_path):
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF, HANDOFF],
        "planner": [planned("researcher", "reporter"), planned("reporter")],
        "researcher": [call("crawl_tool", url=URL), reply("1610 [1].")],
        "reporter": [reply(FIRST), reply("# Tee")],
    }
    async with scripted_team(script, toolbox=tools(workspaces), items=ThreadItems(workspaces)) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        await it.run("Plot it by year", thread_id="t")
        first, second = it.prompts("planner")
    assert "sources/1.md" not in first
    assert "- sources/1.md (source, The history of tea, " in second
    assert "- reports/1.md (report, Tea, " in second


async def test_a_follow_up_planner_sees_unfinished_and_removed_steps():
    steps = [
        step("researcher", "Ask the embassy"),
        step("coder", "Chart"),
        step("coder", "Sum"),
        step("reporter", "Report"),
    ]
    script = {
        "coordinator": [HANDOFF, HANDOFF, HANDOFF],
        "planner": [reply(json.dumps(plan(*steps))), planned("coder", "reporter"), planned("reporter")],
        "researcher": [reply("STEP FAILED: the site did not answer")],
        "supervisor": [reply('{"decision": "continue_without", "hint": null, "step": null}')],
        "coder": [reply("4"), reply("5")],
        "reporter": [reply("# Four"), reply("# Five"), reply("# Six")],
    }
    async with scripted_team(script) as it:
        await it.run(thread_id="t", auto_accepted_plan=False)
        edited = json.dumps(plan(steps[0], *steps[2:]))
        await it.run(edited, thread_id="t", auto_accepted_plan=False)
        await it.run("try the failed part again", thread_id="t")
        await it.run("thanks, shorter please", thread_id="t")
        first, second, third = it.prompts("planner")
    assert "Ask the embassy" not in first
    assert "embassy (The site did" in second
    assert "- Chart (removed by the user)" in second
    assert "- coder: Sum" not in second
    assert "Chart" not in third, "all steps of the second plan were done"


async def test_small_talk_between_two_requests_does_not_hide_what_was_not_done():
    script = {
        "coordinator": [HANDOFF, reply("You are welcome!"), HANDOFF],
        "planner": [planned("researcher", "reporter"), planned("reporter")],
        "researcher": [reply("STEP FAILED: the site did not answer")],
        "supervisor": [reply('{"decision": "continue_without", "hint": null, "step": null}')],
        "reporter": [reply("# Nothing"), reply("# Again")],
    }
    async with scripted_team(script) as it:
        await it.run(thread_id="t")
        await it.run("thank you", thread_id="t")
        await it.run("try the failed part again", thread_id="t")
        assert "(The site did not answer)" in it.prompts("planner")[1]


async def test_small_talk_is_no_report_for_the_team_but_known_to_it():
    script = {
        "coordinator": [reply("Hello! What shall we do?"), HANDOFF],
        "planner": [planned("coder", "reporter")],
        "coder": [reply("4")],
        "reporter": [reply("# Four")],
    }
    async with scripted_team(script) as it:
        await it.run("hi", thread_id="t")
        await it.run(thread_id="t")
        (planner,), (coder,), (reporter,) = (it.prompts(role) for role in ("planner", "coder", "reporter"))
    assert "<report>" not in coder + reporter
    assert [one.count("What shall we do?") for one in (planner, coder, reporter)] == [1, 1, 1]


async def test_no_prompt_tells_a_member_to_execute_the_next_step():
    script = {
        "coordinator": [HANDOFF],
        "planner": [planned("coder", "reporter")],
        "coder": [reply("4")],
        "reporter": [reply("# Four")],
    }
    async with scripted_team(script) as it:
        await it.run()
        (prompt,) = it.prompts("reporter")
    assert "execute the next step" not in prompt


async def test_a_researcher_opens_an_earlier_source_by_its_path(tmp_path):
    workspaces = Workspaces(tmp_path)
    script = {
        "coordinator": [HANDOFF, HANDOFF],
        "planner": [planned("researcher", "reporter")] * 2,
        "researcher": [
            call("crawl_tool", url=URL),
            reply("1610 [1]."),
            call("read_item", path="sources/1.md"),
            reply("The page says 1610."),
        ],
        "reporter": [reply(FIRST), reply("# Checked\n\n1610 [1].")],
    }
    offer = Offer({"researcher": [crawl_tool]}, services={StoredResults: StoredResults(workspaces)})
    async with scripted_team(script, toolbox=offer, items=ThreadItems(workspaces)) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        await it.run("Why is source 1 wrong?", thread_id="t")
        prompts = it.prompts("researcher")
    assert "sources/1.md" not in prompts[0]
    assert "- sources/1.md (source, The history of tea, " in prompts[2]
    assert "Tea came to Europe in 1610." in prompts[3]


@pytest.mark.parametrize(
    ("handoff", "options", "language"),
    [
        (call("handoff_to_planner", locale="de-DE"), {}, "de-DE"),
        (call("handoff_to_planner", locale="de-DE"), {"locale": "fr-FR"}, "fr-FR"),
        (reply("handoff_to_planner()"), {}, ""),
    ],
)
async def test_each_request_has_its_own_language_of_the_answer(handoff, options, language):
    script = {
        "coordinator": [call("handoff_to_planner", locale="en-US"), handoff],
        "planner": [planned("researcher", "reporter"), planned("reporter")],
        "researcher": [reply("It came in 1610.")],
        "reporter": [reply("# Tea"), reply("# Tee")],
    }
    async with scripted_team(script) as it:
        await it.run("When did tea come to Europe?", thread_id="t")
        await it.run("Now in German", thread_id="t", **options)
        for role in ("planner", "reporter"):
            first, second = it.prompts(role)
            assert "en-US" in first
            assert "en-US" not in second
            assert language in second


async def test_the_request_of_a_reviewed_run_is_none_of_the_earlier_ones(tmp_path):
    script = {
        "coordinator": [HANDOFF],
        "planner": [planned("researcher", "reporter"), planned("coder", "reporter")],
        "coder": [reply("4.")],
        "reporter": [reply("# Four")],
    }
    async with scripted_team(script) as it:
        await it.run("1+3=?", thread_id="t", auto_accepted_plan=False)
        await it.run("let the coder compute", thread_id="t", auto_accepted_plan=False)
        await it.run("looks good, go ahead", thread_id="t", auto_accepted_plan=False)
        [coder] = it.prompts("coder")
        state = await it.team.aget_state({"configurable": {"thread_id": "t"}})
    assert "earlier requests" not in coder
    assert "let the coder compute" in coder
    assert "looks good" not in coder
    assert history_of(state.values).turns == []


async def test_the_reporter_is_given_an_earlier_report_that_its_step_names(tmp_path):
    workspaces = Workspaces(tmp_path)
    again = reply(json.dumps(plan({**step("reporter"), "description": "Shorten reports/1.md."})))
    script = {
        "coordinator": [HANDOFF, HANDOFF, HANDOFF],
        "planner": [planned("researcher", "reporter"), planned("reporter"), again],
        "researcher": [call("crawl_tool", url=URL), reply("It came in 1610 [1].")],
        "reporter": [reply(FIRST), reply("# Coffee\n\nLater."), reply("# Short")],
    }
    async with scripted_team(script, toolbox=tools(workspaces), items=ThreadItems(workspaces)) as it:
        for request in ("When did tea come?", "And coffee?", "Shorten the first report"):
            await it.run(request, thread_id="t")
        *_, third = it.prompts("reporter")
    assert FIRST in third
    assert URL in third
    assert third.count("# Coffee") == 1
