"""A long report through the whole team: an outline, sections in parallel, a closing section."""

import asyncio
import json
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from maniple.agents.report_score import remove_score
from maniple.config import TeamSettings
from maniple.graph import RunOptions
from maniple.runs.turn import stream_run
from maniple.scope.budget import Budget, UsageMeter
from tests.agents.report.research import TOOLS, URL, script
from tests.graph.metered import metered
from tests.openai_server import reply
from tests.team import data, joined_text, scripted_team

pytestmark = pytest.mark.anyio

FACT = "The bridge was opened in 1932 by the king himself [1]."
WRONG = "The bridge was opened in 1935 by the king himself [1]."
LIST = f"\n\n## Sources\n\n- [1] History of the bridge: <{URL}>"
SECTIONS = [{"heading": name, "answers": f"about {name}", "sources": [1]} for name in ("Past", "Use", "Rest")]
OUTLINE = json.dumps({"title": "The bridge", "introduction": "It is old [1].", "sections": SECTIONS})
CLOSING = "## In short\n\nIt stands."
PAST, USE, REST = FACT, "It is walked over.", "### More\n\nNothing is known."
REPORT = (
    f"# The bridge\n\nIt is old [1].\n\n## Past\n\n{PAST}\n\n## Use\n\n{USE}\n\n"
    f"## Rest\n\n{REST}\n\n{CLOSING}{LIST}"
)
Answer = str | Mapping[str, Any]


async def write(
    *answers: Answer, meter: UsageMeter | None = None, style: str = "long"
) -> tuple[str, list[str], list[tuple[str, dict[str, Any]]]]:
    """Return the report for which the reporter gives `answers` in turn, its prompts, and the frames."""
    settings = TeamSettings(parallel_steps=1)
    async with scripted_team(script(*answers), toolbox=TOOLS, settings=settings) as team:
        run = team.run if meter is None else partial(metered, team, meter)
        frames = await run("Tell me all of the bridge.", report_style=style)
        return report_of(frames), team.prompts("reporter"), frames


def report_of(frames: list[tuple[str, dict[str, Any]]]) -> str:
    return remove_score(data(frames, "end_of_workflow")[0]["messages"][-1]["content"])


async def test_sections_are_written_from_an_outline_and_joined_in_order():
    report, asked, frames = await write(OUTLINE, PAST, USE, REST, CLOSING)
    assert report == REPORT
    assert len(asked) == 5
    assert remove_score(joined_text(frames)).count(PAST) == 1
    assert [re.findall(r"Write section (\d)", one) for one in asked] == [[], ["1"], ["2"], ["3"], []]
    assert "2. Use: about Use" in asked[1]
    assert "History of the bridge" in asked[1]
    assert FACT in asked[-1]


async def test_a_heading_that_the_model_repeats_is_left_out():
    report, *_ = await write(OUTLINE, f"## Past\n\n{PAST}", f"### use\n{USE}", REST, CLOSING)
    assert report == REPORT


async def test_a_wrong_figure_is_repaired_with_its_section():
    passage = f'<passage number="1">{FACT}</passage>'
    report, asked, frames = await write(OUTLINE, PAST, USE, WRONG, passage, CLOSING)
    assert report == REPORT.replace(REST, FACT)
    assert len(asked) == 6
    assert "1935" not in asked[-1], "the closing section is written from what was repaired"
    assert data(frames, "claims")[0]["contradicted"] == 0


async def test_a_section_that_fails_is_written_again_once():
    broken = reply("", status=400, error="no")
    report, asked, _ = await write(OUTLINE, broken, PAST, USE, REST, CLOSING)
    assert report == REPORT
    assert len(asked) == 6


async def test_a_section_that_breaks_off_is_continued():
    begun = reply(PAST[:20], finish_reason="length")
    report, asked, _ = await write(OUTLINE, begun, PAST[20:], USE, REST, CLOSING)
    assert report == REPORT
    assert PAST[:20] in asked[2]


