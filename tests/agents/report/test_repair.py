"""The call that repairs a report: it obeys the run's budget, its time limit and cancellation."""

import asyncio
import re

import pytest

from maniple.agents.report_score import remove_score
from maniple.scope.budget import Budget, UsageMeter
from tests.agents.report.research import research_team
from tests.graph.metered import metered
from tests.openai_server import reply
from tests.team import data, joined_text

pytestmark = pytest.mark.anyio
DRAFT = "# B\n\nIt is grey: “nobody has ever dared to paint it since” [1].\n"
MENDED = '<passage number="1">It is not painted [1].</passage>'
MARKED = "dared to paint it since” [unverified] [1]."


async def test_its_tokens_are_the_runs():
    async with research_team(DRAFT, MENDED) as it:
        meter = UsageMeter()
        frames = await metered(it, meter, thread_id="repair counts")
        stats = it.server.stats
    assert "It is not painted [1]." in joined_text(frames)
    assert (meter.used.model_calls, stats["by_role"]["reporter"]) == (stats["calls"], 2)
    assert meter.used.input_tokens == stats["prompt_tokens"]
    assert meter.used.output_tokens == stats["completion_tokens"]


async def test_if_the_budget_ends_first_the_report_is_marked_and_the_run_reports_it():
    async with research_team(DRAFT, MENDED) as it:
        meter = UsageMeter(Budget(model_calls=5))
        frames = await metered(it, meter, thread_id="repair budget")
        assert it.server.stats["by_role"]["reporter"] == 1
    assert MARKED in joined_text(frames)
    report = data(frames, "end_of_workflow")[0]["messages"][-1]["content"]
    assert remove_score(report).endswith("<https://bridge.test/history>")
    assert "5 model calls" in meter.exhausted


@pytest.mark.parametrize(("left_seconds", "calls"), [(0.5, 2), (0, 1)])
async def test_it_ends_before_the_runs_time_does(left_seconds, calls):
    async with research_team(DRAFT, reply("", hang=True)) as it:

        def clock() -> float:
            return 500 - left_seconds if it.server.stats["by_role"].get("reporter") else 0

        meter = UsageMeter(Budget(seconds=500), clock=clock)
        frames = await metered(it, meter, thread_id="repair time")
        assert it.server.stats["by_role"]["reporter"] == calls
    assert MARKED in joined_text(frames)
    assert data(frames, "plan")[-1]["steps"][-1]["status"] == "completed"


async def test_who_cancels_the_run_cancels_it():
    async with research_team(DRAFT, reply("", hang=True)) as it:
        run = asyncio.create_task(it.run())
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["by_role"].get("reporter") == 2)
        run.cancel()
        await asyncio.gather(run, return_exceptions=True)
        assert run.cancelled()
        await asyncio.to_thread(it.server.wait_for, lambda stats: stats["aborted"] == 1)


async def test_at_most_twenty_passages_are_sent_for_repair():
    block = "It says “nobody has ever dared to paint it since” [1].\n\n"
    async with research_team("# B\n\n" + block * 30, MENDED) as it:
        frames = await it.run()
        asked = it.prompts("reporter")[1]
    assert '<passage number="20">' in asked
    assert '<passage number="21">' not in asked
    assert joined_text(frames).count("[unverified]") == 29


async def test_excerpts_are_fenced_with_marks_that_no_page_can_guess():
    async with research_team(DRAFT, MENDED) as it:
        await it.run()
        for prompt in it.prompts("reporter"):
            marks = re.search(r"<data \w{8}>\n\[1\] History of the bridge: .*?\n</data \w{8}>", prompt)
            assert marks is not None, prompt
    assert re.search(
        r"What stands there:\n<data \w{8}>\n.*nobody has painted it.*</data \w{8}>", prompt, re.S
    )


WRONG = "“nobody has ever dared to paint it since” [1]"
BAD = f"It is grey: {WRONG}."


@pytest.mark.parametrize(
    ("passage", "mended"),
    [
        (
            f"| Year | What |\n|---|---|\n| 1932 | opened [1] |\n| now | {WRONG} |",
            "It was opened then [1], not grey.",
        ),
        (f"- opened in 1932 [1]\n- grey: {WRONG}", "It was opened in 1932 by the king himself [1]."),
        (
            "See https://archive.test/bridge for more of the king and the bridge in 1932 [1].",
            "See more [1].",
        ),
        ("The bridge is old [1], see https://archive.test/bridge.", "The bridge is old, see the archive."),
        (BAD, f"# Grey\n\n{'It is not painted [1]. ' * 2}"),
        (BAD, f"```\n{BAD}"),
    ],
)
async def test_a_repair_that_loses_more_than_it_fixes_is_rejected(passage, mended):
    async with research_team(f"# B\n\n{passage}\n", f'<passage number="1">{mended}</passage>') as it:
        frames = await it.run()
        assert it.server.stats["by_role"]["reporter"] == 2
    assert "[unverified]" in joined_text(frames)
    assert mended not in joined_text(frames)


async def test_a_quotation_may_be_given_to_the_source_where_it_is_or_be_left_out():
    table = f"| Year | What |\n|---|---|\n| 1932 | opened [1] |\n| now | {WRONG} |"
    mended = "| Year | What |\n|---|---|\n| 1932 | opened [1] |\n| now | not painted |"
    async with research_team(f"# B\n\n{table}\n", f'<passage number="1">{mended}</passage>') as it:
        assert mended in joined_text(await it.run())


async def test_a_claim_is_not_given_the_source_of_its_neighbour_in_the_cell():
    cell = "| What |\n|---|\n| 36 metres high [7]; opened in 1932 [1] |"
    mended = cell.replace("[7]", "[1]")
    async with research_team(f"# B\n\n{cell}\n", f'<passage number="1">{mended}</passage>') as it:
        frames = await it.run()
    assert "36 metres high [7] [unverified]" in joined_text(frames)
    right = cell.replace(" [7]", "")
    async with research_team(f"# B\n\n{cell}\n", f'<passage number="1">{right}</passage>') as it:
        assert right.removesuffix(" |") in joined_text(await it.run())


async def test_a_wrong_figure_is_repaired_with_what_the_source_has():
    wrong, right = "The bridge was opened in 1935 by the king himself [1].", "It was opened in 1932 [1]."
    async with research_team(f"# B\n\n{wrong}\n", f'<passage number="1">{right}</passage>') as it:
        frames = await it.run()
        request = it.prompts("reporter")[-1]
    assert right in joined_text(frames)
    assert "1935" in request
    assert "1932" in request.partition("What stands there:")[2]


async def test_a_wrong_figure_that_is_not_repaired_is_marked():
    async with research_team("# B\n\nThe bridge was opened in 1935 by the king himself [1].\n", "no") as it:
        assert "[1]. [unverified]" in joined_text(await it.run())
