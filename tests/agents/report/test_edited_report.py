"""A follow-up that edits a long report by section: through the whole team."""

import json
from functools import partial

import pytest

from maniple.agents.report_score import remove_score
from maniple.scope.budget import Budget, UsageMeter
from tests.agents.report.research import TOOLS, URL, script
from tests.graph.metered import metered
from tests.openai_server import reply
from tests.team import data, joined_text, plan, scripted_team, step

pytestmark = pytest.mark.anyio

FACT = "The bridge was opened in 1932 by the king himself [1]."
WRONG = "The bridge was opened in 1935 by the king himself [1]."
UNPAINTED, WALKED = "It is not painted.", "It is walked over."
FILLER = "\n\n".join(f"Paragraph {'word ' * 60}end." for _ in range(8))
REPORT = (
    f"# The bridge\n\nShort.\n\n## History\n\n{FACT}\n\n{FILLER}\n\n"
    f"## Colour\n\n{UNPAINTED}\n\n## Use\n\n{WALKED}"
)
LIST = f"\n\n## Sources\n\n- [1] History of the bridge: <{URL}>"
NEW = "## Chart\n\nA new part."
CHART = f'<section heading="## Colour" action="insert_after">\n{NEW}\n</section>'


def replacement(heading: str, text: str) -> str:
    return f'<section heading="{heading}" action="replace">\n{text}\n</section>'


async def two_turns(*answers, meter: UsageMeter | None = None, first: str = REPORT, style: str = ""):
    """Return the reports of two turns, of which the second has `answers`, and the prompts of that."""
    turns = script(f"{first}\n", *answers)
    turns["planner"] = [*turns["planner"], reply(json.dumps(plan(step("reporter"))))]
    async with scripted_team(turns, toolbox=TOOLS) as team:
        before = await team.run("Tell me of the bridge.", thread_id="edits")
        asked = len(team.prompts("reporter"))
        run = team.run if meter is None else partial(metered, team, meter)
        after = await run("Change it.", thread_id="edits", report_style=style)
        return _report(before), _report(after), team.prompts("reporter")[asked:], after


def _report(frames) -> str:
    return remove_score(data(frames, "end_of_workflow")[0]["messages"][-1]["content"])


async def test_a_new_section_leaves_the_rest_of_the_report_as_it_was():
    before, after, asked, frames = await two_turns(CHART)
    assert before == REPORT + LIST
    assert after == before.replace("## Use", f"{NEW}\n\n## Use")
    assert "<section" not in joined_text(frames)
    assert len(asked) == 1
    assert "- `## Colour`" in asked[0]
    assert remove_score(joined_text(frames)).count(WALKED) == 1


async def test_several_edits_in_any_order_with_words_before_them_are_one_report():
    edits = (
        "I changed it as follows:\n\n"
        + replacement("## Use", "Nobody uses it.")
        + '\n<section heading="## Colour" action="delete"></section>\n'
        + replacement("# The bridge", "# The old bridge\n\nShorter.")
    )
    before, after, asked, _ = await two_turns(edits)
    expected = before.replace(WALKED, "Nobody uses it.")
    expected = expected.replace(f"## Colour\n\n{UNPAINTED}\n\n", "")
    assert after == expected.replace("# The bridge\n\nShort.", "# The old bridge\n\nShorter.")
    assert len(asked) == 1


async def test_a_wrong_figure_in_an_edit_is_repaired_and_unchanged_marks_stay():
    edit = replacement("## Colour", WRONG.replace("1935", "1947"))
    passage = f'<passage number="1">{FACT}</passage>'
    marked = REPORT.replace(FACT, WRONG)
    before, after, asked, frames = await two_turns("no passages", edit, passage, first=marked)
    assert f"{WRONG} [unverified]" in before
    assert after == before.replace(UNPAINTED, FACT)
    assert asked[1].count("<passage") > 0
    (event,) = data(frames, "claims")
    judged = [one["text"] for one in event["claims"]]
    assert sum("1935" in one for one in judged) == 1, "the claims of what is unchanged are checked, too"
    assert sum("1932" in one for one in judged) == 1


async def test_an_unknown_heading_is_asked_for_again():
    right = replacement("## Use", "Nobody uses it.")
    before, after, asked, _ = await two_turns(replacement("## Usage", "Nobody uses it."), right)
    assert after == before.replace(WALKED, "Nobody uses it.")
    assert len(asked) == 2
    assert "`## Usage`: there" in asked[1]


async def test_after_a_repair_that_does_not_fit_the_whole_report_is_asked_for():
    wrong = replacement("## Usage", "x")
    _, after, asked, frames = await two_turns(wrong, wrong, f"# New\n\n{FACT}\n")
    assert after == f"# New\n\n{FACT}{LIST}"
    assert len(asked) == 3
    assert joined_text(frames).count("# New") == 1


async def test_what_does_not_fit_in_the_end_is_named_in_the_report():
    half = replacement("## Usage", "x") + replacement("## Use", "Nobody uses it.")
    before, after, asked, _ = await two_turns(half)
    assert len(asked) == 3
    assert after.startswith(before.removesuffix(LIST).replace(WALKED, "Nobody uses it."))
    assert "**Missing" in after
    assert "`## Usage`" in after
    assert after.endswith(LIST)


async def test_if_the_budget_ends_the_edits_that_fit_are_applied():
    half = replacement("## Usage", "x") + replacement("## Use", "Nobody uses it.")
    meter = UsageMeter(Budget(model_calls=3))  # the coordinator, the planner and the reporter
    _, after, asked, _ = await two_turns(half, meter=meter)
    assert len(asked) == 1
    assert "Nobody uses it." in after
    assert "`## Usage`" in after


async def test_the_style_of_long_reports_does_not_keep_a_report_from_being_edited():
    before, after, asked, _ = await two_turns(CHART, style="long")
    assert after == before.replace("## Use", f"{NEW}\n\n## Use")
    assert len(asked) == 1


async def test_a_whole_answer_stays_possible_and_streams():
    _, after, asked, _ = await two_turns(f"# Anew\n\n{FACT}\n")
    assert after == f"# Anew\n\n{FACT}{LIST}"
    assert len(asked) == 1


async def test_a_short_report_is_written_again():
    _, after, asked, _ = await two_turns("# Anew\n\nOther.\n", first=f"# Old\n\n{FACT}")
    assert "<section" not in asked[0]
    assert after.startswith("# Anew")
