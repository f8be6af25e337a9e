"""Errors of calculated figures that are marked, and honest calculations that are not."""

import pytest

from maniple.claims.report_check import ReportCheck
from maniple.evidence import MemoryEvidence

pytestmark = pytest.mark.anyio

FERRY = """# The ferry company of Olvik

Income was 61.8 million crowns in 2024, and costs were 48.9 million. Two boats carried 3,412 lorries.

The share of electric trips rose from 14% to 31%. The crossing takes 1 h 35 min by the old boat.

The race of the two boats was won by Brisa in 2 h 04 min 08 s; Alba came in 1 min 34 s later.

| Q1 (€m) | Q2 (€m) |
|---|---|
| 14.6 | 15.3 |
"""


async def kinds(text: str) -> set[str]:
    """Return the verdicts on the claims of a text that cites the source."""
    evidence = MemoryEvidence()
    await evidence.add("https://a.test/", "The ferry company of Olvik", "page", FERRY)
    check = await ReportCheck.of(evidence, researched=True)
    return {claim.verdict.kind for claim in (await check.claim_report([text])).claims}


@pytest.mark.parametrize(
    "text",
    [
        "From income of 61.8 million and costs of 48.9 million, 13.9 million were left [1].",
        "The share of electric trips rose by 17%, to 31% [1].",
        "Electric trips rose by 221%, from 14% to 31% [1].",
        "Income of 61.8 million is 36% more than the costs of 48.9 million [1].",
        "The boats carried 3,142 lorries in all [1].",
        "The whole income thus was 61.8 billion crowns [1].",
        "The company had 5,714 pilots [1].",
    ],
)
async def test_a_typical_error_is_marked(text):
    assert {"absent", "contradicted"} & await kinds(text)


@pytest.mark.parametrize(
    "text",
    [
        "From income of 61.8 million and costs of 48.9 million, 12.9 million were left [1].",
        "The share of electric trips rose by 17 percentage points, to 31% [1].",
        "Income of 61.8 million is 26% more than the costs of 48.9 million [1].",
        "Alba took 2 h 05 min 42 s [1].",
        "Brisa won in 124 minutes and was 94 seconds faster [1].",
        "The first quarter brought 14.6 million euros [1].",
        "On average this makes about 215 crowns for each of the guests [1].",
    ],
)
async def test_an_honest_calculation_is_not_marked(text):
    assert not {"absent", "contradicted"} & await kinds(text)