async def test_a_section_that_fails_twice_is_named_as_a_gap():
    broken = reply("", status=400, error="no", times=2)
    report, *_ = await write(OUTLINE, PAST, broken, REST, CLOSING)
    head, gap = report.split("## Use\n\n")
    assert gap.startswith("**Missing (Use):**")
    assert REPORT.startswith(head)
    assert f"## Rest\n\n{REST}\n\n{CLOSING}{LIST}" in gap


async def test_if_no_section_can_be_written_the_report_is_compiled_by_code():
    report, *_ = await write(OUTLINE, reply("", status=400, error="no"))
    assert "It was opened in 1932 [1]." in report, "what the researcher found"


async def test_its_calls_count_and_what_the_budget_does_not_allow_is_named():
    counted = UsageMeter()
    await write(OUTLINE, PAST, USE, REST, CLOSING, meter=counted)
    assert counted.used.model_calls == 9  # the coordinator, the planner and twice the researcher
    report, asked, _ = await write(OUTLINE, PAST, USE, REST, CLOSING, meter=UsageMeter(Budget(model_calls=6)))
    assert len(asked) == 2
    assert PAST in report
    assert "**Missing (Use):**" in report
    assert "**Missing (Rest):**" in report
    assert "6 model calls" in report


async def test_what_is_no_outline_is_asked_for_again_and_else_is_the_report():
    report, asked, _ = await write("# All\n\nShort.", OUTLINE, PAST, USE, REST, CLOSING)
    assert report == REPORT
    report, asked, _ = await write(f"# All\n\n{FACT}", "No.")
    assert report == f"# All\n\n{FACT}{LIST}"
    assert len(asked) == 2


@pytest.mark.parametrize(("style", "line"), [("brief", "Style: brief"), ("table", "Style: table"), ("", "")])
async def test_another_style_is_a_line_of_the_prompt(style: str, line: str):
    report, asked, _ = await write(f"# All\n\n{FACT}", style=style)
    assert report == f"# All\n\n{FACT}{LIST}"
    assert line in asked[0]
    assert '"sections"' not in asked[0], "one source is too little for a long report"


async def test_sections_are_written_at_the_same_time():
    slow = reply(f"{PAST}\n\nEnd.", hang_after=1)
    settings = TeamSettings(parallel_steps=3)
    turns = script(OUTLINE, *[slow] * 3, CLOSING)
    async with scripted_team(turns, toolbox=TOOLS, settings=settings) as team:
        run = asyncio.create_task(team.run("Tell me all.", report_style="long"))
        await asyncio.to_thread(team.server.wait_for, lambda stats: stats["by_role"].get("reporter") == 4)
        await asyncio.to_thread(team.server.release)
        report = report_of(await run)
    assert report.count(PAST) == 3
    assert [*re.findall(r"^## (\w+)", report, re.MULTILINE)] == ["Past", "Use", "Rest", "In", "Sources"]


async def test_a_section_is_shown_while_the_next_one_is_written():
    turns, shown = script(OUTLINE, PAST, reply(USE, hang=True), REST, CLOSING), ""
    is_released = False
    async with scripted_team(turns, toolbox=TOOLS, settings=TeamSettings(parallel_steps=1)) as team:
        asked = [HumanMessage("Tell me all.")]
        async for event in stream_run(team.team, asked, options=RunOptions(report_style="long")):
            if event.type == "message":
                shown += event.data()["delta"].get("content", "")
            if PAST in shown and not is_released:
                is_released = True
                await asyncio.to_thread(team.server.release)
    assert is_released
    assert USE in shown


async def test_a_cancelled_run_ends_the_calls_of_all_sections():
    turns = script(OUTLINE, *[reply("", hang=True)] * 3)
    async with scripted_team(turns, toolbox=TOOLS, settings=TeamSettings(parallel_steps=3)) as team:
        run = asyncio.create_task(team.run("Tell me all.", report_style="long"))
        await asyncio.to_thread(team.server.wait_for, lambda stats: stats["by_role"].get("reporter") == 4)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert run.cancelled()
        await asyncio.to_thread(team.server.wait_for, lambda stats: stats["aborted"] == 3)
