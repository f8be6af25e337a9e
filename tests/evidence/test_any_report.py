"""Reports of random parts: valid parts stay unchanged, and exactly the invalid ones are marked."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maniple.agents.report_draft import ReportDraft
from maniple.claims.report_check import ReportCheck
from maniple.evidence.blocks import Blocks
from maniple.evidence.check import MARK
from maniple.evidence.citations import find_citations
from tests.evidence.read_pages import Read

pytestmark = pytest.mark.anyio

PAGE = "The bridge was opened in 1932 by the king himself. Nobody has painted it since that day, they say."
RECORD = Read(("https://a.test/page", "The bridge", PAGE))
HONEST = (Path(__file__).parent / "honest_reports.md").read_text(encoding="utf-8").split("\n%%%\n")

MARKS = st.sampled_from(
    ["“{}”", "„{}“", "«{}»", "« {} »", "»{}«", "‘{}’", "‚{}‘", "”{}”", "「{}」", '"{}"', "'{}'", "<q>{}</q>"]
)
RIGHT_WORDS = st.sampled_from(
    ["opened in 1932 by the king", "Nobody has painted it […] they say", "nobody has painted it"]
)
WRONG_WORDS = st.sampled_from(
    ["closed in 1932 by the king", "Everybody has painted it […] they say", "painted by nobody at all"]
)
RIGHT_ADDRESSES = st.sampled_from(
    ["https://a.test/page", "a.test/page", "<http://A.test/page/>", "[t](//a.test/page#x)"]
)
WRONG_ADDRESSES = st.sampled_from(
    ["https://b.test/page", "a.test/pages", "<http://b.test/>", "[t](//a.test/other)"]
)
CONTAINERS = st.sampled_from(
    [
        "It is so: {}, as we see.\n\n",
        "- one\n- so: {}, as we see\n- three\n\n",
        "1. one\n\n   So: {}, as we see.\n\n2. two\n\n",
        "| a | b |\n|---|---|\n| it's | so: {}, as we see |\n| 5\" | `x` |\n\n",
        "> **Note:** it is so: {}, as we see.\n\n",
        "### So: {}, as we see\n\n",
        "[^7]: It is so: {}, as we see.\n\n",
        "- a\n  > **Tip:** {} in it\n\n",
        "```py\nx = 'one two three four'\n```\nSo: {}, as we see.\n\n",
        "Type `it's` or ``a`b``: {}, as we see.\n\n",
        "> {}\n> — Somebody\n\n",
        "*So:* **{}**\n\n",
    ]
)
RIGHT = st.one_of(
    st.builds(lambda mark, words: mark.format(words), MARKS, RIGHT_WORDS), RIGHT_ADDRESSES, st.just("[1]")
)
WRONG = st.one_of(
    st.builds(lambda mark, words: mark.format(words), MARKS, WRONG_WORDS), WRONG_ADDRESSES, st.just("[9]")
)
RIGHT_PARTS = st.lists(
    st.builds(lambda container, one: container.replace("{}", one), CONTAINERS, RIGHT), max_size=5
)


async def shown(report: str, size: int) -> str:
    """Return what is shown of a report that comes in pieces, without the list of sources at its end."""
    draft = ReportDraft(await ReportCheck.of(RECORD), locale="en")
    pieces = [await draft.feed(report[at : at + size]) for at in range(0, len(report), size)]
    text = "".join([*pieces, await draft.end()])
    return text.partition("## Sources\n")[0].rstrip("\n")


@given(RIGHT_PARTS, st.integers(1, 400))
@settings(max_examples=100, deadline=None)
async def test_a_right_report_stays_as_it_is(parts, size):
    report = "".join(parts).rstrip("\n")
    assert await shown(report, size) == report


@given(RIGHT_PARTS, RIGHT_PARTS, CONTAINERS, WRONG)
@settings(max_examples=300, deadline=None)
async def test_exactly_what_is_wrong_is_marked_wherever_it_occurs(before, behind, container, wrong):
    part = container.replace("{}", wrong)
    report = "".join([*before, part, *behind]).rstrip("\n")
    done = await shown(report, 400)
    assert done.count(MARK) == 1
    assert done.replace(f" {MARK}", "") == report
    start = len("".join(before))
    assert start < done.index(MARK) <= start + len(part.rstrip()) + 1


@pytest.mark.parametrize("report", HONEST, ids=[report.split("\n")[0] for report in HONEST])
def test_an_honest_report_in_any_language_quotes_nothing_by_its_marks_and_dots(report):
    blocks = Blocks()
    found = [one for block in (*blocks.feed(report), *blocks.end()) for one in find_citations(block)]
    assert [one.text for one in found if one.kind != "number"] == []
