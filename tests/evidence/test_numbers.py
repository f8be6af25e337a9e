"""Citations of several sources at once, in the forms that models write."""

import pytest

from maniple.agents.report_draft import ReportDraft
from maniple.evidence import MemoryEvidence
from maniple.evidence.check import SourceCheck

pytestmark = pytest.mark.anyio


async def reported(text: str) -> str:
    """Return the report on three sources that a draft of `text` becomes."""
    evidence = MemoryEvidence()
    for name in "abc":
        await evidence.add(f"https://e.test/{name}", name.upper(), "page", f"Tea from {name}.")
    draft = ReportDraft(await SourceCheck.of(evidence, researched=True))
    return await draft.feed(text) + await draft.end()


@pytest.mark.parametrize(
    ("cited", "listed"),
    [
        ("[1,2]", "12"),
        ("[1, 2]", "12"),
        ("[1-3]", "123"),
        ("[1–3]", "123"),
        ("[3-1]", "123"),
        ("[1][2]", "12"),
        ("[1] [3]", "13"),
        ("[1, 2-3]", "123"),
        ("[1;3]", "13"),
        ("[ 1 ]", "1"),
        ("\\[1\\]", "1"),
        ("[1 and 3]", "13"),
        ("[1 & 3]", "13"),
        ("[1和3]", "13"),
        ("[Source 1]", "1"),
        ("[Source 1, Source 3]", "13"),
        ("[S1]", "1"),
        ("[#1]", "1"),
        ("<sup>1</sup>", "1"),
        ("<sup>1,3</sup>", "13"),
    ],
)
async def test_each_source_of_a_citation_is_resolved_and_listed(cited: str, listed: str) -> None:
    report = await reported(f"Tea is cheap {cited}.\n")
    text, _, sources = report.partition("## Sources\n\n")
    assert text.startswith(f"Tea is cheap {cited}.\n")
    assert "[unverified]" not in report
    assert [line[3] for line in sources.splitlines()] == [*listed]


@pytest.mark.parametrize(
    ("cited", "marked", "listed"),
    [
        ("[1,4]", "[1,4] [unverified]", "1"),
        ("[4, 2]", "[4, 2] [unverified]", "2"),
        ("[2-4]", "[2-4] [unverified]", "23"),
        ("[4-2]", "[4-2] [unverified]", "23"),
        ("[1][4]", "[1][4] [unverified]", "1"),
        ("[4][1]", "[4] [unverified][1]", "1"),
        ("[1-900]", "[1-900] [unverified]", "1"),
        ("[7](https://e.test/b)", "[7](https://e.test/b) [unverified]", "2"),
        ("[1] [ 9 ]", "[1] [ 9 ] [unverified]", "1"),
        ("[1] \\[9\\]", "[1] \\[9\\] [unverified]", "1"),
        ("[1 and 9]", "[1 and 9] [unverified]", "1"),
        ("[1] [Source 9]", "[1] [Source 9] [unverified]", "1"),
        ("[1] [S9] [#9]", "[1] [S9] [unverified] [#9] [unverified]", "1"),
        ("[1], so.<sup>9</sup>", "[1], so.<sup>9</sup> [unverified]", "1"),
    ],
)
async def test_a_citation_with_a_number_that_no_source_has_is_marked(
    cited: str, marked: str, listed: str
) -> None:
    text, _, sources = (await reported(f"Tea is cheap {cited}.\n")).partition("## Sources\n\n")
    assert text.startswith(f"Tea is cheap {marked}.\n")
    assert [line[3] for line in sources.splitlines()] == [*listed]


@pytest.mark.parametrize(
    "words", ["[2026-11-22]", "[1-2-3]", "[2026]", "[0, 1]", "m<sup>9</sup>", "10<sup>9</sup>", "[s]"]
)
async def test_a_date_a_year_an_interval_or_an_exponent_is_no_citation(words: str) -> None:
    assert (await reported(f"Tea is cheap {words} [1].\n")).startswith(f"Tea is cheap {words} [1].\n")
