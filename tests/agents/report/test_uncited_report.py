"""A report of a run that looked nothing up."""

import json

import pytest

from maniple.agents.report_draft import UncitedDraft
from maniple.claims.report_check import ReportCheck
from maniple.evidence.blocks import Blocks
from maniple.evidence.check import mark_findings
from tests.evidence.read_pages import Read
from tests.openai_server import SIMPLE, reply
from tests.team import data, joined_text, plan, scripted_team, step

pytestmark = pytest.mark.anyio
CHUNKS = [
    "# Sum\n\n4, see w",
    "ww.sums",
    ".test or htt",
    "ps:",
    "//sums.test",
    "/4.\nYes.\n",
    "\nE",
    "nd",
]


async def test_it_is_left_as_it_is_and_costs_nothing():
    chunks = ["# Su", "m\n\nIt says “the answer is four ", "point nought” [7].\n\n## Sour", "ces\n\n- none"]
    report = "# Sum\n\nIt says “the answer is four point nought” [7].\n\n## Sources\n\n- none"
    async with scripted_team({**SIMPLE, "reporter": [{"chunks": chunks}]}) as team:
        frames = await team.run()
        assert team.server.stats["calls"] == 5
    assert data(frames, "end_of_workflow")[0]["messages"][-1]["content"] == report
    assert joined_text(frames).endswith(report)


async def test_an_invented_address_in_it_is_marked_without_asking():
    async with scripted_team({**SIMPLE, "reporter": [{"chunks": CHUNKS}]}) as team:
        frames = await team.run()
        assert team.server.stats["calls"] == 5
    assert joined_text(frames).endswith(
        "# Sum\n\n4, see www.sums.test [unverified] or https://sums.test/4 [unverified].\nYes.\n\nEnd"
    )


async def _report_after(agent: str, chunks: list[str]) -> str:
    """Return what is shown of a report behind a step of `agent` that read nothing."""
    script = {
        **SIMPLE,
        "planner": [reply(json.dumps(plan(step(agent), step("reporter"))))],
        agent: [reply("Every search failed.")],
        "reporter": [{"chunks": chunks}],
    }
    async with scripted_team(script) as team:
        frames = await team.run()
    begin = next(at for at, (_, one) in enumerate(frames) if one.get("agent_name") == "reporter")
    return joined_text(frames[begin:])


QUOTED = ["Old. ", "It says “the bri", "dge was opened in 1932” [", "1].\n\n> the king ", "came by himself\n"]


async def test_where_every_search_failed_what_is_cited_and_quoted_all_the_same_is_marked():
    assert await _report_after("researcher", QUOTED) == (
        "Old. It says “the bridge was opened in 1932” [unverified] [1] [unverified].\n\n"
        "> the king came by himself [unverified]\n"
    )


async def test_without_a_search_a_list_of_numbers_is_no_citation():
    chunks = ["[1, 2", "] and “a saying of four words”"]
    assert await _report_after("coder", chunks) == "".join(chunks)


async def test_what_cites_nothing_is_shown_at_once():
    draft = UncitedDraft(await ReportCheck.of(Read(), researched=True))
    assert [await draft.feed(chunk) for chunk in QUOTED[:2]] == ["Old. ", ""]


@pytest.mark.parametrize("researched", [False, True])
@pytest.mark.parametrize(
    "cited",
    [
        "[t](folder:nope.md)",
        "folder:nope.md",
        "evil.test/x",
        "[t](evil.com)",
        "evil&period;test/x",
        "<doi:10.1/2>",
    ]
    + [
        f"{one}one two three four{two}" for one, two in ("‘’", "''", "””", "＂＂", "〝〟", "『』", "‹›", '""')
    ],
)
async def test_what_is_shown_letter_by_letter_is_what_is_marked(cited, researched):
    check = await ReportCheck.of(Read(), researched=researched)
    report = f"# B\nIt is old.\n\nSo: {cited}, and more.\n- b\n\nThe end.\n"
    blocks, draft = Blocks(), UncitedDraft(check)
    whole = [mark_findings(one, await check.findings(one)) for one in (*blocks.feed(report), *blocks.end())]
    assert "".join([*[await draft.feed(letter) for letter in report], await draft.end()]) == "".join(whole)
    assert ("[unverified]" in "".join(whole)) == (researched or " two" not in cited)
